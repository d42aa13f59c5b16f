"""Means over queries with their standard errors, as the tables of the SSI paper have them."""

import numpy as np
import pandas as pd

from pt_neural._arguments import checked_number
from pt_neural.experiment.values import require_result


def standard_errors(result: pd.DataFrame) -> pd.DataFrame:
    """The mean of each system and measure over queries, and its standard error.

    The standard error is the standard deviation of the queries' values, with one degree of freedom less than queries,
    divided by the square root of their number.

    Args:
        result: Frame of ``pt.Experiment(.., perquery=True)``: ``name, qid, measure, value``. Queries without a value
            (NaN) are left out.

    Returns:
        Frame with ``name``, ``measure``, ``queries``, ``mean`` and ``standard_error``, in the order of the result. The
        standard error of a single query is NaN.

    Raises:
        ValueError: If columns are missing, or if two systems share a name.

    Example::

        result = pt.Experiment([tfidf, ssi], test, qrels, [AP, P @ 10], names=["TFIDF", "SSI"], perquery=True)
        standard_errors(result)
    """
    require_result(result)
    groups = result.groupby(["name", "measure"], sort=False)["value"]
    counts = groups.count()
    frame = pd.DataFrame({"queries": counts, "mean": groups.mean(), "standard_error": groups.std() / np.sqrt(counts)})
    return frame.reset_index()


def with_standard_errors(result: pd.DataFrame, *, digits: int = 3) -> pd.DataFrame:
    """The same as a table to read: ``0.517±0.011``.

    Args:
        result: Frame of ``pt.Experiment(.., perquery=True)``: ``name, qid, measure, value``.
        digits: Digits after the point.

    Returns:
        Frame of strings, one row a system (the index) and one column a measure, in the order of the result.

    Raises:
        ValueError: If columns are missing, or if two systems share a name.

    Example::

        result = pt.Experiment([tfidf, ssi], test, qrels, [AP, P @ 10], names=["TFIDF", "SSI"], perquery=True)
        with_standard_errors(result)
    """
    digits = checked_number("digits", digits, int, least=0)
    frame = standard_errors(result)
    texts = [
        f"{mean:.{digits}f}" + ("" if np.isnan(error) else f"±{error:.{digits}f}")
        for mean, error in zip(frame["mean"], frame["standard_error"], strict=True)
    ]
    table = frame.assign(text=texts).pivot_table("text", "name", "measure", aggfunc="first")
    table = table.loc[frame["name"].unique(), frame["measure"].unique()]
    return table.rename_axis(index="name", columns=None)
