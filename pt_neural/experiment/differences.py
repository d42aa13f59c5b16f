"""Which systems differ from a baseline."""

import warnings
from typing import Literal

import numpy as np
import pandas as pd

Correction = Literal["holm", "bonferroni"]


def significance(values: pd.DataFrame, baseline: str, *, correction: Correction | None = "holm") -> pd.DataFrame:
    """Compare every system with one of them, by a paired t-test over queries.

    Args:
        values: One row a query, one column a system, as :func:`per_query` gives.
        baseline: One of the columns.
        correction: For the number of comparisons: ``"holm"``; ``"bonferroni"``, which the Duet paper has (section
            4.4); None for none.

    Returns:
        Frame with ``system``, ``mean``, ``difference`` from the baseline's mean, ``p``, and ``corrected``, the p-value
        to judge by; one row for each other system. Systems with the same values have p = 1.

    Raises:
        ValueError: If there is no such system or correction.

    Example::

        frame = significance(values, "BM25")
        frame[frame["corrected"] < 0.05]
    """
    from scipy.stats import ttest_rel

    if baseline not in values:
        raise ValueError(f"there is no system {baseline!r}; there are {', '.join(map(str, values))}")
    others = values.drop(columns=baseline)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of systems whose values are all alike
        p_values = np.array([ttest_rel(others[name], values[baseline]).pvalue for name in others], dtype=np.float64)
    p_values = np.nan_to_num(p_values, nan=1.0)
    return pd.DataFrame(
        {
            "system": list(others),
            "mean": others.mean().to_numpy(),
            "difference": (others.mean() - values[baseline].mean()).to_numpy(),
            "p": p_values,
            "corrected": corrected(p_values, correction),
        }
    )


def corrected(p_values: np.ndarray, correction: Correction | None = "holm") -> np.ndarray:
    """P-values that hold for several comparisons together, none above 1."""
    count = len(p_values)
    if correction is None:
        return p_values
    if correction == "bonferroni":
        return np.minimum(1.0, p_values * count)
    if correction != "holm":
        raise ValueError(f"correction must be 'holm', 'bonferroni' or None, not {correction!r}")
    # By hand, because statsmodels' multipletests collects garbage in each call, which takes a third of a second.
    order = np.argsort(p_values, kind="stable")
    result = np.empty(count)
    result[order] = np.minimum(1.0, np.maximum.accumulate(p_values[order] * np.arange(count, 0, -1)))
    return result
