"""The value of each system for each query, and means over queries and over seeds."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import ir_measures
import numpy as np
import pandas as pd

from pt_neural._arguments import checked_number
from pt_neural._evaluation import parse_measure

Systems = Mapping[str, str | Sequence[str]]
_COLUMNS = ("name", "qid", "measure", "value")


def per_query(result: pd.DataFrame, measure: ir_measures.Measure | str | None = None) -> pd.DataFrame:
    """One row per query and one column per system: the input of this package's breakdowns, tests and pictures.

    Args:
        result: Frame from ``pt.Experiment(.., perquery=True)``: ``name, qid, measure, value``.
        measure: The measure to take, or its name; optional if there is only one.

    Returns:
        Frame indexed by ``qid``, with one float column per system, in the order of ``result`` (PyTerrier sorts systems
        by name). The column index is named after the measure. Queries without judgements, for which no system has a
        value, are left out, so that means are those of ``pt.Experiment``; a judged query for which a system retrieves
        nothing has the measure's value for empty results.

    Raises:
        ValueError: If columns are missing, if two systems share a name, if the measure is missing or ambiguous, or if
            some systems lack a value for a query that others have one for.

    Example::

        result = pt.Experiment([bm25, ql], topics, qrels, [nDCG @ 10], names=["BM25", "QL"], perquery=True)
        values = per_query(result)
        values["BM25"].mean()
    """
    require_result(result)
    measures = result["measure"].unique()
    if measure is None:
        if len(measures) != 1:
            raise ValueError(f"the result has several measures; say which of {', '.join(measures)}")
        measure = measures[0]
    name = str(measure) if str(measure) in measures else str(parse_measure(measure))
    if name not in measures:
        raise ValueError(f"{name} was not measured; the result has {', '.join(measures)}")
    rows = result[result["measure"] == name]
    values = rows.pivot_table("value", "qid", "name", sort=False, dropna=False)[rows["name"].unique()]
    values = values.dropna(how="all")
    missing = values.isna()
    if missing.any(axis=None):
        system = missing.any().idxmax()
        raise ValueError(
            f"{system!r} has no value of {name} for query {missing[system].idxmax()!r}, but other systems have; "
            "measure all systems on the same topics and qrels"
        )
    return values.rename_axis(columns=name)


def standard_errors(result: pd.DataFrame) -> pd.DataFrame:
    """The mean of each system and measure over queries, and its standard error.

    The standard error is the sample standard deviation of the values of the queries, divided by the square root of
    their number.

    Args:
        result: Frame from ``pt.Experiment(.., perquery=True)``: ``name, qid, measure, value``. Queries without a value
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
    """Means and standard errors as a table to read, as the SSI paper prints them: ``0.517±0.011``.

    Args:
        result: Frame from ``pt.Experiment(.., perquery=True)``: ``name, qid, measure, value``.
        digits: Digits after the decimal point.

    Returns:
        Frame of strings, with one row per system (the index) and one column per measure, in the order of the result.

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


def over_seeds(result: pd.DataFrame, systems: Systems) -> pd.DataFrame:
    """The mean and standard deviation of each system and measure over its seeds.

    Both are computed from the means over queries, so the deviation shows how much the choice of a seed matters, not how
    much queries differ; for that see :func:`standard_errors` and :func:`bootstrap`.

    Args:
        result: Frame from ``pt.Experiment(.., perquery=True)``: ``name, qid, measure, value``.
        systems: For each system the names of its runs in ``result``, one per seed, or a single name if it has no seeds.

    Returns:
        Frame with ``system``, ``measure``, ``seeds`` (their number), ``mean`` and ``deviation`` (the sample standard
        deviation, NaN for a single seed). Systems are in the order given, measures in that of the result.

    Raises:
        ValueError: If columns or runs are missing.

    Example::

        seeds = {f"CLSM, seed {seed}": ranker for seed, ranker in trained.items()}
        result = pt.Experiment({"BM25": bm25, **seeds}, topics, qrels, [nDCG @ 10], perquery=True)
        over_seeds(result, {"BM25": "BM25", "CLSM": list(seeds)})
    """
    require_result(result)
    means = {measure: per_query(result, measure).mean() for measure in result["measure"].unique()}
    runs_by_system, rows = _checked_systems(systems, result["name"].unique()), []
    for name, runs in runs_by_system.items():
        for measure, known in means.items():
            missing = [run for run in runs if run not in known]
            if missing:
                raise ValueError(f"run {missing[0]!r} of system {name!r} has no values of {measure}")
            rows.append((name, measure, len(runs), known[runs].mean(), known[runs].std(ddof=1)))
    return pd.DataFrame(rows, columns=["system", "measure", "seeds", "mean", "deviation"])


def mean_over_seeds(values: pd.DataFrame, systems: Systems) -> pd.DataFrame:
    """The values of each system for each query, averaged over its seeds, as tests between systems need them.

    Args:
        values: One row per query and one column per run, as :func:`per_query` returns them.
        systems: For each system the names of its runs, one per seed, or a single name if it has no seeds.

    Returns:
        One row per query and one column per system, in the order given.

    Raises:
        ValueError: If runs or values are missing.

    Example::

        values = mean_over_seeds(per_query(result), {"BM25": "BM25", "CLSM": ["CLSM, seed 1", "CLSM, seed 2"]})
        significance(values, "BM25")
    """
    runs_by_system = _checked_systems(systems, values.columns)
    values = checked_values(values)
    means = {name: values[runs].mean(axis=1) for name, runs in runs_by_system.items()}
    return pd.DataFrame(means, index=values.index).rename_axis(columns=values.columns.name)


def _checked_systems(systems: Systems, known: Iterable[str]) -> dict[str, list[str]]:
    """The runs of each system, all of which must be known."""
    if not isinstance(systems, Mapping) or not systems:
        raise ValueError(f"systems must map the name of each system to the names of its runs, not {systems!r:.80}")
    runs_by_system = {name: [runs] if isinstance(runs, str) else list(runs) for name, runs in systems.items()}
    known = list(known)
    for name, runs in runs_by_system.items():
        unknown = [run for run in runs if run not in known]
        if unknown or not runs:
            problem = f"there is no run {unknown[0]!r}" if unknown else "it has no runs"
            raise ValueError(f"system {name!r}: {problem}; the runs are {', '.join(map(str, known))}")
        if len(set(runs)) < len(runs):
            raise ValueError(f"system {name!r} names a run twice: {', '.join(map(str, runs))}")
    return runs_by_system


def require_result(result: pd.DataFrame) -> None:
    """Raise ValueError unless the frame is a per-query result of an experiment whose systems have distinct names."""
    missing = [column for column in _COLUMNS if column not in result]
    if missing:
        raise ValueError(f"the frame lacks {', '.join(missing)}; it must come from pt.Experiment(.., perquery=True)")
    repeated = result.duplicated(["name", "qid", "measure"])
    if repeated.any():
        row = result[repeated].iloc[0]
        raise ValueError(
            f"{row['name']!r} has several values of {row['measure']} for query {row['qid']!r}; give each system a name "
            "of its own: pt.Experiment(.., names=[..])"
        )


def checked_values(values: pd.DataFrame, systems: Iterable[object] = (), *, called: str = "values") -> pd.DataFrame:
    """The values as float64, after checking that there is one for every system and query.

    Args:
        values: One row per query and one column per system.
        systems: Systems that must be among the columns.
        called: The name of the argument, for error messages.

    Raises:
        TypeError: If it is not a frame.
        ValueError: If queries, systems or values are missing or repeated.
    """
    if not isinstance(values, pd.DataFrame):
        raise TypeError(f"{called} must be a frame such as per_query returns, not {type(values).__name__}")
    unknown = [system for system in systems if system not in values]
    if unknown:
        raise ValueError(f"there is no system {unknown[0]!r}; the systems are {', '.join(map(str, values))}")
    for what, names in (("query", values.index), ("system", values.columns)):
        if names.has_duplicates:
            raise ValueError(f"{what} {names[names.duplicated()].tolist()[0]!r} occurs twice in {called}")
        if names.empty:
            raise ValueError(f"{called} has no {what}")
    text = [name for name, kind in values.dtypes.items() if not pd.api.types.is_numeric_dtype(kind)]
    if text:
        raise ValueError(f"column {text[0]!r} of {called} is not numeric; pass a frame such as per_query returns")
    numbers = values.astype(np.float64)
    unknown = np.argwhere(~np.isfinite(numbers.to_numpy()))
    if len(unknown):
        query, system = values.index.tolist()[unknown[0, 0]], values.columns.tolist()[unknown[0, 1]]
        raise ValueError(f"{system!r} has no value for query {query!r} in {called}; drop such queries with dropna()")
    return numbers


def subtract(values: Any, others: Any) -> Any:
    """Arrays or columns less others; 0 where only rounding parts the two, as in means over seeds of equal values."""
    rounding = 1e-12 * np.maximum(np.abs(values), np.abs(others))
    return (values - others) * (np.abs(values - others) > rounding)


def measure_name(values: pd.DataFrame) -> str:
    """The measure of a frame of values, for the axis of a picture."""
    return values.columns.name or "value"
