"""Ensembles: boosted trees over the scores of several rankers, by cross-validation over queries."""

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._arguments import checked_number
from pt_neural._frames import with_scores
from pt_neural.experiment._copies import Copies, to_fit
from pt_neural.experiment.folds import Folds, RunOfFolds, assign_folds
from pt_neural.rankers.mixture import Normalise, normalised


class CrossValidated(RunOfFolds):
    """A system for ``pt.Experiment``: the results of all queries, each ranked by a learner not fitted on it.

    Attributes:
        run: The result frame: the columns of the pipeline, with the ``score`` and ``rank`` of the learners.
        folds: Frame with the ``fold`` of each ``qid``.
        learners: The fitted learner that ranked each fold.
    """

    schematic = {"label": "CrossValidated", "help_url": None}

    def __init__(self, run: pd.DataFrame, folds: pd.DataFrame, learners: dict[object, Any]):
        super().__init__(run, folds)
        self.learners = learners


def cross_validate(
    pipeline: pt.Transformer,
    topics: pd.DataFrame,
    qrels: pd.DataFrame,
    *,
    folds: Folds = 5,
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

    Unfitted rankers in the pipeline stay as they are; copies are fitted. What ranks a fold has seen none of its
    judgements: its features come from copies fitted on all other folds, and the features that its learner is fitted on,
    for each of the other folds, from copies fitted on the rest. These are 15 fits for 5 folds.

    Args:
        pipeline: Candidates, then rankers joined by PyTerrier's ``**``. ``pt.Transformer.identity()`` stands for the
            score of the candidates; a first stage such as ``bm25`` scores them again.
        topics: The queries (``qid, query``), or a result frame if the pipeline begins with a re-ranker.
        qrels: Their judgements: ``qid, docno, label``. Unjudged documents have label 0.
        folds: A number of random folds, a frame with ``qid`` and ``fold``, or a mapping from qid to fold.
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
        ValueError: If the pipeline gives no features, if there are fewer queries than folds, or fewer than three folds
            but rankers to fit, or if no candidate of the queries of a training set was judged relevant.

    Example::

        features = candidates >> (pt.Transformer.identity() ** match_tensor)
        ensemble = pn.experiment.cross_validate(features, topics, qrels)
        pt.Experiment([candidates >> match_tensor, ensemble], topics, qrels, [nDCG @ 10])
    """
    if not isinstance(folds, pd.DataFrame | Mapping):
        folds = checked_number("folds", folds, int, least=2)
    labels = qrels.drop_duplicates(["qid", "docno"])[["qid", "docno", "label"]]
    labels = labels.assign(label=labels["label"].clip(lower=0))
    features = _Features(pipeline, topics, qrels, folds, seed)
    ranked_folds, learners = [], {}
    splits = list(_splits(sorted(set(features.folds)), validation))
    for fold, held_out in pt.tqdm(splits, desc="folds", disable=not verbose):
        run = features.without(fold)
        examples, fold_of = _examples(run, normalise), run["qid"].map(features.folds).to_numpy()
        judged, ranked = examples["qid"].isin(labels["qid"]), fold_of == fold
        fitted = judged & ~ranked & (fold_of != held_out)
        # PyTerrier requires validation rows; if no fold is held out, they are the rows to fit on.
        validated = judged & (fold_of == held_out) if validation else fitted
        model = _fitted(learner, seed, examples[fitted], examples[validated], labels, fold)
        ranked_folds.append(run[ranked].assign(score=model.transform(examples[ranked])["score"].to_numpy()))
        learners[fold] = model.learner
    run = pd.concat(ranked_folds).sort_index(kind="stable")
    folds = features.folds.rename_axis("qid").rename("fold").reset_index()
    return CrossValidated(with_scores(run, run["score"].to_numpy()), folds, learners)


class _Features:
    """The features of all queries, for the learner of each fold."""

    def __init__(self, pipeline: pt.Transformer, topics: pd.DataFrame, qrels: pd.DataFrame, folds: Folds, seed: int):
        self._copies = Copies(pipeline, to_fit(pipeline), quiet=True)
        self._topics, self._qrels, self._fitted = topics, qrels, {}
        self._run = None if self._copies.estimators else _with_features(pipeline, topics)
        qids = (topics if self._run is None else self._run)["qid"].drop_duplicates().tolist()
        self.folds = _fold_of_each_query(folds, qids, seed)
        if self._run is None and len(set(self.folds)) < 3:
            raise ValueError("rankers that are to be fitted beside a learner take at least 3 folds")

    def without(self, fold: object) -> pd.DataFrame:
        """A run from which nothing is learned of the judgements of a fold."""
        if self._run is not None:
            return self._run
        fold_of = self._topics["qid"].map(self.folds)
        parts = [self._pipeline({fold, other}).transform(self._topics[fold_of == other]) for other in set(self.folds)]
        order = {qid: place for place, qid in enumerate(self.folds.index)}
        run = pd.concat(parts)
        return _with_features(pt.Transformer.identity(), run.iloc[np.argsort(run["qid"].map(order), kind="stable")])

    def _pipeline(self, folds: set[object]) -> pt.Transformer:
        """A copy of the pipeline, fitted on all queries but those of one or two folds."""
        key = frozenset(folds)
        if key not in self._fitted:
            train = self._topics[~self._topics["qid"].map(self.folds).isin(folds)]
            judged = self._qrels[self._qrels["qid"].isin(train["qid"])]
            self._fitted[key] = self._copies.fitted({}, train, None, judged)[0]
        return self._fitted[key]


def _with_features(pipeline: pt.Transformer, topics: pd.DataFrame) -> pd.DataFrame:
    run = pipeline.transform(topics).reset_index(drop=True)
    if "features" not in run:
        raise ValueError(
            f"{pipeline!r} gives no features; join rankers by **, as in candidates >> (pt.Transformer.identity() ** a)"
        )
    if run.empty:
        raise ValueError("the pipeline found no candidates for these topics")
    return run


def _fold_of_each_query(folds: Folds, qids: list[str], seed: int) -> pd.Series:
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


def _splits(names: list[object], validation: bool) -> Iterator[tuple[object, object]]:
    """Each fold, and the one that validates its learner; None if there is no such."""
    if validation and len(names) < 3:
        raise ValueError("validation needs a fold of its own: there must be at least 3 folds")
    for place, fold in enumerate(names):
        yield fold, names[(place + 1) % len(names)] if validation else None


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
