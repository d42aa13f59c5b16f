import errno
import os
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pt_neural import LatentConceptExpansion, LuceneIndex
from pt_neural.lucene.index.indexer import PreparedDocument, in_chunks, prepare
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


def test_stop_words_are_known_by_what_they_are(tmp_path):
    documents = [{"docno": "d1", "text": "okapi river"}, {"docno": "d2", "text": "giraffe river"}]
    index, words = LuceneIndex(tmp_path / "index"), tmp_path / "words.txt"
    bm25 = index.bm25()
    for stop, found in (("okapi", "giraffe"), ("giraffe", "okapi")):
        words.write_text(f"{stop}\n")
        index.index(documents, stopwords=str(words), verbose=False, overwrite=True)
        assert index.document_frequencies(["okapi", "giraff"]).tolist() == [found == "okapi", found == "giraffe"]
        assert index.analysis.terms("okapi giraffe river") == [{"giraffe": "giraff"}.get(found, found), "river"]
        assert len(bm25.search("okapi giraffe")) == 1
    own = LuceneIndex(index.path, stopwords=str(words))
    words.write_text("river\n")
    assert own.bm25().search("river").empty
    assert len(bm25.search("river")) == 2


def test_impossible_settings_are_refused_at_once(tmp_path):
    index = LuceneIndex(tmp_path / "index")
    with pytest.raises(ValueError, match="stemmer='snowball'"):
        index.indexer(stemmer="snowball")
    with pytest.raises(ValueError, match="neither"):
        index.indexer(stopwords="missing.txt")
    with pytest.raises(ValueError, match="'contents', a name"):
        index.indexer(separate_fields=["contents"])
    for name in ("", "a\0b", "\ud800", None):
        with pytest.raises(ValueError, match="a name is text, not empty"):
            index.indexer(separate_fields=[name])


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


def test_fields_of_any_name_are_searched_by_themselves(tmp_path):
    names = ["a b", "-title", "é, 😀", 'quo"te', "line\nbreak"]
    document = {"docno": "d", "text": "river", **{name: f"okapi{i}" for i, name in enumerate(names)}}
    index = LuceneIndex(tmp_path / "index").index([document], separate_fields=names, verbose=False)
    assert index.fields() == sorted([*names, "contents"])
    for i, name in enumerate(names):
        assert index.bm25(field=name).search(f"okapi{i}")["docno"].tolist() == ["d"]
        assert index.bm25(field=name).search("river").empty


@pytest.mark.parametrize("store_text", [True, False])
def test_docnos_and_texts_may_begin_with_a_byte_order_mark(tmp_path, store_text):
    docnos, text = ["\ufeff1", "\ufffe2", "3\ufeff", "4"], "\ufeffokapi \ufffegiraffe"
    documents = [{"docno": docno, "text": text} for docno in docnos]
    index = LuceneIndex(tmp_path / "index").index(documents, store_text=store_text, raw=True, verbose=False)
    assert sorted(index.docnos()) == sorted(docnos)
    found = index.bm25().search("okapi giraffe")
    assert sorted(found["docno"]) == sorted(docnos)
    assert set(index.bm25()(found)["score"]) == set(found["score"])
    assert set(index.text_loader("text" if store_text else "raw")(found).iloc[:, -1].str.contains("\ufeffokapi")) == {
        True
    }
    assert index.rm3().search("okapi")["docno"].nunique() == 4
    assert set(LatentConceptExpansion(index, filter_terms=False).concepts("okapi")["term"]) == {"okapi", "giraff"}


def test_chunks_have_no_more_than_so_many_documents_and_bytes():
    def chunks(*sizes):
        documents = (PreparedDocument("", " " * size, []) for size in sizes)
        return [[len(document.json) for document in chunk] for chunk in in_chunks(documents, 16_000_000)]

    assert chunks() == []
    assert [len(chunk) for chunk in chunks(*[1] * 1100)] == [500, 500, 100]
    assert chunks(9_000_000, 7_000_000, 1, 20_000_000, 5) == [[9_000_000, 7_000_000], [1], [20_000_000], [5]]


IN_A_SMALL_HEAP = """
import sys
from pt_neural import LuceneIndex
text = " ".join(f"{i % 1000:0200}" for i in range(30_000))
index = LuceneIndex(sys.argv[1]).index(({"docno": str(i), "text": text} for i in range(25)), verbose=False)
print(len(index), len(index.bm25().search(f"{7:0200}")))
"""

NO_ROOM = """
import sys
from pt_neural import LuceneIndex
documents = [{"docno": "short", "text": "okapi"}, {"docno": "long", "text": "okapi " * 10_000_000}]
try:
    LuceneIndex(sys.argv[1]).index(documents, verbose=False)
except RuntimeError as error:
    print(str(error).splitlines()[0])
print(len(LuceneIndex(sys.argv[1]).index(documents[:1], verbose=False)))
"""


def run(code, path, heap):
    environment = {**os.environ, "PT_NEURAL_JAVA_HEAP": heap}
    command = [sys.executable, "-c", code, path]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.long
def test_large_documents_in_a_small_heap(tmp_path):
    assert run(IN_A_SMALL_HEAP, tmp_path / "index", "128m") == ["25 25"]


@pytest.mark.long
def test_a_document_that_java_has_no_room_for_is_named(tmp_path):
    for heap, cause in (("64m", "which is too little for 60 MB of text"), ("300m", "OutOfMemoryError")):
        message, number = run(NO_ROOM, tmp_path / "index", heap)
        assert "'long' to 'long' (60.0 MB)" in message
        assert cause in message
        assert "start_java(heap=...)" in message
        assert number == "1"
        shutil.rmtree(tmp_path / "index")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_a_document_longer_than_jackson_allows_is_kept(tmp_path):
    text = "okapi " * 3_500_000
    index = LuceneIndex(tmp_path / "index").index([{"docno": "d", "text": text}], raw=True, verbose=False)
    assert index.bm25().search("okapi")["docno"].tolist() == ["d"]
    assert index.text_loader("text")(pd.DataFrame({"docno": ["d"]}))["text"][0] == text


OUT_OF_FILES = """
import os, resource, sys
from pt_neural import LuceneIndex
index, other = LuceneIndex(sys.argv[1]), LuceneIndex(sys.argv[1] + "-2")
index.index([{"docno": "d", "text": "okapi"}], verbose=False)
limits = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 2, limits[1]))
for action in (lambda: len(index), lambda: other.index([{"docno": "d", "text": "okapi"}], verbose=False)):
    try:
        action()
    except OSError as error:
        print(error.errno, error.strerror)
resource.setrlimit(resource.RLIMIT_NOFILE, limits)
print(len(index), len(other.index([{"docno": "d", "text": "okapi"}], verbose=False)))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts open files in /proc")
def test_out_of_file_handles_is_what_the_error_says(tmp_path):
    first, second, numbers = run(OUT_OF_FILES, tmp_path / "index", "256m")
    assert first.startswith(f"{errno.EMFILE} ")
    assert second.startswith(f"{errno.EMFILE} ")
    assert numbers == "1 1"
