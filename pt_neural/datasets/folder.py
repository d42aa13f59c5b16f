"""Datasets on disk, ``neural:folder:PATH``, and a transformer that loads the texts of their documents."""

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import pandas as pd
import pyterrier as pt

from pt_neural._frames import validated
from pt_neural.datasets.beir import BeirFolder
from pt_neural.datasets.docnos import refuse_unknown


class FolderDataset(pt.datasets.Dataset):
    """A test collection in the BEIR layout: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/SPLIT.tsv``.

    A document is a line ``{"_id": .., "title": .., "text": ..}``; other fields are kept if they are strings and
    dropped if not (such as BEIR's ``metadata``). A query is a line ``{"_id": .., "text": ..}``; a judgement is a row of
    query id, document id and integer grade, separated by tabs, under a header. The JSON Lines files may be gzipped.
    Documents are streamed.

    Args:
        path: The folder; may be relative or start with ``~``.

    Raises:
        FileNotFoundError: If there is no such folder, or if it holds no file of the layout.

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
            raise FileNotFoundError(f"{self.path} is not a test collection; expected {_LAYOUT}")

    def get_corpus_iter(self, *, verbose: bool = True) -> Iterable[dict[str, str]]:
        """Stream the documents as dicts of strings: docno, title, text and any other fields."""
        folder = self._folder()
        folder.corpus_file.stat()
        progress = {"desc": f"{self} documents", "total": self._count(), "unit": "d", "disable": not verbose}
        return iter(pt.tqdm(folder.documents(), **progress))

    def get_topics(self, variant: str | None = None) -> pd.DataFrame:
        """The queries with judgements in the split ``variant``, or all queries: qid, query."""
        queries = self._folder().queries()
        if variant is None:
            return queries
        judged = queries["qid"].isin(self.get_qrels(variant)["qid"])
        return queries[judged].reset_index(drop=True)

    def get_qrels(self, variant: str | None = None) -> pd.DataFrame:
        """The judgements of the split ``variant``; by default, of ``test`` or of the only split: qid, docno, label."""
        folder = self._folder()
        splits = folder.splits()
        if variant is None and "test" not in splits and len(splits) > 1:
            raise ValueError(f"{self!r} has several splits; pass one of: {', '.join(splits)}")
        only = splits[0] if len(splits) == 1 else "test"
        return folder.qrels(variant or only)

    def get_folds(self) -> pd.DataFrame:
        """The cross-validation folds in ``folds.tsv``: qid, fold."""
        return self._folder().folds()

    def text_loader(self, fields: Iterable[str] | str = ("title", "text"), *, verbose: bool = False) -> "TextLoader":
        """A transformer that adds fields of the documents to a frame, by docno.

        Args:
            fields: Names of fields, or one name, or ``"*"`` for all.
            verbose: Show progress while the collection is read.
        """
        folder = self._folder()
        return TextLoader(str(folder.corpus_path or folder.path), fields, verbose=verbose)

    def _folder(self) -> BeirFolder:
        return BeirFolder(self.path)

    def _count(self) -> int | None:
        """The number of documents, if it is known without reading them."""
        return None

    def _describe_component(self, component: str) -> bool | list[str] | None:
        if component in ("topics", "qrels"):
            return self._folder().splits() or None
        return True if component == "corpus" else None

    def __repr__(self) -> str:
        return f"FolderDataset({str(self.path)!r})"


_FILES = ("corpus.jsonl", "corpus.jsonl.gz", "queries.jsonl", "queries.jsonl.gz", "qrels")
_LAYOUT = "corpus.jsonl[.gz], queries.jsonl[.gz] and qrels/SPLIT.tsv"


class TextLoader(pt.Transformer):
    """Adds fields of the collection's documents as columns; rows, their order and their index stay.

    The fields are read on first use and held in memory; loaders of one collection share them. Takes a frame with
    ``docno``; returns it with one ``str`` column per field, which replaces any column of that name.

    Args:
        path: The folder with the collection's ``corpus.jsonl[.gz]``.
        fields: Names of the fields, or one name, or ``"*"`` for all.
        verbose: Show progress while the collection is read.

    Raises:
        ValueError: If the collection has no such field; on use, if a docno is not in the collection.
    """

    schematic = {"label": "TextLoader", "help_url": None}

    def __init__(self, path: str, fields: Iterable[str] | str = ("title", "text"), *, verbose: bool = False):
        self.path = str(path)
        available = _field_names(self.path)
        wanted = available if fields == "*" else [fields] if isinstance(fields, str) else list(fields)
        unknown = [name for name in wanted if name not in available]
        if unknown:
            raise ValueError(f"{self.path} has no field {', '.join(unknown)}; it has: {', '.join(available)}")
        self.fields = wanted
        self.verbose = verbose

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add the fields to every row."""
        with validated(inp, self) as v:
            v.columns(includes=["docno"])
        if inp.empty:
            return inp.assign(**{name: pd.Series(dtype=str) for name in self.fields})
        stat = BeirFolder(Path(self.path)).corpus_file.stat()  # a changed file is read again
        documents = _read_documents(self.path, (stat.st_size, stat.st_mtime_ns), self.verbose)
        positions = documents.index.get_indexer(inp["docno"])
        refuse_unknown(inp["docno"][positions < 0], self.path, "is it the right collection?")
        return inp.assign(**{name: documents[name].array.take(positions) for name in self.fields})

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer:
        """Load the text of the first ``k`` documents only."""
        return pt.RankCutoff(k) >> self

    def __repr__(self) -> str:
        return f"TextLoader({self.path!r}, {self.fields!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TextLoader) and (self.path, self.fields) == (other.path, other.fields)

    def __hash__(self) -> int:
        return hash((self.path, *self.fields))


def _field_names(path: str) -> list[str]:
    """The fields of a collection's first document, except docno."""
    document = next(BeirFolder(Path(path)).documents(), {"docno": "", "title": "", "text": ""})
    return [name for name in document if name != "docno"]


@lru_cache(maxsize=2)
def _read_documents(path: str, stamp: tuple[int, int], verbose: bool) -> pd.DataFrame:
    """All documents of a collection, one row each, indexed by docno; ``stamp`` changes with the file."""
    folder = BeirFolder(Path(path))
    names = ["docno", *_field_names(path)]
    columns: dict[str, list[str]] = {name: [] for name in names}
    for document in pt.tqdm(folder.documents(), desc=f"{folder.path.name} texts", unit="d", disable=not verbose):
        for name, values in columns.items():
            values.append(document.get(name, ""))
    frame = pd.DataFrame({name: pd.Series(values, dtype=str) for name, values in columns.items()})
    frame = frame.set_index("docno")
    if not frame.index.is_unique:
        repeated = frame.index[frame.index.duplicated()][0]
        raise ValueError(f"{folder.corpus_file}: document {repeated!r} occurs twice; docnos must be unique")
    return frame
