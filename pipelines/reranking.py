"""What the pipelines of rankers that learn from hard negatives share: their examples, negatives and grades."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import pandas as pd

import pt_neural as pn
from pipelines.common import Split
from pipelines.trained import TrainedRankers
from pipelines.workspace import Workspace


def add_negatives(arguments: argparse.ArgumentParser, grades: str) -> None:
    """The options that say which documents are negatives.

    Args:
        arguments: Where they are added.
        grades: The default of ``--grades``.
    """
    about = "where our models' negatives come from; None: judged ones where there are any, else retrieved ones"
    arguments.add_argument("--negatives", choices=["judged", "retrieved"], help=about)
    scheme = 'grades of positives with those of their negatives: auto, all, or such as \'{"3": [1, 0], "2": [0]}\''
    arguments.add_argument("--grades", type=grade_scheme, default=grades, help=scheme)


class RerankingRankers(TrainedRankers):
    """Rankers that learn from the same training queries and the candidates of these.

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

    def _spaces(self) -> pn.EmbeddingSpaces:
        options = {"dim": self.arguments.dim, "seed": self.arguments.seed}
        return self.workspace.spaces("documents", self.workspace.documents, **options)

    @property
    def _training(self) -> dict[str, Any]:
        """What all models of the pipeline are trained with."""
        return {"negatives": self.negatives, "num_negatives": 4, "grades": self.grades}

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

    def sizes(self) -> Sequence[int]:
        """Numbers of training queries, each twice the one before, up to all there are."""
        most = len(self.training_queries.topics)
        return sorted({max(1, most >> place) for place in range(self.arguments.sizes)})

    def save_settings(self) -> None:
        """Write the history of each training, and all settings of the pipeline's run."""
        if self.models:
            self.histories().to_csv(self.workspace.results / "histories.csv", index=False)
        made_of = {"bm25": repr(self.bm25), "negatives": self.negatives, "grades": self.grades}
        self.workspace.save_settings(**made_of)


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
