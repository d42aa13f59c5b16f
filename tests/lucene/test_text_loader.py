import pandas as pd
import pyterrier as pt
import pytest

from pt_neural import LuceneIndex
from pt_neural._artifacts import ArtifactError


def test_text_by_docno(index, corpus):
    frame = pd.DataFrame({"docno": ["d6", "d1", "d6"], "other": [1, 2, 3]}, index=[5, 9, 7])
    found = index.text_loader()(frame)
    assert list(found.columns) == ["docno", "other", "title", "text"]
    assert list(found.index) == [5, 9, 7]
    assert found["title"].tolist() == ["Rivers", "Cambridge", "Rivers"]
    assert found["text"].tolist() == [corpus[5]["text"], corpus[0]["text"], corpus[5]["text"]]


def test_it_needs_no_java(index, monkeypatch):
    from pt_neural.lucene import jvm

    monkeypatch.setattr(jvm, "start_java", lambda: pytest.fail("Java was asked for"))
    assert index.text_loader("title")(pd.DataFrame({"docno": ["d4"]}))["title"].tolist() == ["Okapi"]


def test_cutoffs_come_first(index, topics):
    pipeline = index.bm25() >> index.text_loader()
    fused = (pipeline % 1).compile()
    assert repr(fused).startswith("(BM25(") or "num_results=1" in repr(fused)
    assert fused(topics)["docno"].tolist() == (pipeline % 1)(topics)["docno"].tolist()


def test_any_anserini_index_that_stores_text(build, corpus):
    index = build(corpus, store_text=False, raw=True)
    frame = pd.DataFrame({"docno": ["d4", "d1"]})
    found = index.text_loader(["raw", "contents"])(frame)
    assert found["contents"].tolist() == [f"{corpus[i]['title']} {corpus[i]['text']}" for i in (3, 0)]
    assert '"d4"' in found["raw"][0]
    with pytest.raises(ValueError, match=r"text of title; it has id, raw, contents"):
        index.text_loader(["title"])(frame)


def test_an_index_without_text_says_how_to_get_it(build, corpus):
    index = build(corpus, store_text=False)
    with pytest.raises(ValueError, match=r"text of title, text; .*store_text=True"):
        index.text_loader()(pd.DataFrame({"docno": ["d4"]}))


def test_unknown_docnos_are_named(index):
    with pytest.raises(ValueError, match=r"1 docnos are not in .*'nowhere'"):
        index.text_loader()(pd.DataFrame({"docno": ["d4", "nowhere"]}))


def test_a_damaged_store_names_the_file(index):
    offsets = index.path / "text" / "offsets.npy"
    offsets.write_bytes(offsets.read_bytes()[:-8])
    with pytest.raises(ArtifactError, match="text is damaged"):
        LuceneIndex(index.path).text_loader()(pd.DataFrame({"docno": ["d4"]}))


@pytest.mark.parametrize("fields", [["title"], ["title", "text"]])
def test_empty_frames(index, fields):
    found = index.text_loader(fields)(pd.DataFrame(columns=["qid", "docno"]))
    assert list(found.columns) == ["qid", "docno", *fields]
    assert pt.inspect.transformer_outputs(index.text_loader(fields), ["docno"]) == ["docno", *fields]
