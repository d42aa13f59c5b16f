"""The pipeline of checkpoints on tiny collections: what is trained, its size, and the rows of the tables."""

import pandas as pd
import pytest

import pt_neural as pn
from pipelines import checkpoints


@pytest.mark.long
def test_checkpoints_are_trained_once_and_measured_elsewhere(run, folder, test_only, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "SPACES", {"dim": 5, "min_count": 1, "epochs": 1})
    monkeypatch.setattr(checkpoints, "FOLDS", 2)
    source = f"neural:folder:{folder}"
    options = ["--sources", source, source, "--epochs", "2", "--queries", "6"]
    for dataset in (folder, test_only):
        run(checkpoints, *options, dataset=dataset, out=tmp_path)
    dssm = tmp_path / "checkpoints" / "documentation-en.dssm"
    assert pn.DSSM.load(dssm).layers == (100, 64)
    assert pn.EmbeddingSpaces.load(tmp_path / "checkpoints" / "documentation-en.spaces").in_vectors.shape[1] == 5
    kinds = [", from scratch", " checkpoint, zero-shot", " checkpoint, fine-tuned"]
    rows = [f"{name}{kind}" for name in ("DSSM", "CLSM") for kind in kinds]
    for path in (folder, test_only):
        table = pd.read_csv(tmp_path / f"checkpoints-{path.name}" / "table.csv")
        assert table["system"].tolist() == ["BM25", *(name for row in rows for name in (row, f"BM25 + {row}"))]
        assert table["nDCG@10"].between(0, 1).all()
        assert table["p"].notna().tolist() == [False, *([False] * 2 + [True] * 4) * 2]
    stamp = (dssm / "pt_meta.json").stat().st_mtime_ns
    monkeypatch.setattr(checkpoints, "MEGABYTES", 0.001)
    with pytest.raises(ValueError, match=r"MB, more than 0\.001"):
        run(checkpoints, *options, out=tmp_path)
    assert (dssm / "pt_meta.json").stat().st_mtime_ns == stamp
