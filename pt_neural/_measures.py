"""Rank loss, the measure of the SSI paper, and which way the values of a measure are better."""

from collections.abc import Iterator

import ir_measures
import numpy as np
import pandas as pd
from ir_measures import measures


class _RankLoss(measures.Measure):
    """The share of pairs of a relevant document and another one that are in the wrong order, for each query.

    SSI paper, section 4: "the percentage of tuples in R that are incorrectly ordered", from 0 to 1; smaller is better.
    The paper estimates it from 100,000 tuples drawn at random; here all pairs of the run count, which gives the exact
    value of what such a sample estimates, and for the same queries less error.

    A tie is half a pair. Relevant documents that were not retrieved count as ranked below all others, wrong in every
    pair, so that a query for which nothing was retrieved has 1. A query without relevant documents has 0, and so has
    one for which only its relevant documents were retrieved. Documents without a judgement are not relevant.
    For queries whose relevant documents are all in the run it is one minus the area under the ROC curve
    (:func:`~pt_neural.experiment.auc_per_query`).

    The parameter ``rel`` is the least label of a relevant document, 1 by default: ``RankLoss(rel=2)``.

    Example::

        from pt_neural.experiment import RankLoss

        pt.Experiment([tfidf, lsa], topics, qrels, [RankLoss, AP, P @ 10])
        pn.Training(dev_measure=RankLoss)
    """

    __name__ = "RankLoss"
    NAME = __name__
    PRETTY_NAME = "Rank loss"
    SHORT_DESC = "The share of pairs of a relevant document and another one that are in the wrong order."
    SUPPORTED_PARAMS = {
        "rel": measures.ParamInfo(dtype=int, default=1, desc="minimum relevance score to be considered relevant")
    }
    RUN_INPUTS = ("query_id", "doc_id", "score")
    QREL_INPUTS = ("query_id", "doc_id", "relevance")
    DEFAULT = 1.0
    SMALLER_IS_BETTER = True

    def runtime_impl(self, qrels: pd.DataFrame, run: pd.DataFrame) -> Iterator[ir_measures.Metric]:
        """What ir_measures asks for: the value of each query of the judgements."""
        names = ["query_id", "doc_id"]
        qids = pd.Index(qrels["query_id"].unique())
        relevant = qrels.loc[qrels["relevance"] >= self["rel"], names].drop_duplicates().assign(relevant=True)
        rows = run.loc[run["query_id"].isin(qids), [*names, "score"]].merge(relevant, on=names, how="left")
        found = rows["relevant"].notna().to_numpy()
        in_order = share_in_order(qids.get_indexer(rows["query_id"]), rows["score"].to_numpy(), found, len(qids))
        judged = _count(qids, relevant)
        retrieved = _count(qids, rows.loc[found, names].drop_duplicates())
        wrong = retrieved * (1 - np.nan_to_num(in_order, nan=1.0)) + (judged - retrieved)
        for qid, value in zip(qids, wrong / np.maximum(judged, 1), strict=True):
            yield ir_measures.Metric(qid, self, float(value))


RankLoss = _RankLoss()


def direction(measure: ir_measures.Measure) -> int:
    """1 for a measure whose larger values are better, -1 for one whose smaller values are, as rank loss."""
    return -1 if getattr(measure, "SMALLER_IS_BETTER", False) else 1


def share_in_order(queries: np.ndarray, scores: np.ndarray, relevant: np.ndarray, count: int) -> np.ndarray:
    """The share of pairs of a relevant row and another row of the same query that scores put in the right order.

    This is the area under the ROC curve of each query, from the sum of the ranks of its relevant rows (the statistic
    of Mann and Whitney); rows that tie share the mean of their ranks, so that a tie is half a pair.

    Args:
        queries: Shape (rows,), the query of each row, from 0 to ``count - 1``.
        scores: Shape (rows,).
        relevant: Shape (rows,), bool.
        count: Number of queries.

    Returns:
        Shape (count,), float64; NaN for queries whose rows are all relevant, or all not.
    """
    order = np.lexsort((scores, queries))
    queries, scores, relevant = queries[order], scores[order], relevant[order]
    rows = np.bincount(queries, minlength=count)
    first = np.flatnonzero(np.r_[True, (np.diff(queries) != 0) | (np.diff(scores) != 0)][: len(order)])
    lengths = np.diff(np.r_[first, len(order)])
    middle = np.repeat(first + (lengths - 1) / 2, lengths)  # the mean place of the rows that tie, from 0
    places = middle - (np.cumsum(rows) - rows)[queries]  # within the query
    good = np.bincount(queries[relevant], minlength=count).astype(np.float64)
    sums = np.bincount(queries, weights=places * relevant, minlength=count)
    pairs = good * (rows - good)
    return np.divide(sums - good * (good - 1) / 2, pairs, out=np.full(count, np.nan), where=pairs > 0)


def _count(qids: pd.Index, rows: pd.DataFrame) -> np.ndarray:
    """How many rows each query has."""
    return np.bincount(qids.get_indexer(rows["query_id"]), minlength=len(qids))
