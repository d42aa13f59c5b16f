"""Which systems differ from a baseline, or from several."""

import warnings
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd

from pt_neural._arguments import checked_choice, checked_number
from pt_neural.experiment.resampling import share_as_extreme
from pt_neural.experiment.values import checked_values

Correction = Literal["holm", "bonferroni", "benjamini-hochberg"]
Test = Literal["t-test", "randomisation"]


def significance(
    values: pd.DataFrame,
    baseline: str | Sequence[str],
    *,
    correction: Correction | None = "holm",
    test: Test = "t-test",
    samples: int = 10_000,
    seed: int = 13,
) -> pd.DataFrame:
    """Compare every system with a baseline, or with each of several, by a paired test over queries.

    Args:
        values: One row a query, one column a system, as :func:`per_query` gives. For systems of several seeds take the
            means that :func:`mean_over_seeds` gives.
        baseline: One of the columns, or several. Two baselines are compared with each other too, once.
        correction: For the number of comparisons, of all baselines together: ``"holm"``; ``"bonferroni"``, which the
            Duet paper has (section 4.4); ``"benjamini-hochberg"``, which bounds the share of false discoveries; None
            for none.
        test: The paired ``"t-test"``, or the ``"randomisation"`` test, which supposes no normal distribution: how
            often differences with random signs have a mean as far from 0. With so few queries that ``samples`` covers
            all signs, it tries all.
        samples: Random signs that the randomisation test tries.
        seed: Of the random signs.

    Returns:
        Frame with ``system``, ``baseline``, ``mean`` of the system, ``difference`` from the baseline's mean, ``p``,
        and ``corrected``, the p-value to judge by; one row a comparison, baseline by baseline. Systems with the same
        values have p = 1, and so has every t-test of a single query.

    Raises:
        ValueError: If there is no such system, correction or test, or if queries or values are missing or occur twice.

    Example::

        frame = significance(values, ["BM25", "SDM"])
        frame[frame["corrected"] < 0.05]
    """
    baselines = [baseline] if isinstance(baseline, str) else list(dict.fromkeys(baseline))
    if not baselines:
        raise ValueError("name at least one baseline")
    values = checked_values(values, baselines)
    pairs = _pairs(list(values), baselines)
    systems, others = [system for system, _ in pairs], [other for _, other in pairs]
    differences = values[systems].to_numpy() - values[others].to_numpy()
    p_values = paired_test(differences, test, samples, seed)
    means = values.mean()
    return pd.DataFrame(
        {
            "system": systems,
            "baseline": others,
            "mean": means[systems].to_numpy(),
            "difference": means[systems].to_numpy() - means[others].to_numpy(),
            "p": p_values,
            "corrected": corrected(p_values, correction),
        }
    )


def paired_test(differences: np.ndarray, test: Test = "t-test", samples: int = 10_000, seed: int = 13) -> np.ndarray:
    """How likely differences, shape (queries, comparisons), are whose mean is as far from 0, were there none."""
    checked_choice("test", test, ("t-test", "randomisation"))
    samples, seed = checked_number("samples", samples, int, least=1), checked_number("seed", seed, int, least=0)
    return _t_test(differences) if test == "t-test" else share_as_extreme(differences, samples, seed)


def corrected(p_values: np.ndarray, correction: Correction | None = "holm") -> np.ndarray:
    """P-values that hold for several comparisons together, none above 1."""
    checked_choice("correction", correction, ("holm", "bonferroni", "benjamini-hochberg", None))
    count = len(p_values)
    if correction is None:
        return p_values
    if correction == "bonferroni":
        return np.minimum(1.0, p_values * count)
    if correction == "benjamini-hochberg":
        from scipy.stats import false_discovery_control

        return false_discovery_control(p_values) if count else p_values
    # By hand, because statsmodels' multipletests collects garbage in each call, which takes a third of a second.
    order = np.argsort(p_values, kind="stable")
    result = np.empty(count)
    result[order] = np.minimum(1.0, np.maximum.accumulate(p_values[order] * np.arange(count, 0, -1)))
    return result


def _pairs(systems: Sequence[str], baselines: Sequence[str]) -> list[tuple[str, str]]:
    """Every system with every baseline, and no two of them twice."""
    pairs = {}
    for baseline in baselines:
        for system in systems:
            if system != baseline and (baseline, system) not in pairs:
                pairs[system, baseline] = None
    return list(pairs)


def _t_test(differences: np.ndarray) -> np.ndarray:
    """The p-value of each column, shape (comparisons,), that its mean is 0."""
    from scipy.stats import ttest_1samp

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of systems whose values are all alike
        p_values = np.array(ttest_1samp(differences, 0.0).pvalue, dtype=np.float64)
    return np.nan_to_num(p_values, nan=1.0)
