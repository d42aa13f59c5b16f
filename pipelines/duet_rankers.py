"""The rankers of the Duet paper's tables and figures, each a re-ranker of BM25's candidates."""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

import pt_neural as pn
from pipelines.common import Split, Workspace
from pipelines.comparison import System
from pipelines.trained import Learned, TrainedRankers
from pt_neural.experiment import count_terms
from pt_neural.experiment.components import Kind

OURS = {"local": pn.DuetLocal, "distributed": pn.DuetDistributed, "duet": pn.Duet}
TWO_TOWERS = {"dssm": pn.DSSM, "cdssm": pn.CDSSM}
NAMES = {  # in the order of Table 2
    "lsa": "LSA",
    "bm25": "BM25",
    "sdm": "SDM",
    "ql": "QL",
    "drmm": "DRMM",
    "dssm": "DSSM",
    "cdssm": "CDSSM",
    "desm": "DESM IN-OUT",
    "local": "Local",
    "distributed": "Distributed",
    "duet": "Duet",
}
KINDS: dict[str, Kind] = {
    **dict.fromkeys(["BM25", "QL"], "exact"),
    **dict.fromkeys(["SDM"], "proximity"),
    **dict.fromkeys(["LSA", "DRMM", "DSSM", "CDSSM", "DESM IN-OUT"], "inexact"),
    **dict.fromkeys(["Local", "Distributed", "Duet"], "ours"),
}
TRAINED = ("drmm", *TWO_TOWERS, *OURS)
ROWS = tuple(key for key in NAMES if key != "bm25")  # which is always there


class Rankers(TrainedRankers):
    """The paper's rankers; those that are trained learn from the same queries.

    Args:
        workspace: Where artifacts are.
        arguments: The pipeline's.

    Attributes:
        negatives: Where the negatives of our models come from: ``"judged"`` or ``"retrieved"``.
        grades: Which grades are positives, and those of their negatives; None if all are.
    """

    def __init__(self, workspace: Workspace, arguments: argparse.Namespace):
        super().__init__(workspace, arguments)
        train = self.collection.train
        self.negatives = arguments.negatives or (train and hard_negatives(train.qrels))
        self.grades = train and chosen_grades(arguments.grades, train.qrels, self.negatives)

    def system(self, key: str) -> System:
        """The candidates re-ranked by the ranker of a row."""
        if key in OURS:
            return self.reranking(self.ours(key))
        if key in TWO_TOWERS:
            return self.reranking(Learned(NAMES[key], TWO_TOWERS[key]))
        if key == "drmm":
            return self.reranking(self._drmm())
        if key == "bm25":
            return self.candidates
        if key == "lsa":
            ranker = self.workspace.lsa(self.arguments.dim, self.arguments.seed, self.documents.fields)
        elif key == "desm":
            ranker = self._desm()
        else:
            ranker = {"ql": self.index.ql, "sdm": self.index.sdm}[key]()
        return self.candidates >> ranker

    def _desm(self) -> pn.DESM:
        return pn.DESM(self._spaces(), "in", "out", documents=self.documents, fields=self.documents.fields)

    def _spaces(self) -> pn.EmbeddingSpaces:
        options = {"dim": self.arguments.dim, "seed": self.arguments.seed}
        return self.workspace.spaces("documents", self.workspace.documents, **options)

    def _drmm(self) -> Learned:
        return Learned(NAMES["drmm"], pn.DRMM, self._training, {"spaces": self._spaces()})

    @property
    def _training(self) -> dict[str, Any]:
        """Of our models, and of DRMM, which the paper trains on the same documents."""
        return {"negatives": self.negatives, "num_negatives": 4, "grades": self.grades}

    def ours(self, key: str, negatives: str | None = None, **training: Any) -> Learned:
        """One of our models as it is to be trained.

        Args:
            key: Which one.
            negatives: Other negatives than :attr:`negatives`.
            **training: Other settings of the training.
        """
        arguments, name = self.arguments, NAMES[key]
        options = {"document_terms": arguments.document_terms}
        options |= {"filters": arguments.filters, "hidden": arguments.filters}
        if key != "local":
            options |= {"pooling": arguments.pooling, "num_ngrams": arguments.ngrams}
        training = {**self._training, "negatives": negatives or self.negatives, **training}
        return Learned(f"{name}, {negatives} negatives" if negatives else name, OURS[key], training, options)

    @cached_property
    def training_queries(self) -> Split:
        """The judged training queries in random order, at most as many as an epoch may have groups."""
        train, seed = self.collection.train, self.arguments.seed
        train = train.sample(self.arguments.groups or len(train.topics), seed)
        return replace(train, topics=train.topics.sample(frac=1, random_state=seed))

    @cached_property
    def examples(self) -> list[pd.DataFrame]:
        """What models are fitted on: the candidates of training queries, of which negatives are drawn; those of dev."""
        return [*self.examples_of(len(self.training_queries.topics)), *self._dev_examples()]

    def examples_of(self, queries: int) -> list[pd.DataFrame]:
        """Candidates and judgements of the first training queries."""
        qids = self.training_queries.topics["qid"].head(queries)
        frames = self._training_candidates, self.training_queries.qrels
        return [frame[frame["qid"].isin(qids)] for frame in frames]

    @cached_property
    def _training_candidates(self) -> pd.DataFrame:
        return self.candidates.transform(self.training_queries.topics)

    def _dev_examples(self) -> Sequence[pd.DataFrame]:
        dev = self.collection.dev
        return [] if dev is None else [self.candidates.transform(dev.topics), dev.qrels]

    def training_terms(self) -> Counter[str]:
        """How often each term occurs in the training queries and the documents judged relevant to them."""
        train = self.training_queries
        counts = count_terms(train.topics["query"])
        rows = np.unique(self.documents.rows(train.qrels.loc[train.qrels["label"] > 0, "docno"]))
        terms, times = np.unique(self.documents.all().take(rows[rows >= 0]).terms, return_counts=True)
        names = self.documents.vocabulary.terms
        counts.update({names[term]: count for term, count in zip(terms.tolist(), times.tolist(), strict=True)})
        return counts


def hard_negatives(qrels: pd.DataFrame) -> str:
    """Judged negatives, as in the paper, where some documents were judged not relevant; else retrieved ones."""
    return "judged" if (qrels["label"] <= 0).any() else "retrieved"


def grade_scheme(text: str) -> str | dict[int, list[int]]:
    """What the user says of grades: ``"auto"``, ``"all"``, or a scheme as JSON."""
    if text in ("auto", "all"):
        return text
    try:
        return {int(grade): [int(lower) for lower in grades] for grade, grades in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError):
        raise argparse.ArgumentTypeError(f"auto, all, or such as '{{\"3\": [1, 0]}}', not {text}") from None


def chosen_grades(
    choice: str | dict[int, list[int]], qrels: pd.DataFrame, negatives: str
) -> dict[int, list[int]] | None:
    """The grades of negatives for each grade of positives.

    Args:
        choice: A scheme; ``"all"`` for none; or ``"auto"`` for one where documents judged with more than two grades are
            the negatives: each grade against those at least two below it, as in section 4.2, or against the lowest.
        qrels: Judgements.
        negatives: Where negatives come from.
    """
    if not isinstance(choice, str):
        return choice
    grades = sorted({max(0, int(label)) for label in qrels["label"]})
    if choice == "all" or negatives != "judged" or len(grades) < 3:
        return None
    return {grade: grades[: max(1, place - 1)][::-1] for place, grade in enumerate(grades) if place}
