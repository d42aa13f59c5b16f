import numpy as np
import pandas as pd
import pytest

from pt_neural.experiment import mean_over_seeds, over_seeds, per_query


@pytest.fixture
def result():
    """Two queries, BM25 and three runs of a model, two measures."""
    values = {
        "BM25": {"AP": [0.2, 0.4], "RR": [1.0, 0.0]},
        "model 1": {"AP": [0.1, 0.3], "RR": [1.0, 1.0]},
        "model 2": {"AP": [0.5, 0.3], "RR": [0.5, 0.5]},
        "model 3": {"AP": [0.9, 0.3], "RR": [0.0, 0.0]},
    }
    rows = [
        (name, qid, measure, value)
        for name, measures in values.items()
        for measure, both in measures.items()
        for qid, value in zip(("q1", "q2"), both, strict=True)
    ]
    return pd.DataFrame(rows, columns=["name", "qid", "measure", "value"])


SYSTEMS = {"model": ["model 1", "model 2", "model 3"], "BM25": "BM25"}


def test_mean_and_deviation_by_hand(result):
    frame = over_seeds(result, SYSTEMS)
    assert frame.columns.tolist() == ["system", "measure", "seeds", "mean", "deviation"]
    assert frame["system"].tolist() == ["model", "model", "BM25", "BM25"]
    assert frame["measure"].tolist() == ["AP", "RR"] * 2
    assert frame["seeds"].tolist() == [3, 3, 1, 1]
    np.testing.assert_allclose(frame["mean"], [0.4, 0.5, 0.3, 0.5])
    # The means over queries are 0.2, 0.4, 0.6 and 1, 0.5, 0.
    np.testing.assert_allclose(frame["deviation"], [0.2, 0.5, np.nan, np.nan])


def test_values_are_averaged_query_by_query(result):
    values = mean_over_seeds(per_query(result, "AP"), SYSTEMS)
    assert values.columns.tolist() == ["model", "BM25"]
    assert values.columns.name == "AP"
    np.testing.assert_allclose(values.loc["q1"], [0.5, 0.2])
    np.testing.assert_allclose(values.loc["q2"], [0.3, 0.4])


def test_a_run_may_belong_to_several_systems(result):
    frame = over_seeds(result[result["measure"] == "AP"], {"all": ["model 1", "model 3"], "best": ["model 3"]})
    np.testing.assert_allclose(frame["mean"], [0.4, 0.6])


def test_clear_errors(result):
    values = per_query(result, "AP")
    for systems in ({"model": ["model 1", "model 9"]}, {"model": "model 9"}):
        with pytest.raises(ValueError, match="system 'model': there is no run 'model 9'; there are BM25, model 1"):
            over_seeds(result, systems)
        with pytest.raises(ValueError, match="there is no run 'model 9'"):
            mean_over_seeds(values, systems)
    with pytest.raises(ValueError, match="'model': it has no runs"):
        mean_over_seeds(values, {"model": []})
    with pytest.raises(ValueError, match="names a run twice: model 1, model 1"):
        over_seeds(result, {"model": ["model 1", "model 1"]})
    for systems in ({}, ["model 1"]):
        with pytest.raises(ValueError, match="systems must map the name"):
            over_seeds(result, systems)
    with pytest.raises(ValueError, match=r"lacks measure.*perquery=True"):
        over_seeds(result.drop(columns="measure"), SYSTEMS)


def test_a_run_without_one_of_the_measures_is_not_counted_as_0(result):
    lacking = result[(result["name"] != "model 2") | (result["measure"] != "RR")]
    with pytest.raises(ValueError, match="run 'model 2' of system 'model' has no values of RR"):
        over_seeds(lacking, SYSTEMS)
