"""Systems that were trained with several seeds: the mean of their runs, and how far these lie apart."""

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from pt_neural.experiment.values import checked_values, per_query, require_result

Systems = Mapping[str, str | Sequence[str]]


def over_seeds(result: pd.DataFrame, systems: Systems) -> pd.DataFrame:
    """The mean of each system and measure over its seeds, and the standard deviation.

    Both are of the means over queries: the deviation tells how much the choice of a seed matters, not how much queries
    differ, which :func:`standard_errors` and :func:`bootstrap` tell.

    Args:
        result: Frame of ``pt.Experiment(.., perquery=True)``: ``name, qid, measure, value``.
        systems: The names of each system's runs in ``result``, one a seed; a single name for a system without seeds.

    Returns:
        Frame with ``system``, ``measure``, ``seeds``, their number, ``mean`` and ``deviation``, which has one degree
        of freedom less than seeds and is NaN for a single one. Systems stand in the order given, measures in that of
        the result.

    Raises:
        ValueError: If columns or runs are missing.

    Example::

        seeds = {f"CLSM, seed {seed}": ranker for seed, ranker in trained.items()}
        result = pt.Experiment({"BM25": bm25, **seeds}, topics, qrels, [nDCG @ 10], perquery=True)
        over_seeds(result, {"BM25": "BM25", "CLSM": list(seeds)})
    """
    require_result(result)
    means = {measure: per_query(result, measure).mean() for measure in result["measure"].unique()}
    members, rows = _members(systems, result["name"].unique()), []
    for name, runs in members.items():
        for measure, known in means.items():
            lacking = [run for run in runs if run not in known]
            if lacking:
                raise ValueError(f"run {lacking[0]!r} of system {name!r} has no values of {measure}")
            rows.append((name, measure, len(runs), known[runs].mean(), known[runs].std(ddof=1)))
    return pd.DataFrame(rows, columns=["system", "measure", "seeds", "mean", "deviation"])


def mean_over_seeds(values: pd.DataFrame, systems: Systems) -> pd.DataFrame:
    """The values of each system for each query, averaged over its seeds: what tests between systems start from.

    Args:
        values: One row a query, one column a run, as :func:`per_query` gives.
        systems: The names of each system's runs, one a seed; a single name for a system without seeds.

    Returns:
        One row a query, one column a system, in the order given.

    Raises:
        ValueError: If runs or values are missing.

    Example::

        values = mean_over_seeds(per_query(result), {"BM25": "BM25", "CLSM": ["CLSM, seed 1", "CLSM, seed 2"]})
        significance(values, "BM25")
    """
    members = _members(systems, values.columns)
    values = checked_values(values)
    means = {name: values[runs].mean(axis=1) for name, runs in members.items()}
    return pd.DataFrame(means, index=values.index).rename_axis(columns=values.columns.name)


def _members(systems: Systems, known: Iterable[str]) -> dict[str, list[str]]:
    """The runs of each system, all of which are known."""
    if not isinstance(systems, Mapping) or not systems:
        raise ValueError(f"systems must map the name of each system to the names of its runs, not {systems!r:.80}")
    members = {name: [runs] if isinstance(runs, str) else list(runs) for name, runs in systems.items()}
    known = list(known)
    for name, runs in members.items():
        absent = [run for run in runs if run not in known]
        if absent or not runs:
            lacks = f"there is no run {absent[0]!r}" if absent else "it has no runs"
            raise ValueError(f"system {name!r}: {lacks}; there are {', '.join(map(str, known))}")
        if len(set(runs)) < len(runs):
            raise ValueError(f"system {name!r} names a run twice: {', '.join(map(str, runs))}")
    return members
