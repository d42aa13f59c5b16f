"""What the pipelines share: collections by splits, and the arguments of all."""

import argparse
import os
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import pyterrier as pt

SPLITS = ("train", "dev", "test")
FIELDS = ("title", "text")
FOLDER = "neural:folder:"


@dataclass(frozen=True)
class Split:
    """Queries and their judgements."""

    topics: pd.DataFrame
    qrels: pd.DataFrame

    def sample(self, queries: int, seed: int) -> "Split":
        """At most so many of the judged queries, drawn at random, in their order."""
        judged = self.topics[self.topics["qid"].isin(self.qrels["qid"])]
        topics = judged.sample(min(queries, len(judged)), random_state=seed).sort_index()
        return Split(topics, self.qrels[self.qrels["qid"].isin(topics["qid"])])


@dataclass(frozen=True)
class Collection:
    """A dataset by splits; ``train`` and ``dev`` are None where it has only one set of queries."""

    name: str
    dataset: pt.datasets.Dataset
    train: Split | None
    dev: Split | None
    test: Split

    @property
    def place(self) -> Path | None:
        """Where a folder lies; None for other datasets."""
        return _place(self.name)

    @property
    def label(self) -> str:
        """A short name, without the place of a folder."""
        return short_name(self.name)

    def examples(self, candidates: pt.Transformer) -> list[pd.DataFrame]:
        """What a model with a forward index is fitted on: judged pairs of train, and the candidates of dev.

        Pairs are enough where negatives do not come from the candidates.
        """
        pairs = self.train.topics[["qid", "query"]].merge(self.train.qrels[["qid", "docno"]], on="qid")
        dev = [] if self.dev is None else [candidates.transform(self.dev.topics), self.dev.qrels]
        return [pairs, self.train.qrels, *dev]

    def sample(self, queries: int, seed: int) -> "Collection":
        """At most so many of the judged queries of dev and test, drawn at random."""
        dev = self.dev and self.dev.sample(queries, seed)
        return replace(self, dev=dev, test=self.test.sample(queries, seed))


def _place(name: str) -> Path | None:
    return Path(name.removeprefix(FOLDER)).resolve() if name.startswith(FOLDER) else None


def short_name(name: str) -> str:
    """A dataset's name; that of a folder is its path among ``PT_NEURAL_COLLECTIONS``, or the last part of its path."""
    place = _place(name)
    if place is None:
        return name
    collections = Path(os.environ.get("PT_NEURAL_COLLECTIONS") or place.parent).resolve()
    return str(place.relative_to(collections)) if place.is_relative_to(collections) else place.name


def load(name: str) -> Collection:
    """Load ``neural:...``, ``irds:...`` or any other dataset that PyTerrier knows."""
    dataset = pt.get_dataset(name)
    splits = {split: _split(dataset, split) for split in SPLITS}
    if splits["test"] is None:
        splits["test"] = Split(dataset.get_topics(), dataset.get_qrels())
    return Collection(name, dataset, **splits)


def _split(dataset: pt.datasets.Dataset, split: str) -> Split | None:
    try:
        topics, qrels = dataset.get_topics(split), dataset.get_qrels(split)
    except (KeyError, ValueError, AssertionError, AttributeError):
        return None  # how the providers say that they have no such split
    return Split(topics, qrels) if len(topics) else None


class _Help(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """The description as it is written, and the default of each option."""


def parser(description: str, dataset: str = "neural:pydocs") -> argparse.ArgumentParser:
    """Arguments that every pipeline has.

    Args:
        description: What the pipeline makes.
        dataset: The default of ``--dataset``.
    """
    arguments = argparse.ArgumentParser(description=description, formatter_class=_Help, allow_abbrev=False)
    arguments.add_argument("--dataset", default=dataset, help="name for pt.get_dataset, such as irds:vaswani")
    arguments.add_argument("--out", type=Path, default=Path("results"), help="folder for tables, pictures and runs")
    about = "seeds of training; the first is also that of samples and of what is the same for all seeds"
    arguments.add_argument("--seeds", type=int, nargs="+", default=[13], help=about)
    return arguments


def parsed(arguments: argparse.ArgumentParser) -> argparse.Namespace:
    """The arguments of the command line, with ``seed``, the first of the seeds."""
    values = arguments.parse_args()
    values.seed = values.seeds[0]
    return values
