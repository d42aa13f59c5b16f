import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pt_neural.experiment import bootstrap, resampling


@pytest.fixture
def values():
    """Two systems that do well for the same queries, one of them always a little better."""
    rng = np.random.default_rng(5)
    base = rng.random(40)
    frame = pd.DataFrame({"base": base, "better": base + rng.uniform(0.01, 0.03, 40)})
    return frame.rename_axis(index="qid", columns="AP")


def test_percentiles_of_the_same_draws(values):
    frame = bootstrap(values, level=0.9, samples=200, seed=7).to_frame()
    drawn = np.random.default_rng(7).integers(40, size=(200, 40))
    for row in frame.itertuples():
        means = [values[row.system].to_numpy()[rows].mean() for rows in drawn]
        assert row.mean == pytest.approx(values[row.system].mean())
        assert (row.low, row.high) == pytest.approx(tuple(np.quantile(means, [0.05, 0.95])))


def test_as_scipy_has_it(values):
    frame = bootstrap(values, samples=20_000).to_frame()
    for row in frame.itertuples():
        theirs = stats.bootstrap([values[row.system]], np.mean, n_resamples=20_000, method="percentile", rng=1)
        interval = theirs.confidence_interval
        assert (row.low, row.high) == pytest.approx((interval.low, interval.high), abs=3e-3)


def test_the_difference_is_surer_than_the_means(values):
    means, differences = bootstrap(values).to_frame(), bootstrap(values, baseline="base").to_frame()
    assert means["low"][1] < means["high"][0], "the intervals of the means overlap"
    assert differences.columns.tolist() == ["system", "mean", "difference", "low", "high"]
    (row,) = differences.itertuples()
    assert row.system == "better"
    assert row.mean == pytest.approx(values["better"].mean())
    assert row.difference == pytest.approx((values["better"] - values["base"]).mean())
    assert 0.01 < row.low < row.difference < row.high < 0.03


def test_blocks_change_nothing(values, monkeypatch):
    whole = bootstrap(values, samples=50).to_frame()
    monkeypatch.setattr(resampling, "BLOCK", 81)  # two samples of forty queries
    pd.testing.assert_frame_equal(bootstrap(values, samples=50).to_frame(), whole)
    monkeypatch.setattr(resampling, "BLOCK", 1)
    pd.testing.assert_frame_equal(bootstrap(values, samples=50).to_frame(), whole)


def test_one_query_and_one_system():
    values = pd.DataFrame({"only": [0.3]}, index=["q1"])
    (row,) = bootstrap(values, samples=10).to_frame().itertuples()
    assert (row.low, row.mean, row.high) == pytest.approx((0.3, 0.3, 0.3))


def test_most_intervals_hold_the_mean():
    rng = np.random.default_rng(3)
    values = pd.DataFrame(rng.exponential(size=(60, 300)))  # three hundred experiments of sixty queries
    frame = bootstrap(values, level=0.9, samples=400).to_frame()
    assert 0.82 < ((frame["low"] < 1) & (frame["high"] > 1)).mean() < 0.94


def test_picture_has_a_line_a_system(values):
    intervals = bootstrap(values)
    axes = intervals.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["base", "better"]
    assert axes.get_xlabel() == "AP, 95% interval"
    (marks, _, (bars,)) = axes.containers[0]
    np.testing.assert_allclose(marks.get_xdata().astype(float), values.mean())
    np.testing.assert_allclose(
        [segment[:, 0] for segment in bars.get_segments()], intervals.to_frame()[["low", "high"]]
    )
    assert axes.yaxis_inverted(), "the first system on top"
    assert repr(intervals) == "BootstrapIntervals(2 systems, AP, 95%)"


def test_picture_of_differences_marks_none(values):
    intervals = bootstrap(values, 0.995, baseline="base")
    axes = intervals.plot()
    assert axes.get_xlabel() == "difference from base in AP, 99.5% interval"
    assert any(list(line.get_xdata()) == [0, 0] for line in axes.lines)
    assert repr(intervals) == "BootstrapIntervals(1 systems, AP, 99.5%, differences from base)"


def test_long_names_are_written_in_lines(values):
    name = "BM25 and a mixture with a name that is far too long to stand on a single line of a picture"
    (label, _) = bootstrap(values.rename(columns={"base": name})).plot().get_yticklabels()
    assert max(map(len, label.get_text().split("\n"))) <= 50
    assert label.get_text().replace("\n", " ") == name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda values: values.iloc[:0], "values has no query"),
        (lambda values: values[[]], "values has no system"),
        (lambda values: values.set_axis(["base", "base"], axis=1), "system 'base' occurs twice in values"),
        (lambda values: pd.concat([values, values.head(1)]), "query 0 occurs twice in values"),
        (lambda values: values.assign(base=values["base"].where(values.index != 3)), "'base' has no value for query 3"),
        (lambda values: values.assign(better=np.inf), "'better' has no value for query 0"),
        (lambda values: values.assign(qid="q1"), "column 'qid' of values holds no numbers"),
    ],
)
def test_hostile_frames(values, change, message):
    with pytest.raises(ValueError, match=message):
        bootstrap(change(values))


def test_clear_errors(values):
    with pytest.raises(ValueError, match="no system 'BM25'; there are base, better"):
        bootstrap(values, baseline="BM25")
    with pytest.raises(ValueError, match="no system beside the baseline 'base'"):
        bootstrap(values[["base"]], baseline="base")
    with pytest.raises(TypeError, match="values must be a frame as per_query gives, not Series"):
        bootstrap(values["base"])
    for level in (0, 1, 95):
        with pytest.raises(ValueError, match="level must be"):
            bootstrap(values, level)
    with pytest.raises(ValueError, match="samples must be at least 1"):
        bootstrap(values, samples=0)
