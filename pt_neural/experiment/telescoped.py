"""What re-ranking a first stage's candidates does to a system, beside ranking every document."""

import pandas as pd

from pt_neural.experiment.differences import Correction, Test, corrected, paired_test
from pt_neural.experiment.values import checked_values


def telescoped_against_full(
    telescoped: pd.DataFrame,
    full: pd.DataFrame,
    *,
    correction: Correction | None = "holm",
    test: Test = "t-test",
) -> pd.DataFrame:
    """Both settings of the same systems in one frame: candidates re-ranked, and every document a candidate.

    DESM paper, sections 3.2 and 4, tables 3 and 4: word embeddings order well what a first stage found, and do poorly
    where they have to find it themselves.

    Args:
        telescoped: One row a query, one column a system, as :func:`per_query` gives: a first stage's candidates
            re-ranked.
        full: The same systems, queries and measure, every document being ranked; in any order.
        correction: For the number of systems, as :func:`significance` has it.
        test: Of the differences, likewise.

    Returns:
        Frame with ``system``, the means ``telescoped`` and ``full``, ``difference``, which is full minus telescoped,
        ``p`` and ``corrected``; one row a system, in the order of ``telescoped``.

    Raises:
        ValueError: If one frame lacks a system or a query of the other, if the measures differ, or if values are
            missing.

    Example::

        reranked = pt.Experiment([bm25, bm25 >> desm], topics, qrels, [AP], names=["BM25", "DESM"], perquery=True)
        ranked = pt.Experiment([bm25, retriever], topics, qrels, [AP], names=["BM25", "DESM"], perquery=True)
        telescoped_against_full(per_query(reranked), per_query(ranked))
    """
    telescoped, full = checked_values(telescoped, called="telescoped"), checked_values(full, called="full")
    measures = telescoped.columns.name, full.columns.name
    if None not in measures and measures[0] != measures[1]:
        raise ValueError(f"telescoped holds values of {measures[0]}, full of {measures[1]}")
    _require_same("system", telescoped.columns, full.columns)
    _require_same("query", telescoped.index, full.index)
    full = full.loc[telescoped.index, telescoped.columns]
    p_values = paired_test((full - telescoped).to_numpy(), test)
    frame = pd.DataFrame({"telescoped": telescoped.mean(), "full": full.mean()})
    frame["difference"] = frame["full"] - frame["telescoped"]
    frame = frame.assign(p=p_values, corrected=corrected(p_values, correction))
    return frame.rename_axis("system").reset_index()


def _require_same(what: str, telescoped: pd.Index, full: pd.Index) -> None:
    """Raise ValueError unless both frames have the same systems, or the same queries."""
    for lacks, lacking in (("full", telescoped.difference(full)), ("telescoped", full.difference(telescoped))):
        if len(lacking):
            others = f" (and {len(lacking) - 1:,} more)" if len(lacking) > 1 else ""
            raise ValueError(f"{lacks} lacks {what} {lacking[0]!r}{others}, which the other frame has")
