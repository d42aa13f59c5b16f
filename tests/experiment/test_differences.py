import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pt_neural.experiment import resampling, significance
from pt_neural.experiment.differences import corrected


@pytest.fixture
def values():
    """Four systems over thirty queries, of which the last is the first with a little noise."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.random((30, 3)), columns=["a", "b", "c"])
    return frame.assign(d=frame["a"] + rng.normal(0.02, 0.03, 30)).rename_axis(index="qid", columns="AP")


def test_paired_t_test_by_hand():
    values = pd.DataFrame({"base": [0.0, 0.0, 0.0, 0.0], "other": [0.1, 0.3, 0.2, 0.4]})
    row = significance(values, "base").iloc[0]
    assert row["mean"] == pytest.approx(0.25)
    assert row["difference"] == pytest.approx(0.25)
    # t = 0.25 / (sd / 2) with sd² = (0.15² + 0.05² + 0.05² + 0.15²) / 3, so t² = 15; for three degrees of freedom the
    # distribution function is 1/2 + (atan(x) + x / (1 + x²)) / π with x = t / √3.
    x = np.sqrt(5)
    assert row["p"] == pytest.approx(1 - 2 * (np.arctan(x) + x / (1 + x**2)) / np.pi)
    assert row["corrected"] == row["p"]


def test_several_baselines_as_scipy_has_them(values):
    frame = significance(values, ["a", "c"], correction="bonferroni")
    pairs = list(zip(frame["system"], frame["baseline"], strict=True))
    assert pairs == [("b", "a"), ("c", "a"), ("d", "a"), ("b", "c"), ("d", "c")]  # a with c already stands above
    for row in frame.itertuples():
        p = stats.ttest_rel(values[row.system], values[row.baseline]).pvalue
        assert row.p == pytest.approx(p)
        assert row.corrected == pytest.approx(min(1, 5 * p)), "for the comparisons with both baselines together"
        assert row.mean == pytest.approx(values[row.system].mean())
        assert row.difference == pytest.approx(values[row.system].mean() - values[row.baseline].mean())


def test_all_systems_as_baselines_are_all_pairs(values):
    frame = significance(values, list(values))
    assert set(map(frozenset, zip(frame["system"], frame["baseline"], strict=True))) == set(
        map(frozenset, itertools.combinations(values, 2))
    )
    assert len(frame) == 6
    pd.testing.assert_frame_equal(significance(values, ["a", "a"]), significance(values, "a"))


def test_randomisation_tries_all_signs_of_few_queries(values):
    few = values.head(6)
    frame = significance(few, "a", test="randomisation", correction=None)
    for row in frame.itertuples():
        differences = (few[row.system] - few["a"]).to_numpy()
        sums = [abs(np.dot(signs, differences)) for signs in itertools.product([1, -1], repeat=6)]
        assert row.p == np.mean([each >= abs(differences.sum()) - 1e-9 for each in sums])


def test_randomisation_as_scipy_has_it(values):
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
    monkeypatch.setattr(resampling, "BLOCK", 100)
    pd.testing.assert_frame_equal(significance(values.head(8), "a", test="randomisation"), few)


def test_corrections_by_hand():
    p_values = np.array([0.02, 0.01, 0.6, 0.021])
    np.testing.assert_allclose(corrected(p_values, "bonferroni"), [0.08, 0.04, 1.0, 0.084])
    np.testing.assert_allclose(corrected(p_values, "holm"), [0.06, 0.04, 0.6, 0.06])  # 0.021 * 2 is below 0.02 * 3
    # 0.01 * 4 / 1 and 0.02 * 4 / 2 are above what 0.021 * 4 / 3 gives the next.
    np.testing.assert_allclose(corrected(p_values, "benjamini-hochberg"), [0.028, 0.028, 0.6, 0.028])
    np.testing.assert_allclose(corrected(p_values, None), p_values)


@pytest.mark.parametrize("test", ["t-test", "randomisation"])
def test_equal_systems_do_not_differ(test):
    values = pd.DataFrame({"base": [0.5, 0.2], "same": [0.5, 0.2]})
    assert significance(values, "base", test=test)["p"].tolist() == [1.0]
    assert significance(values.head(1), "base", test=test)["p"].tolist() == [1.0]
    for correction in ("holm", "bonferroni", "benjamini-hochberg", None):
        empty = significance(values[["base"]], "base", test=test, correction=correction)
        assert empty.empty
        assert empty.columns.tolist() == ["system", "baseline", "mean", "difference", "p", "corrected"]


def test_one_query_tells_nothing():
    values = pd.DataFrame({"base": [0.1], "other": [0.9]})
    assert significance(values, "base")["p"].tolist() == [1.0]
    assert significance(values, "base", test="randomisation")["p"].tolist() == [1.0]


def test_clear_errors():
    values = pd.DataFrame({"base": [0.5, 0.2], "same": [0.5, 0.2]})
    with pytest.raises(ValueError, match="no system 'BM25'; there are base, same"):
        significance(values, ["base", "BM25"])
    with pytest.raises(ValueError, match="at least one baseline"):
        significance(values, [])
    with pytest.raises(ValueError, match="correction must be one of 'holm', 'bonferroni'"):
        significance(values, "base", correction="fdr")
    with pytest.raises(ValueError, match="test must be one of 't-test', 'randomisation'"):
        significance(values, "base", test="wilcoxon")
    with pytest.raises(ValueError, match=r"'same' has no value for query 1 in values.*dropna"):
        significance(values.assign(same=[0.1, None]), "base")
