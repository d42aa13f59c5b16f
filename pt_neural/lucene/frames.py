"""Rows that are scored, and the queries that they belong to."""

import numpy as np
import pandas as pd

from pt_neural._frames import with_scores


def scored_frame(inp: pd.DataFrame, scores: np.ndarray, cut: int | None = None) -> pd.DataFrame:
    """The rows of the input with new ``score`` and ``rank``; only ranks below ``cut`` if it is given."""
    frame = with_scores(inp, scores)
    return frame if cut is None else frame[frame["rank"] < cut]


def group_queries(frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Which rows belong to one query: those that agree in ``qid`` and, where there is one, in ``query``.

    Returns:
        The number of each row's query, from 0 in order of appearance, and the first row of each query; int64.
    """
    groups, _ = pd.factorize(frame["qid"], use_na_sentinel=False)
    if "query" in frame.columns:
        texts, distinct = pd.factorize(frame["query"], use_na_sentinel=False)
        groups, _ = pd.factorize(groups.astype(np.int64) * len(distinct) + texts)
    _, firsts = np.unique(groups, return_index=True)
    return groups.astype(np.int64), firsts
