"""An index opened for reading: its docnos, its fields, the statistics of its terms, the terms of its documents."""

from __future__ import annotations

import copy
import functools
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from pt_neural._files import ArtifactError
from pt_neural.datasets.docnos import DocnoTable, DocnoWriter, refuse_unknown
from pt_neural.lucene.index.analysis import Analysis
from pt_neural.lucene.index.opened import LatestOpened
from pt_neural.lucene.index.statistics import Statistics
from pt_neural.lucene.java.handles import (
    bind,
    chain,
    constant,
    constructor,
    feed,
    function,
    lines,
    loop,
    method,
    number,
    reorder,
    signature,
    static,
)
from pt_neural.lucene.java.jvm import in_java, java_class, java_path, naming

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DOCNO_FIELD = "id"
DOCNOS_FOLDER = "docnos"  # within an index that this package has built
BLOCK = 8192  # docnos read at a time
ELSEWHERE = "use the index that holds these documents, or drop the rows"  # where docnos are unknown
SEPARATOR = "\0"  # before each of the strings that Java joins into one; jnius would take a first U+FEFF for a mark
STATISTICS = {"docFreq": "int", "totalTermFreq": "long"}

_BUILDER = "java.lang.StringBuilder"
_BYTES = "org.apache.lucene.util.BytesRef"
_OBJECT = "java.lang.Object"
_OPTIONAL = "java.util.Optional"
_READER = "org.apache.lucene.index.IndexReader"
_STRING = "java.lang.String"
_TERM = "org.apache.lucene.index.Term"
_TERMS = "org.apache.lucene.index.Terms"
_TERMS_ENUM = "org.apache.lucene.index.TermsEnum"
_VALUES = "org.apache.lucene.index.BinaryDocValues"
_VECTORS = "org.apache.lucene.index.TermVectors"


class FieldOptions(NamedTuple):
    """What an index stores for a field."""

    positions: bool
    vectors: bool


class TermCounts(NamedTuple):
    """The terms of a list of documents, and how often each document has them."""

    terms: np.ndarray  # all their terms in ascending order, strings as objects
    counts: csr_array  # (documents, terms), int64; a row adds up to the exact length of its document


class Reader:
    """An opened index, shared by all transformers that use it. Get it from :func:`open_reader`.

    What it has opened stays as it is, even if the index is replaced by another one: a search that has begun ends
    with the documents that it began with. It is closed when nothing refers to it any more.

    Attributes:
        path: Where the index is.
        analysis: How the index makes terms of texts.
        docnos: The docnos by Lucene's document number.
        statistics: Those of the collection that this index is a shard of, to score by in place of its own; or None.
    """

    statistics: Statistics | None = None

    def __init__(self, path: Path, parts: Sequence[Path]):
        self.path = path
        self._files = _OpenFiles(_open(parts))
        self._remembered: dict[Any, Any] = {}
        self.analysis = Analysis.of_index(parts[0])
        self.docnos = self._open_docnos()

    @property
    def java(self) -> Any:
        """Lucene's reader."""
        return self._files.java

    def __len__(self) -> int:
        return len(self.docnos)

    @in_java
    def _open_docnos(self) -> DocnoTable:
        if (self.path / DOCNOS_FOLDER).is_dir():
            docnos = DocnoTable(self.path / DOCNOS_FOLDER)
        else:  # built by others, or by an earlier version: nothing is written beside an index that is there already
            self._folder = tempfile.TemporaryDirectory(prefix="pt_neural-docnos-")  # removed at the end of the process
            with naming(self.path):
                docnos = write_docnos(self.java, Path(self._folder.name))
        if len(docnos) != self.java.maxDoc():
            raise ArtifactError(
                f"{docnos.directory} has {len(docnos)} docnos, but Lucene {self.java.maxDoc()} documents"
            )
        return docnos

    def scoring_by(self, statistics: Statistics) -> Reader:
        """This reader, scoring by the statistics of a larger collection."""
        result = copy.copy(self)
        result.statistics = statistics
        result._remembered = {}
        return result

    @in_java
    def collection_statistics(self, field: str) -> tuple[int, int, int, int]:
        """Numbers of documents, of those with the field, of term occurrences, of pairs of document and term."""
        java = self.java
        with naming(self.path):
            return java.maxDoc(), java.getDocCount(field), java.getSumTotalTermFreq(field), java.getSumDocFreq(field)

    @functools.cached_property
    def fields(self) -> dict[str, FieldOptions]:
        """The fields that can be searched."""
        with naming(self.path):
            return _read_fields(self.java)

    def document_frequencies(self, terms: Sequence[str], field: str) -> np.ndarray:
        """The number of documents with each analysed term, int64 of shape ``(len(terms),)``."""
        return _read_statistic(self, "docFreq", field, terms)

    def collection_frequencies(self, terms: Sequence[str], field: str) -> np.ndarray:
        """The number of occurrences of each analysed term in the collection, int64 of shape ``(len(terms),)``."""
        return _read_statistic(self, "totalTermFreq", field, terms)

    def collection_length(self, field: str) -> int:
        """The number of term occurrences in all documents."""
        return self.collection_statistics(field)[2]

    @in_java
    def document_length(self, document: int, field: str) -> int:
        """The length of a document as scores know it: Lucene keeps it in one byte; 0 if it has none."""
        with naming(self.path):
            values = java_class("org.apache.lucene.index.MultiDocValues").getNormValues(self.java, field)
            if values is None or not values.advanceExact(int(document)):
                return 0
            return java_class("org.apache.lucene.util.SmallFloat").byte4ToInt(values.longValue())

    @in_java
    def term_counts(self, documents: Sequence[int], field: str) -> TermCounts:
        """The terms of documents, given by number, and their counts; the row of a document without any is empty."""
        from scipy.sparse import csr_array

        with naming(self.path):
            texts = lines([str(document) for document in documents]).map(_term_vector(self, field)).toArray()
        pieces = [text.split(SEPARATOR)[1:] for text in texts]  # term, count, term, count, ...
        occurring = np.array([term for piece in pieces for term in piece[::2]], dtype=object)
        counts = np.array([count for piece in pieces for count in piece[1::2]], dtype=np.int64)
        terms, columns = np.unique(occurring, return_inverse=True)
        ends = np.cumsum([0, *(len(piece) // 2 for piece in pieces)])
        return TermCounts(terms, csr_array((counts, columns, ends), shape=(len(pieces), len(terms))))


class _OpenFiles:
    """What keeps Lucene's reader open: all readers that share it."""

    def __init__(self, java: Any):
        self.java = java
        weakref.finalize(self, _unused.append, java).atexit = False


_unused: deque[Any] = deque()  # closed when the next index is opened, where Java is at hand


def remembered(maxsize: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Like ``functools.lru_cache`` for functions of a reader, which itself remembers their results.

    A cache that is shared would keep the files of all readers open.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def recall(reader: Reader, *arguments: Any) -> Any:
            results = reader._remembered.get(function)
            if results is None:
                own = weakref.ref(reader)  # the reader must not refer to itself, or it would end late
                results = functools.lru_cache(maxsize)(lambda *rest: function(own(), *rest))
                results = reader._remembered.setdefault(function, results)
            return results(*arguments)

        return recall

    return decorate


def open_reader(path: Path, parts: Callable[[], Sequence[Path]]) -> Reader:
    """The reader of an index, opened again only when the index has been replaced; ArtifactError if there is none.

    Args:
        path: Where the index is.
        parts: Says where the Lucene indexes are that it consists of; for a single index, only at ``path``.
    """
    return _readers.open(path, parts)


@in_java
def _open_reader(path: Path, parts: Sequence[Path]) -> Reader:
    while _unused:
        _unused.popleft().close()
    return Reader(path, parts)


_readers = LatestOpened(_open_reader)


def look_up(docnos: pd.Series, table: DocnoTable, path: Path) -> np.ndarray:
    """The number of each docno, int64; ValueError if one is not in the index at ``path``."""
    rows, distinct = pd.factorize(docnos, use_na_sentinel=False)
    found = table.rows(distinct)
    refuse_unknown(distinct[found < 0], path, ELSEWHERE)
    return found[rows]


@in_java
def _open(parts: Sequence[Path]) -> Any:
    readers = []
    try:
        readers += (_open_part(part) for part in parts)
    except BaseException:
        for reader in readers:
            reader.close()
        raise
    return readers[0] if len(readers) == 1 else java_class("org.apache.lucene.index.MultiReader")(*readers)


@in_java
def _open_part(path: Path) -> Any:
    directory = java_class("org.apache.lucene.store.FSDirectory").open(java_path(path))
    with naming(path):
        return java_class("org.apache.lucene.index.DirectoryReader").open(directory)


@in_java
def _read_fields(java: Any) -> dict[str, FieldOptions]:
    result = {}
    iterator = java_class("org.apache.lucene.index.FieldInfos").getMergedFieldInfos(java).iterator()
    while iterator.hasNext():
        info = iterator.next()
        options = info.getIndexOptions().name()
        if options not in ("NONE", "DOCS"):  # identifiers and points have no frequencies
            has_vectors = getattr(info, "hasTermVectors", None) or info.hasVectors  # Lucene 10, Lucene 9
            result[info.getName()] = FieldOptions("POSITIONS" in options, has_vectors())
    return result


@in_java
def _read_statistic(reader: Reader, name: str, field: str, terms: Sequence[str]) -> np.ndarray:
    """A statistic of each analysed term, int64 of shape ``(len(terms),)``; 0 for unknown terms."""
    with naming(reader.path):
        values = lines(terms).map(_statistic(reader, name, field)).toArray()
    return np.array(list(values), dtype=np.int64)


@remembered(maxsize=16)
def _statistic(reader: Reader, name: str, field: str) -> Any:
    """Java function from a term to its statistic, as text."""
    to_term = bind(constructor(_TERM, _STRING, _STRING), 0, field)
    read = method(_READER, name, STATISTICS[name], _TERM).bindTo(reader.java)
    return function(chain(to_term, read, static(_STRING, "valueOf", _STRING, STATISTICS[name])))


@in_java
def write_docnos(java: Any, folder: Path) -> DocnoTable:
    """Write all docnos in an existing folder, in blocks, from the doc values that Anserini keeps to break ties."""
    values = java_class("org.apache.lucene.index.MultiDocValues").getBinaryValues(java, DOCNO_FIELD)
    if values is None:
        raise ArtifactError("this Lucene index has no field 'id' with doc values; was it built by Anserini?")
    with DocnoWriter(folder, unique=False) as docnos:
        for start in range(0, java.maxDoc(), BLOCK):
            text = function(_join_values(min(BLOCK, java.maxDoc() - start))).apply(values)
            docnos.extend(text.split(SEPARATOR)[1:])
    return DocnoTable(folder)


@in_java
def keep_docnos(path: Path) -> int:
    """Write the docnos of a new index beside it, so that it opens at once; returns the number of documents."""
    (path / DOCNOS_FOLDER).mkdir()
    java = _open_part(path)
    try:
        if java.numDocs():  # else it has no field either
            write_docnos(java, path / DOCNOS_FOLDER)
        return java.numDocs()
    finally:
        java.close()


def _join_values(count: int) -> Any:
    """Handle from doc values to one string, a separator before each value."""
    times = reorder(constant("int", number("int", count)), signature("int", _VALUES))
    initial = reorder(constructor(_BUILDER), signature(_BUILDER, _VALUES))
    body = reorder(_append_next_value(), signature(_BUILDER, _BUILDER, "int", _VALUES), 0, 2)
    return chain(loop(times, initial, body), method(_BUILDER, "toString", _STRING))


def _append_next_value() -> Any:
    """Handle ``(builder, values) -> builder``: go to the next document and append its value."""
    append = method(_BUILDER, "append", _BUILDER, _STRING)
    current = chain(method(_VALUES, "binaryValue", _BYTES), method(_BYTES, "utf8ToString", _STRING))
    append_current = feed(feed(append, 1, current), 0, bind(append, 1, SEPARATOR))
    advance = method(_VALUES, "nextDoc", "int")
    both = feed(reorder(append_current, signature(_BUILDER, "int", _BUILDER, _VALUES), 1, 2), 0, advance)
    return reorder(both, signature(_BUILDER, _BUILDER, _VALUES), 1, 0, 1)


@remembered(maxsize=16)
def _term_vector(reader: Reader, field: str) -> Any:
    """Java function from a document's number, as text, to its terms and their counts."""
    # Vectors are asked for anew for each document: threads must not share them.
    vectors = method(_READER, "termVectors", _VECTORS).bindTo(reader.java)
    get = bind(method(_VECTORS, "get", _TERMS, "int", _STRING), 2, field)
    parse = static("java.lang.Integer", "parseInt", "int", _STRING)
    find = feed(feed(get, 1, parse), 0, vectors).asType(signature(_OBJECT, _STRING))
    join = bind(method(_OPTIONAL, "map", _OPTIONAL, "java.util.function.Function"), 1, function(_join_terms()))
    or_nothing = bind(method(_OPTIONAL, "orElse", _OBJECT, _OBJECT), 1, "")
    return function(chain(find, static(_OPTIONAL, "ofNullable", _OPTIONAL, _OBJECT), join, or_nothing))


def _join_terms() -> Any:
    """Handle from ``Terms`` to one string: each term and its count, a separator before both."""
    length = chain(method(_TERMS, "size", "long"), static("java.lang.Math", "toIntExact", "int", "long"))
    types = (_TERMS, _TERMS_ENUM)
    count = reorder(length, signature("int", *types), 0)
    initial = reorder(constructor(_BUILDER), signature(_BUILDER, *types))
    body = reorder(_append_next_term(), signature(_BUILDER, _BUILDER, "int", *types), 0, 3)
    joined = chain(loop(count, initial, body), method(_BUILDER, "toString", _STRING))
    with_iterator = feed(joined, 1, method(_TERMS, "iterator", _TERMS_ENUM))
    return reorder(with_iterator, signature(_STRING, _TERMS), 0, 0)


def _append_next_term() -> Any:
    """Handle ``(builder, terms) -> builder``: go to the next term, append it and its count."""
    append = method(_BUILDER, "append", _BUILDER, _STRING)
    separate = bind(append, 1, SEPARATOR)
    next_term = chain(method(_TERMS_ENUM, "next", _BYTES), method(_BYTES, "utf8ToString", _STRING))
    append_term = feed(feed(append, 1, next_term), 0, separate)
    append_number = method(_BUILDER, "append", _BUILDER, "long")
    append_count = feed(feed(append_number, 1, method(_TERMS_ENUM, "totalTermFreq", "long")), 0, separate)
    both = feed(append_count, 0, append_term)
    return reorder(both, signature(_BUILDER, _BUILDER, _TERMS_ENUM), 0, 1, 1)
