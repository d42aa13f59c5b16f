"""Measures beyond ir_measures: the area under the ROC curve, and expected reciprocal rank for any query names."""

from collections.abc import Iterator
from typing import Literal

import ir_measures
import pandas as pd

from pt_neural._arguments import checked_choice, checked_number
from pt_neural._evaluation import share_in_order

Unjudged = Literal["non-relevant", "left out"]


def auc(run: pd.DataFrame, qrels: pd.DataFrame, *, rel: int = 1, unjudged: Unjudged = "non-relevant") -> float:
    """Area under the ROC curve over the candidates of all queries together.

    The Match-Tensor paper reports it in tables 3 and 4 and figures 3 and 4. Since scores of different queries are
    compared, a good order within each query is not enough, unlike for :func:`auc_per_query`. It is computed by
    scikit-learn's ``roc_auc_score``. Documents outside the run and queries without judgements do not count.

    Args:
        run: Result frame: ``qid, docno, score``.
        qrels: Judgements: ``qid, docno, label``.
        rel: The smallest label of a relevant document.
        unjudged: Whether candidates without a judgement are ``"non-relevant"`` or ``"left out"``.

    Returns:
        The area, from 0 to 1; random scores have 0.5.

    Raises:
        ValueError: If no candidate is relevant, or if all are.

    Example::

        run = (candidates >> match_tensor).transform(topics)
        auc(run, qrels)
    """
    from sklearn.metrics import roc_auc_score

    candidates = _judged_candidates(run, qrels, rel, unjudged)
    _require_both(candidates, "ROC curve")
    return float(roc_auc_score(candidates["relevant"], candidates["score"]))


def precision_recall(
    run: pd.DataFrame, qrels: pd.DataFrame, *, rel: int = 1, unjudged: Unjudged = "non-relevant"
) -> pd.DataFrame:
    """Precision-recall curve over the candidates of all queries together, with each distinct score as a cutoff.

    The Match-Tensor paper says of it that "the Precision of the model is higher than the others at all values of
    Recall" (section 6.3). As for :func:`auc`, scores of different queries are compared, and recall is that of the
    relevant documents in the run. It is computed by scikit-learn's ``precision_recall_curve``.

    Args:
        run: Result frame: ``qid, docno, score``.
        qrels: Judgements: ``qid, docno, label``.
        rel: The smallest label of a relevant document.
        unjudged: Whether candidates without a judgement are ``"non-relevant"`` or ``"left out"``.

    Returns:
        Frame with ``recall`` and ``precision``, by falling score; a row for each distinct score.

    Raises:
        ValueError: If no candidate is relevant, or if all are.

    Example::

        curve = precision_recall((candidates >> match_tensor).transform(topics), qrels)
        curve.plot("recall", "precision")
    """
    from sklearn.metrics import precision_recall_curve

    candidates = _judged_candidates(run, qrels, rel, unjudged)
    _require_both(candidates, "precision-recall curve")
    precision, recall, _ = precision_recall_curve(candidates["relevant"], candidates["score"])
    return pd.DataFrame({"recall": recall, "precision": precision})[-2::-1].reset_index(drop=True)


def _require_both(candidates: pd.DataFrame, curve: str) -> None:
    """Raise ValueError unless some candidates are relevant and some are not."""
    if candidates["relevant"].nunique() < 2:
        problem = "all candidates are relevant" if candidates["relevant"].any() else "no candidate is relevant"
        raise ValueError(f"{problem}, so the {curve} means nothing; are run and qrels of the same split?")


def auc_per_query(
    run: pd.DataFrame, qrels: pd.DataFrame, *, rel: int = 1, unjudged: Unjudged = "non-relevant"
) -> pd.Series:
    """Area under the ROC curve of each query: how often a relevant candidate scores above a non-relevant one.

    Args:
        run: Result frame: ``qid, docno, score``.
        qrels: Judgements: ``qid, docno, label``.
        rel: The smallest label of a relevant document.
        unjudged: Whether candidates without a judgement are ``"non-relevant"`` or ``"left out"``.

    Returns:
        The area by ``qid``, named ``AUC``, in the order of the run. Queries whose candidates are all relevant, or all
        non-relevant, have no area and are left out.

    Example::

        auc_per_query(run, qrels).mean()
    """
    candidates = _judged_candidates(run, qrels, rel, unjudged)
    queries, qids = pd.factorize(candidates["qid"])
    areas = share_in_order(queries, candidates["score"].to_numpy(), candidates["relevant"].to_numpy(), len(qids))
    return pd.Series(areas, index=qids, name="AUC").dropna().rename_axis("qid")


def _judged_candidates(run: pd.DataFrame, qrels: pd.DataFrame, rel: int, unjudged: Unjudged) -> pd.DataFrame:
    """The candidates of judged queries: ``qid, score, relevant``."""
    checked_choice("unjudged", unjudged, ("non-relevant", "left out"))
    for name, frame, last in (("run", run, "score"), ("qrels", qrels, "label")):
        missing = [column for column in ("qid", "docno", last) if column not in frame]
        if missing:
            raise ValueError(f"the frame {name} lacks {', '.join(missing)}")
    labels = qrels.drop_duplicates(["qid", "docno"])[["qid", "docno", "label"]]
    rows = run.loc[run["qid"].isin(labels["qid"]), ["qid", "docno", "score"]]
    candidates = rows.merge(labels, on=["qid", "docno"], how="left" if unjudged == "non-relevant" else "inner")
    return candidates.assign(relevant=candidates["label"].ge(rel))[["qid", "score", "relevant"]]


def expected_reciprocal_rank(cutoff: int = 10) -> ir_measures.Measure:
    """Expected reciprocal rank (Chapelle, Metzler, Zhang and Grinspan, 2009), as ir_measures computes it.

    The measure ``ERR@k`` of ir_measures calls one of TREC's scripts, which requires query names to be whole numbers and
    document names to have no spaces. This one gives the same values for any names. A document of grade g satisfies the
    user with probability ``(2**g - 1) / 16``, because the script's highest grade is 4. It needs Perl.

    Args:
        cutoff: The number of top ranks that count.

    Returns:
        A measure for ``pt.Experiment`` and ``ir_measures``, named ``ERR@cutoff``.

    Raises:
        TypeError: If the cutoff is not an integer.
        ValueError: If it is below 1; in use, if a grade is above 4.

    Example::

        pt.Experiment([bm25], topics, qrels, [expected_reciprocal_rank(10)])
    """
    cutoff = checked_number("cutoff", cutoff, int, least=1)

    def values(qrels: pd.DataFrame, run: pd.DataFrame) -> Iterator[tuple[str, float]]:
        if qrels["relevance"].max() > 4:
            raise ValueError(f"ERR takes grades up to 4, but there is a {qrels['relevance'].max()}; map them to 0 to 4")
        qids = pd.Index(qrels["query_id"].unique())
        docnos = pd.Index(pd.concat([qrels["doc_id"], run["doc_id"]]).unique()).sort_values()
        frames = [_numbered(frame, qids, docnos) for frame in (qrels, run)]
        for metric in ir_measures.iter_calc([ir_measures.ERR @ cutoff], *frames):
            yield qids[int(metric.query_id)], metric.value

    return ir_measures.define(values, name=f"ERR@{cutoff}", support_cutoff=False)


def _numbered(frame: pd.DataFrame, qids: pd.Index, docnos: pd.Index) -> pd.DataFrame:
    """The rows of known queries, with numbers in place of names; document numbers sort as their names do."""
    frame = frame[frame["query_id"].isin(qids)]
    digits = len(str(len(docnos)))
    queries = [str(number) for number in qids.get_indexer(frame["query_id"])]
    documents = [f"{number:0{digits}}" for number in docnos.get_indexer(frame["doc_id"])]
    return frame.assign(query_id=queries, doc_id=documents)
