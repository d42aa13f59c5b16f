"""The value of each system for each query."""

from collections.abc import Iterable

import ir_measures
import numpy as np
import pandas as pd

from pt_neural._evaluation import parse_measure

_COLUMNS = ("name", "qid", "measure", "value")


def per_query(result: pd.DataFrame, measure: ir_measures.Measure | str | None = None) -> pd.DataFrame:
    """One row a query, one column a system: what the breakdowns, tests and pictures of this package start from.

    Args:
        result: Frame of ``pt.Experiment(.., perquery=True)``: ``name, qid, measure, value``.
        measure: The measure to take, or its name; may be left out where there is only one.

    Returns:
        Frame with ``qid`` as the index and one float column a system, in the order of ``result``, where PyTerrier sorts
        them by name; the name of the columns is that of the measure. A query for which a system has no value counts 0.

    Raises:
        ValueError: If columns are missing, if two systems share a name, or if it is not clear which measure is meant.

    Example::

        result = pt.Experiment([bm25, ql], topics, qrels, [nDCG @ 10], names=["BM25", "QL"], perquery=True)
        values = per_query(result)
        values["BM25"].mean()
    """
    require_result(result)
    measures = result["measure"].unique()
    if measure is None:
        if len(measures) != 1:
            raise ValueError(f"say which measure, for there are {len(measures)}: {', '.join(measures)}")
        measure = measures[0]
    name = str(measure) if str(measure) in measures else str(parse_measure(measure))
    if name not in measures:
        raise ValueError(f"{name} was not measured, but {', '.join(measures)}")
    rows = result[result["measure"] == name]
    values = rows.pivot_table("value", "qid", "name", sort=False, dropna=False)[rows["name"].unique()].fillna(0.0)
    return values.rename_axis(columns=name)


def require_result(result: pd.DataFrame) -> None:
    """Raise ValueError unless the frame is one of an experiment by query whose systems have names of their own."""
    lacking = [column for column in _COLUMNS if column not in result]
    if lacking:
        raise ValueError(f"the frame lacks {', '.join(lacking)}; it must come from pt.Experiment(.., perquery=True)")
    twice = result.duplicated(["name", "qid", "measure"])
    if twice.any():
        row = result[twice].iloc[0]
        raise ValueError(
            f"{row['name']!r} has several values of {row['measure']} for query {row['qid']!r}; give each system a name "
            "of its own: pt.Experiment(.., names=[..])"
        )


def checked_values(values: pd.DataFrame, systems: Iterable[object] = (), *, called: str = "values") -> pd.DataFrame:
    """The values as float64, if there is one of every system for every query.

    Args:
        values: One row a query, one column a system.
        systems: Those that must be among them.
        called: What the argument is called.

    Raises:
        TypeError: If it is no frame.
        ValueError: If queries, systems or values are missing, or occur twice.
    """
    if not isinstance(values, pd.DataFrame):
        raise TypeError(f"{called} must be a frame as per_query gives, not {type(values).__name__}")
    absent = [system for system in systems if system not in values]
    if absent:
        raise ValueError(f"there is no system {absent[0]!r}; there are {', '.join(map(str, values))}")
    for what, names in (("query", values.index), ("system", values.columns)):
        if names.has_duplicates:
            raise ValueError(f"{what} {names[names.duplicated()].tolist()[0]!r} occurs twice in {called}")
        if names.empty:
            raise ValueError(f"{called} has no {what}")
    text = [name for name, kind in values.dtypes.items() if not pd.api.types.is_numeric_dtype(kind)]
    if text:
        raise ValueError(f"column {text[0]!r} of {called} holds no numbers; take what per_query gives")
    numbers = values.astype(np.float64)
    unknown = np.argwhere(~np.isfinite(numbers.to_numpy()))
    if len(unknown):
        query, system = values.index.tolist()[unknown[0, 0]], values.columns.tolist()[unknown[0, 1]]
        raise ValueError(
            f"{system!r} has no value for query {query!r} in {called}; leave such queries out with dropna()"
        )
    return numbers


def measure_name(values: pd.DataFrame) -> str:
    """What the values of a frame are, for a picture's axis."""
    return values.columns.name or "value"
