"""Ensembles: boosted trees over the scores of several rankers, by cross-validation over queries."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._arguments import checked_number
from pt_neural._frames import validated, with_scores
from pt_neural.experiment.alpha import assign_folds
from pt_neural.rankers.mixture import Normalise, normalised


class CrossValidated(pt.Transformer):
    """A system for ``pt.Experiment``: the results of all queries, each ranked by a learner not fitted on it.

    Attributes:
        run: The result frame: the columns of the pipeline, with the ``score`` and ``rank`` of the learners.
        folds: Frame with the ``fold`` of each ``qid``.
        learners: The fitted learner that ranked each fold.
    """

    schematic = {"label": "CrossValidated", "help_url": None}

    def __init__(self, run: pd.DataFrame, folds: pd.DataFrame, learners: dict[object, Any]):
        self.run = run
        self.folds = folds
        self.learners = learners

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """The results of those incoming queries that were in a fold."""
        with validated(inp, self) as v:
            v.columns(includes=["qid"])
        if len(inp) and not inp["qid"].isin(self.folds["qid"]).any():
            raise ValueError("a cross-validated ensemble ranks only the queries that it was made with")
        return inp[["qid"]].drop_duplicates().merge(self.run, on="qid")

    def __repr__(self) -> str:
        return f"CrossValidated({len(self.learners)} folds, {len(self.folds):,} queries)"


def cross_validate(
    pipeline: pt.Transformer,
    topics: pd.DataFrame,
    qrels: pd.DataFrame,
    *,
    folds: int | pd.DataFrame = 5,
    learner: Any = None,
    normalise: Normalise = "minmax",
    validation: bool = False,
    seed: int = 13,
    verbose: bool = False,
) -> CrossValidated:
    """Rank by an ensemble of rankers: each fold of the queries by boosted trees fitted on the other folds.

    Match-Tensor paper, sections 5.8 and 6.7: a ranker that gains little from BM25 as a second feature already knows
    what BM25 knows. Features are computed once. The queries are divided into folds, so all candidates of a query are in
    the same fold. Queries without judgements are ranked, but no learner is fitted on them.

    Args:
        pipeline: Candidates, then rankers joined by PyTerrier's ``**``. ``pt.Transformer.identity()`` stands for the
            score of the candidates; a first stage such as ``bm25`` scores them again.
        topics: The queries (``qid, query``), or a result frame if the pipeline begins with a re-ranker.
        qrels: Their judgements: ``qid, docno, label``. Unjudged documents have label 0.
        folds: A number of random folds, or a frame with ``qid`` and ``fold``.
        learner: An unfitted learner with the interface of ``lightgbm.LGBMRanker`` (``xgboost.XGBRanker`` has it too),
            fitted by ``pt.ltr.apply_learned_model(.., form="ltr")``. None: LambdaMART with 100 trees of 7 leaves at a
            learning rate of 0.05, which suits a few features of a few hundred queries.
        normalise: How to normalise each feature within each query, to make scores of different queries comparable:
            ``"minmax"`` to [0, 1], as in LETOR, ``"zscore"``, or None to keep the features as they are.
        validation: Whether to hold out the next fold as validation data, for learners that stop early.
        seed: Seed of the random folds and of the default learner.
        verbose: Show a progress bar over the folds.

    Returns:
        A transformer with the run of all queries that have candidates.

    Raises:
        ValueError: If the pipeline gives no features, if there are fewer queries than folds, or if no candidate of the
            queries of a training set was judged relevant.

    Example::

        features = candidates >> (pt.Transformer.identity() ** match_tensor)
        ensemble = pn.experiment.cross_validate(features, topics, qrels)
        pt.Experiment([candidates >> match_tensor, ensemble], topics, qrels, [nDCG @ 10])
    """
    if not isinstance(folds, pd.DataFrame):
        folds = checked_number("folds", folds, int, least=2)
    run = _with_features(pipeline, topics)
    assignment = _fold_of_each_query(folds, run["qid"].drop_duplicates().tolist(), seed)
    labels = qrels.drop_duplicates(["qid", "docno"])[["qid", "docno", "label"]]
    labels = labels.assign(label=labels["label"].clip(lower=0))
    examples = _examples(run, normalise)
    scores, learners = pd.Series(0.0, index=examples.index), {}
    splits = list(_splits(examples["qid"].map(assignment), examples["qid"].isin(labels["qid"]), validation))
    for fold, fitted, held_out, ranked in pt.tqdm(splits, desc="folds", disable=not verbose):
        model = _fitted(learner, seed, examples[fitted], examples[held_out], labels, fold)
        scores[ranked] = model.transform(examples[ranked])["score"]
        learners[fold] = model.learner
    folds = assignment.rename_axis("qid").rename("fold").reset_index()
    return CrossValidated(with_scores(run, scores.to_numpy()), folds, learners)


def _with_features(pipeline: pt.Transformer, topics: pd.DataFrame) -> pd.DataFrame:
    run = pipeline.transform(topics)
    if "features" not in run:
        raise ValueError(
            f"{pipeline!r} gives no features; join rankers by **, as in candidates >> (pt.Transformer.identity() ** a)"
        )
    if run.empty:
        raise ValueError("the pipeline found no candidates for these topics")
    return run


def _fold_of_each_query(folds: int | pd.DataFrame, qids: list[str], seed: int) -> pd.Series:
    if isinstance(folds, int) and len(qids) < folds:
        raise ValueError(f"{folds} folds need at least as many queries with candidates, but there are {len(qids)}")
    return pd.Series(assign_folds(folds, qids, seed), index=qids)


def _examples(run: pd.DataFrame, normalise: Normalise) -> pd.DataFrame:
    """The columns of a run for a learner: no texts, and features normalised within each query."""
    columns = [column for column in ("qid", "query", "docno", "score", "rank", "features") if column in run]
    queries = pd.factorize(run["qid"])[0]
    features = np.stack(run["features"].tolist()).astype(np.float64)
    features = np.column_stack([normalised(feature, queries, normalise) for feature in features.T])
    return run[columns].reset_index(drop=True).assign(features=list(features))


def _splits(
    folds: pd.Series, judged: pd.Series, validation: bool
) -> Iterator[tuple[object, pd.Series, pd.Series, pd.Series]]:
    """For each fold the rows to fit on, to validate on and to rank.

    PyTerrier requires validation rows; if no fold is held out, they are the rows to fit on.
    """
    names = sorted(set(folds))
    if validation and len(names) < 3:
        raise ValueError("validation needs a fold of its own: there must be at least 3 folds")
    for place, fold in enumerate(names):
        ranked, held_out = folds == fold, folds == names[(place + 1) % len(names)]
        fitted = judged & ~ranked & ~held_out if validation else judged & ~ranked
        yield fold, fitted, judged & held_out if validation else fitted, ranked


def _fitted(
    learner: Any, seed: int, train: pd.DataFrame, validation: pd.DataFrame, labels: pd.DataFrame, fold: object
) -> pt.Transformer:
    """A fitted learner as a PyTerrier transformer."""
    from sklearn.base import clone

    for rows in (train, validation):
        if rows.merge(labels[labels["label"] > 0], on=["qid", "docno"]).empty:
            raise ValueError(
                f"no candidate of the queries outside fold {fold} was judged relevant: are topics and qrels of the "
                "same split? If there are few judgements, take fewer folds"
            )
    model = pt.ltr.apply_learned_model(_boosted_trees(seed) if learner is None else clone(learner), form="ltr")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The argument 'eval_set' is deprecated")  # by PyTerrier
        model.fit(train, labels, validation, labels)
    return model


def _boosted_trees(seed: int) -> Any:
    """LambdaMART for few features and little data: deterministic and silent."""
    from lightgbm import LGBMRanker

    size = {"n_estimators": 100, "num_leaves": 7, "learning_rate": 0.05}
    repeatable = {"random_state": seed, "deterministic": True, "force_row_wise": True, "n_jobs": 1}
    return LGBMRanker(**size, **repeatable, metric="None", verbosity=-1)
