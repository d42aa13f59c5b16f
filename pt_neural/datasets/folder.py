"""Datasets on disk: ``neural:folder:PATH``."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import pyterrier as pt

from pt_neural.datasets.beir import BeirFolder
from pt_neural.datasets.text_loader import TextLoader


class FolderDataset(pt.datasets.Dataset):
    """A test collection in the BEIR layout: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/SPLIT.tsv``.

    A document is a line ``{"_id": .., "title": .., "text": ..}``; further fields that are strings are kept,
    others (such as BEIR's ``metadata``) are dropped. A query is a line ``{"_id": .., "text": ..}``; a judgement
    is a row of query id, document id and integer grade, separated by tabs, under a header. The files of JSON
    Lines may be gzipped. Documents are streamed.

    Args:
        path: The folder; may be relative or start with ``~``.

    Raises:
        FileNotFoundError: If there is no such folder, or nothing of the layout in it.

    Source: Thakur et al., BEIR, NeurIPS 2021 (datasets and benchmarks).

    Example::

        dataset = pt.get_dataset("neural:folder:collections/cacm")
        index.index(dataset.get_corpus_iter())
        pt.Experiment([index.bm25()], *dataset.get_topicsqrels("test"), ["map"])
    """

    def __init__(self, path: str | Path):
        self.path = Path(path).expanduser().absolute()
        if not self.path.is_dir():
            raise FileNotFoundError(f"{self.path} is not a folder; expected one with {_LAYOUT}")
        if not any((self.path / name).exists() for name in _FILES):
            raise FileNotFoundError(f"{self.path} is no test collection; expected {_LAYOUT}")

    def get_corpus_iter(self, *, verbose: bool = True) -> Iterable[dict[str, str]]:
        """Stream the documents as dicts of strings: docno, title, text, and what else there is."""
        folder = self._folder()
        folder.corpus_file.stat()
        progress = {"desc": f"{self} documents", "total": self._count(), "unit": "d", "disable": not verbose}
        return iter(pt.tqdm(folder.documents(), **progress))

    def get_topics(self, variant: str | None = None) -> pd.DataFrame:
        """The queries that have judgements in a split, or all queries without ``variant``: qid, query."""
        queries = self._folder().queries()
        if variant is None:
            return queries
        judged = queries["qid"].isin(self.get_qrels(variant)["qid"])
        return queries[judged].reset_index(drop=True)

    def get_qrels(self, variant: str | None = None) -> pd.DataFrame:
        """The judgements of a split, without ``variant`` of ``test`` or of the only one: qid, docno, label."""
        folder = self._folder()
        splits = folder.splits()
        if variant is None and "test" not in splits and len(splits) > 1:
            raise ValueError(f"{self!r} has several splits; pass one of: {', '.join(splits)}")
        only = splits[0] if len(splits) == 1 else "test"
        return folder.qrels(variant or only)

    def get_folds(self) -> pd.DataFrame:
        """The folds for cross-validation in ``folds.tsv``: qid, fold."""
        return self._folder().folds()

    def text_loader(self, fields: Iterable[str] | str = ("title", "text"), *, verbose: bool = False) -> TextLoader:
        """A transformer that adds these fields to a frame by docno.

        Args:
            fields: Names of fields, or one name, or ``"*"`` for all.
            verbose: Show progress while the collection is read.
        """
        folder = self._folder()
        return TextLoader(str(folder.corpus_path or folder.path), fields, verbose=verbose)

    def _folder(self) -> BeirFolder:
        return BeirFolder(self.path)

    def _count(self) -> int | None:
        """The number of documents, where it is known without reading them."""
        return None

    def _describe_component(self, component: str) -> bool | list[str] | None:
        if component in ("topics", "qrels"):
            return self._folder().splits() or None
        return True if component == "corpus" else None

    def __repr__(self) -> str:
        return f"FolderDataset({str(self.path)!r})"


_FILES = ("corpus.jsonl", "corpus.jsonl.gz", "queries.jsonl", "queries.jsonl.gz", "qrels")
_LAYOUT = "corpus.jsonl[.gz], queries.jsonl[.gz] and qrels/SPLIT.tsv"
