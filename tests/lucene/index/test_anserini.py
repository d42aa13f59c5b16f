import json
import subprocess
import sys
import warnings

import pytest

from pt_neural import LuceneIndex

INTERRUPTED = """
import os, signal, sys
from pt_neural import LuceneIndex
from pt_neural.lucene.index import anserini
from pt_neural.lucene.java.jvm import in_java, java_class

@in_java
def working_threads():  # a thread of the pool that has finished lives on for a moment, without Anserini's frames
    stacks = java_class("java.lang.Thread").getAllStackTraces().entrySet().toArray()
    working = [entry.getKey() for entry in stacks if any("anserini" in one.getClassName() for one in entry.getValue())]
    return [str(thread.getName()) for thread in working]

def count_and_press(program, count=anserini._count):
    if number := count(program):
        print("working", len(working_threads()) > 0)
        os.kill(os.getpid(), signal.SIGINT)
    return number

anserini._count = count_and_press
anserini.POLLING_INTERVAL = 20
try:
    LuceneIndex(sys.argv[2]).index_collection("JsonCollection", sys.argv[1], verbose=False)
except KeyboardInterrupt:
    print("interrupted", working_threads())
"""


@pytest.mark.long
def test_ctrl_c_ends_anserinis_workers_and_leaves_nothing(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for file in range(2):
        documents = ({"id": f"{file}-{i}", "contents": f"okapi river {i}"} for i in range(20_000))
        (source / f"{file}.jsonl").write_text("\n".join(map(json.dumps, documents)))
    command = [sys.executable, "-c", INTERRUPTED, source, tmp_path / "index"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    said = [line for line in done.stdout.splitlines() if line.startswith(("working", "interrupted"))]
    assert said == ["working True", "interrupted []"], done.stderr  # between them, Java's messages
    assert list(tmp_path.iterdir()) == [source]


def test_what_anserini_does_not_know(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    index = LuceneIndex(tmp_path / "index")
    with pytest.raises(ValueError, match="not a directory"):
        index.index_collection("HtmlCollection", tmp_path / "none")
    with pytest.raises(ValueError, match="cannot start"):
        index.index_collection("NoSuchCollection", source)
    with pytest.raises(ValueError, match="refuses"):
        index.index_collection("HtmlCollection", source, options=["-noSuchOption"])
    with pytest.raises(ValueError, match="found no documents"):
        index.index_collection("HtmlCollection", source, verbose=False)
    assert list(tmp_path.iterdir()) == [source]


def test_a_file_that_cannot_be_read_to_its_end_is_said(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    lines = [json.dumps({"id": f"d{i}", "contents": "okapi"}) for i in range(4)]
    (source / "a.jsonl").write_text("\n".join([*lines[:2], "broken", lines[2]]))
    (source / "b.jsonl").write_text(lines[3])
    index = LuceneIndex(tmp_path / "index")
    with pytest.warns(UserWarning, match=r"went on after errors.*which has [23], .*Unrecognized token 'broken'"):
        index.index_collection("JsonCollection", source, verbose=False)
    assert "d3" in index.docnos()  # of the other file, Anserini's parser may have read a line ahead
    assert json.loads((index.path / "pt_meta.json").read_text())["documents"] == len(index)
    (source / "a.jsonl").write_text("\n".join(lines[:3]))
    with warnings.catch_warnings():  # what another build logged is not said again
        warnings.simplefilter("error")
        index.index_collection("JsonCollection", source, overwrite=True, verbose=False)
    assert len(index) == 4


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["-language", "de"], "-language"),
        (["-language=de"], "-language"),
        (["-stemmer", "none", "-keepStopwords"], "-stemmer, -keepStopwords"),
        (["-stopwords", "words.txt"], "-stopwords"),
        (["-pretokenized"], "-pretokenized"),
        (["-impact", "-pretokenized", "-language", "de"], "-language"),
        (["-analyzeWithHuggingFaceTokenizer", "bert-base-uncased"], "-analyzeWithHuggingFaceTokenizer"),
    ],
)
def test_options_that_queries_would_not_follow_are_refused(tmp_path, options, named):
    source = tmp_path / "source"
    source.mkdir()
    (source / "documents.jsonl").write_text(json.dumps({"id": "d1", "contents": "die Okapis"}))
    index = LuceneIndex(tmp_path / "index")
    with pytest.raises(ValueError, match=rf"\({named}\), but not queries.*stemmer= and stopwords="):
        index.index_collection("JsonCollection", source, options=options, verbose=False)
    assert list(tmp_path.iterdir()) == [source]


def test_options_may_repeat_the_arguments(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "documents.jsonl").write_text(json.dumps({"id": "d1", "contents": "the okapis"}))
    settings = {"stemmer": "none", "options": ["-stemmer", "none", "-language", "en", "-optimize"], "verbose": False}
    index = LuceneIndex(tmp_path / "index").index_collection("JsonCollection", source, **settings)
    assert [len(index.bm25().search(query)) for query in ("okapis", "okapi", "the")] == [1, 0, 0]
