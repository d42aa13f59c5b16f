import numpy as np
import pandas as pd
import pytest

from pt_neural.experiment import standard_errors, with_standard_errors


@pytest.fixture
def result():
    values = {("TFIDF", "P@10"): [0.1, 0.3], ("TFIDF", "AP"): [0.2, 0.8], ("SSI", "P@10"): [0.5], ("SSI", "AP"): [1, 0]}
    rows = [(name, f"q{i}", measure, v) for (name, measure), each in values.items() for i, v in enumerate(each)]
    return pd.DataFrame(rows, columns=["name", "qid", "measure", "value"])


def test_by_hand(result):
    frame = standard_errors(result)
    assert frame.columns.tolist() == ["name", "measure", "queries", "mean", "standard_error"]
    rows = list(zip(frame["name"], frame["measure"], frame["queries"], strict=True))
    assert rows == [("TFIDF", "P@10", 2), ("TFIDF", "AP", 2), ("SSI", "P@10", 1), ("SSI", "AP", 2)]
    np.testing.assert_allclose(frame["mean"], [0.2, 0.5, 0.5, 0.5])
    # of two values: half their distance
    np.testing.assert_allclose(frame["standard_error"], [0.1, 0.3, np.nan, 0.5])


def test_queries_without_a_value_are_left_out(result):
    unjudged = pd.DataFrame({"name": ["SSI"], "qid": ["q9"], "measure": ["AP"], "value": [np.nan]})
    pd.testing.assert_frame_equal(standard_errors(pd.concat([result, unjudged])), standard_errors(result))


def test_the_standard_error_is_how_far_means_of_samples_spread():
    random = np.random.default_rng(3)
    means = random.exponential(size=(2000, 50)).mean(axis=1)
    sample = pd.DataFrame({"name": "s", "measure": "m", "qid": range(5000), "value": random.exponential(size=5000)})
    assert standard_errors(sample)["standard_error"][0] * np.sqrt(5000 / 50) == pytest.approx(means.std(), rel=0.08)


def test_a_table_as_the_paper_prints_it(result):
    table = with_standard_errors(result)
    assert table.index.tolist() == ["TFIDF", "SSI"]
    assert table.columns.tolist() == ["P@10", "AP"]
    assert table.to_numpy().tolist() == [["0.200±0.100", "0.500±0.300"], ["0.500", "0.500±0.500"]]
    assert with_standard_errors(result, digits=1).loc["TFIDF", "AP"] == "0.5±0.3"


def test_clear_errors(result):
    with pytest.raises(ValueError, match=r"lacks qid.*perquery=True"):
        standard_errors(result.drop(columns="qid"))
    with pytest.raises(ValueError, match="digits"):
        with_standard_errors(result, digits=-1)
