import json
import shutil

import pandas as pd
import pytest

import pt_neural as pn
from pipelines import classics


@pytest.fixture(scope="module")
def results(run):
    with pytest.MonkeyPatch.context() as patch:
        recipe = {"layers": (8, 4), "negatives": "retrieved", "epochs": 2}
        patch.setattr(classics.pn.DSSM, "recipes", {"few": recipe})
        patch.setattr(classics.pn.SSI, "recipes", {size: {"dim": 4, "epochs": 2} for size in ("few", "some")})
        models = ["DSSM", "SSI", "TFIDF", "Rocchio", "TopicCosine"]
        return run(classics, "--models", *models, "--seeds", "1", "2", "--depth", "10", "--small")


def test_each_ranker_alone_and_mixed_with_each_seed(results):
    table = pd.read_csv(results / "table.csv")
    seeded, others = ("DSSM", "SSI", "TopicCosine"), ("TFIDF", "Rocchio")
    alone = ["DSSM", "SSI", "TFIDF", "Rocchio", "TopicCosine"]
    both = [name for one in alone for name in (one, f"BM25 + {one}")]
    assert table["system"].tolist() == ["BM25", "BM25 + length prior", *both]
    assert table["nDCG@10, p against BM25"].notna().sum() == 11
    names = {path.name for path in (results / "runs").glob("*.res.gz")}
    assert len(names) == 2 + 2 * 2 * len(seeded) + 2 * len(others)


def test_costs_stand_beside_quality(results):
    costs = pd.read_csv(results / "costs.csv").set_index("system")
    assert costs.index.tolist() == ["BM25", "DSSM", "SSI", "TFIDF", "Rocchio", "TopicCosine"]
    assert (costs.loc["DSSM":, ["fit, s", "ms a query", "MB"]] > 0).all(axis=None)
    assert (results / "costs.png").stat().st_size > 10_000


def test_costs_of_reranking_are_measured_alone(run, tmp_path):
    results = run(classics, "--costs-only", "--models", "DSSM", "Rocchio", "--depth", "10", "--small", out=tmp_path)
    table = pd.read_csv(results / "reranking.csv").set_index("system")
    assert table.index.tolist() == ["DSSM", "Rocchio"]
    assert (table[["ms a query", "MB"]] > 0).all(axis=None)
    assert not (results / "costs.csv").exists()
    assert not (results / "runs").exists()


def test_it_says_what_came_of_the_training(results):
    chosen = json.loads((results / "settings.json").read_text())["chosen"]
    assert set(chosen["alpha"]) == {
        "BM25 + length prior",
        "BM25 + TFIDF",
        "BM25 + Rocchio",
        *(f"BM25 + {name}, seed {seed}" for name in ("DSSM", "SSI", "TopicCosine") for seed in (1, 2)),
    }
    histories = pd.read_csv(results / "histories.csv")
    assert sorted(histories.loc[histories["epoch"] == 0, "system"]) == ["DSSM", "DSSM", "SSI", "SSI"]
    best = histories.groupby(["system", "seed"])["dev nDCG@10"]
    assert (best.max() >= best.first()).all()


def test_every_ranker_may_be_in_the_table():
    assert set(classics.MODELS) == set(pn.rankers()["name"])


def test_without_dev_queries_rocchio_has_the_settings_of_its_class(run, folder, tmp_path):
    shutil.copytree(folder, tmp_path / "no-dev", ignore=shutil.ignore_patterns("dev.tsv"))
    results = run(classics, "--models", "Rocchio", "--depth", "10", dataset=tmp_path / "no-dev", out=tmp_path / "out")
    assert pd.read_csv(results / "table.csv")["system"].tolist()[-2:] == ["Rocchio", "BM25 + Rocchio"]


def test_training_queries_are_needed(run, test_only):
    with pytest.raises(SystemExit, match="has no training queries"):
        run(classics, dataset=test_only)
