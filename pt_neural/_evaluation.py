"""Rank loss, measures by name, and the evaluation of many score vectors over the same rows."""

from collections.abc import Iterable, Iterator, Sequence

import ir_measures
import numpy as np
import pandas as pd
from ir_measures import measures


class _RankLoss(measures.Measure):
    """The share of pairs of a relevant document and another one that are in the wrong order, for each query.

    SSI paper, section 4: "the percentage of tuples in R that are incorrectly ordered", from 0 to 1; smaller is better.
    The paper estimates it from 100,000 random tuples; here all pairs of the run count, which gives the exact value.

    A tie counts as half a pair. Relevant documents that were not retrieved count as ranked below all others, so all
    their pairs are in the wrong order, and a query that retrieves nothing has rank loss 1. A query without relevant
    documents has 0, and so does one that retrieves relevant documents only. Documents without a judgement are not
    relevant. For queries whose relevant documents are all in the run, rank loss is one minus the area under the ROC
    curve (:func:`~pt_neural.experiment.auc_per_query`).

    The parameter ``rel`` is the lowest label of a relevant document, 1 by default: ``RankLoss(rel=2)``.

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
        """The value of each judged query, as ir_measures asks for it."""
        names = ["query_id", "doc_id"]
        qids = pd.Index(qrels["query_id"].unique())
        relevant = qrels.loc[qrels["relevance"] >= self["rel"], names].drop_duplicates().assign(relevant=True)
        rows = run.loc[run["query_id"].isin(qids), [*names, "score"]].merge(relevant, on=names, how="left")
        found = rows["relevant"].notna().to_numpy()
        in_order = share_in_order(qids.get_indexer(rows["query_id"]), rows["score"].to_numpy(), found, len(qids))
        judged = _rows_per_query(qids, relevant)
        retrieved = _rows_per_query(qids, rows.loc[found, names].drop_duplicates())
        wrong = retrieved * (1 - np.nan_to_num(in_order, nan=1.0)) + (judged - retrieved)
        for qid, value in zip(qids, wrong / np.maximum(judged, 1), strict=True):
            yield ir_measures.Metric(qid, self, float(value))


def _rows_per_query(qids: pd.Index, rows: pd.DataFrame) -> np.ndarray:
    return np.bincount(qids.get_indexer(rows["query_id"]), minlength=len(qids))


RankLoss = _RankLoss()
ir_measures.measures.register(RankLoss)  # so that it is found by name


def direction(measure: ir_measures.Measure) -> int:
    """1 if larger values of a measure are better, -1 if smaller values are, as for rank loss."""
    return -1 if getattr(measure, "SMALLER_IS_BETTER", False) else 1


def share_in_order(queries: np.ndarray, scores: np.ndarray, relevant: np.ndarray, count: int) -> np.ndarray:
    """The share of pairs of a relevant row and another row of the same query that the scores put in the right order.

    This is the area under the ROC curve of each query, computed from the sum of the ranks of its relevant rows (the
    Mann-Whitney statistic). Tied rows share the mean of their ranks, so that a tie counts as half a pair. ``queries``
    are numbers below ``count``. Returns float64 (count,); NaN for queries whose rows are all relevant, or all not.
    """
    order = np.lexsort((scores, queries))
    queries, scores, relevant = queries[order], scores[order], relevant[order]
    rows = np.bincount(queries, minlength=count)
    first = np.flatnonzero(np.r_[True, (np.diff(queries) != 0) | (np.diff(scores) != 0)][: len(order)])
    lengths = np.diff(np.r_[first, len(order)])
    mean_place = np.repeat(first + (lengths - 1) / 2, lengths)  # of the rows in a tie, from 0
    places = mean_place - (np.cumsum(rows) - rows)[queries]  # within the query
    good = np.bincount(queries[relevant], minlength=count).astype(np.float64)
    sums = np.bincount(queries, weights=places * relevant, minlength=count)
    pairs = good * (rows - good)
    return np.divide(sums - good * (good - 1) / 2, pairs, out=np.full(count, np.nan), where=pairs > 0)


def parse_measure(measure: ir_measures.Measure | str) -> ir_measures.Measure:
    """A measure of ir_measures, by itself or by its name there (``"nDCG@10"``) or in trec_eval (``"ndcg_cut_10"``)."""
    if not isinstance(measure, str):
        return measure
    try:
        return ir_measures.parse_measure(measure)
    except (NameError, ValueError, SyntaxError):
        pass
    try:
        return ir_measures.parse_trec_measure(measure)[0]
    except ValueError:
        raise ValueError(f"{measure!r} is not a measure of ir_measures; nDCG@10, AP and RR@10 are") from None


class _NDCG:
    """nDCG of many score vectors over the same rows: each relevant row is compared with all rows of its query.

    The order is trec_eval's: by scores in single precision, and ties by descending docno.

    Args:
        relevant: Positions of the relevant rows.
        labels: Their labels.
        queries: Numbers of their queries.
        others: The rows of the query of each.
        docnos: Documents of all rows.
        ideal: The largest possible DCG of each query.
        cutoff: Number of rows that count; None for all.
    """

    def __init__(
        self,
        relevant: np.ndarray,
        labels: np.ndarray,
        queries: np.ndarray,
        others: Sequence[np.ndarray],
        docnos: np.ndarray,
        ideal: np.ndarray,
        cutoff: int | None,
    ):
        self.relevant, self.labels, self.queries, self.ideal = relevant, labels, queries, ideal
        self.cutoff = np.inf if cutoff is None else cutoff
        self.sizes = np.array(list(map(len, others)), dtype=np.int64)
        self.others = np.concatenate([np.empty(0, dtype=np.int64), *others])
        self.wins_ties = docnos[self.others] > np.repeat(docnos[relevant], self.sizes)

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        single = np.nan_to_num(scores.astype(np.float32), nan=-np.inf, posinf=np.inf, neginf=-np.inf)
        found, others = np.repeat(single[self.relevant], self.sizes), single[self.others]
        above = (others > found) | ((others == found) & self.wins_ties)
        starts = np.cumsum(self.sizes) - self.sizes  # no block is empty: the relevant row is in it
        ranks = np.add.reduceat(above, starts, dtype=np.int64) if len(starts) else starts
        gains = np.where(ranks < self.cutoff, self.labels / np.log2(ranks + 2), 0)
        sums = np.bincount(self.queries, weights=gains, minlength=len(self.ideal))
        return np.divide(sums, self.ideal, out=np.zeros(len(self.ideal)), where=self.ideal > 0)


_MOST_PAIRS = 20_000_000  # of a relevant row and another: 9 bytes each, and as many again while they are compared


def _ndcg(
    rows: pd.DataFrame,
    qrels: pd.DataFrame,
    qids: list[str],
    blocks: dict[str, np.ndarray],
    measure: ir_measures.Measure,
) -> _NDCG | None:
    """A faster nDCG; None if the measure is another, if a row is given twice, or if it would take much memory."""
    if measure.NAME != "nDCG" or measure.params.keys() - {"cutoff"}:
        return None
    index = pd.MultiIndex.from_frame(rows[["qid", "docno"]])
    if not index.is_unique:
        return None
    number_of = {qid: number for number, qid in enumerate(qids)}
    judged = qrels[qrels["qid"].isin(number_of)].drop_duplicates(["qid", "docno"], keep="last")
    judged = judged[judged["label"] > 0]
    labels, queries = judged["label"].to_numpy(), judged["qid"].map(number_of).to_numpy(dtype=np.int64)
    best_first = np.lexsort((-labels, queries))
    places = np.arange(len(queries)) - np.searchsorted(queries[best_first], queries[best_first])
    counts = places < (measure.params.get("cutoff") or len(places))
    ideal = np.bincount(
        queries[best_first], weights=np.where(counts, labels[best_first] / np.log2(places + 2), 0), minlength=len(qids)
    )
    relevant = index.get_indexer(pd.MultiIndex.from_frame(judged[["qid", "docno"]]))
    kept = relevant >= 0
    others = [blocks[qids[query]] for query in queries[kept]]
    if sum(map(len, others)) > _MOST_PAIRS:
        return None
    docnos = rows["docno"].to_numpy(dtype=object)
    return _NDCG(relevant[kept], labels[kept], queries[kept], others, docnos, ideal, measure.params.get("cutoff"))


class RunEvaluator:
    """Evaluates one measure for different scores of the same (query, document) rows.

    nDCG is computed from the ranks of the relevant rows. Other measures come from ir_measures; one with a cut-off k is
    given only the k best rows of each query (and all that tie with the k-th), since it ignores the others; this makes a
    hundred evaluations cheap. One that first drops unjudged documents (``judged_only``) is given all rows. Queries
    without judgements are left out; those without rows get the measure's value for empty results, which is 0 for most.
    ValueError if no query has a judgement.
    """

    def __init__(self, rows: pd.DataFrame, qrels: pd.DataFrame, qids: Iterable[str], measure: ir_measures.Measure):
        judged = set(qrels["qid"])
        self.qids = [qid for qid in dict.fromkeys(qids) if qid in judged]
        if not self.qids:
            raise ValueError("no query has a judgement; are topics and qrels of the same split?")
        self._docnos = rows["docno"].to_numpy(dtype=object)
        self._blocks = _rows_by_query(rows["qid"], self.qids)
        self._ndcg = _ndcg(rows, qrels, self.qids, self._blocks, measure)
        if self._ndcg is not None:
            return
        relevant = qrels[qrels["qid"].isin(self.qids)].rename(
            columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"}
        )
        self._evaluator = ir_measures.evaluator([measure], relevant[["query_id", "doc_id", "relevance"]])
        self._default = measure.DEFAULT
        self._cutoff = None if measure.params.get("judged_only") else measure.params.get("cutoff")
        self._takes_frames = hasattr(measure, "runtime_impl")  # ir_measures is slow at making frames of dicts

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """The measure for each of ``qids``, float64, if the rows have these scores."""
        if self._ndcg is not None:
            return self._ndcg(scores)
        if self._takes_frames:
            run = self._frame(scores)
        else:
            run = {qid: self._best(rows, scores[rows]) for qid, rows in self._blocks.items()}
        values = {metric.query_id: metric.value for metric in self._evaluator.iter_calc(run)}
        return np.array([values.get(qid, self._default) for qid in self.qids])

    def _frame(self, scores: np.ndarray) -> pd.DataFrame:
        sizes = [len(rows) for rows in self._blocks.values()]
        rows = np.concatenate([np.empty(0, dtype=np.int64), *self._blocks.values()])
        qids = np.repeat(np.array(list(self._blocks), dtype=object), sizes)
        return pd.DataFrame({"query_id": qids, "doc_id": self._docnos[rows], "score": scores[rows]})

    def _best(self, rows: np.ndarray, scores: np.ndarray) -> dict[str, float]:
        if self._cutoff is not None and len(scores) > self._cutoff:
            single = scores.astype(np.float32)  # trec_eval's precision: ties in it must not be cut here
            keep = single >= np.partition(single, len(single) - self._cutoff)[len(single) - self._cutoff]
            rows, scores = rows[keep], scores[keep]
        return dict(zip(self._docnos[rows], scores.tolist(), strict=True))


def _rows_by_query(qids: pd.Series, wanted: Sequence[str]) -> dict[str, np.ndarray]:
    found = pd.Series(np.arange(len(qids)), dtype=np.int64).groupby(qids.to_numpy(dtype=object), sort=False).indices
    return {qid: found[qid] for qid in wanted if qid in found}
