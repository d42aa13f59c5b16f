"""Docnos by Lucene's numbers: beside our own indexes, in a temporary folder for others, never in memory."""

import json
import os
import shutil
import subprocess
import sys
import tracemalloc

import pytest

from pt_neural import LuceneIndex
from pt_neural._files import ArtifactError
from pt_neural.lucene.index import reader as readers
from pt_neural.lucene.java.jvm import in_java, java_class

NUMBER = 30_000


@pytest.fixture(scope="module")
def many(build):
    """An index of so many documents that a few bytes for each would show."""
    return build([{"docno": f"document{i:06}", "text": f"okapi {'giraffe ' * (i < 5)}"} for i in range(NUMBER)])


@in_java
def stored_docnos(index):
    """The docnos that Lucene itself stores, in its order."""
    stored = index.reader.java.storedFields()
    return [stored.document(number).get("id") for number in range(len(index))]


def test_docnos_are_in_lucenes_order(index, own_index):
    assert list(index.reader.docnos) == index.docnos().tolist() == stored_docnos(index)
    shutil.rmtree(own_index.path / "docnos")
    assert own_index.docnos().tolist() == stored_docnos(own_index)


def test_more_docnos_than_a_block(many):
    assert sorted(many.reader.docnos) == [f"document{i:06}" for i in range(NUMBER)]
    assert list(many.reader.docnos) == many.docnos().tolist()


def peak(index):
    """The most memory that Python takes to open an index and use it, in bytes."""
    readers._readers.clear()
    tracemalloc.start()
    try:
        found = index.bm25(num_results=5).search("okapi giraffe")
        index.text_loader("text")(index.ql()(found))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_python_holds_no_docnos(many, index):
    few, lots = (min(peak(each) for _ in range(3)) for each in (index, many))  # at first, it also loads modules
    assert lots - few < NUMBER


FOREIGN = """
import os, sys, tempfile
from pt_neural import LuceneIndex
index = LuceneIndex(sys.argv[1])
print(index.bm25().search("okapi")["docno"].tolist(), len(os.listdir(tempfile.gettempdir())))
"""


def test_the_docnos_of_foreign_indexes_are_kept_until_the_end_of_the_process(own_index, tmp_path):
    shutil.rmtree(own_index.path / "docnos")
    before = sorted(own_index.path.rglob("*"))
    (tmp_path / "temporary").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    command = [sys.executable, "-c", FOREIGN, own_index.path]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    assert done.stdout.split() == ["['d4']", "1"], done.stderr
    assert sorted(own_index.path.rglob("*")) == before
    assert os.listdir(tmp_path / "temporary") == []


def test_foreign_indexes_may_have_a_docno_twice(tmp_path):
    (tmp_path / "source").mkdir()
    documents = [{"id": docno, "contents": "okapi"} for docno in ("a", "b", "a")]
    (tmp_path / "source" / "docs.jsonl").write_text("\n".join(map(json.dumps, documents)))
    index = LuceneIndex(tmp_path / "index").index_collection("JsonCollection", tmp_path / "source", verbose=False)
    assert sorted(index.docnos()) == ["a", "a", "b"]
    assert index.bm25().search("okapi")["docno"].tolist() == ["b", "a", "a"]


def test_docnos_of_another_index_are_noticed(own_index, build, corpus):
    shutil.rmtree(own_index.path / "docnos")
    shutil.copytree(build(corpus[:5]).path / "docnos", own_index.path / "docnos")
    with pytest.raises(ArtifactError, match="5 docnos, but Lucene 6 documents"):
        len(own_index)


def test_an_index_without_docnos(tmp_path):
    @in_java
    def write():
        location = java_class("java.nio.file.Paths").get(str(tmp_path / "index"))
        directory = java_class("org.apache.lucene.store.FSDirectory").open(location)
        config = java_class("org.apache.lucene.index.IndexWriterConfig")()
        java_class("org.apache.lucene.index.IndexWriter")(directory, config).close()

    write()
    with pytest.raises(ArtifactError, match="no field 'id' with doc values"):
        len(LuceneIndex(tmp_path / "index"))
