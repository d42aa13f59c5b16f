"""Scores of given documents, by Lucene's own rescorer: no search, and the very scores of retrieval."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyterrier as pt

from pt_neural.lucene.batch import pack_hits, read_hits
from pt_neural.lucene.handles import (
    array_setter,
    bifunction,
    bind,
    chain,
    constructor,
    feed,
    identity,
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
from pt_neural.lucene.queries import QueryBuilder
from pt_neural.lucene.reader import Reader
from pt_neural.lucene.search import CHUNK
from pt_neural.lucene.similarities import Similarity

_BUFFER = "java.nio.IntBuffer"
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
    rows: Sequence[np.ndarray],
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
        rows: For each query, the places in ``documents`` that it is to score.
        documents: Lucene's document numbers, int64.
        progress: Label of a progress bar; none by default.

    Returns:
        float64 scores of the shape of ``documents``: 0.0 where no term of the query matches.
    """
    scores = np.zeros(len(documents))
    starts = range(0, len(queries), CHUNK)
    for start in pt.tqdm(starts, desc=progress, unit=f"x{CHUNK} queries") if progress else starts:
        chunk = slice(start, start + CHUNK)
        _rescore_chunk(reader, builder, similarity, queries[chunk], rows[chunk], documents, scores)
    return scores


@in_java
def _rescore_chunk(
    reader: Reader,
    builder: QueryBuilder,
    similarity: Similarity,
    queries: Sequence[Any],
    rows: Sequence[np.ndarray],
    documents: np.ndarray,
    scores: np.ndarray,
) -> None:
    built = builder.build(queries)
    score = _score_function(reader, similarity)
    for i, places in enumerate(rows):
        wanted, inverse = np.unique(documents[places], return_inverse=True)
        query, numbers = built.get(i), _java_bytes(wanted.astype(">i4").tobytes())
        hits = read_hits(score.apply(query, numbers))
        found = np.zeros(len(wanted))
        found[np.searchsorted(wanted, hits["document"])] = hits["score"]
        scores[places] = found[inverse]


def _java_bytes(data: bytes) -> Any:
    """A Java object that holds bytes; jnius passes plain bytes only where a method asks for ``byte[]``."""
    return java_class("java.nio.ByteBuffer").wrap(data)


@functools.lru_cache(maxsize=256)
def _score_function(reader: Reader, similarity: Similarity) -> Any:
    """``(query, documents) -> packed hits``, for documents in ascending order."""
    rescorer = "org.apache.lucene.search.QueryRescorer"
    run = static(rescorer, "rescore", _TOP_DOCS, _SEARCHER, _TOP_DOCS, _QUERY, "double", "int")
    all_hits = bind(
        bind(run, 0, reader.searcher(similarity)), 2, number("double", 1.0), number("int", len(reader.docnos))
    )
    swapped = reorder(all_hits, signature(_TOP_DOCS, _QUERY, _TOP_DOCS), 1, 0)
    return bifunction(chain(feed(swapped, 1, _top_docs()), pack_hits()))


def _top_docs() -> Any:
    """Handle from a ``ByteBuffer`` of document numbers to ``TopDocs`` with scores of zero."""
    as_ints = method("java.nio.ByteBuffer", "asIntBuffer", _BUFFER)
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
