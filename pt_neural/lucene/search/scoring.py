"""Scoring by Lucene: the formulas, the best documents of a batch of queries, and the scores of given documents."""

import functools
import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyterrier as pt

from pt_neural._frames import Hits
from pt_neural.lucene.index.reader import Reader, remembered
from pt_neural.lucene.java.handles import (
    array_getter,
    array_length,
    array_setter,
    bind,
    chain,
    constructor,
    feed,
    function,
    getter,
    identity,
    int_function,
    java_list,
    loop,
    method,
    new_array,
    number,
    on_each,
    reorder,
    signature,
    static,
    then,
)
from pt_neural.lucene.java.jvm import apart, in_java, java_class, naming
from pt_neural.lucene.search.queries import QueryBuilder

_STEPS, _LEAST = 20, 10  # of a progress bar: how many, and of how many queries at least
CHUNK = 200  # queries per Java call; Ctrl-C waits for the end of one chunk
HIT = np.dtype([("document", ">i4"), ("score", ">f4")])

_BYTES = "java.nio.ByteBuffer"
_INT_STREAM = "java.util.stream.IntStream"
_INTS = "java.nio.IntBuffer"
QUERY = "org.apache.lucene.search.Query"
_SCORE_DOC = "org.apache.lucene.search.ScoreDoc"
_SCORE_DOCS = f"{_SCORE_DOC}[]"
_STREAM = "java.util.stream.Stream"
SEARCHER = "org.apache.lucene.search.IndexSearcher"
_TOP_DOCS = "org.apache.lucene.search.TopDocs"


@dataclass(frozen=True)
class BM25Similarity:
    """Lucene's BM25, with Anserini's defaults."""

    k1: float = 0.9
    b: float = 0.4

    def __post_init__(self) -> None:
        if not 0 <= self.k1 < float("inf"):
            raise ValueError(f"k1={self.k1}, but BM25 needs k1 >= 0")
        if not 0 <= self.b <= 1:
            raise ValueError(f"b={self.b}, but BM25 needs b between 0 and 1")

    def to_java(self) -> Any:
        """The Lucene object."""
        return java_class("org.apache.lucene.search.similarities.BM25Similarity")(float(self.k1), float(self.b))


@dataclass(frozen=True)
class QLSimilarity:
    """Lucene's query likelihood with Dirichlet smoothing."""

    mu: float = 1000.0

    def __post_init__(self) -> None:
        if not 0 < self.mu < float("inf"):
            raise ValueError(f"mu={self.mu}, but Dirichlet smoothing needs mu > 0")

    def to_java(self) -> Any:
        """The Lucene object."""
        java = java_class("org.apache.lucene.search.similarities.LMDirichletSimilarity")
        return java(float(self.mu), signature="(F)V")


@dataclass(frozen=True)
class FrequencySimilarity:
    """The frequency itself as the score: Anserini's similarity for learned impacts."""

    def to_java(self) -> Any:
        """The Lucene object."""
        return java_class("io.anserini.search.similarity.ImpactSimilarity")()


Similarity = BM25Similarity | QLSimilarity | FrequencySimilarity


def search(
    reader: Reader,
    builder: QueryBuilder,
    similarity: Similarity,
    queries: Sequence[Any],
    num_results: int,
    *,
    progress: str | None = None,
) -> Iterator[Hits]:
    """Search in chunks of up to 200 queries, and yield the hits of each; ``progress`` labels a progress bar.

    Equal scores are in descending order of docno, even at the cut: of the documents that tie for the last places, those
    with the largest docnos are returned.
    """
    num_results = min(operator.index(num_results), max(len(reader), 1))  # pt.GridSearch may set NumPy's integers
    search_chunk = _search_chunk if builder.slow else in_java(_search_chunk)
    for chunk in in_chunks(len(queries), CHUNK, label=progress):
        with naming(reader.path):
            hits = search_chunk(reader, builder, similarity, queries[chunk], num_results)
        yield hits._replace(queries=hits.queries + chunk.start)


def rescore(
    reader: Reader,
    builder: QueryBuilder,
    similarity: Similarity,
    queries: Sequence[Any],
    groups: np.ndarray,  # for each document, the position in queries of the query to score it for; int64
    documents: np.ndarray,  # Lucene's document numbers, int64
    *,
    progress: str | None = None,
) -> np.ndarray:
    """Score given documents by Lucene's own rescorer, without a search; scores equal those of retrieval.

    Returns float64 in the shape of ``documents``: 0.0 where no term of the query matches.
    """
    total = len(reader)
    pairs, pair_of_row = np.unique(groups * total + documents, return_inverse=True)
    ends = np.searchsorted(pairs, np.arange(len(queries) + 1) * total)
    scores = np.zeros(len(pairs))
    rescore_chunk = _rescore_chunk if builder.slow else in_java(_rescore_chunk)
    for chunk in in_chunks(len(queries), CHUNK, label=progress):
        starts = ends[chunk.start : chunk.stop + 1]
        wanted = [pairs[start:end] % total for start, end in itertools.pairwise(starts)]
        with naming(reader.path):
            found = rescore_chunk(reader, builder, similarity, queries[chunk], wanted)
        for start, numbers, hits in zip(starts, wanted, found, strict=False):
            scores[start + np.searchsorted(numbers, hits["document"])] = hits["score"]
    return scores[pair_of_row]


def in_chunks(total: int, size: int, *, label: str | None) -> Iterator[slice]:
    """Slices of up to ``size`` queries that cover ``total``, with a progress bar if it is given a label.

    Slices are shorter with a progress bar, which is to move.
    """
    size = size if label is None else min(size, max(total // _STEPS, _LEAST))
    with pt.tqdm(total=total, desc=label, unit=" queries", disable=label is None) as bar:
        for start in range(0, total, size):
            chunk = slice(start, min(start + size, total))
            yield chunk
            bar.update(chunk.stop - start)


def _search_chunk(
    reader: Reader, builder: QueryBuilder, similarity: Similarity, queries: Sequence[Any], num_results: int
) -> Hits:
    built = builder.build(queries)
    wanted = num_results + num_results // 20 + 10  # enough to see the end of nearly every tie at the cut
    found = _run(reader, builder, similarity, built, wanted)
    for i, hits in enumerate(found):
        if _cut_in_tie(hits, num_results, wanted):
            found[i] = _whole_tie(reader, builder, similarity, _only(built, i), num_results, wanted)
    return break_ties(found, reader.docnos.tie_order, num_results)


def _run(reader: Reader, builder: QueryBuilder, similarity: Similarity, queries: Any, wanted: int) -> list[np.ndarray]:
    find_all = _search_all(reader, similarity, min(wanted, max(len(reader), 1)))
    call = functools.partial(apart, kept=reader) if builder.slow else _call
    return read_all_hits(call(find_all, queries))


@in_java
def _call(function: Any, argument: Any) -> Any:
    return function.apply(argument)


@in_java
def _only(queries: Any, i: int) -> Any:
    """A list of one query of a list."""
    return queries.subList(i, i + 1)


@remembered(maxsize=64)
@in_java
def _search_all(reader: Reader, similarity: Similarity, wanted: int) -> Any:
    """Java function from a list of queries to a list of their packed hits, at most ``wanted`` each; on all cores."""
    return on_each(search_function(reader, similarity, wanted))


@remembered(maxsize=64)
@in_java
def searcher(reader: Reader, similarity: Similarity) -> Any:
    """Lucene's searcher for one similarity; changing the similarity of a searcher in use gives wrong scores."""
    kind = java_class(SEARCHER)
    if reader.statistics is None:
        made = kind(reader.java, signature="(Lorg/apache/lucene/index/IndexReader;)V")
    else:
        field, collection, terms, _ = reader.statistics
        counts = [list(column) for column in zip(*terms.values(), strict=True)] or [[], []]
        made = java_class("pt_neural.GlobalStatistics")(reader.java, field, list(collection), list(terms), *counts)
    made.setSimilarity(similarity.to_java())
    return made


@remembered(maxsize=64)
def search_function(reader: Reader, similarity: Similarity, wanted: int) -> Any:
    """Java function from a query to its packed hits, at most ``wanted``."""
    find = method(SEARCHER, "search", _TOP_DOCS, QUERY, "int")
    bound = bind(find.bindTo(searcher(reader, similarity)), 1, number("int", wanted))
    return function(chain(bound, _pack_hits()))


def _cut_in_tie(hits: np.ndarray, num_results: int, wanted: int) -> bool:
    """Whether documents that tie at the cut may be missing from the hits."""
    return len(hits) == wanted and hits["score"][-1] == hits["score"][num_results - 1]


def _whole_tie(
    reader: Reader, builder: QueryBuilder, similarity: Similarity, query: Any, num_results: int, wanted: int
) -> np.ndarray:
    """Search for more and more documents, until the tie at the cut is complete."""
    while True:
        wanted *= 4
        hits = _run(reader, builder, similarity, query, wanted)[0]
        if not _cut_in_tie(hits, num_results, wanted):
            return hits


def break_ties(found: Sequence[np.ndarray], tie_order: Callable[[np.ndarray], np.ndarray], num_results: int) -> Hits:
    """Sort each query's equal scores by the places that ``tie_order`` gives to these documents, and cut."""
    lengths = np.array([len(hits) for hits in found], dtype=np.int64)
    hits = np.concatenate(found)
    queries = np.repeat(np.arange(len(found)), lengths)
    documents, scores = hits["document"].astype(np.int64), hits["score"].astype(np.float64)
    as_before = np.r_[False, (np.diff(scores) == 0) & (np.diff(queries) == 0)][: len(hits)]
    tied = np.flatnonzero(as_before | np.r_[as_before[1:], False])
    run = np.cumsum(~as_before)[tied]
    documents[tied] = documents[tied[np.lexsort((tie_order(documents[tied]), run))]]
    ranks = np.arange(len(hits)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    kept = ranks < num_results
    return Hits(queries[kept], documents[kept], scores[kept], ranks[kept])


def _rescore_chunk(
    reader: Reader,
    builder: QueryBuilder,
    similarity: Similarity,
    queries: Sequence[Any],
    wanted: Sequence[np.ndarray],
) -> list[np.ndarray]:
    """Hits of each query among its wanted documents, which are in ascending order."""
    score_all, positions = _prepare_rescoring(reader, similarity, builder.build(queries), wanted)
    call = functools.partial(apart, kept=reader) if builder.slow else _call
    return read_all_hits(call(score_all, positions))


@in_java
def _prepare_rescoring(
    reader: Reader, similarity: Similarity, built: Any, wanted: Sequence[np.ndarray]
) -> tuple[Any, Any]:
    """Java function from a stream of the queries' positions to a list of packed hits, and this stream."""
    buffer = java_class(_BYTES)
    targets = java_list(buffer.wrap(numbers.astype(">i4").tobytes()) for numbers in wanted)
    score = int_function(bind(_rescore_handle(reader, similarity), 0, built, targets))
    score_each = bind(method(_INT_STREAM, "mapToObj", _STREAM, "java.util.function.IntFunction"), 1, score)
    positions = java_class(_INT_STREAM).range(0, len(wanted)).parallel()
    return function(chain(score_each, method(_STREAM, "toList", "java.util.List"))), positions


@remembered(maxsize=64)
def _rescore_handle(reader: Reader, similarity: Similarity) -> Any:
    """Handle ``(queries, targets, i) -> packed hits`` of query i among target i."""
    rescorer = "org.apache.lucene.search.QueryRescorer"
    run = static(rescorer, "rescore", _TOP_DOCS, SEARCHER, _TOP_DOCS, QUERY, "double", "int")
    all_hits = bind(bind(run, 0, searcher(reader, similarity)), 2, number("double", 1.0), number("int", 2**31 - 1))
    score = chain(feed(feed(all_hits, 1, _element(QUERY)), 0, chain(_element(_BYTES), _top_docs())), _pack_hits())
    lists = "java.util.List"
    return reorder(score, signature("byte[]", lists, lists, "int"), 1, 2, 0, 2)


def _element(kind: str) -> Any:
    """Handle ``(list, i) -> list.get(i)``."""
    get = method("java.util.List", "get", "java.lang.Object", "int")
    return get.asType(signature(kind, "java.util.List", "int"))


def _top_docs() -> Any:
    """Handle from a ``ByteBuffer`` of document numbers to ``TopDocs`` with scores of zero."""
    as_ints = method(_BYTES, "asIntBuffer", _INTS)
    wrap = constructor(_TOP_DOCS, "org.apache.lucene.search.TotalHits", _SCORE_DOCS)
    total = java_class("org.apache.lucene.search.TotalHits")
    relation = java_class("org.apache.lucene.search.TotalHits$Relation")
    return chain(as_ints, _score_docs(), bind(wrap, 0, total(0, relation.EQUAL_TO)))


def _score_docs() -> Any:
    """Handle from an ``IntBuffer`` to ``ScoreDoc[]``."""
    length = method(_INTS, "remaining", "int")
    new_hit = bind(constructor(_SCORE_DOC, "int", "float"), 1, number("float", 0.0))
    hit_at = chain(method(_INTS, "get", "int", "int"), new_hit)
    state = ("int", _INTS)
    store = reorder(feed(array_setter(_SCORE_DOCS), 2, hit_at), signature("void", _SCORE_DOCS, *state), 0, 1, 2, 1)
    same_array = reorder(identity(_SCORE_DOCS), signature(_SCORE_DOCS, _SCORE_DOCS, *state), 0)
    return loop(length, chain(length, new_array(_SCORE_DOCS)), then(store, same_array))


@in_java
def read_all_hits(packed: Any) -> list[np.ndarray]:
    """What :func:`read_hits` reads, of a Java list."""
    return [read_hits(found) for found in packed.toArray()]


def read_hits(packed: Any) -> np.ndarray:
    """The document numbers and scores that a function of this module has packed, dtype HIT."""
    return np.frombuffer(packed.tostring(), dtype=HIT)


def _pack_hits() -> Any:
    """Handle from ``TopDocs`` to ``byte[]``: document number (int) and score (float) of each hit, in order."""
    length = array_length(_SCORE_DOCS)
    num_bytes = bind(static("java.lang.Math", "multiplyExact", "int", "int", "int"), 1, number("int", HIT.itemsize))
    allocate = chain(length, num_bytes, static(_BYTES, "allocate", _BYTES, "int"))
    write_next = feed(_write_hit(), 1, array_getter(_SCORE_DOCS))
    body = reorder(write_next, signature(_BYTES, _BYTES, "int", _SCORE_DOCS), 0, 2, 1)
    return chain(
        getter(_TOP_DOCS, "scoreDocs", _SCORE_DOCS),
        loop(length, allocate, body),
        method(_BYTES, "array", "byte[]"),
    )


def _write_hit() -> Any:
    """Handle ``(buffer, hit) -> buffer.putInt(hit.doc).putFloat(hit.score)``."""
    document = feed(method(_BYTES, "putInt", _BYTES, "int"), 1, getter(_SCORE_DOC, "doc", "int"))
    score = feed(method(_BYTES, "putFloat", _BYTES, "float"), 1, getter(_SCORE_DOC, "score", "float"))
    both = feed(score, 0, document)
    return reorder(both, signature(_BYTES, _BYTES, _SCORE_DOC), 0, 1, 1)
