"""Scores of given documents, by Lucene's own rescorer: no search, and the very scores of retrieval."""

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from pt_neural.lucene.batch import pack_hits, read_hits
from pt_neural.lucene.handles import (
    array_setter,
    bind,
    chain,
    constructor,
    feed,
    identity,
    int_function,
    loop,
    method,
    new_array,
    number,
    reorder,
    signature,
    static,
    then,
)
from pt_neural.lucene.jvm import in_java, java_class
from pt_neural.lucene.progress import in_chunks
from pt_neural.lucene.queries import QueryBuilder
from pt_neural.lucene.reader import Reader
from pt_neural.lucene.search import CHUNK
from pt_neural.lucene.similarities import Similarity

_BUFFER = "java.nio.IntBuffer"
_BYTES = "java.nio.ByteBuffer"
_SCORE_DOC = "org.apache.lucene.search.ScoreDoc"
_SCORE_DOCS = f"{_SCORE_DOC}[]"
_TOP_DOCS = "org.apache.lucene.search.TopDocs"
_SEARCHER = "org.apache.lucene.search.IndexSearcher"
_QUERY = "org.apache.lucene.search.Query"


def rescore(
    reader: Reader,
    builder: QueryBuilder,
    similarity: Similarity,
    queries: Sequence[Any],
    groups: np.ndarray,
    documents: np.ndarray,
    *,
    progress: str | None = None,
) -> np.ndarray:
    """Score documents for queries.

    Args:
        reader: The opened index.
        builder: How an element of ``queries`` becomes a Lucene query.
        similarity: The scoring function.
        queries: What the builder takes.
        groups: For each document, the place in ``queries`` of the query that it is scored for; int64.
        documents: Lucene's document numbers, int64.
        progress: Label of a progress bar; none by default.

    Returns:
        float64 scores of the shape of ``documents``: 0.0 where no term of the query matches.
    """
    total = len(reader.docnos)
    pairs, pair_of_row = np.unique(groups * total + documents, return_inverse=True)
    ends = np.searchsorted(pairs, np.arange(len(queries) + 1) * total)
    scores = np.zeros(len(pairs))
    for chunk in in_chunks(len(queries), CHUNK, label=progress, unit="queries"):
        firsts = ends[chunk.start : chunk.stop + 1]
        wanted = [pairs[first:end] % total for first, end in itertools.pairwise(firsts)]
        found = _score_chunk(reader, builder, similarity, queries[chunk], wanted)
        for first, numbers, hits in zip(firsts, wanted, found, strict=False):
            scores[first + np.searchsorted(numbers, hits["document"])] = hits["score"]
    return scores[pair_of_row]


@in_java
def _score_chunk(
    reader: Reader,
    builder: QueryBuilder,
    similarity: Similarity,
    queries: Sequence[Any],
    wanted: Sequence[np.ndarray],
) -> list[np.ndarray]:
    """Hits of each query among the documents wanted for it, given in ascending order."""
    built = builder.build(queries)
    targets = java_class("java.util.ArrayList")()
    buffer = java_class("java.nio.ByteBuffer")
    for numbers in wanted:
        targets.add(buffer.wrap(numbers.astype(">i4").tobytes()))
    score = int_function(bind(_score_handle(reader, similarity), 0, built, targets))
    stream = java_class("java.util.stream.IntStream").range(0, len(queries)).parallel()
    return [read_hits(packed) for packed in stream.mapToObj(score).toArray()]


@functools.lru_cache(maxsize=256)
def _score_handle(reader: Reader, similarity: Similarity) -> Any:
    """Handle ``(queries, targets, i) -> packed hits`` of query i among target i."""
    rescorer = "org.apache.lucene.search.QueryRescorer"
    run = static(rescorer, "rescore", _TOP_DOCS, _SEARCHER, _TOP_DOCS, _QUERY, "double", "int")
    all_hits = bind(bind(run, 0, reader.searcher(similarity)), 2, number("double", 1.0), number("int", 2**31 - 1))
    score = chain(feed(feed(all_hits, 1, _element(_QUERY)), 0, chain(_element(_BYTES), _top_docs())), pack_hits())
    lists = "java.util.List"
    return reorder(score, signature("byte[]", lists, lists, "int"), 1, 2, 0, 2)


def _element(kind: str) -> Any:
    """Handle ``(list, i) -> list.get(i)``."""
    get = method("java.util.List", "get", "java.lang.Object", "int")
    return get.asType(signature(kind, "java.util.List", "int"))


def _top_docs() -> Any:
    """Handle from a ``ByteBuffer`` of document numbers to ``TopDocs`` with scores of zero."""
    as_ints = method(_BYTES, "asIntBuffer", _BUFFER)
    wrap = constructor(_TOP_DOCS, "org.apache.lucene.search.TotalHits", _SCORE_DOCS)
    total = java_class("org.apache.lucene.search.TotalHits")
    relation = java_class("org.apache.lucene.search.TotalHits$Relation")
    return chain(as_ints, _score_docs(), bind(wrap, 0, total(0, relation.EQUAL_TO)))


def _score_docs() -> Any:
    """Handle from an ``IntBuffer`` to ``ScoreDoc[]``."""
    length = method(_BUFFER, "remaining", "int")
    new_hit = bind(constructor(_SCORE_DOC, "int", "float"), 1, number("float", 0.0))
    hit_at = chain(method(_BUFFER, "get", "int", "int"), new_hit)
    state = ("int", _BUFFER)
    store = reorder(feed(array_setter(_SCORE_DOCS), 2, hit_at), signature("void", _SCORE_DOCS, *state), 0, 1, 2, 1)
    same_array = reorder(identity(_SCORE_DOCS), signature(_SCORE_DOCS, _SCORE_DOCS, *state), 0)
    return loop(length, chain(length, new_array(_SCORE_DOCS)), then(store, same_array))
