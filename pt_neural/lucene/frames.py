"""Hits and scores into PyTerrier frames."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from pt_neural._frames import with_scores
from pt_neural.lucene.search import Hits


def retrieved_frame(
    queries: pd.DataFrame, chunks: Sequence[Hits], docnos: pd.api.extensions.ExtensionArray
) -> pd.DataFrame:
    """One row a hit: the columns of its query, then ``docno``, ``score`` and ``rank``.

    Args:
        queries: The query frame that was searched.
        chunks: Its hits, chunk by chunk, queries numbered by row.
        docnos: The docno of each document of the index.
    """
    rows, documents, scores, ranks = (np.concatenate(parts) for parts in zip(_NO_HITS, *chunks, strict=True))
    frame = queries.drop(columns=["score", "rank"], errors="ignore").take(rows).reset_index(drop=True)
    return frame.assign(docno=docnos.take(documents), score=scores, rank=ranks)


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


_NO_HITS = Hits(*(np.empty(0, dtype=kind) for kind in (np.int64, np.int64, np.float64, np.int64)))
