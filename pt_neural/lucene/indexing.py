"""Building an index: documents in chunks to Lucene, in a directory that appears only when it is whole."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyterrier as pt

from pt_neural._artifacts import atomic_directory, refuse_existing, write_metadata
from pt_neural.lucene.analysis import Analysis
from pt_neural.lucene.documents import PreparedDocument, check_field_names, prepare
from pt_neural.lucene.text_store import FOLDER, TextStoreWriter
from pt_neural.lucene.writer import Writer

if TYPE_CHECKING:
    from pt_neural.lucene.index import LuceneIndex

CHUNK = 500  # documents a Java call
T = TypeVar("T")


class LuceneIndexer(pt.Indexer):
    """Builds a Lucene index that Anserini's tools read; made by :meth:`LuceneIndex.indexer`.

    Args:
        index: Where to build.
        fields: Fields of a document that are joined into Anserini's field ``contents``, those that it has.
        separate_fields: Fields that are also searched by themselves, as in ``index.bm25(field="title")``.
        positions: Keep positions of terms, which SDM needs.
        vectors: Keep the term vector of each document, which RM3 and latent concept expansion need.
        store_text: Keep the text of all these fields beside Lucene, for :meth:`LuceneIndex.text_loader`.
        raw: Store each document in Lucene as well, as JSON, for other tools. Slow to read and large.
        stemmer: ``"porter"``, ``"krovetz"`` or ``"none"``.
        stopwords: ``"default"`` (Lucene's 33 English words), ``"none"``, or a file with one word a line.
        memory: Megabytes that Lucene fills before it writes a segment. Default: a quarter of Java's heap, at
            most 1024.
        overwrite: Replace an index that is there; it stays untouched until the new one is whole.
        verbose: Show a progress bar.
    """

    def __init__(
        self,
        index: LuceneIndex,
        *,
        fields: Sequence[str] = ("title", "text"),
        separate_fields: Sequence[str] = (),
        positions: bool = True,
        vectors: bool = True,
        store_text: bool = True,
        raw: bool = False,
        stemmer: str = "porter",
        stopwords: str = "default",
        memory: int | None = None,
        overwrite: bool = False,
        verbose: bool = True,
    ):
        self._index = index
        self.fields = [fields] if isinstance(fields, str) else list(fields)
        self.separate_fields = [separate_fields] if isinstance(separate_fields, str) else list(separate_fields)
        self.positions = positions
        self.vectors = vectors
        self.store_text = store_text
        self.raw = raw
        self.stemmer = stemmer
        self.stopwords = stopwords
        self.memory = memory
        self.overwrite = overwrite
        self.verbose = verbose
        Analysis(stemmer, stopwords)
        check_field_names(self.separate_fields)

    def index_inputs(self) -> list[list[str]]:
        """What a document needs, for PyTerrier's inspection."""
        return [["docno", *self.fields]]

    def index(self, iter: Iterable[Mapping[str, Any]]) -> LuceneIndex:
        """Build the index. If anything goes wrong, or on Ctrl-C, nothing is left behind.

        Args:
            iter: Documents with a unique ``docno`` (a string, or an integer, which becomes one) and at least one
                of the fields. Values that are no strings count as empty; a document without words is kept.

        Returns:
            The index, ready to search.

        Raises:
            FileExistsError: If something is at the path already.
            ValueError: If there are no documents, if a docno is missing or occurs twice, or if a document has none of
                the fields.
        """
        path = self._index.path
        kind = {"type": "sparse_index", "format": "anserini"}
        refuse_existing(path, overwrite=self.overwrite, **kind)
        documents = pt.tqdm(iter, desc=f"indexing {path.name}", unit=" documents") if self.verbose else iter
        with atomic_directory(path, overwrite=self.overwrite, **kind) as directory:
            analysis = Analysis(self.stemmer, self.stopwords).keep(directory)
            count = self._write(directory, documents)
            write_metadata(directory, **kind, documents=count, analysis=analysis)
        return self._index

    def _write(self, directory: Path, documents: Iterable[Mapping[str, Any]]) -> int:
        kept = list(dict.fromkeys([*self.fields, *self.separate_fields])) if self.store_text else []
        prepared = prepare(documents, self.fields, self.separate_fields, kept)
        if not self.store_text:
            return self._write_lucene(directory, prepared)
        with TextStoreWriter(directory / FOLDER, kept) as store:
            return self._write_lucene(directory, _stored(prepared, store))

    def _write_lucene(self, directory: Path, documents: Iterator[PreparedDocument]) -> int:
        with Writer(directory, self) as writer:
            return sum(writer.add(chunk) for chunk in _chunks(documents))

    def subtransformers(self) -> dict[str, Any]:
        """None; PyTerrier would take an empty list of fields for one of transformers."""
        return {}

    def schematic(self, *, input_columns: list[str] | None = None) -> dict[str, Any]:
        """How PyTerrier draws it."""
        return {"label": "Lucene indexer", "help_url": None}

    def __repr__(self) -> str:
        return f"LuceneIndexer({self._index.name!r}, fields={self.fields!r})"


def _stored(documents: Iterable[PreparedDocument], store: TextStoreWriter) -> Iterator[PreparedDocument]:
    for document in documents:
        store.add(document.docno, document.texts)
        yield document


def _chunks(items: Iterator[T]) -> Iterator[list[T]]:
    while chunk := list(itertools.islice(items, CHUNK)):
        yield chunk
