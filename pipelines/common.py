"""What the pipelines share: splits, artifacts that are built once, tables on disk."""

import argparse
import hashlib
import json
import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyterrier as pt
from cycler import cycler
from ir_measures import Measure
from pyterrier_dr import FlexIndex

import pt_neural as pn
from pt_neural.experiment import AlphaCurve

SPLITS = ("train", "dev", "test")


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

    def sample(self, queries: int, seed: int) -> "Collection":
        """At most so many of the judged queries of dev and test, drawn at random."""
        dev = self.dev and self.dev.sample(queries, seed)
        return replace(self, dev=dev, test=self.test.sample(queries, seed))


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


def parser(description: str, dataset: str = "neural:pydocs") -> argparse.ArgumentParser:
    """Arguments that every pipeline has."""
    arguments = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    arguments.add_argument("--dataset", default=dataset, help="name for pt.get_dataset, such as irds:vaswani")
    arguments.add_argument("--out", type=Path, default=Path("results"), help="folder for tables, pictures and runs")
    arguments.add_argument("--seed", type=int, default=13, help="seed of training and sampling")
    return arguments


class Workspace:
    """A folder for one pipeline on one dataset; what is already built there is used again.

    Args:
        out: Where results go.
        pipeline: Name of the pipeline.
        collection: The dataset; its artifacts are shared by all pipelines, and kept apart by package versions.
    """

    def __init__(self, out: Path, pipeline: str, collection: Collection):
        self.collection = collection
        slug = re.sub(r"[^\w.-]+", "-", collection.name).strip("-")
        self.results = out / f"{pipeline}-{slug}"
        self.artifacts = out / "artifacts" / f"{slug}-{_fingerprint(collection)}"
        self.results.mkdir(parents=True, exist_ok=True)
        self.artifacts.mkdir(parents=True, exist_ok=True)

    def built(self, name: str, build: Callable[[Path], Any], load: Callable[[Path], Any]) -> Any:
        """Load an artifact, after building it if it is not there."""
        path = self.artifacts / name
        if not path.exists():
            print(f"building {path}", flush=True)
            build(path)
        return load(path)

    def index(self) -> pn.LuceneIndex:
        """The collection's Lucene index."""
        return self.built("lucene", lambda path: pn.LuceneIndex(path).index(self.documents()), pn.LuceneIndex)

    def forward_index(self) -> pn.ForwardIndex:
        """The collection's term sequences."""
        return self.built("forward", lambda path: pn.ForwardIndex.build(path, self.documents()), pn.ForwardIndex)

    def documents(self) -> Iterable[dict[str, str]]:
        """The collection's documents, to train on."""
        return self.collection.dataset.get_corpus_iter(verbose=False)

    def spaces(self, name: str, texts: Callable[[], Any], **options: Any) -> pn.EmbeddingSpaces:
        """Word embeddings trained on documents or queries."""
        settings = "-".join(f"{key}{value}" for key, value in sorted(options.items()))
        return self.built(
            f"spaces-{name}-{settings}",
            lambda path: pn.EmbeddingSpaces.train(texts(), **options).save(path),
            pn.EmbeddingSpaces.load,
        )

    def desm(self, spaces: pn.EmbeddingSpaces, pair: str, corpus: str) -> tuple[pn.DESM, pt.Transformer]:
        """One DESM over kept centroids.

        Args:
            spaces: Word embeddings.
            pair: Spaces of query and document, such as ``"in-out"``.
            corpus: What the embeddings were trained on, to tell kept centroids apart.

        Returns:
            A re-ranker by docno, and a retriever from all documents.
        """
        query, document = pair.split("-")
        desm = pn.DESM(spaces, query, document)
        vectors = self.built(
            f"centroids-{document}-{corpus}-{spaces.dim}",
            lambda path: desm.index(path, self.forward_index()),
            partial(FlexIndex, verbose=False),
        )
        return pn.DESM(spaces, query, document, vectors=vectors), desm.retriever(vectors)

    def save_table(self, name: str, table: pd.DataFrame, caption: str) -> None:
        """Print a table, and write it as CSV and Markdown."""
        print(f"\n{caption}\n\n{table.to_string(index=False)}", flush=True)
        table.to_csv(self.results / f"{name}.csv", index=False)
        (self.results / f"{name}.md").write_text(f"{caption}\n\n{markdown(table)}\n", encoding="utf-8")

    def save_settings(self, settings: dict[str, Any]) -> None:
        """Write down what made the results."""
        packages = {name: version(name) for name in ("pt-neural", "pyterrier", "pyserini", "gensim", "numpy")}
        text = json.dumps({**settings, "packages": packages}, indent=2, default=str)
        (self.results / "settings.json").write_text(text + "\n", encoding="utf-8")


def _fingerprint(collection: Collection) -> str:
    """Changes with our version, and with the packages that the embedded collection is made from."""
    packages = getattr(collection.dataset, "packages", pd.DataFrame)()
    return hashlib.sha256(f"{pn.__version__} {packages.to_csv()}".encode()).hexdigest()[:8]


def markdown(table: pd.DataFrame) -> str:
    """A frame as a Markdown table."""
    rows = [list(table.columns), ["---"] * len(table.columns), *table.astype(str).to_numpy().tolist()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def compare(
    systems: dict[str, pt.Transformer],
    split: Split,
    measures: list[Measure],
    *,
    baseline: str,
    runs: Path,
) -> pd.DataFrame:
    """One ``pt.Experiment``, its runs saved; an asterisk marks what differs from the baseline.

    Returns:
        Frame with ``system`` and one text column a measure: the mean, with * where a paired t-test against the
        baseline, with Holm's correction over systems, gives p < 0.05.
    """
    runs.mkdir(parents=True, exist_ok=True)
    names = list(systems)
    # PyTerrier advises its plan "tree", which cannot save runs.
    warnings.filterwarnings("ignore", message="There are shared pipeline components")
    result = pt.Experiment(
        list(systems.values()),
        split.topics,
        split.qrels,
        measures,
        names=names,
        baseline=names.index(baseline),
        correction="holm",
        save_dir=str(runs),
        save_mode="overwrite",
    )
    table = pd.DataFrame({"system": result["name"]})
    for measure in map(str, measures):
        significant = result[f"{measure} p-value corrected"] < 0.05
        values = result[measure].map("{:.4f}".format)
        table[measure] = values + np.where(significant, "*", "")
    return table


def tuned(
    mixture: pt.Transformer, collection: Collection, measure: Measure, seed: int
) -> tuple[pt.Transformer, AlphaCurve]:
    """Choose a mixture's alpha on the dev queries; without dev queries, by five folds of the test queries.

    Returns:
        The mixture, or the run of its folds, in which each query was ranked with an alpha chosen without it; and the
        curve.
    """
    if collection.dev is not None:
        curve = pn.tune_alpha(mixture, collection.dev.topics, collection.dev.qrels, measure)
        return mixture, curve
    curve = pn.tune_alpha(mixture, collection.test.topics, collection.test.qrels, measure, folds=5, seed=seed)
    return pt.Transformer.from_df(curve.run), curve


def alpha_picture(curves: dict[str, AlphaCurve], title: str) -> plt.Figure:
    """How mixtures depend on alpha, one curve each."""
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    axes.set_prop_cycle(cycler(color=["#0072B2", "#E69F00", "#009E73", "#CC79A7"]) * cycler(linestyle=["-", "--"]))
    for name, curve in curves.items():
        curve.plot(axes, label=name, interval=False)
    axes.set_title(title)
    return figure
