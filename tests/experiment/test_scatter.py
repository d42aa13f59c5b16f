import numpy as np
import pandas as pd
import pytest

from pt_neural.experiment import scatter


@pytest.fixture
def values():
    frame = pd.DataFrame(
        {"BM25": [0.5, 0.0, 0.0, 1.0, 0.2], "QL": 0.0, "Duet": [0.6, 0.0, 0.0, 0.3, 0.3]},
        index=pd.Index(["q1", "q2", "q3", "q4", "q5"], name="qid"),
    )
    return frame.rename_axis(columns="nDCG@10")


def test_largest_differences_first(values):
    against = scatter(values, "Duet", "BM25")
    frame = against.to_frame()
    assert frame.columns.tolist() == ["qid", "Duet", "BM25", "difference"]
    assert frame["qid"].tolist()[2:] == ["q2", "q3", "q4"]
    np.testing.assert_allclose(frame["difference"], [0.1, 0.1, 0, 0, -0.7])
    assert (against.above, against.below, against.equal) == (2, 1, 2)
    assert repr(against) == "PerQueryScatter(Duet against BM25, nDCG@10: 2 queries above, 1 below, 2 equal)"


def test_what_adding_up_loses_is_no_difference():
    against = scatter(pd.DataFrame({"one": [0.1 + 0.2], "two": [0.3]}), "one", "two")
    assert (against.above, against.below, against.equal) == (0, 0, 1)


def test_picture_counts_queries_in_one_place(values):
    axes = scatter(values, "Duet", "BM25").plot()
    (points,) = axes.collections
    areas = dict(zip(map(tuple, points.get_offsets().tolist()), points.get_sizes(), strict=True))
    assert set(areas) == {(0.5, 0.6), (0.0, 0.0), (1.0, 0.3), (0.2, 0.3)}
    assert areas[0.0, 0.0] == 2 * areas[0.5, 0.6]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("nDCG@10 of BM25", "nDCG@10 of Duet")
    assert axes.get_title() == "2 queries above the line, 1 below, 2 on it"


def test_clear_errors(values):
    with pytest.raises(ValueError, match="no system 'SDM'; there are BM25, QL, Duet"):
        scatter(values, "SDM", "BM25")
    with pytest.raises(ValueError, match="two different systems, not 'BM25' twice"):
        scatter(values, "BM25", "BM25")
    with pytest.raises(ValueError, match="values has no query"):
        scatter(values.iloc[:0], "Duet", "BM25")
    with pytest.raises(ValueError, match="'Duet' has no value for query 'q2'"):
        scatter(values.assign(Duet=values["Duet"].where(values.index != "q2")), "Duet", "BM25")
