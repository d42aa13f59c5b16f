"""Datasets by splits: queries and judgements for training, development and testing."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import pyterrier as pt

from pt_neural.text import tokenise

SPLITS = ("train", "dev", "test")
FIELDS = ("title", "text")
FOLDER = "neural:folder:"


@dataclass(frozen=True)
class Split:
    """Queries and their judgements."""

    topics: pd.DataFrame
    qrels: pd.DataFrame

    @property
    def judged(self) -> pd.DataFrame:
        """The queries that have judgements."""
        return self.topics[self.topics["qid"].isin(self.qrels["qid"])]

    def sample(self, queries: int, seed: int) -> "Split":
        """At most this many judged queries, drawn at random and kept in their order."""
        judged = self.judged
        topics = judged.sample(min(queries, len(judged)), random_state=seed).sort_index()
        return Split(topics, self.qrels[self.qrels["qid"].isin(topics["qid"])])


@dataclass(frozen=True)
class Collection:
    """A dataset by splits; ``train`` and ``dev`` are None if it has only one set of queries."""

    name: str
    dataset: pt.datasets.Dataset
    train: Split | None
    dev: Split | None
    test: Split

    @property
    def folder(self) -> Path | None:
        """The folder of the dataset; None if it is not a folder."""
        return _folder(self.name)

    @property
    def label(self) -> str:
        """A short name; for a folder, without its location."""
        return short_name(self.name)

    @property
    def for_choices(self) -> Split | None:
        """The queries to choose a first stage on: dev or else train; None if there are only test queries."""
        return self.train if self.dev is None else self.dev

    def examples(self, candidates: pt.Transformer) -> list[pd.DataFrame]:
        """The arguments of ``fit`` for a model with a forward index: the judged pairs of train, candidates of dev.

        Pairs are enough if negatives do not come from the candidates.
        """
        pairs = self.train.topics[["qid", "query"]].merge(self.train.qrels[["qid", "docno"]], on="qid")
        return [pairs, self.train.qrels, *self.dev_examples(candidates)]

    def dev_examples(self, candidates: pt.Transformer) -> list[pd.DataFrame]:
        """The last arguments of ``fit``: candidates of the dev queries and their judgements; none without dev."""
        return [] if self.dev is None else [candidates.transform(self.dev.topics), self.dev.qrels]

    def sample(self, queries: int, seed: int) -> "Collection":
        """At most this many judged queries of dev and of test, drawn at random."""
        dev = self.dev and self.dev.sample(queries, seed)
        return replace(self, dev=dev, test=self.test.sample(queries, seed))


def load(name: str) -> Collection:
    """Load ``neural:...``, ``irds:...`` or any other dataset that PyTerrier knows.

    A dataset without splits has test queries only. One with training or dev queries but no test queries is refused by
    SystemExit, since its default queries may be those to learn from. Training queries with the tokens of a test query
    are left out, and a line says how many. A query that is in both splits under the same qid stays: it is a page some
    of whose links are to be learned, and others to be found.
    """
    dataset = pt.get_dataset(name)
    splits = {split: _split(dataset, split) for split in SPLITS}
    if splits["test"] is None:
        learned_from = [split for split in ("train", "dev") if splits[split] is not None or _names(dataset, split)]
        if learned_from:
            raise SystemExit(
                f"{name} has judgements for {' and '.join(learned_from)}, but no test queries, and systems are never "
                "tested on training or dev queries. Choose a dataset with a split named test, such as neural:pydocs; "
                "in a folder, the judgements of test queries are in qrels/test.tsv: rename the file if it has another "
                "name"
            )
        splits["test"] = Split(dataset.get_topics(), dataset.get_qrels())
    elif splits["train"] is not None:
        splits["train"] = _without_test_queries(splits["train"], splits["test"], short_name(name))
    return Collection(name, dataset, **splits)


def with_pseudo_queries(collection: Collection, folder: Path) -> Collection:
    """The same documents without the queries made from them, which are the training and dev queries."""
    dataset = pt.get_dataset(f"{FOLDER}{folder}")
    train, dev = (_split(dataset, split) for split in ("train", "dev"))
    return Collection(f"{FOLDER}{folder}", dataset, train, dev, collection.test)


def _without_test_queries(train: Split, test: Split, name: str) -> Split:
    """The training queries whose tokens are not those of a test query with another qid."""
    tested = set(map(tuple, map(tokenise, test.topics["query"])))
    same = train.topics["query"].map(lambda query: tuple(tokenise(query)) in tested)
    left_out = train.topics["qid"][same & ~train.topics["qid"].isin(test.topics["qid"])]
    if left_out.empty:
        return train
    print(f"{name}: {len(left_out):,} training queries left out, which have the words of a test query", flush=True)
    frames = train.topics, train.qrels
    return Split(*(frame[~frame["qid"].isin(left_out)].reset_index(drop=True) for frame in frames))


def short_name(name: str) -> str:
    """A dataset's name; for a folder, its path below ``PT_NEURAL_COLLECTIONS``, or the last part of its path."""
    folder = _folder(name)
    if folder is None:
        return name
    collections = Path(os.environ.get("PT_NEURAL_COLLECTIONS") or folder.parent).resolve()
    return str(folder.relative_to(collections)) if folder.is_relative_to(collections) else folder.name


def _folder(name: str) -> Path | None:
    return Path(name.removeprefix(FOLDER)).resolve() if name.startswith(FOLDER) else None


def _split(dataset: pt.datasets.Dataset, split: str) -> Split | None:
    """The queries of a split; None if it is absent or empty."""
    try:
        topics, qrels = dataset.get_topics(split), dataset.get_qrels(split)
    except (KeyError, ValueError, AssertionError, AttributeError):
        if _names(dataset, split):
            raise  # the split is there, but cannot be read
        return None  # the ways in which providers say that there is no such split
    return Split(topics, qrels) if len(topics) else None


def _names(dataset: pt.datasets.Dataset, split: str) -> bool:
    """Whether a dataset names the split among those that it has; not all providers name any."""
    described = [dataset._describe_component(component) for component in ("topics", "qrels")]
    return all(isinstance(names, list) and split in names for names in described)
