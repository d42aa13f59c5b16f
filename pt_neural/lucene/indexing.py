"""Building an index: documents in chunks to Lucene, in a directory that appears only when it is whole."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyterrier as pt

from pt_neural._artifacts import atomic_directory, refuse_existing, write_metadata
from pt_neural.lucene.analysis import Analysis
from pt_neural.lucene.writer import Writer
from pt_neural.text.fields import join_fields

if TYPE_CHECKING:
    from pt_neural.lucene.index import LuceneIndex

CHUNK = 500
LONGEST_DOCNO = 32_766  # bytes; Lucene's limit for one term


class LuceneIndexer(pt.Indexer):
    """Builds a Lucene index as Anserini would; made by :meth:`LuceneIndex.indexer`.

    Args:
        index: Where to build.
        fields: Fields of a document that are joined into Anserini's field ``contents``, those that it has.
        separate_fields: Fields that are also searched by themselves, as in ``index.bm25(field="title")``.
        positions: Keep positions of terms, which SDM needs.
        vectors: Keep the term vector of each document, which RM3 needs.
        stemmer: ``"porter"``, ``"krovetz"`` or ``"none"``.
        stopwords: ``"default"`` (Lucene's 33 English words), ``"none"``, or a file with one word a line.
        memory: Megabytes that Lucene fills before it writes a segment.
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
        stemmer: str = "porter",
        stopwords: str = "default",
        memory: int = 256,
        overwrite: bool = False,
        verbose: bool = True,
    ):
        self.target = index
        self.fields = tuple(fields)
        self.separate_fields = tuple(separate_fields)
        self.positions = positions
        self.vectors = vectors
        self.stemmer = stemmer
        self.stopwords = stopwords
        self.memory = memory
        self.overwrite = overwrite
        self.verbose = verbose
        Analysis(stemmer, stopwords)

    def index_inputs(self) -> list[list[str]]:
        """What a document needs, for PyTerrier's inspection."""
        return [["docno", *self.fields]]

    def index(self, iter: Iterable[Mapping[str, Any]]) -> LuceneIndex:
        """Build the index.

        Args:
            iter: Documents with ``docno`` and at least one of the fields.

        Returns:
            The index, ready to search.
        """
        refuse_existing(self.target.path, overwrite=self.overwrite)
        documents = pt.tqdm(iter, desc="indexing", unit=" documents") if self.verbose else iter
        with atomic_directory(self.target.path, overwrite=self.overwrite) as directory:
            count = self._write(directory, documents)
            analysis = Analysis(self.stemmer, self.stopwords).keep(directory)
            write_metadata(directory, type="sparse_index", format="anserini", documents=count, analysis=analysis)
        return self.target

    def _write(self, directory: Path, documents: Iterable[Mapping[str, Any]]) -> int:
        count = 0
        with Writer(
            directory,
            Analysis(self.stemmer, self.stopwords),
            positions=self.positions,
            vectors=self.vectors,
            memory=self.memory,
        ) as writer:
            for chunk in _chunks(documents):
                writer.add([self._as_json(document) for document in chunk])
                count += len(chunk)
        return count

    def _as_json(self, document: Mapping[str, Any]) -> str:
        contents = join_fields(document, self.fields)
        return json.dumps({"id": str(document["docno"]), "contents": contents})


def _chunks(documents: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    documents = iter(documents)
    while chunk := list(itertools.islice(documents, CHUNK)):
        yield chunk
