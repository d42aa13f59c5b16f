import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pt_neural import LuceneIndex
from pt_neural._artifacts import ArtifactError
from pt_neural.lucene.documents import prepare


def test_an_index_knows_its_documents_and_fields(index, corpus):
    assert len(index) == 6
    assert sorted(index.docnos()) == [document["docno"] for document in corpus]
    assert index.fields() == ["contents", "title"]
    assert index.built()
    assert repr(index) == f"LuceneIndex({index.path.name!r})"
    assert index.document_frequencies(["univers", "giraff", "zebra"]).tolist() == [2, 2, 0]


def test_pyterrier_loads_it_as_an_artifact(index):
    loaded = pt.Artifact.load(str(index.path))
    assert isinstance(loaded, LuceneIndex)
    assert loaded == LuceneIndex(index.path)
    assert hash(loaded) == hash(index)


def test_anserini_searches_what_we_build(index):
    from pt_neural.lucene.jvm import in_java, java_class

    @in_java
    def search():
        searcher = java_class("io.anserini.search.SimpleSearcher")(str(index.path))
        return [(hit.docid, hit.score) for hit in searcher.search("giraffe neck", 10)]

    ours = index.bm25().search("giraffe neck")
    found = search()
    assert [docno for docno, _ in found] == ours["docno"].tolist()
    assert np.allclose([score for _, score in found], ours["score"], atol=1e-4)


def test_a_pipeline_ends_in_an_index(tmp_path, corpus):
    lower = pt.apply.text(lambda row: row["text"].replace("okapi", "zebra"))
    index = LuceneIndex(tmp_path / "index")
    (lower >> index.indexer(verbose=False)).index(corpus)
    assert index.bm25().search("zebra")["docno"].tolist() == ["d4"]
    (lower >> LuceneIndex(tmp_path / "other")).index(corpus)
    assert len(LuceneIndex(tmp_path / "other")) == 6


def test_documents_of_every_kind_are_kept(build):
    index = build(
        [
            {"docno": 7, "text": "int docno"},
            {"docno": np.int64(8), "text": None},
            {"docno": "9", "text": float("nan"), "title": ""},
            {"docno": "é\t 😀", "text": "half \ud800 a character, NUL \0 and line\u2028breaks\n"},
            {"docno": "stop", "text": "the of and"},
            {"docno": "long", "text": "word " * 200_000},
        ]
    )
    assert sorted(index.docnos()) == sorted(["7", "8", "9", "é\t 😀", "stop", "long"])
    assert index.bm25().search("character").docno.tolist() == ["é\t 😀"]
    assert index.bm25().search("breaks").docno.tolist() == ["é\t 😀"]


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([{"docno": "a", "text": "x"}, {"docno": "b", "text": "x"}, {"docno": "a", "text": "y"}], "'a'.* 0 and 2"),
        ([{"docno": 1, "text": "x"}, {"docno": "1", "text": "y"}], "'1' occurs twice"),
        ([{"docno": "a", "text": "x"}, {"text": "x"}], r"document 1 .*None"),
        ([{"docno": float("nan"), "text": "x"}], "docno nan"),
        ([{"docno": "", "text": "x"}], "not empty"),
        ([{"docno": "a\0b", "text": "x"}], "NUL"),
        ([{"docno": "\ud800", "text": "x"}], "half a character"),
        ([{"docno": "é" * 20_000, "text": "x"}], "32766 bytes"),
        ([{"docno": "a", "body": "x"}], "'a' has none of the fields"),
    ],
)
def test_bad_documents_are_named_and_nothing_is_left(tmp_path, documents, message):
    with pytest.raises(ValueError, match=message):
        LuceneIndex(tmp_path / "index").index(documents, verbose=False)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_build_leaves_nothing_and_can_be_repeated(tmp_path, corpus):
    def interrupted():
        yield from corpus * 1
        raise KeyboardInterrupt

    index = LuceneIndex(tmp_path / "index")
    with pytest.raises(KeyboardInterrupt):
        index.index(interrupted(), verbose=False)
    assert not index.built()
    assert list(tmp_path.iterdir()) == []
    assert len(index.index(corpus, verbose=False)) == 6


def test_an_index_is_replaced_only_on_request(index, corpus):
    with pytest.raises(FileExistsError, match="overwrite=True"):
        index.index(corpus, verbose=False)
    with pytest.raises(ValueError, match="twice"):
        index.index([corpus[0], corpus[0]], verbose=False, overwrite=True)
    assert len(index) == 6
    index.index(corpus[:2], verbose=False, overwrite=True)
    assert len(index) == 2
    assert index.bm25().search("university").docno.tolist() == ["d2", "d1"]


def test_paths_that_hold_no_index(tmp_path, corpus):
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(FileExistsError, match="is a file"):
        LuceneIndex(file).index(corpus, verbose=False)
    with pytest.raises(ArtifactError, match="is a file"):
        len(LuceneIndex(file))
    with pytest.raises(FileNotFoundError, match="does not exist; build"):
        LuceneIndex(tmp_path / "none").bm25().search("x")
    with pytest.raises(ArtifactError, match="no Lucene index"):
        len(LuceneIndex(tmp_path))
    assert not LuceneIndex(file).built()


def test_stemmers_and_stop_words_belong_to_the_index(build, tmp_path):
    documents = [{"docno": "d1", "text": "the running rivers"}, {"docno": "d2", "text": "a house"}]
    words = tmp_path / "words.txt"
    words.write_text("rivers\n")

    def terms(**options):
        return LuceneIndex(build(documents, **options).path).analysis.terms("the running rivers")

    assert terms() == ["run", "river"]
    assert terms(stemmer="none", stopwords="none") == ["the", "running", "rivers"]
    assert terms(stemmer="krovetz") == ["running", "river"]
    assert terms(stemmer="none", stopwords=str(words)) == ["the", "running"]
    words.unlink()
    with pytest.raises(ValueError, match="stemmer='snowball'"):
        build(documents, stemmer="snowball")
    with pytest.raises(ValueError, match="neither"):
        build(documents, stopwords="missing.txt")
    with pytest.raises(ValueError, match="'contents', a name"):
        build(documents, separate_fields=["contents"])


def test_options_decide_what_lucene_keeps(build, corpus):
    small = build(corpus, positions=False, vectors=False, store_text=False)
    assert small.reader.fields["contents"] == (False, False)
    assert not (small.path / "text").exists()
    assert build(corpus).reader.fields["contents"] == (True, True)


def test_no_documents_are_a_mistake(tmp_path):
    with pytest.raises(ValueError, match="no documents to index"):
        LuceneIndex(tmp_path / "index").index(iter([]), verbose=False)
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.text(min_size=1, max_size=8), st.text(max_size=40)), max_size=5, unique_by=lambda x: x[0]))
def test_any_text_is_kept_as_it_is(build, documents):
    documents = [(docno, text) for docno, text in documents if not {"\0", "\n"} & set(docno)]
    if not documents:
        return
    index = build([{"docno": docno, "text": text} for docno, text in documents])
    frame = pd.DataFrame({"docno": [docno for docno, _ in documents]})
    assert index.text_loader(["text"])(frame)["text"].tolist() == [text for _, text in documents]
    assert len(index) == len(documents)


def test_blank_documents_keep_their_place():
    (document,) = prepare([{"docno": "d", "text": " \t\x1f"}], ["text"], [], ["text"])
    assert document.json == '{"id": "d", "contents": "\\u00a0"}'
    assert document.texts == [" \t\x1f"]


def test_relative_paths_follow_a_change_of_directory(corpus, tmp_path, monkeypatch, index):
    len(index)  # Java runs, and keeps the directory that it was started in
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "stop.txt").write_text("okapi\n")
    made = LuceneIndex("here.lucene").index(corpus, stopwords="stop.txt", verbose=False)
    assert (tmp_path / "elsewhere" / "here.lucene").is_dir()
    monkeypatch.chdir(tmp_path)
    assert made.bm25().search("giraffe")["docno"].iloc[0] in ("d3", "d4")
    assert made.bm25().search("okapi").empty
