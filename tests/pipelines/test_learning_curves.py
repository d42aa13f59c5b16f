import pandas as pd
import pytest

from pipelines import learning_curves


@pytest.fixture(scope="module")
def results(run):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learning_curves.pn.DSSM, "recipes", {"few": {"layers": (8, 4), "epochs": 2}})
        local = {"few": {"filters": 4, "hidden": 4, "epochs": 1, "negatives": "retrieved"}}
        patch.setattr(learning_curves.pn.DuetLocal, "recipes", local)
        options = ["--models", "DSSM", "DuetLocal", "BLTM", "PhraseTranslation", "--sizes", "10", "5", "100000"]
        return run(learning_curves, *options, "--seeds", "1", "2", "--depth", "10", "--small")


def test_each_ranker_learns_from_each_number_of_queries(results):
    curves = pd.read_csv(results / "curves.csv")
    sizes = curves["queries"].unique().tolist()
    assert sizes[:2] == [5, 10]
    assert 10 < sizes[2] < 100_000  # all there are
    assert len(sizes) == 3
    assert len(curves) == 4 * 3 * 2  # rankers, sizes, alone and mixed
    has_seeds = curves["system"] != "PhraseTranslation"
    assert (curves["sd"].notna() == has_seeds).all()
    names = {path.name for path in (results / "runs").glob("*.res.gz")}
    assert {"BM25.res.gz", "DSSM, 10 queries, seed 1.res.gz", "BM25 + Duet, local, 5 queries, seed 2.res.gz"} <= names
    assert {"BLTM, 5 queries, seed 2.res.gz", "PhraseTranslation, 5 queries.res.gz"} <= names
    assert (results / "curves.png").stat().st_size > 10_000


def test_histories_are_those_of_each_training(results):
    histories = pd.read_csv(results / "histories.csv")
    starts = histories[histories["epoch"] == 0]
    assert len(starts) == 2 * 3 * 2  # rankers trained by gradients, sizes, seeds
    assert not starts.duplicated(["system", "seed"]).any()


def test_training_queries_are_needed(run, test_only):
    with pytest.raises(SystemExit, match="has no training queries"):
        run(learning_curves, dataset=test_only)
