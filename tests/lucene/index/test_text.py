import json
import shutil

import pandas as pd
import pyterrier as pt
import pytest

from pt_neural import LuceneIndex
from pt_neural._files import ArtifactError
from pt_neural.lucene.java import jvm


def test_text_by_docno_without_java(index, corpus, monkeypatch):
    monkeypatch.setattr(jvm, "start_java", lambda: pytest.fail("Java was asked for"))
    frame = pd.DataFrame({"docno": ["d6", "d1", "d6"], "other": [1, 2, 3]}, index=[5, 9, 7])
    found = index.text_loader()(frame)
    assert list(found.columns) == ["docno", "other", "title", "text"]
    assert list(found.index) == [5, 9, 7]
    assert found["title"].tolist() == ["Rivers", "Cambridge", "Rivers"]
    assert found["text"].tolist() == [corpus[5]["text"], corpus[0]["text"], corpus[5]["text"]]
    assert index.text_loader("title")(frame)["title"].tolist() == found["title"].tolist()


def test_cutoffs_come_first(index, topics):
    pipeline = index.bm25() >> index.text_loader()
    fused = (pipeline % 1).compile()
    assert "num_results=1" in repr(fused)
    assert fused(topics)["docno"].tolist() == (pipeline % 1)(topics)["docno"].tolist()


def test_any_anserini_index_that_stores_text(build, corpus):
    index = build(corpus, store_text=False, raw=True)
    frame = pd.DataFrame({"docno": ["d4", "d1"]})
    found = index.text_loader(["raw", "contents"])(frame)
    assert found["contents"].tolist() == [f"{corpus[i]['title']} {corpus[i]['text']}" for i in (3, 0)]
    assert '"d4"' in found["raw"][0]
    assert list(index.text_loader()(frame).columns) == ["docno", "contents"]
    with pytest.raises(ValueError, match=r"the text of contents, but not of title.*text_loader\(\['contents'\]\)"):
        index.text_loader(["title"])(frame)


def test_fields_of_a_stored_document_that_are_no_text_are_empty(tmp_path):
    (tmp_path / "source").mkdir()
    fields = [{"title": "one"}, {"title": ["one", "two"]}, {"title": 7}, {"title": None}]
    lines = [json.dumps({"id": f"d{number}", "contents": "okapi", **each}) for number, each in enumerate(fields)]
    (tmp_path / "source" / "documents.jsonl").write_text("\n".join(lines))
    index = LuceneIndex(tmp_path / "index")
    index.index_collection("JsonCollection", tmp_path / "source", raw=True, verbose=False)
    found = index.text_loader(["title"])(pd.DataFrame({"docno": ["d0", "d1", "d2", "d3"]}))
    assert found["title"].tolist() == ["one", "", "", ""]


def test_an_index_without_text_says_how_to_get_it(build, corpus):
    index = build(corpus, positions=False, vectors=False, store_text=False)
    with pytest.raises(ValueError, match=r"has not kept the text of its documents.*store_text=True"):
        index.text_loader()(pd.DataFrame({"docno": ["d4"]}))


def test_by_default_all_fields_are_loaded_that_a_document_has(build):
    documents = [{"docno": "d1", "text": "okapi", "url": "http://a"}, {"docno": "d2", "text": "zebra", "year": 1999}]
    index = build(documents, metadata=["url", "year"])
    found = index.text_loader()(pd.DataFrame({"docno": ["d2", "d1"]}))
    assert found.to_dict("list") == {"docno": ["d2", "d1"], "text": ["zebra", "okapi"], "url": ["", "http://a"]}
    assert index.text_loader("title")(found)["title"].tolist() == ["", ""]
    assert index.bm25().search("http")["docno"].tolist() == []
    with pytest.raises(ValueError, match=r"holds the text of text, url, but not of body.*metadata="):
        index.text_loader(["text", "body"])(found)


def test_metadata_needs_the_text_store(build, corpus):
    with pytest.raises(ValueError, match=r"metadata=\['url'\].*store_text=False"):
        build(corpus, metadata="url", store_text=False)


def test_frames_are_indexed_like_documents(index, corpus, tmp_path):
    frame = pd.DataFrame(corpus)
    of_frame = LuceneIndex(tmp_path / "frame").index(frame)
    assert of_frame.bm25().search("okapi")["score"].tolist() == index.bm25().search("okapi")["score"].tolist()
    assert of_frame.text_loader()(frame[["docno"]])["text"].tolist() == frame["text"].tolist()


def test_unknown_docnos_are_named(index):
    with pytest.raises(ValueError, match=r"docno 'nowhere' is not in "):
        index.text_loader()(pd.DataFrame({"docno": ["d4", "nowhere"]}))


def test_a_damaged_store_names_the_file(own_index):
    offsets = own_index.path / "text" / "offsets.npy"
    offsets.write_bytes(offsets.read_bytes()[:-8])
    with pytest.raises(ArtifactError, match=r"text/offsets\.npy is damaged"):
        own_index.text_loader()(pd.DataFrame({"docno": ["d4"]}))


def test_a_store_of_an_earlier_version_is_read(own_index, corpus):
    (own_index.path / "text" / "slots.npy").unlink()
    shutil.rmtree(own_index.path / "docnos")
    found = own_index.text_loader()(pd.DataFrame({"docno": ["d6", "d1"]}))
    assert found["text"].tolist() == [corpus[5]["text"], corpus[0]["text"]]
    assert not (own_index.path / "text" / "slots.npy").exists()
    assert not (own_index.path / "docnos").exists()


def test_a_store_that_is_not_of_this_index(own_index, build, corpus):
    shutil.rmtree(own_index.path / "text")
    shutil.copytree(build(corpus[:5]).path / "text", own_index.path / "text")
    with pytest.raises(ArtifactError, match="the text of 5 of 6 documents"):
        own_index.text_loader()(pd.DataFrame({"docno": ["d6"]}))


def test_empty_frames(index):
    found = index.text_loader(["title", "text"])(pd.DataFrame(columns=["qid", "docno"]))
    assert list(found.columns) == ["qid", "docno", "title", "text"]
    assert pt.inspect.transformer_outputs(index.text_loader(["title"]), ["docno"]) == ["docno", "title"]


def test_a_progress_bar_where_it_is_wanted(index, capfd):
    frame = pd.DataFrame({"docno": ["d4", "d1"]})
    index.text_loader()(frame)
    assert capfd.readouterr().err == ""
    index.text_loader(verbose=True)(frame)
    assert "TextLoader(" in capfd.readouterr().err
