"""The area under the ROC curve of a run: how well scores tell relevant documents from others."""

from typing import Literal

import pandas as pd

from pt_neural._arguments import checked_choice
from pt_neural._measures import share_in_order

Unjudged = Literal["non-relevant", "left out"]


def auc(run: pd.DataFrame, qrels: pd.DataFrame, *, rel: int = 1, unjudged: Unjudged = "non-relevant") -> float:
    """Area under the ROC curve over all pairs of a query and a candidate together.

    The Match-Tensor paper has it in its tables 3 and 4 and figures 3 and 4. Scores of different queries are compared
    with each other, so that it asks for more than a good order within each query; :func:`auc_per_query` does not.
    Computed by scikit-learn's ``roc_auc_score``. Documents that are not in the run do not count, and neither do
    queries without judgements.

    Args:
        run: Result frame: ``qid, docno, score``.
        qrels: Judgements: ``qid, docno, label``.
        rel: The least label of a relevant document.
        unjudged: Candidates without a judgement are ``"non-relevant"`` or ``"left out"``.

    Returns:
        From 0 to 1; random scores have 0.5.

    Raises:
        ValueError: If there are no relevant candidates, or only these.

    Example::

        run = (candidates >> match_tensor).transform(topics)
        auc(run, qrels)
    """
    from sklearn.metrics import roc_auc_score

    pairs = _pairs(run, qrels, rel, unjudged)
    if pairs["relevant"].nunique() < 2:
        which = "all candidates are relevant" if pairs["relevant"].any() else "no candidate is relevant"
        raise ValueError(f"{which}, so that there is no ROC curve; are run and qrels of the same split?")
    return float(roc_auc_score(pairs["relevant"], pairs["score"]))


def auc_per_query(
    run: pd.DataFrame, qrels: pd.DataFrame, *, rel: int = 1, unjudged: Unjudged = "non-relevant"
) -> pd.Series:
    """Area under the ROC curve of each query: how likely a relevant candidate scores above another one.

    Args:
        run: Result frame: ``qid, docno, score``.
        qrels: Judgements: ``qid, docno, label``.
        rel: The least label of a relevant document.
        unjudged: Candidates without a judgement are ``"non-relevant"`` or ``"left out"``.

    Returns:
        The area by ``qid``, named ``AUC``, in the order of the run. Queries whose candidates are all relevant, or all
        not, have none and are left out.

    Example::

        auc_per_query(run, qrels).mean()
    """
    pairs = _pairs(run, qrels, rel, unjudged)
    queries, qids = pd.factorize(pairs["qid"])
    areas = share_in_order(queries, pairs["score"].to_numpy(), pairs["relevant"].to_numpy(), len(qids))
    return pd.Series(areas, index=qids, name="AUC").dropna().rename_axis("qid")


def _pairs(run: pd.DataFrame, qrels: pd.DataFrame, rel: int, unjudged: Unjudged) -> pd.DataFrame:
    """The candidates of judged queries: ``qid, score, relevant``."""
    checked_choice("unjudged", unjudged, ("non-relevant", "left out"))
    for name, frame, last in (("run", run, "score"), ("qrels", qrels, "label")):
        lacking = [column for column in ("qid", "docno", last) if column not in frame]
        if lacking:
            raise ValueError(f"the frame {name} lacks {', '.join(lacking)}")
    labels = qrels.drop_duplicates(["qid", "docno"])[["qid", "docno", "label"]]
    rows = run.loc[run["qid"].isin(labels["qid"]), ["qid", "docno", "score"]]
    pairs = rows.merge(labels, on=["qid", "docno"], how="left" if unjudged == "non-relevant" else "inner")
    return pairs.assign(relevant=pairs["label"].ge(rel))[["qid", "score", "relevant"]]
