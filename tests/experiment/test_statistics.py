import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pt_neural.experiment import bootstrap, mean_over_seeds, significance, statistics, telescoped_against_full
from pt_neural.experiment.statistics import corrected


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def values():
    """Four systems over thirty queries; the last is the first with a little noise."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.random((30, 3)), columns=["a", "b", "c"])
    return frame.assign(d=frame["a"] + rng.normal(0.02, 0.03, 30)).rename_axis(index="qid", columns="AP")


@pytest.fixture
def pair():
    """Two systems that do well on the same queries, one of them always a little better."""
    rng = np.random.default_rng(5)
    base = rng.random(40)
    frame = pd.DataFrame({"base": base, "better": base + rng.uniform(0.01, 0.03, 40)})
    return frame.rename_axis(index="qid", columns="AP")


@pytest.fixture
def frames():
    """Three systems that re-rank candidates, and that rank all documents."""
    rng = np.random.default_rng(4)
    qids = pd.Index([f"q{number}" for number in range(12)], name="qid")
    telescoped, full = (
        pd.DataFrame(rng.random((12, 3)), qids, ["BM25", "DESM", "mixture"]).rename_axis(columns="AP") for _ in "ab"
    )
    return telescoped, full.assign(BM25=telescoped["BM25"])


def test_paired_t_test_by_hand():
    values = pd.DataFrame({"base": [0.0, 0.0, 0.0, 0.0], "other": [0.1, 0.3, 0.2, 0.4]})
    row = significance(values, "base").iloc[0]
    assert row["mean"] == pytest.approx(0.25)
    assert row["difference"] == pytest.approx(0.25)
    # t = 0.25 / (sd / 2) with sd² = (0.15² + 0.05² + 0.05² + 0.15²) / 3, so t² = 15; with three degrees of freedom the
    # distribution function is 1/2 + (atan(x) + x / (1 + x²)) / π with x = t / √3.
    x = np.sqrt(5)
    assert row["p"] == pytest.approx(1 - 2 * (np.arctan(x) + x / (1 + x**2)) / np.pi)
    assert row["corrected"] == row["p"]


def test_several_baselines_as_in_scipy(values):
    frame = significance(values, ["a", "c"], correction="bonferroni")
    pairs = list(zip(frame["system"], frame["baseline"], strict=True))
    assert pairs == [("b", "a"), ("c", "a"), ("d", "a"), ("b", "c"), ("d", "c")]  # c with a is among the first ones
    for row in frame.itertuples():
        p = stats.ttest_rel(values[row.system], values[row.baseline]).pvalue
        assert row.p == pytest.approx(p)
        assert row.corrected == pytest.approx(min(1, 5 * p)), "for the comparisons with both baselines together"
        assert row.mean == pytest.approx(values[row.system].mean())
        assert row.difference == pytest.approx(values[row.system].mean() - values[row.baseline].mean())
    all_pairs = significance(values, list(values))
    assert len(set(map(frozenset, zip(all_pairs["system"], all_pairs["baseline"], strict=True)))) == len(all_pairs) == 6
    pd.testing.assert_frame_equal(significance(values, ["a", "a"]), significance(values, "a"))


def test_randomisation_tries_all_signs_of_few_queries(values):
    few = values.head(6)
    frame = significance(few, "a", test="randomisation", correction=None)
    for row in frame.itertuples():
        differences = (few[row.system] - few["a"]).to_numpy()
        sums = [abs(np.dot(signs, differences)) for signs in itertools.product([1, -1], repeat=6)]
        assert row.p == np.mean([each >= abs(differences.sum()) - 1e-9 for each in sums])


def test_randomisation_as_in_scipy(values):
    frame = significance(values, "a", test="randomisation", samples=20_000, correction=None)
    for row in frame.itertuples():
        theirs = stats.permutation_test(
            [(values[row.system] - values["a"]).to_numpy()],
            np.mean,
            permutation_type="samples",
            vectorized=True,
            n_resamples=20_000,
            rng=1,
        )
        assert row.p == pytest.approx(theirs.pvalue, abs=0.01)
    assert frame["p"].min() > 0


def test_randomisation_is_repeatable_by_seed_whatever_the_blocks(values, monkeypatch):
    options = {"test": "randomisation", "samples": 500}
    whole = significance(values, "a", **options)
    assert not whole["p"].equals(significance(values, "a", **options, seed=14)["p"])
    pd.testing.assert_frame_equal(significance(values, "a", **options), whole)
    few = significance(values.head(8), "a", test="randomisation")
    monkeypatch.setattr(statistics, "BLOCK", 100)
    pd.testing.assert_frame_equal(significance(values.head(8), "a", test="randomisation"), few)


def test_corrections_by_hand():
    p_values = np.array([0.02, 0.01, 0.6, 0.021])
    np.testing.assert_allclose(corrected(p_values, "bonferroni"), [0.08, 0.04, 1.0, 0.084])
    np.testing.assert_allclose(corrected(p_values, "holm"), [0.06, 0.04, 0.6, 0.06])  # 0.021 * 2 is below 0.02 * 3
    # 0.01 * 4 / 1 and 0.02 * 4 / 2 are above the next one's 0.021 * 4 / 3.
    np.testing.assert_allclose(corrected(p_values, "benjamini-hochberg"), [0.028, 0.028, 0.6, 0.028])
    np.testing.assert_allclose(corrected(p_values, None), p_values)


@pytest.mark.parametrize("test", ["t-test", "randomisation"])
def test_equal_systems_and_single_queries_do_not_differ(test):
    values = pd.DataFrame({"base": [0.5, 0.2], "same": [0.5, 0.2]})
    assert significance(values, "base", test=test)["p"].tolist() == [1.0]
    assert significance(values.assign(same=0.9).head(1), "base", test=test)["p"].tolist() == [1.0]
    for correction in ("holm", "bonferroni", "benjamini-hochberg", None):
        empty = significance(values[["base"]], "base", test=test, correction=correction)
        assert empty.empty
        assert empty.columns.tolist() == ["system", "baseline", "mean", "difference", "p", "corrected"]


@pytest.mark.parametrize("seeds", [3, 7])
def test_means_over_seeds_of_equal_values_do_not_differ(seeds):
    """Their rounding has one sign, so that it would be significant."""
    own = np.random.default_rng(0).choice([0, *(1 / rank for rank in range(1, 11))], 200)
    runs = pd.DataFrame({"base": own, **{f"{seed}": own for seed in range(seeds)}})
    values = mean_over_seeds(runs, {"base": "base", "same": [f"{seed}" for seed in range(seeds)]})
    assert (values["base"] != values["same"]).any()
    for test in ("t-test", "randomisation"):
        assert significance(values, "base", test=test)["p"].tolist() == [1.0]
        other = values.rename(columns={"base": "same", "same": "base"})
        assert telescoped_against_full(values, other, test=test)["p"].tolist() == [1.0, 1.0]
    interval = bootstrap(values, baseline="base").to_frame().iloc[0]
    assert interval[["difference", "low", "high"]].tolist() == [0, 0, 0]
    assert significance(100 * runs.assign(other=own + 1e-8)[["base", "other"]], "base")["p"].tolist() < [1e-3]


def test_clear_errors_of_tests():
    values = pd.DataFrame({"base": [0.5, 0.2], "same": [0.5, 0.2]})
    with pytest.raises(ValueError, match="no system 'BM25'; the systems are base, same"):
        significance(values, ["base", "BM25"])
    with pytest.raises(ValueError, match="at least one baseline"):
        significance(values, [])
    with pytest.raises(ValueError, match="correction must be one of 'holm', 'bonferroni'"):
        significance(values, "base", correction="fdr")
    with pytest.raises(ValueError, match="test must be one of 't-test', 'randomisation'"):
        significance(values, "base", test="wilcoxon")
    with pytest.raises(ValueError, match=r"'same' has no value for query 1 in values.*dropna"):
        significance(values.assign(same=[0.1, None]), "base")


def test_telescoped_against_full(frames):
    telescoped, full = frames
    frame = telescoped_against_full(telescoped, full, correction="bonferroni")
    assert frame.columns.tolist() == ["system", "telescoped", "full", "difference", "p", "corrected"]
    assert frame["system"].tolist() == ["BM25", "DESM", "mixture"]
    assert frame["p"][0] == 1, "the first stage is the same in both"
    for row in frame.itertuples():
        assert row.telescoped == pytest.approx(telescoped[row.system].mean())
        assert row.full == pytest.approx(full[row.system].mean())
        assert row.difference == pytest.approx(row.full - row.telescoped)
        assert row.corrected == pytest.approx(min(1, 3 * row.p))
    for name in ("DESM", "mixture"):
        p = stats.ttest_rel(full[name], telescoped[name]).pvalue
        assert frame.set_index("system")["p"][name] == pytest.approx(p)
    shuffled = telescoped_against_full(telescoped, full.iloc[::-1, ::-1], test="randomisation")
    pd.testing.assert_frame_equal(shuffled, telescoped_against_full(telescoped, full, test="randomisation"))


def test_what_one_of_both_frames_lacks_is_named(frames):
    telescoped, full = frames
    with pytest.raises(ValueError, match="full lacks system 'DESM', which the other frame has"):
        telescoped_against_full(telescoped, full.drop(columns="DESM"))
    with pytest.raises(ValueError, match=r"telescoped lacks query 'q0' \(and 2 more\)"):
        telescoped_against_full(telescoped.iloc[3:], full)
    with pytest.raises(ValueError, match=r"full lacks query 'q0' \(and 11 more\)"):
        telescoped_against_full(telescoped, full.rename(index=lambda qid: f"other {qid}"))
    with pytest.raises(ValueError, match="telescoped holds values of AP, but full of RR"):
        telescoped_against_full(telescoped, full.rename_axis(columns="RR"))
    with pytest.raises(ValueError, match="'DESM' has no value for query 'q1' in full"):
        telescoped_against_full(telescoped, full.assign(DESM=full["DESM"].where(full.index != "q1")))
    with pytest.raises(ValueError, match="query 'q0' occurs twice in telescoped"):
        telescoped_against_full(pd.concat([telescoped, telescoped.head(1)]), full)


def test_intervals_are_percentiles_of_the_same_samples(pair):
    frame = bootstrap(pair, level=0.9, samples=200, seed=7).to_frame()
    drawn = np.random.default_rng(7).integers(40, size=(200, 40))
    for row in frame.itertuples():
        means = [pair[row.system].to_numpy()[rows].mean() for rows in drawn]
        assert row.mean == pytest.approx(pair[row.system].mean())
        assert (row.low, row.high) == pytest.approx(tuple(np.quantile(means, [0.05, 0.95])))


def test_intervals_as_in_scipy(pair):
    frame = bootstrap(pair, samples=20_000).to_frame()
    for row in frame.itertuples():
        theirs = stats.bootstrap([pair[row.system]], np.mean, n_resamples=20_000, method="percentile", rng=1)
        interval = theirs.confidence_interval
        assert (row.low, row.high) == pytest.approx((interval.low, interval.high), abs=3e-3)


def test_the_interval_of_a_difference_is_narrower(pair):
    means, differences = bootstrap(pair).to_frame(), bootstrap(pair, baseline="base").to_frame()
    assert means["low"][1] < means["high"][0], "the intervals of the means overlap"
    assert differences.columns.tolist() == ["system", "mean", "difference", "low", "high"]
    (row,) = differences.itertuples()
    assert row.system == "better"
    assert row.mean == pytest.approx(pair["better"].mean())
    assert row.difference == pytest.approx((pair["better"] - pair["base"]).mean())
    assert 0.01 < row.low < row.difference < row.high < 0.03


def test_blocks_do_not_change_intervals(pair, monkeypatch):
    whole = bootstrap(pair, samples=50).to_frame()
    for block in (81, 1):  # two samples of forty queries, and less than one
        monkeypatch.setattr(statistics, "BLOCK", block)
        pd.testing.assert_frame_equal(bootstrap(pair, samples=50).to_frame(), whole)
    (row,) = bootstrap(pd.DataFrame({"only": [0.3]}, index=["q1"]), samples=10).to_frame().itertuples()
    assert (row.low, row.mean, row.high) == pytest.approx((0.3, 0.3, 0.3))


def test_most_intervals_contain_the_mean():
    rng = np.random.default_rng(3)
    values = pd.DataFrame(rng.exponential(size=(60, 300)))  # three hundred experiments of sixty queries
    frame = bootstrap(values, level=0.9, samples=400).to_frame()
    assert 0.82 < ((frame["low"] < 1) & (frame["high"] > 1)).mean() < 0.94


def test_picture_of_intervals_has_a_line_per_system(pair):
    intervals = bootstrap(pair)
    axes = intervals.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["base", "better"]
    assert axes.get_xlabel() == "AP, 95% interval"
    (marks, _, (bars,)) = axes.containers[0]
    np.testing.assert_allclose(marks.get_xdata().astype(float), pair.mean())
    np.testing.assert_allclose(
        [segment[:, 0] for segment in bars.get_segments()], intervals.to_frame()[["low", "high"]]
    )
    assert axes.yaxis_inverted(), "the first system is on top"
    assert repr(intervals) == "BootstrapIntervals(2 systems, AP, 95%)"


def test_picture_of_differences_has_a_line_at_0_and_wraps_long_names(pair):
    name = "BM25 and a mixture with a name that is far too long to stand on a single line of a picture"
    intervals = bootstrap(pair.rename(columns={"better": name}), 0.995, baseline="base")
    axes = intervals.plot()
    assert axes.get_xlabel() == "difference from base in AP, 99.5% interval"
    assert any(list(line.get_xdata()) == [0, 0] for line in axes.lines)
    assert repr(intervals) == "BootstrapIntervals(1 systems, AP, 99.5%, differences from base)"
    (label,) = axes.get_yticklabels()
    assert max(map(len, label.get_text().split("\n"))) <= 50
    assert label.get_text().replace("\n", " ") == name


def test_hostile_frames(pair):
    for change, message in (
        (lambda values: values.iloc[:0], "values has no query"),
        (lambda values: values[[]], "values has no system"),
        (lambda values: values.set_axis(["base", "base"], axis=1), "system 'base' occurs twice in values"),
        (lambda values: pd.concat([values, values.head(1)]), "query 0 occurs twice in values"),
        (lambda values: values.assign(base=values["base"].where(values.index != 3)), "'base' has no value for query 3"),
        (lambda values: values.assign(better=np.inf), "'better' has no value for query 0"),
        (lambda values: values.assign(qid="q1"), "column 'qid' of values is not numeric"),
    ):
        with pytest.raises(ValueError, match=message):
            bootstrap(change(pair))


def test_clear_errors_of_intervals(pair):
    with pytest.raises(ValueError, match="no system 'BM25'; the systems are base, better"):
        bootstrap(pair, baseline="BM25")
    with pytest.raises(ValueError, match="no system beside the baseline 'base'"):
        bootstrap(pair[["base"]], baseline="base")
    with pytest.raises(TypeError, match="values must be a frame such as per_query returns, not Series"):
        bootstrap(pair["base"])
    for level in (0, 1, 95):
        with pytest.raises(ValueError, match="level must be"):
            bootstrap(pair, level)
    with pytest.raises(ValueError, match="samples must be at least 1"):
        bootstrap(pair, samples=0)
