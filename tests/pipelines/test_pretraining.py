"""The pipeline of pre-training on a tiny collection: rows, what starts from what, and the table of differences."""

import json
from pathlib import Path

import pandas as pd
import pytest

from pipelines import pretraining

TINY = ["--epochs", "2", "--batch-size", "8", "--pseudo-queries", "span", "--queries-train", "6"]


@pytest.fixture(scope="module")
def results(run):
    return run(pretraining, *TINY, "--seeds", "1", "2")


def test_rows_and_differences(results):
    models = ["untrained", "pseudo-queries", "6 queries", "pseudo-queries, then 6 queries"]
    table, gains = (pd.read_csv(results / f"{name}.csv") for name in ("table", "gains"))
    names = [f"DSSM, {model}" for model in models]
    assert table["system"].tolist() == ["BM25", *names, *(f"BM25 + {name}" for name in names)]
    assert len(gains) == 3 + 3 + 4
    means = table.set_index("system")["nDCG@10"]
    expected = means[gains["system"]].to_numpy() - means[gains["baseline"]].to_numpy()
    assert gains["difference"].tolist() == pytest.approx(expected.tolist(), abs=2e-4)
    assert len(list((results / "runs").glob("*.res.gz"))) == 1 + 2 * 8
    assert len(json.loads((results / "settings.json").read_text())["chosen"]["alpha"]) == 8


def test_fine_tuning_starts_from_what_was_pre_trained(results, out):
    history = pd.read_csv(results / "histories.csv").query("epoch == 0").set_index(["system", "seed"])["dev nDCG@10"]
    both, few = (history[f"DSSM, {name}6 queries"] for name in ("pseudo-queries, then ", ""))
    assert (both != few).all()
    configs = [json.loads(path.read_text()) for path in out.rglob("dssm-*/config.json")]
    starts = [config["training"]["start"] for config in configs if config["training"]["start"] is not None]
    learned = [json.loads((Path(start) / "config.json").read_text())["training"] for start in starts]
    assert sorted(training["seed"] for training in learned) == [1, 2]
    assert all(training["epochs"] == 2 and training["learning_rate"] is None for training in learned)


@pytest.mark.long
def test_without_training_queries_the_first_rows_remain(run, test_only):
    table = pd.read_csv(run(pretraining, *TINY, dataset=test_only) / "table.csv")
    assert table["system"].tolist()[:3] == ["BM25", "DSSM, untrained", "DSSM, pseudo-queries"]
    assert len(table) == 5
