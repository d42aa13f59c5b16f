"""The pipeline of checkpoints on tiny collections: what is trained, its size, and the rows of the tables."""

import json
import shutil
import sys

import pandas as pd
import pytest

import pt_neural as pn
from pipelines import checkpoints


@pytest.fixture
def source(folder, tmp_path):
    """Another collection than the one to measure on."""
    return shutil.copytree(folder, tmp_path / "source")


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Makes checkpoints with options, and does not measure them; returns the folder of a model that learns nothing."""

    class Model:
        report = "nothing learned"

        def __init__(self, training):
            pass

        def fit(self, *examples):
            return self

        def save(self, path):
            path.mkdir()

    monkeypatch.setattr(checkpoints, "SIZES", {"DSSM": Model})
    monkeypatch.setattr(checkpoints, "SPACES", {"dim": 5, "min_count": 1, "epochs": 1})
    folders = []
    monkeypatch.setattr(checkpoints, "measure", lambda workspace, sources, folder: folders.append(folder))

    def make(run, source, *options):
        run(checkpoints, "--sources", f"neural:folder:{source}", *options, out=tmp_path)
        return folders[-1] / "documentation-en.dssm"

    return make


def test_checkpoints_of_other_settings_or_sources_are_trained_beside_the_first(run, source, made):
    first = made(run, source, "--epochs", "1")
    stamp = first.stat().st_mtime_ns
    others = [made(run, source, "--epochs", "2"), made(run, source, "--epochs", "1", "--seeds", "14")]
    queries = source / "queries.jsonl"
    text = queries.read_text()
    queries.write_text(text + "\n")
    others.append(made(run, source, "--epochs", "1"))
    queries.write_text(text)
    assert len({first, *others}) == 4
    assert all(path.exists() and path.with_suffix(".spaces").exists() for path in others)
    assert made(run, source, "--epochs", "1") == first
    assert first.stat().st_mtime_ns == stamp
    trained_on = json.loads((others[1].parent / "trained-on.json").read_text())
    assert (trained_on["epochs"], trained_on["seed"]) == (1, 14)


def test_a_source_is_not_the_dataset_itself(run, folder):
    with pytest.raises(SystemExit, match="is the dataset itself"):
        run(checkpoints, "--sources", f"neural:folder:{folder}")


def test_by_default_the_sources_are_other_datasets(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["checkpoints"])
    arguments = checkpoints.options()
    assert arguments.dataset not in arguments.sources


@pytest.mark.parametrize("split", ["train", "dev"])
def test_sources_have_training_and_dev_queries(run, source, split):
    (source / "qrels" / f"{split}.tsv").unlink()
    with pytest.raises(SystemExit, match="lacks training or dev queries"):
        run(checkpoints, "--sources", f"neural:folder:{source}")


@pytest.mark.long
def test_checkpoints_are_trained_once_and_measured_elsewhere(run, folder, test_only, source, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "SPACES", {"dim": 5, "min_count": 1, "epochs": 1})
    monkeypatch.setattr(checkpoints, "FOLDS", 2)
    name = f"neural:folder:{source}"
    options = ["--sources", name, name, "--epochs", "2", "--queries", "6"]
    for dataset in (folder, test_only):
        run(checkpoints, *options, dataset=dataset, out=tmp_path)
    (dssm,) = tmp_path.glob("checkpoints/*/documentation-en.dssm")
    assert pn.DSSM.load(dssm).layers == (100, 64)
    assert pn.EmbeddingSpaces.load(dssm.with_suffix(".spaces")).in_vectors.shape[1] == 5
    kinds = [", from scratch", " checkpoint, zero-shot", " checkpoint, fine-tuned"]
    rows = [f"{name}{kind}" for name in ("DSSM", "CLSM") for kind in kinds]
    for path in (folder, test_only):
        table = pd.read_csv(tmp_path / f"checkpoints-{path.name}" / "table.csv")
        assert table["system"].tolist() == ["BM25", *(name for row in rows for name in (row, f"BM25 + {row}"))]
        assert table["nDCG@10"].between(0, 1).all()
        caption = (tmp_path / f"checkpoints-{path.name}" / "table.md").read_text()
        assert "trained on source, source; at most 2 epochs, seed 13" in caption
        settings = json.loads((tmp_path / f"checkpoints-{path.name}" / "settings.json").read_text())
        assert settings["command"].startswith("python -m pipelines.checkpoints --dataset")
        assert table["p"].notna().tolist() == [False, *([False] * 2 + [True] * 4) * 2]
    stamp = (dssm / "pt_meta.json").stat().st_mtime_ns
    monkeypatch.setattr(checkpoints, "MEGABYTES", 0.001)
    with pytest.raises(ValueError, match=r"MB, more than 0\.001"):
        run(checkpoints, *options, out=tmp_path)
    assert (dssm / "pt_meta.json").stat().st_mtime_ns == stamp
