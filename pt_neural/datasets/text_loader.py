"""A transformer that adds the text of documents to a frame, by docno."""

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import pandas as pd
import pyterrier as pt

from pt_neural.datasets.beir import BeirFolder


class TextLoader(pt.Transformer):
    """Adds fields of the collection's documents as columns; rows, their order and their index stay.

    The fields are read once, when first needed, and held in memory; loaders of one collection share them.
    Frames with ``docno`` in, the same frames with one ``str`` column a field out; columns of these names that
    are there already are replaced.

    Args:
        path: The folder with the collection's ``corpus.jsonl[.gz]``.
        fields: Names of the fields, or one name, or ``"*"`` for all.
        verbose: Show progress while the collection is read.

    Raises:
        ValueError: If the collection has no such field; on use, if a docno is not in the collection.

    Example::

        loader = pt.get_dataset("neural:pydocs").text_loader(["title", "text"])
        (index.bm25() % 100 >> loader).search("eigenvalues")
    """

    schematic = {"label": "TextLoader", "help_url": None}

    def __init__(self, path: str, fields: Iterable[str] | str = ("title", "text"), *, verbose: bool = False):
        self.path = str(path)
        available = field_names(self.path)
        wanted = available if fields == "*" else [fields] if isinstance(fields, str) else list(fields)
        unknown = [name for name in wanted if name not in available]
        if unknown:
            raise ValueError(f"{self.path} has no field {', '.join(unknown)}; it has: {', '.join(available)}")
        self.fields = wanted
        self.verbose = verbose

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add the fields to every row."""
        pt.validate.columns(inp, includes=["docno"], context=self)
        if inp.empty:
            return inp.assign(**{name: pd.Series(dtype=str) for name in self.fields})
        documents = corpus_frame(self.path, verbose=self.verbose)
        positions = documents.index.get_indexer(inp["docno"])
        if (positions < 0).any():
            raise ValueError(self._missing(inp["docno"][positions < 0]))
        return inp.assign(**{name: documents[name].array.take(positions) for name in self.fields})

    def _missing(self, docnos: pd.Series) -> str:
        names = ", ".join(repr(docno) for docno in docnos.drop_duplicates().head(5))
        return f"{docnos.nunique(dropna=False)} docnos are not in {self.path}, such as {names}; is it the right one?"

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer:
        """Cut first, then load."""
        return pt.RankCutoff(k) >> self

    def __repr__(self) -> str:
        return f"TextLoader({self.path!r}, {self.fields!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TextLoader) and (self.path, self.fields) == (other.path, other.fields)

    def __hash__(self) -> int:
        return hash((self.path, *self.fields))


def field_names(path: str) -> list[str]:
    """The fields of a collection's first document, docno left out."""
    document = next(BeirFolder(Path(path)).documents(), {"docno": "", "title": "", "text": ""})
    return [name for name in document if name != "docno"]


def corpus_frame(path: str, *, verbose: bool = False) -> pd.DataFrame:
    """All documents of a collection, one row each, indexed by docno; a changed file is read anew."""
    stat = BeirFolder(Path(path)).corpus_file.stat()
    return _corpus_frame(path, (stat.st_size, stat.st_mtime_ns), verbose)


@lru_cache(maxsize=2)
def _corpus_frame(path: str, stamp: tuple[int, int], verbose: bool) -> pd.DataFrame:
    folder = BeirFolder(Path(path))
    names = ["docno", *field_names(path)]
    columns: dict[str, list[str]] = {name: [] for name in names}
    for document in pt.tqdm(folder.documents(), desc=f"{folder.path.name} texts", unit="d", disable=not verbose):
        for name, values in columns.items():
            values.append(document.get(name, ""))
    frame = pd.DataFrame({name: pd.Series(values, dtype=str) for name, values in columns.items()})
    frame = frame.set_index("docno")
    if not frame.index.is_unique:
        twice = frame.index[frame.index.duplicated()][0]
        raise ValueError(f"{folder.corpus_file}: document {twice!r} is there twice; docnos must be unique")
    return frame
