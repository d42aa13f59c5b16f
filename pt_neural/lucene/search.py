"""A batch of Lucene queries to arrays of documents and scores, ties settled by docno."""

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pt_neural._frames import Hits
from pt_neural.lucene.batch import pack_hits, read_hits
from pt_neural.lucene.handles import bind, chain, function, method, number
from pt_neural.lucene.jvm import in_java
from pt_neural.lucene.progress import in_chunks
from pt_neural.lucene.queries import QueryBuilder
from pt_neural.lucene.reader import Reader
from pt_neural.lucene.similarities import Similarity

CHUNK = 200  # queries a Java call: Ctrl-C waits for one chunk at most

_SEARCHER = "org.apache.lucene.search.IndexSearcher"


def search(
    reader: Reader,
    builder: QueryBuilder,
    similarity: Similarity,
    queries: Sequence[Any],
    num_results: int,
    *,
    progress: str | None = None,
) -> Iterator[Hits]:
    """Search chunk by chunk.

    Equal scores are in ascending order of docno, also where ``num_results`` cuts through them: of the
    documents that tie for the last places, those with the smallest docnos are returned.

    Args:
        reader: The opened index.
        builder: How an element of ``queries`` becomes a Lucene query.
        similarity: The scoring function.
        queries: What the builder takes.
        num_results: Greatest number of hits a query.
        progress: Label of a progress bar; none by default.

    Yields:
        The hits of each chunk of up to 200 queries.
    """
    for chunk in in_chunks(len(queries), CHUNK, label=progress, unit="queries"):
        hits = _search_chunk(reader, builder, similarity, queries[chunk], num_results)
        yield hits._replace(queries=hits.queries + chunk.start)


@in_java
def _search_chunk(
    reader: Reader, builder: QueryBuilder, similarity: Similarity, queries: Sequence[Any], num_results: int
) -> Hits:
    built = builder.build(queries)
    wanted = num_results + num_results // 20 + 10  # enough to see the end of nearly every tie at the cut
    found = _run(reader, similarity, built.parallelStream(), wanted)
    for i, hits in enumerate(found):
        if _cut_in_tie(hits, num_results, wanted):
            found[i] = _whole_tie(reader, similarity, built.subList(i, i + 1), num_results, wanted)
    return settle(found, reader.order, num_results)


def _run(reader: Reader, similarity: Similarity, stream: Any, wanted: int) -> list[np.ndarray]:
    find = search_function(reader, similarity, wanted)
    return [read_hits(packed) for packed in stream.map(find).toArray()]


@functools.lru_cache(maxsize=256)
def search_function(reader: Reader, similarity: Similarity, wanted: int) -> Any:
    """Java function from a query to its packed hits, at most ``wanted``."""
    find = method(_SEARCHER, "search", "org.apache.lucene.search.TopDocs", "org.apache.lucene.search.Query", "int")
    bound = bind(find.bindTo(reader.searcher(similarity)), 1, number("int", wanted))
    return function(chain(bound, pack_hits()))


def _cut_in_tie(hits: np.ndarray, num_results: int, wanted: int) -> bool:
    """Whether the documents that tie at the cut may go on beyond those that were found."""
    return len(hits) == wanted and hits["score"][-1] == hits["score"][num_results - 1]


def _whole_tie(reader: Reader, similarity: Similarity, query: Any, num_results: int, wanted: int) -> np.ndarray:
    """Search for more and more, until the tie at the cut is whole."""
    while True:
        wanted *= 4
        hits = _run(reader, similarity, query.stream(), min(wanted, len(reader.docnos)))[0]
        if not _cut_in_tie(hits, num_results, wanted):
            return hits


def settle(found: Sequence[np.ndarray], order: np.ndarray, num_results: int) -> Hits:
    """Sort equal scores by docno, and cut.

    Args:
        found: Hits of each query by falling score, dtype HIT.
        order: The place of each document when sorted by docno.
        num_results: Greatest number of hits a query.
    """
    lengths = np.array([len(hits) for hits in found], dtype=np.int64)
    hits = np.concatenate(found)
    queries = np.repeat(np.arange(len(found)), lengths)
    documents, scores = hits["document"].astype(np.int64), hits["score"].astype(np.float64)
    new_tie = np.r_[True, (np.diff(scores) != 0) | (np.diff(queries) != 0)][: len(hits)]
    sorting = np.argsort(np.cumsum(new_tie) * len(order) + order[documents])
    ranks = np.arange(len(hits)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    kept = ranks < num_results
    return Hits(queries[kept], documents[sorting][kept], scores[kept], ranks[kept])
