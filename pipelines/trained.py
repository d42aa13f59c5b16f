"""What the pipelines that train rankers share: their options, and models that are trained once for each seed."""

import argparse
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd
import pyterrier as pt
from ir_measures import nDCG

import pt_neural as pn
from pipelines.common import FIELDS, Collection, load, parser
from pipelines.comparison import System
from pipelines.workspace import Workspace


@dataclass(frozen=True)
class Learned:
    """A model, with what sets its training apart from the others', arguments of its class, and further ones of fit."""

    name: str
    model: type
    training: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    fitting: Mapping[str, Sequence[pd.DataFrame]] = field(default_factory=dict)


def add_training(arguments: argparse.ArgumentParser) -> None:
    """The options of every pipeline that trains rankers."""
    arguments.add_argument("--fields", nargs="+", default=list(FIELDS), help="what all rankers read")
    arguments.add_argument("--epochs", type=int, default=20, help="epochs of training, at most")
    arguments.add_argument("--batch-size", type=int, default=256, help="groups a step; None: as each model has it")
    arguments.add_argument("--groups", type=int, help="train on at most so many groups an epoch; None: all")
    arguments.add_argument("--queries", type=int, help="sample of dev and of test queries; None: all")


def training_parser(description: str, rows: Sequence[str], default: Sequence[str]) -> argparse.ArgumentParser:
    """Arguments of every pipeline that trains re-rankers of what BM25 retrieves."""
    arguments = parser(description)
    add_training(arguments)
    arguments.add_argument("--depth", type=int, default=100, help="candidates a query")
    arguments.add_argument("--dim", type=int, default=200, help="dimensions of LSA and of word embeddings")
    arguments.add_argument("--models", nargs="+", choices=rows, default=list(default), help="rows beside BM25")
    return arguments


def training_collection(arguments: argparse.Namespace, learned: Sequence[str], others: Sequence[str]) -> Collection:
    """The dataset, which must have training queries if a model is to be trained.

    Args:
        arguments: The pipeline's.
        learned: The rows that learn from training queries.
        others: The rows that do not.
    """
    collection = load(arguments.dataset)
    wanting = [row for row in arguments.models if row in learned]
    if collection.train is None and wanting:
        untrained = f"; or choose rows that need no training: --models {' '.join(others)}" if others else ""
        raise SystemExit(
            f"{collection.name} has no training queries, which {', '.join(wanting)} learn from. Choose a dataset with "
            "a split named train, such as neural:pydocs, or a folder with qrels/train.tsv as "
            f"neural:folder:PATH{untrained}"
        )
    return collection.sample(arguments.queries, arguments.seed) if arguments.queries else collection


class TrainedModels(ABC):
    """Models that are trained once for each seed; what is trained is kept in the workspace and used again.

    Args:
        workspace: Where artifacts are.
        arguments: The pipeline's.

    Attributes:
        documents: The forward index.
        models: The trained models, by name and seed.
    """

    dev_measure = nDCG @ 10

    def __init__(self, workspace: Workspace, arguments: argparse.Namespace):
        self.workspace, self.collection, self.arguments = workspace, workspace.collection, arguments
        self.documents = workspace.forward_index(arguments.fields)
        self.models: dict[str, dict[int, pt.Transformer]] = {}

    def trained(self, row: Learned, examples: Sequence[pd.DataFrame] | None = None) -> dict[int, pt.Transformer]:
        """The model of each seed, fitted on :attr:`examples` or others."""
        if row.name not in self.models:
            examples = self.examples if examples is None else examples
            self.models[row.name] = {seed: self._trained(row, seed, examples) for seed in self.arguments.seeds}
        return self.models[row.name]

    def _trained(self, row: Learned, seed: int, examples: Sequence[pd.DataFrame]) -> pt.Transformer:
        print(f"{row.name}, seed {seed}", flush=True)
        shared = {
            "epochs": self.arguments.epochs,
            "batch_size": self.arguments.batch_size,
            "max_groups": self.arguments.groups,
            "dev_measure": self.dev_measure,
        }
        training = pn.Training(seed=seed, **{**shared, **row.training})
        model = row.model(training=training, documents=self.documents, fields=self.documents.fields, **row.options)
        return self.workspace.trained(model, *examples, **row.fitting)

    @property
    @abstractmethod
    def examples(self) -> list[pd.DataFrame]:
        """What models are fitted on."""

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


class TrainedRankers(TrainedModels):
    """A first stage, and models that re-rank its candidates.

    Args:
        workspace: Where artifacts are.
        arguments: The pipeline's.

    Attributes:
        index: The Lucene index.
        bm25: The first stage.
        candidates: Its top documents.
    """

    def __init__(self, workspace: Workspace, arguments: argparse.Namespace):
        super().__init__(workspace, arguments)
        self.index = workspace.index(arguments.fields)
        self.bm25 = self.index.bm25()
        self.candidates = self.bm25 % arguments.depth

    def reranking(self, row: Learned, examples: Sequence[pd.DataFrame] | None = None) -> System:
        """The candidates re-ranked by a trained model, once for each seed."""
        return {seed: self.candidates >> model for seed, model in self.trained(row, examples).items()}

    @cached_property
    def examples(self) -> list[pd.DataFrame]:
        """What models are fitted on: judged pairs, for negatives come from elsewhere; and BM25's candidates of dev."""
        return self.collection.examples(self.candidates)
