"""What commands read: topics, judgements, runs and documents, from files, artifacts or datasets by name."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import pandas as pd
import pyterrier as pt

from pt_neural.text import ForwardIndex

_SPLIT = "@"  # between the name of a dataset and its split


def dataset(name: str) -> tuple[pt.datasets.Dataset, str | None]:
    """A dataset of PyTerrier and the split, from ``NAME`` or ``NAME@SPLIT``; a UsageError if there is none."""
    before, _, split = name.rpartition(_SPLIT)
    name, split = (before, split) if before and "/" not in split else (name, None)
    try:
        return pt.get_dataset(name), split
    except (KeyError, FileNotFoundError) as error:
        reason = error.args[0] if isinstance(error, KeyError) else error
        message = f"{name} is neither a file nor a dataset, such as irds:cranfield or neural:pydocs@test: {reason}"
        raise click.UsageError(message) from None


def read_topics(source: str, number: int | None = None) -> pd.DataFrame:
    """The first ``number`` queries of a dataset or of a file (qid and query a line, or TREC's SGML or XML)."""
    if Path(source).is_file():
        topics = pt.io.read_topics(source, **_topics_format(source))
    else:
        found, split = dataset(source)
        topics = found.get_topics(split)
    if "query" not in topics:
        fields = ", ".join(topics.columns.drop("qid"))
        raise click.UsageError(f"{source} has no single kind of query; choose one by {source}@FIELD: {fields}")
    if topics.empty:
        raise click.UsageError(f"{source} has no queries")
    return topics[["qid", "query"]].head(len(topics) if number is None else number)


def _topics_format(path: str) -> dict[str, Any]:
    """The options of ``pt.io.read_topics`` for a file, by how it begins."""
    with pt.io.autoopen(path, "rt") as file:
        start = file.read(1000).lstrip().lower()
    if not start.startswith("<"):
        return {"format": "singleline"}
    return {"format": "trecxml", "tags": ["query", "title"]} if "<topic" in start else {"format": "trec"}


def read_qrels(source: str) -> pd.DataFrame:
    """The judgements of a dataset, or of a file as trec_eval reads it."""
    if Path(source).is_file():
        qrels = pt.io.read_qrels(source)
        if not pd.api.types.is_integer_dtype(qrels["label"]):
            raise click.UsageError(f"{source} is not a file of judgements: each line must be QID 0 DOCNO LABEL")
        return qrels
    found, split = dataset(source)
    # In ir_datasets, splits are part of the name, and what follows it here is a field of the topics.
    return found.get_qrels(None if source.startswith("irds:") else split)


def read_run(path: Path, topics: pd.DataFrame | None = None) -> pd.DataFrame:
    """A TREC run; if topics are given, with the text of its queries, and without those that the topics lack."""
    try:
        run = pt.io.read_results(str(path)).drop(columns="name")
    except (ValueError, TypeError) as error:
        raise click.UsageError(f"{path} is not a TREC run: {error}") from None
    if topics is None:
        return run
    known = run.merge(topics, on="qid")
    if known.empty:
        raise click.UsageError(f"{path} has none of these {len(topics):,} queries")
    if lost := run["qid"].nunique() - known["qid"].nunique():
        click.echo(f"{path}: {lost:,} queries are left out, since the topics lack them", err=True)
    return known


def write_run(frame: pd.DataFrame, path: Path | None, name: str, stdout: Any) -> None:
    """Write results as a TREC run, by query and rank, to a file or to ``stdout``."""
    order = pd.DataFrame({"query": pd.factorize(frame["qid"])[0], "rank": frame["rank"].to_numpy()})
    frame = frame.iloc[order.sort_values(["query", "rank"], kind="stable").index]
    pt.io.write_results(frame, stdout if path is None else str(path), run_name=name)


def read_corpus(source: str, *, verbose: bool) -> Iterable[dict[str, Any]] | ForwardIndex:
    """The documents of a dataset, or a forward index."""
    if Path(source).is_dir():
        found = pt.Artifact.load(source)
        if not isinstance(found, ForwardIndex):
            raise click.UsageError(f"{source} is a {type(found).__name__}; give a dataset or a forward index")
        return found
    return dataset(source)[0].get_corpus_iter(verbose=verbose)


def open_documents(source: str | None) -> tuple[pt.Transformer | None, dict[str, Any]]:
    """What adds the text of documents to a frame, or the option of a ranker that reads them by docno.

    Args:
        source: A Lucene index or a dataset, which have text; or a forward index, or what ``encode`` wrote. None if
            there is nothing to read.
    """
    from pt_neural.rankers import DocumentRepresentations

    if source is None:
        return None, {}
    if not Path(source).is_dir():
        return dataset(source)[0].text_loader("*", verbose=False), {}
    found = pt.Artifact.load(source)
    if hasattr(found, "text_loader") and hasattr(found, "bm25"):
        return found.text_loader(), {}
    if isinstance(found, ForwardIndex):
        return None, {"documents": found}
    if isinstance(found, DocumentRepresentations):
        return None, {"representations": found}
    return None, {"vectors": found}
