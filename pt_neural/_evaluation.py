"""Measures by name, and many score vectors over the same rows, evaluated per query by ir_measures."""

from collections.abc import Iterable, Sequence

import ir_measures
import numpy as np
import pandas as pd

from pt_neural._measures import RankLoss

ir_measures.measures.register(RankLoss)  # so that it is found by its name


class RunEvaluator:
    """Evaluates one measure for different scores of the same (query, document) rows.

    A measure with a cut-off k sees only the k best rows of each query (and all that tie with the k-th), which is
    what it would look at anyway; this is what makes a hundred evaluations cheap. One that drops unjudged documents
    first (``judged_only``) sees all rows.

    Args:
        rows: Frame with ``qid`` and ``docno``.
        qrels: Frame with ``qid``, ``docno``, ``label``.
        qids: Queries to evaluate; those without judgements are left out, those without rows count what the
            measure gives where nothing was retrieved, which is 0 for most.
        measure: A measure of ir_measures.

    Raises:
        ValueError: If no query has a judgement.
    """

    def __init__(self, rows: pd.DataFrame, qrels: pd.DataFrame, qids: Iterable[str], measure: ir_measures.Measure):
        judged = set(qrels["qid"])
        self.qids = [qid for qid in dict.fromkeys(qids) if qid in judged]
        if not self.qids:
            raise ValueError("no query has a judgement; are topics and qrels of the same split?")
        relevant = qrels[qrels["qid"].isin(self.qids)].rename(
            columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"}
        )
        self._evaluator = ir_measures.evaluator([measure], relevant[["query_id", "doc_id", "relevance"]])
        self._default = measure.DEFAULT
        self._cutoff = None if measure.params.get("judged_only") else measure.params.get("cutoff")
        self._docnos = rows["docno"].to_numpy(dtype=object)
        self._blocks = _rows_by_query(rows["qid"], self.qids)
        self._takes_frames = hasattr(measure, "runtime_impl")  # where ir_measures would make frames of dicts, slowly

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Evaluate one score vector.

        Args:
            scores: Shape ``(len(rows),)``.

        Returns:
            The measure for each of ``qids``, float64.
        """
        run = self._frame(scores) if self._takes_frames else self._dicts(scores)
        values = {metric.query_id: metric.value for metric in self._evaluator.iter_calc(run)}
        return np.array([values.get(qid, self._default) for qid in self.qids])

    def _dicts(self, scores: np.ndarray) -> dict[str, dict[str, float]]:
        return {qid: self._best(rows, scores[rows]) for qid, rows in self._blocks.items()}

    def _frame(self, scores: np.ndarray) -> pd.DataFrame:
        sizes = [len(rows) for rows in self._blocks.values()]
        rows = np.concatenate([np.empty(0, dtype=np.int64), *self._blocks.values()])
        qids = np.repeat(np.array(list(self._blocks), dtype=object), sizes)
        return pd.DataFrame({"query_id": qids, "doc_id": self._docnos[rows], "score": scores[rows]})

    def _best(self, rows: np.ndarray, scores: np.ndarray) -> dict[str, float]:
        if self._cutoff is not None and len(scores) > self._cutoff:
            single = scores.astype(np.float32)  # trec_eval's precision: what ties there must not be cut here
            keep = single >= np.partition(single, len(single) - self._cutoff)[len(single) - self._cutoff]
            rows, scores = rows[keep], scores[keep]
        return dict(zip(self._docnos[rows], scores.tolist(), strict=True))


def parse_measure(measure: ir_measures.Measure | str) -> ir_measures.Measure:
    """A measure of ir_measures, also by its name there (``"nDCG@10"``) or in trec_eval (``"ndcg_cut_10"``)."""
    if not isinstance(measure, str):
        return measure
    try:
        return ir_measures.parse_measure(measure)
    except (NameError, ValueError, SyntaxError):
        pass
    try:
        return ir_measures.parse_trec_measure(measure)[0]
    except ValueError:
        raise ValueError(f"{measure!r} is no measure of ir_measures; nDCG@10, AP and RR@10 are") from None


def _rows_by_query(qids: pd.Series, wanted: Sequence[str]) -> dict[str, np.ndarray]:
    found = pd.Series(np.arange(len(qids)), dtype=np.int64).groupby(qids.to_numpy(dtype=object), sort=False).indices
    return {qid: found[qid] for qid in wanted if qid in found}
