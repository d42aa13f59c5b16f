"""What a user holds: the artifact, and the contract of the transformers that it makes."""

import tomllib
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

from pt_neural import LatentConceptExpansion, LuceneIndex
from pt_neural._files import ArtifactError
from pt_neural.lucene import lucene_metadata

INDEX = LuceneIndex("nowhere")

TestBM25 = pt.testing.transformer_test_class(lambda: INDEX.bm25())
TestSDM = pt.testing.transformer_test_class(lambda: INDEX.sdm())
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
    for transformer in (INDEX.bm25(), INDEX.ql(), INDEX.sdm(), INDEX.rm3()):
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
