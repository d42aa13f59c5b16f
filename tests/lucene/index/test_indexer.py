import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pt_neural import LuceneIndex
from pt_neural.lucene.index.indexer import prepare
from pt_neural.lucene.java.jvm import in_java, java_class


@in_java
def anserini_search(path, query):
    searcher = java_class("io.anserini.search.SimpleSearcher")(str(path))
    return [(hit.docid, hit.score) for hit in searcher.search(query, 10)]


def test_anserini_searches_what_we_build(index):
    ours, theirs = index.bm25().search("giraffe neck"), anserini_search(index.path, "giraffe neck")
    assert [docno for docno, _ in theirs] == ours["docno"].tolist()
    assert np.allclose([score for _, score in theirs], ours["score"], atol=1e-4)


def test_a_pipeline_ends_in_an_index(tmp_path, corpus):
    lower = pt.apply.text(lambda row: row["text"].replace("okapi", "zebra"))
    index = LuceneIndex(tmp_path / "index")
    (lower >> index.indexer(verbose=False)).index(corpus)
    assert index.bm25().search("zebra")["docno"].tolist() == ["d4"]
    (lower >> LuceneIndex(tmp_path / "other")).index(corpus)
    assert len(LuceneIndex(tmp_path / "other")) == 6


def test_documents_of_every_kind_are_kept(tmp_path):
    index = LuceneIndex(tmp_path / "index").index(
        [
            {"docno": 7, "text": "int docno"},
            {"docno": np.int64(8), "text": None},
            {"docno": "9", "text": float("nan"), "title": ""},
            {"docno": "é\t 😀", "text": "half \ud800 a character, NUL \0 and line\u2028breaks\n"},
            {"docno": "stop", "text": "the of and"},
            {"docno": "long", "text": "word " * 200_000},
        ],
        verbose=False,
    )
    assert sorted(index.docnos()) == sorted(["7", "8", "9", "é\t 😀", "stop", "long"])
    assert index.bm25().search("character").docno.tolist() == ["é\t 😀"]
    assert index.bm25().search("breaks").docno.tolist() == ["é\t 😀"]


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([], "no documents to index"),
        ([{"docno": "a", "text": "x"}, {"docno": "b", "text": "x"}, {"docno": "a", "text": "y"}], "'a'.*in document 2"),
        ([{"docno": "a", "text": "x"}, {"text": "x"}], r"document 1 .*None"),
        ([{"docno": "a\0b", "text": "x"}], "NUL"),
        ([{"docno": "a", "body": "x"}], "'a' has none of the fields"),
    ],
)
def test_bad_documents_are_named_and_nothing_is_left(tmp_path, documents, message):
    with pytest.raises(ValueError, match=message):
        LuceneIndex(tmp_path / "index").index(iter(documents), verbose=False)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_build_leaves_nothing_and_can_be_repeated(tmp_path, corpus):
    def interrupted():
        yield from corpus
        raise KeyboardInterrupt

    index = LuceneIndex(tmp_path / "index")
    with pytest.raises(KeyboardInterrupt):
        index.index(interrupted(), verbose=False)
    assert not index.built()
    assert list(tmp_path.iterdir()) == []
    assert len(index.index(corpus, verbose=False)) == 6


def test_an_index_is_replaced_only_on_request(own_index, corpus):
    with pytest.raises(FileExistsError, match="overwrite=True"):
        own_index.index(corpus, verbose=False)
    with pytest.raises(ValueError, match="twice"):
        own_index.index([corpus[0], corpus[0]], verbose=False, overwrite=True)
    assert len(own_index) == 6
    own_index.index(corpus[:2], verbose=False, overwrite=True)
    assert len(own_index) == 2
    assert own_index.bm25().search("university").docno.tolist() == ["d2", "d1"]


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
    assert terms(stemmer="none", stopwords=str(words)) == ["the", "running"]


def test_impossible_settings_are_refused_at_once(tmp_path):
    index = LuceneIndex(tmp_path / "index")
    with pytest.raises(ValueError, match="stemmer='snowball'"):
        index.indexer(stemmer="snowball")
    with pytest.raises(ValueError, match="neither"):
        index.indexer(stopwords="missing.txt")
    with pytest.raises(ValueError, match="'contents', a name"):
        index.indexer(separate_fields=["contents"])


def test_options_decide_what_lucene_keeps(build, corpus):
    small = build(corpus, positions=False, vectors=False, store_text=False)
    assert small.reader.fields["contents"] == (False, False)
    assert not (small.path / "text").exists()
    assert build(corpus, separate_fields=["title"]).reader.fields["contents"] == (True, True)


ANY_DOCUMENTS = st.lists(
    st.tuples(st.text(min_size=1, max_size=8), st.text(max_size=40)), min_size=1, max_size=30, unique_by=lambda x: x[0]
)


@settings(max_examples=6)
@given(documents=ANY_DOCUMENTS)
def test_any_text_is_kept_as_it_is(tmp_path_factory, documents):
    documents = [(docno, text) for docno, text in documents if not {"\0", "\n"} & set(docno)] or [("d", "")]
    index = LuceneIndex(tmp_path_factory.mktemp("any") / "index")
    index.index([{"docno": docno, "text": text} for docno, text in documents], verbose=False)
    frame = pd.DataFrame({"docno": [docno for docno, _ in documents]})
    assert index.text_loader(["text"])(frame)["text"].tolist() == [text for _, text in documents]
    assert len(index) == len(documents)


def test_blank_documents_keep_their_place():
    (document,) = prepare([{"docno": "d", "text": " \t\x1f"}], ["text"], [], ["text"])
    assert document.json == '{"id": "d", "contents": "\\u00a0"}'
    assert document.texts == [" \t\x1f"]
