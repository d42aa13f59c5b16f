"""An index opened for reading: one Lucene reader a path, one searcher a similarity, one table of docnos."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pt_neural._artifacts import ArtifactError
from pt_neural.lucene.docnos import read_docnos
from pt_neural.lucene.document_vectors import DocumentVectors, read_vectors
from pt_neural.lucene.jvm import in_java, java_class
from pt_neural.lucene.similarities import Similarity
from pt_neural.lucene.term_statistics import read_statistic

MAX_CLAUSES = 1 << 20  # Lucene's own limit of 1024 makes long queries fail


class FieldOptions(NamedTuple):
    """What an index keeps of a field."""

    positions: bool
    vectors: bool


class Reader:
    """What all transformers over one index share. Get it by :func:`open_reader`.

    Attributes:
        docnos: Object array of strings, by Lucene's document number.
    """

    def __init__(self, path: Path):
        self.path = path
        self.java = _open(path)
        self.docnos = read_docnos(self.java)

    @functools.cached_property
    def docno_array(self) -> pd.api.extensions.ExtensionArray:
        """The docnos as pandas keeps strings, to take columns from."""
        return pd.array(self.docnos, dtype="str")

    @functools.cached_property
    def order(self) -> np.ndarray:
        """The place of each document when sorted by docno, int64. Settles ties."""
        order = np.empty(len(self.docnos), dtype=np.int64)
        order[np.argsort(self.docnos, kind="stable")] = np.arange(len(self.docnos))
        return order

    @functools.cached_property
    def numbers(self) -> dict[str, int]:
        """Lucene's document number of each docno."""
        return {docno: number for number, docno in enumerate(self.docnos)}

    @functools.lru_cache(maxsize=256)  # noqa: B019 - readers live as long as the process
    @in_java
    def searcher(self, similarity: Similarity) -> Any:
        """The searcher for one setting: a similarity changed under a running search gives wrong scores."""
        kind = java_class("org.apache.lucene.search.IndexSearcher")
        searcher = kind(self.java, signature="(Lorg/apache/lucene/index/IndexReader;)V")
        kind.setMaxClauseCount(MAX_CLAUSES)
        searcher.setSimilarity(similarity.to_java())
        return searcher

    @functools.cached_property
    def fields(self) -> dict[str, FieldOptions]:
        """The fields that can be searched."""
        return _fields(self.java)

    def document_frequencies(self, terms: Sequence[str], field: str) -> np.ndarray:
        """In how many documents each analysed term occurs, int64 of shape ``(len(terms),)``."""
        return read_statistic(self.java, "docFreq", field, terms)

    def collection_frequencies(self, terms: Sequence[str], field: str) -> np.ndarray:
        """How often each analysed term occurs in the collection, int64 of shape ``(len(terms),)``."""
        return read_statistic(self.java, "totalTermFreq", field, terms)

    @in_java
    def collection_length(self, field: str) -> int:
        """The number of term occurrences in all documents."""
        return self.java.getSumTotalTermFreq(field)

    def vectors(self, documents: Sequence[int], field: str) -> DocumentVectors:
        """The terms of documents, given by number, and how often each of them has which."""
        return read_vectors(self.java, field, documents)


def open_reader(path: Path) -> Reader:
    """The reader of an index, opened once and again only when the index has been replaced.

    Raises:
        FileNotFoundError: If there is no such directory.
        ArtifactError: If the directory holds no Lucene index.
    """
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; build the index with LuceneIndex({str(path)!r}).index(...)")
    if not path.is_dir():
        raise ArtifactError(f"{path} is a file; a Lucene index is a directory")
    commits = sorted(path.glob("segments_*"))
    if not commits:
        raise ArtifactError(f"{path} holds no Lucene index (no file segments_N)")
    status = commits[-1].stat()
    return _reader(path.resolve(), status.st_ino, status.st_mtime_ns)


@functools.lru_cache(maxsize=64)
@in_java
def _reader(path: Path, inode: int, modified: int) -> Reader:
    return Reader(path)


@in_java
def _open(path: Path) -> Any:
    place = java_class("java.nio.file.Paths").get(str(path))
    directory = java_class("org.apache.lucene.store.FSDirectory").open(place)
    try:
        return java_class("org.apache.lucene.index.DirectoryReader").open(directory)
    except Exception as error:  # jnius gives one exception type for all of Java's
        raise ArtifactError(f"{path} cannot be read as a Lucene index: {error}") from None


@in_java
def _fields(java: Any) -> dict[str, FieldOptions]:
    result = {}
    iterator = java_class("org.apache.lucene.index.FieldInfos").getMergedFieldInfos(java).iterator()
    while iterator.hasNext():
        info = iterator.next()
        options = info.getIndexOptions().name()
        if options not in ("NONE", "DOCS"):  # identifiers and points have no frequencies
            has_vectors = getattr(info, "hasTermVectors", None) or info.hasVectors  # Lucene 10, Lucene 9
            result[info.getName()] = FieldOptions("POSITIONS" in options, has_vectors())
    return result
