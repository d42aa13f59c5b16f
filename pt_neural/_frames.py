"""Frames: checks of columns, and scores and hits as frames; ranks and ties are decided here only."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd


def require_columns(frame: pd.DataFrame, columns: Sequence[str], what: str) -> None:
    """Raise TypeError if ``what``, as the message calls it, is not a frame, and ValueError if a column is missing."""
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"{what} must be a frame with {', '.join(columns)}, not {frame!r:.80}")
    missing = [column for column in columns if column not in frame]
    if missing:
        raise ValueError(f"{what} lacks {', '.join(missing)}; it has {', '.join(map(str, frame)) or 'no columns'}")


def with_numeric_labels(qrels: pd.DataFrame, what: str) -> pd.DataFrame:
    """Judgements with their labels as numbers; ValueError if a label is not a number or a column is missing."""
    require_columns(qrels, ("qid", "docno", "label"), what)
    labels = pd.to_numeric(qrels["label"], errors="coerce")
    if labels.isna().any():
        raise ValueError(f"{what} has {int(labels.isna().sum())} rows whose label is not a number")
    return qrels.assign(label=labels)


class Hits(NamedTuple):
    """The results of a batch of queries, best first within each query."""

    queries: np.ndarray  # the number of each hit's query in the batch, ascending, int64
    documents: np.ndarray  # document numbers, int64
    scores: np.ndarray  # float64
    ranks: np.ndarray  # from 0 within each query, int64


_NO_HITS = Hits(*(np.empty(0, dtype=kind) for kind in (np.int64, np.int64, np.float64, np.int64)))


def retrieved_frame(
    queries: pd.DataFrame, chunks: Sequence[Hits], docnos: pd.api.extensions.ExtensionArray
) -> pd.DataFrame:
    """One row per hit: the columns of its query, then ``docno``, ``score`` and ``rank``.

    Queries are numbered by row of the query frame, documents by their place in ``docnos``.
    """
    rows, documents, scores, ranks = (np.concatenate(parts) for parts in zip(_NO_HITS, *chunks, strict=True))
    frame = queries.drop(columns=["score", "rank"], errors="ignore").take(rows).reset_index(drop=True)
    return frame.assign(docno=docnos.take(documents), score=scores, rank=ranks)


def with_scores(frame: pd.DataFrame, scores: np.ndarray) -> pd.DataFrame:
    """A copy of a result frame with new ``score`` and ``rank`` columns, rows in the same order."""
    scores = np.asarray(scores, dtype=np.float64)
    return frame.assign(score=scores, rank=ranks(frame["qid"], scores, frame["docno"]))


def ranks(qids: pd.Series, scores: np.ndarray, docnos: pd.Series) -> np.ndarray:
    """Ranks from 0 within each query, int64, by falling score, ties in the order of :func:`tie_order`.

    Rows with the same score and docno keep their order. NaN scores rank last.
    """
    queries, _ = pd.factorize(qids)
    order = np.lexsort((-scores, queries))
    tied = (np.diff(queries[order]) == 0) & (np.diff(scores[order]) == 0)
    if tied.any():
        order = _settle_ties(order, tied, docnos)
    sorted_queries = queries[order]
    starts = np.flatnonzero(np.r_[True, np.diff(sorted_queries) != 0]) if len(order) else np.zeros(0, int)
    lengths = np.diff(np.r_[starts, len(order)])
    result = np.empty(len(order), dtype=np.int64)
    result[order] = np.arange(len(order)) - np.repeat(starts, lengths)
    return result


def _settle_ties(order: np.ndarray, tied: np.ndarray, docnos: pd.Series) -> np.ndarray:
    """Sort each run of equal scores; ``tied[i]`` means that sorted rows i and i+1 are in one run."""
    run = np.cumsum(np.r_[0, ~tied])
    in_run = np.r_[tied, False] | np.r_[False, tied]
    rows = order[in_run]
    order = order.copy()
    places = tie_order(docnos.iloc[rows].to_numpy(dtype=object).astype(str))
    order[in_run] = rows[np.lexsort((places, run[in_run]))]
    return order


def tie_order(docnos: np.ndarray) -> np.ndarray:
    """The place of each document among those of equal score, int64: in descending order of docno.

    It is the order of trec_eval, by which measures are computed, whatever the ``rank`` of a run; so the document of
    rank 0 is the first one for a measure too. (trec_eval takes scores that are equal in single precision for equal;
    we compare them as they are.)
    """
    _, ascending = np.unique(docnos, return_inverse=True)
    return -ascending.astype(np.int64)
