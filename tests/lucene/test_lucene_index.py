"""What a user holds: the artifact, and the contract of the transformers that it makes."""

import functools
import os
import random
import re
import sys
import threading
import tomllib
from collections import Counter
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

from pt_neural import LatentConceptExpansion, LuceneIndex, LuceneShards
from pt_neural._files import ArtifactError
from pt_neural.lucene import lucene_metadata
from pt_neural.lucene.index.opened import versions_of

INDEX = LuceneIndex("nowhere")

TestBM25 = pt.testing.transformer_test_class(lambda: INDEX.bm25())
TestSDM = pt.testing.transformer_test_class(lambda: INDEX.sdm())
TestImpact = pt.testing.transformer_test_class(lambda: INDEX.impact())
TestRM3 = pt.testing.transformer_test_class(lambda: INDEX.rm3())
TestLatentConceptExpansion = pt.testing.transformer_test_class(lambda: LatentConceptExpansion(INDEX))
TestTextLoader = pt.testing.transformer_test_class(lambda: INDEX.text_loader())


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


def version(number, count=40):
    """Documents whose docnos and texts say which version they are of, in an order that differs by version."""
    docnos = [f"{number}-{i}" for i in range(count + number)]
    random.Random(number).shuffle(docnos)
    return [{"docno": docno, "title": docno, "text": f"okapi river bank version{number} {docno}"} for docno in docnos]


def mixed(frame, column="docno"):
    """Whether rows come from different versions."""
    return len(set(frame[column].str.split("-").str[0])) != 1


def reads(index):
    """Ways to read an index, each of which says how it went wrong."""
    names = pd.DataFrame({"qid": ["1", "2"], "query": ["okapi river bank", "river okapi"]})

    def search(retriever):
        found = retriever(names)
        return mixed(found) or set(found.groupby("qid")["docno"].nunique()) != {len(found) // 2}

    def score():
        found = index.bm25(num_results=5)(names)
        again = index.bm25()(found)
        return not np.array_equal(again["score"], found["score"])

    def text():
        docnos = index.docnos()
        found = index.text_loader()(pd.DataFrame({"docno": docnos}))
        return mixed(found) or found["title"].tolist() != docnos.tolist()

    def expand():
        terms = LatentConceptExpansion(index, filter_terms=False, fb_terms=20).concepts("okapi river")["term"]
        return sum(term.startswith("version") for term in terms) != 1

    searches = [index.bm25(), index.ql(), index.sdm(), index.rm3()]
    return [*(functools.partial(search, retriever) for retriever in searches), score, text, expand]


@pytest.mark.long
@pytest.mark.parametrize("kind", [LuceneIndex, LuceneShards])
def test_reads_beside_a_rebuild_are_right(kind, tmp_path):
    index, stop = kind(tmp_path / "index"), threading.Event()
    options = {"verbose": False, "overwrite": True, **({"shards": 3} if kind is LuceneShards else {})}
    index.index(version(0), **options)
    wrong, complaints, completed = [], [], Counter()

    def read(number):
        ways = reads(index)
        while not stop.is_set():
            way = ways[number % len(ways)]
            number += 1
            try:
                if way():
                    wrong.append(way)
                completed[number % len(ways)] += 1
            except ValueError as error:  # of docnos of the version before, or of an index that is replaced at once
                complaints.append(str(error))

    threads = [threading.Thread(target=read, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for number in range(1, 13):
        index.index(version(number), **options)
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert [said for said in complaints if not re.search("docnos? .*not in|was rebuilt", said)] == []
    assert min(completed[way] for way in range(7)) > 0
    assert sum(completed.values()) > len(complaints)


def test_a_folder_that_is_replaced_while_it_is_listed(monkeypatch, tmp_path):
    path, deleted, new, glob = *(tmp_path / name for name in ("index", "deleted", "new")), Path.glob
    path.mkdir()
    new.mkdir()
    (new / "segments_1").touch()

    def replaced_first(folder, pattern):
        if not deleted.exists():
            path.rename(deleted)
            new.rename(path)
            return iter([])  # of the folder as it is deleted
        return glob(folder, pattern)

    monkeypatch.setattr(Path, "glob", replaced_first)
    assert versions_of([path])[0].inode == (path / "segments_1").stat().st_ino


def open_files(folder):
    """The numbers of handles and of mappings of files in a folder, deleted ones included."""
    handles = [os.path.realpath(f"/proc/self/fd/{handle}") for handle in os.listdir("/proc/self/fd")]
    maps = Path("/proc/self/maps").read_text().splitlines()
    return sum(str(folder) in name for name in handles), sum(str(folder) in line for line in maps)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_replaced_index_is_closed(tmp_path, corpus):
    index, found = LuceneIndex(tmp_path / "index"), []
    for _ in range(8):
        index.index(corpus, verbose=False, overwrite=True)
        for retriever in (index.bm25(), index.sdm(), index.rm3(), index.bm25() >> index.text_loader()):
            retriever.search("university city")
        LatentConceptExpansion(index).concepts("university city")
        found.append(open_files(tmp_path))
    for numbers in zip(*found, strict=True):  # of one segment or a few; a leak would be eightfold
        assert 0 < max(numbers) <= 4 * min(numbers)


def test_what_has_been_opened_stays_as_it_is(own_index, corpus):
    opened = own_index.opened()
    before = own_index.bm25().on(opened).search("university city")
    own_index.index(corpus[2:], verbose=False, overwrite=True)
    pd.testing.assert_frame_equal(own_index.bm25().on(opened).search("university city"), before)
    assert own_index.bm25().search("university city")["docno"].tolist() == ["d6"]
    assert len(opened) == 6
    assert len(own_index) == 4


def test_an_index_that_a_killed_writer_had_moved_aside_is_put_back(own_index):
    aside = own_index.path.with_name(f".{own_index.path.name}.0123456789ab.old")
    own_index.path.rename(aside)
    assert own_index.built()
    own_index.path.rename(aside)
    assert len(own_index) == 6
    assert not aside.exists()


def test_an_index_is_recognised_without_our_metadata(own_index, monkeypatch):
    class Ours:
        def load(self):
            return lucene_metadata

    others = pt.utils.entry_points
    adapters = "pyterrier.artifact.metadata_adapter"
    monkeypatch.setattr(pt.utils, "entry_points", lambda group: [Ours()] if group == adapters else others(group))
    (own_index.path / "pt_meta.json").unlink()
    assert pt.Artifact.load(str(own_index.path)) == own_index
    with pytest.raises(ValueError, match="No implementation found"):
        pt.Artifact.load(str(own_index.path.parent))


def test_entry_points_lead_somewhere():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    targets = [target for group in project["entry-points"].values() for target in group.values()]
    ours = [target for target in targets if target.startswith("pt_neural.lucene")]
    assert len(ours) == 4
    for module, name in (target.split(":") for target in ours):
        assert callable(getattr(import_module(module), name))


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


def test_relative_paths_follow_a_change_of_directory(corpus, tmp_path, monkeypatch, index):
    len(index)  # Java runs, and keeps the directory that it was started in
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "stop.txt").write_text("okapi\n")
    made = LuceneIndex("relative.lucene").index(corpus, stopwords="stop.txt", verbose=False)
    assert (tmp_path / "elsewhere" / "relative.lucene").is_dir()
    monkeypatch.chdir(tmp_path)
    assert made.bm25().search("giraffe")["docno"].iloc[0] in ("d3", "d4")
    assert made.bm25().search("okapi").empty


def test_empty_frames_have_all_columns_and_need_no_index():
    for transformer in (INDEX.bm25(), INDEX.ql(), INDEX.impact(), INDEX.sdm(), INDEX.rm3()):
        found = transformer(pd.DataFrame(columns=["qid", "query"]))
        assert list(found.columns) == ["qid", "query", "docno", "score", "rank"]
        assert found.dtypes[["score", "rank"]].tolist() == [np.float64, np.int64]
        scored = transformer(pd.DataFrame(columns=["qid", "query", "docno"]))
        assert scored.dtypes[["score", "rank"]].tolist() == [np.float64, np.int64]
        assert transformer.schematic()["help_url"] is None


def test_empty_frames_are_expanded_without_an_index():
    lce = LatentConceptExpansion(INDEX)
    keeping = LatentConceptExpansion(INDEX, keep_documents=True)
    queries, results = ["qid", "query"], ["qid", "query", "docno", "score", "rank"]
    for transformer, columns, expected in [
        (lce, queries, queries),
        (lce, results, queries),
        (keeping, results, results),
        (keeping, queries, queries),
    ]:
        assert pt.inspect.transformer_outputs(transformer, columns) == [*expected, "query_toks"]


def test_modes():
    assert pt.inspect.transformer_inputs(INDEX.sdm()) == [["qid", "query"], ["qid", "docno", "query"]]
    expected = [["qid", "query"], ["qid", "docno", "query", "score"]]
    assert pt.inspect.transformer_inputs(LatentConceptExpansion(INDEX)) == expected
    pipeline = INDEX.sdm() >> LatentConceptExpansion(INDEX) >> INDEX.sdm()
    found = pt.inspect.transformer_outputs(pipeline, ["qid", "query"])
    assert found == ["qid", "query", "query_toks", "docno", "score", "rank"]
