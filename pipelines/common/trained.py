"""Rankers that are trained once for each seed and then reused, and the examples that they are trained on."""

import argparse
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pandas as pd
import pyterrier as pt
from ir_measures import nDCG

import pt_neural as pn
from pipelines.common.collection import Collection, Split, load
from pipelines.common.comparison import System
from pipelines.common.first_stage import tuned_bm25
from pipelines.common.workspace import Workspace

TRAINING = {"dev_queries": 500}  # of rankers trained with recipes
SMALL_TRAINING = {"max_groups": 2000, "dev_queries": 100}
FITTED: Mapping[str, Mapping[str, Any]] = {  # fitted to documents or to pairs of queries and documents
    "TFIDF": {"sublinear_tf": True},
    "LSA": {"dim": 200},
    "PLSA": {"num_topics": 100},
    "LDA": {"num_topics": 100},
    "BLTM": {"num_topics": 100},
    "WordTranslation": {},
    "PhraseTranslation": {},
}
SEEDED = ("DESM", "LSA", "PLSA", "LDA", "BLTM")


@dataclass(frozen=True)
class ModelSpec:
    """How a ranker of a table is made.

    Attributes:
        name: Its name in the table.
        model: Its class.
        training: Settings of the training that differ from the pipeline's.
        options: Arguments of the class.
        fitting: Further arguments of ``fit``.
    """

    name: str
    model: type
    training: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    fitting: Mapping[str, Sequence[pd.DataFrame]] = field(default_factory=dict)


def training_collection(arguments: argparse.Namespace, learned: Sequence[str], others: Sequence[str]) -> Collection:
    """The dataset, which must have training queries if a model is to be trained.

    Args:
        arguments: The arguments of the pipeline.
        learned: The rows that learn from training queries.
        others: The rows that do not.
    """
    collection = load(arguments.dataset)
    wanted = [row for row in arguments.models if row in learned]
    if collection.train is None and wanted and arguments.pseudo_queries is None:
        untrained = f"; or choose rows that need no training: --models {' '.join(others)}" if others else ""
        raise SystemExit(
            f"{collection.name} has no training queries, which {', '.join(wanted)} learn from. Choose a dataset with "
            "a split named train, such as neural:pydocs, or a folder with qrels/train.tsv as "
            f"neural:folder:PATH; or train on queries made from the documents: --pseudo-queries sentence{untrained}"
        )
    return collection.sample(arguments.queries, arguments.seed) if arguments.queries else collection


def recipe_collection(arguments: argparse.Namespace) -> Collection:
    """The dataset, which must have training queries; see ``add_recipes``."""
    collection = load(arguments.dataset)
    if collection.train is None:
        raise SystemExit(f"{collection.name} has no training queries; pipelines.pretraining makes some")
    return collection.sample(arguments.queries, arguments.seed) if arguments.queries else collection


class TrainedModels(ABC):
    """Models that are trained once for each seed, stored in the workspace and reused.

    Args:
        workspace: Where artifacts are.
        arguments: The arguments of the pipeline.

    Attributes:
        documents: The forward index of the documents to rank.
        learning: The workspace of the documents and queries to learn from.
        learning_documents: The forward index of the documents to learn from.
        models: The trained models, by name and seed.
    """

    dev_measure = nDCG @ 10

    def __init__(self, workspace: Workspace, arguments: argparse.Namespace):
        self.workspace, self.collection, self.arguments = workspace, workspace.collection, arguments
        self.documents = workspace.forward_index(arguments.fields)
        self.learning = workspace.learning
        self.learning_documents = self.learning.forward_index(arguments.fields)
        self.models: dict[str, dict[int, pt.Transformer]] = {}

    def trained(self, spec: ModelSpec, examples: Sequence[pd.DataFrame] | None = None) -> dict[int, pt.Transformer]:
        """The model of each seed, fitted on the given examples or else on :attr:`examples`."""
        if spec.name not in self.models:
            self.workspace.learned.add(spec.name)
            examples = self.examples if examples is None else examples
            self.models[spec.name] = {seed: self._trained(spec, seed, examples) for seed in self.arguments.seeds}
        return self.models[spec.name]

    def _trained(self, spec: ModelSpec, seed: int, examples: Sequence[pd.DataFrame]) -> pt.Transformer:
        print(f"{spec.name}, seed {seed}", flush=True)
        shared = {
            "epochs": self.arguments.epochs,
            "batch_size": self.arguments.batch_size,
            "max_groups": self.arguments.groups,
            "dev_measure": self.dev_measure,
        }
        training = pn.Training(seed=seed, **{**shared, **spec.training})
        documents = self.learning_documents
        model = spec.model(training=training, documents=documents, fields=documents.fields, **spec.options)
        return self.workspace.trained(model, *examples, documents=self.documents, **spec.fitting)

    @property
    @abstractmethod
    def examples(self) -> list[pd.DataFrame]:
        """The arguments of ``fit``."""

    def histories(self) -> pd.DataFrame:
        """What happened in each epoch of each training: ``system, seed, epoch, loss, ..``."""
        return pd.concat(
            [
                model.history.assign(system=name, seed=seed)
                for name, models in self.models.items()
                for seed, model in models.items()
            ],
            ignore_index=True,
        )

    def save_histories(self) -> None:
        """Write the history of each training, if there was any."""
        if self.models:
            self.histories().to_csv(self.workspace.results / "histories.csv", index=False)


class TrainedRankers(TrainedModels):
    """A first stage, and models that re-rank its candidates.

    Args:
        workspace: Where artifacts are.
        arguments: The arguments of the pipeline.

    Attributes:
        index: The Lucene index.
        bm25: The first stage.
        candidates: Its top documents.
        learning_candidates: Those of training and dev queries.
    """

    def __init__(self, workspace: Workspace, arguments: argparse.Namespace):
        super().__init__(workspace, arguments)
        self.index = workspace.index(arguments.fields)
        self.bm25 = tuned_bm25(workspace, arguments.fields)
        self.candidates = self.learning_candidates = self.bm25 % arguments.depth
        if self.learning is not workspace:
            self.learning_candidates = tuned_bm25(self.learning, arguments.fields) % arguments.depth

    def reranking(self, spec: ModelSpec, examples: Sequence[pd.DataFrame] | None = None) -> System:
        """The candidates re-ranked by a trained model, once for each seed."""
        return {seed: self.candidates >> model for seed, model in self.trained(spec, examples).items()}

    @cached_property
    def examples(self) -> list[pd.DataFrame]:
        """The arguments of ``fit``: judged pairs, since negatives come from elsewhere; and BM25's candidates of dev."""
        return self.learning.collection.examples(self.learning_candidates)


class RecipeRankers(TrainedRankers):
    """Rankers that are trained with the settings of their recipes, see ``add_recipes``; and statistical ones."""

    def _trained(self, spec: ModelSpec, seed: int, examples: Sequence[pd.DataFrame]) -> pt.Transformer:
        print(f"{spec.name}, seed {seed}", flush=True)
        small, qids = self.arguments.small, examples[1]["qid"].unique()
        given = {name: getattr(self.arguments, name) for name in ("epochs", "patience", "max_time")}
        given = {name: value for name, value in given.items() if value is not None}
        sizes = SMALL_TRAINING if small else TRAINING
        # SSI's own dev measure, rank loss, may improve while the measure of the tables falls.
        training = pn.Training(seed=seed, dev_measure=self.dev_measure, **sizes, **given)
        options = {"documents": self.documents, "fields": self.documents.fields}
        if small:
            options |= getattr(spec.model, "small_sizes", {})  # SSI has none
        if "spaces" in spec.model.components:
            options["spaces"] = self.spaces
        model = spec.model.recipe(len(qids), training=training, **{**options, **spec.options})
        if model.training.completed(model.own_training).negatives == "retrieved":
            candidates = self.train_candidates
            if len(qids) < candidates["qid"].nunique():
                candidates = candidates[candidates["qid"].isin(qids)]
            examples = [candidates, *examples[1:]]
        return self.workspace.trained(model, *examples)

    def seeds_of(self, name: str) -> Sequence[int | None]:
        """The seeds of a ranker that is not trained by gradients; only None if it does not depend on one."""
        return self.arguments.seeds if name in SEEDED else [None]

    def statistical(
        self, name: str, seed: int | None, examples: Sequence[pd.DataFrame]
    ) -> tuple[pt.Transformer, float]:
        """A ranker fitted to all documents, or to judged pairs of queries and documents.

        Args:
            name: One of ``FITTED``.
            seed: Its seed; None if it does not depend on one.
            examples: The pairs: the first two arguments of ``fit``.

        Returns:
            The ranker, and the seconds that fitting it took.
        """
        print(name if seed is None else f"{name}, seed {seed}", flush=True)
        options = {**FITTED[name], **({} if seed is None else {"seed": seed})}
        model = getattr(pn, name)(documents=self.documents, fields=self.documents.fields, **options)
        given = () if hasattr(model, "fit_corpus") else examples
        return self.workspace.fitted(model, *given), self.workspace.seconds_of_fitting(model, *given)

    @cached_property
    def spaces(self) -> pn.EmbeddingSpaces:
        """The word embeddings that trained rankers start from."""
        return self.embeddings(self.arguments.seed)

    def embeddings(self, seed: int) -> pn.EmbeddingSpaces:
        """Word embeddings of the documents."""
        return self.workspace.spaces("documents", self.workspace.documents, dim=200, seed=seed)

    @cached_property
    def train_candidates(self) -> pd.DataFrame:
        """The candidates of all training queries."""
        return self.candidates.transform(self.collection.train.judged)


class RerankingRankers(TrainedRankers):
    """Rankers that learn from hard negatives: from the same training queries and their candidates.

    Args:
        workspace: Where artifacts are.
        arguments: The arguments of the pipeline.

    Attributes:
        negatives: Where the negatives of our models come from: ``"judged"`` or ``"retrieved"``.
        grades: The grades of positives, each with the grades of its negatives; None for no restriction.
    """

    def __init__(self, workspace: Workspace, arguments: argparse.Namespace):
        super().__init__(workspace, arguments)
        train = self.learning.collection.train
        self.negatives = arguments.negatives or (train and hard_negatives(train.qrels))
        self.grades = train and chosen_grades(arguments.grades, train.qrels, self.negatives)

    def _spaces(self, seed: int | None = None) -> pn.EmbeddingSpaces:
        """Word embeddings of the documents, which all rankers start from; or of another training."""
        options = {"dim": self.arguments.dim, "seed": self.arguments.seed if seed is None else seed}
        return self.workspace.spaces("documents", self.workspace.documents, **options)

    @property
    def _training(self) -> dict[str, Any]:
        """Training settings that all models of the pipeline share."""
        return {"negatives": self.negatives, "num_negatives": 4, "grades": self.grades}

    @cached_property
    def training_queries(self) -> Split:
        """The judged training queries in random order, at most as many as an epoch may have groups."""
        train, seed = self.learning.collection.train, self.arguments.seed
        train = train.sample(self.arguments.groups or len(train.topics), seed)
        return replace(train, topics=train.topics.sample(frac=1, random_state=seed))

    @cached_property
    def examples(self) -> list[pd.DataFrame]:
        """The arguments of ``fit``: candidates of training queries, which include negatives, and candidates of dev."""
        dev = self.learning.collection.dev_examples(self.learning_candidates)
        return [*self.examples_of(len(self.training_queries.topics)), *dev]

    def examples_of(self, queries: int) -> list[pd.DataFrame]:
        """Candidates and judgements of the first training queries."""
        qids = self.training_queries.topics["qid"].head(queries)
        frames = self._training_candidates, self.training_queries.qrels
        return [frame[frame["qid"].isin(qids)] for frame in frames]

    @cached_property
    def _training_candidates(self) -> pd.DataFrame:
        return self.learning_candidates.transform(self.training_queries.topics)

    def sizes(self) -> Sequence[int]:
        """Numbers of training queries, each twice the one before, up to all of them."""
        total = len(self.training_queries.topics)
        return sorted({max(1, total >> halvings) for halvings in range(self.arguments.sizes)})

    def save_settings(self) -> None:
        """Write the history of each training, and the settings of the run."""
        self.save_histories()
        self.workspace.save_settings(bm25=repr(self.bm25), negatives=self.negatives, grades=self.grades)


def hard_negatives(qrels: pd.DataFrame) -> str:
    """Judged negatives, as in the paper, if some documents were judged not relevant; else retrieved ones."""
    return "judged" if (qrels["label"] <= 0).any() else "retrieved"


def chosen_grades(
    choice: str | dict[int, list[int]], qrels: pd.DataFrame, negatives: str
) -> dict[int, list[int]] | None:
    """The grades of negatives for each grade of positives.

    Args:
        choice: A scheme; ``"all"`` for no restriction; or ``"auto"``, which makes a scheme if negatives are judged with
            more than two grades: each grade against those at least two below it, as in section 4.2 of the Duet paper,
            or against the lowest one.
        qrels: Judgements.
        negatives: Where negatives come from.
    """
    if not isinstance(choice, str):
        return choice
    grades = sorted({max(0, int(label)) for label in qrels["label"]})
    if choice == "all" or negatives != "judged" or len(grades) < 3:
        return None
    return {grade: grades[: max(1, place - 1)][::-1] for place, grade in enumerate(grades) if place}
