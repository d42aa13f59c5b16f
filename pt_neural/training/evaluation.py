"""The dev queries that a training is judged by after each epoch."""

import pandas as pd

from pt_neural._evaluation import RunEvaluator
from pt_neural.training.examples import require_columns, with_numeric_labels
from pt_neural.training.settings import Training


def dev_evaluator(
    frame: pd.DataFrame, qrels: pd.DataFrame | None, training: Training
) -> tuple[pd.DataFrame, RunEvaluator]:
    """The dev candidates to score, and what turns their scores into the dev measure of each query.

    Args:
        frame: Dev candidates: ``qid, query, docno`` and what the model reads.
        qrels: Their judgements: ``qid, docno, label``.
        training: The measure, and how many queries at most.

    Raises:
        ValueError: If columns or judgements are missing, if grades are no whole numbers, or if no candidate is
            relevant, so that all models would be equal.
    """
    if qrels is None:
        raise ValueError("dev candidates need dev qrels: fit(train, train_qrels, dev, dev_qrels)")
    require_columns(frame, ("qid", "query", "docno"), "the dev frame")
    qrels = with_numeric_labels(qrels, "dev qrels")
    if (fractions := qrels.loc[qrels["label"] % 1 != 0, "label"]).size:
        raise ValueError(
            f"dev qrels has {len(fractions)} labels that are no whole numbers, such as {fractions.iloc[0]}, and "
            "measures know whole grades only; round them, or multiply them"
        )
    qrels = qrels.astype({"qid": str, "docno": str, "label": int})  # measures take no other types
    rows = frame[["qid", "docno"]].astype(str)
    qids = rows.loc[rows["qid"].isin(qrels["qid"]), "qid"].drop_duplicates()
    if qids.empty:
        raise ValueError("no dev query has a judgement: are dev candidates and dev qrels of the same split?")
    if training.dev_queries is not None:
        qids = qids.sample(min(training.dev_queries, len(qids)), random_state=training.seed)
    used = rows["qid"].isin(qids)
    if rows[used].merge(qrels[qrels["label"] > 0], on=["qid", "docno"]).empty:
        raise ValueError(
            "no dev candidate is judged relevant (label above 0), so that the dev measure would be the same after each "
            "epoch: are dev candidates and dev qrels of the same split and collection?"
        )
    return frame[used], RunEvaluator(rows[used], qrels, qids, training.dev_measure)
