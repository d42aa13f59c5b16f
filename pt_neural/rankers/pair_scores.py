"""Scores of many pairs: each document is read once for many queries, and each query is matched with all of its own."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from pt_neural.rankers.embedded import EmbeddedPairs
from pt_neural.rankers.pairs import Matches, moved

DOCUMENTS_AT_ONCE = 8192  # whose rows are in memory, some 250 MB for 200 rows of 40 numbers
PAIRS_PER_STEP = 32  # what they take then stays in the processor's cache

Documents = Callable[[np.ndarray], tuple[Tensor, Tensor]]


class Queries(NamedTuple):
    """Queries as networks match them with documents.

    Attributes:
        words: What each word has become, float32 of shape (queries, most words, channels), zero beyond the last.
        lengths: Words of each query, int64.
        whole: What each query has become, float32 of shape (queries, units); None if the network does without.
    """

    words: Tensor
    lengths: Tensor
    whole: Tensor | None

    def take(self, numbers: Tensor) -> "Queries":
        """Some of the queries, or one of them several times."""
        return Queries(*(part if part is None else part[numbers] for part in self))

    def one(self, number: int) -> "Queries":
        """One of the queries, without what lies beyond its end."""
        query = Queries(*(part if part is None else part[number : number + 1] for part in self))
        return query._replace(words=query.words[:, : max(1, int(query.lengths))])


def pair_scores(
    network: nn.Module, texts: EmbeddedPairs, queries: np.ndarray, documents: np.ndarray, read: Documents
) -> Tensor:
    """Scores of pairs.

    Args:
        network: Has ``read_queries`` and ``match``.
        texts: Queries and documents.
        queries: The query of each pair, int64 of shape (pairs,).
        documents: The document of each pair.
        read: Gives the rows of documents, one document after the other, and where each starts.

    Returns:
        float32 tensor of shape (pairs,).
    """
    device = next(network.parameters()).device
    scores = torch.empty(len(queries))
    lengths = texts.documents.sequences.lengths
    for some in _slices(queries, documents):
        distinct, places = np.unique(documents[some], return_inverse=True)
        with torch.inference_mode():
            rows, offsets = (part.to(device) for part in read(distinct))
            of_queries = np.flatnonzero(np.diff(queries[some], prepend=-1))
            wanted = queries[some[of_queries]]
            read_queries = network.read_queries(moved(texts.queries.take(wanted), device))
            for number, part in enumerate(np.split(np.arange(len(some)), of_queries[1:])):
                part = part[np.argsort(-lengths[documents[some[part]]], kind="stable")]
                pairs = some[part]
                matches = texts.find_matches(queries[pairs], documents[pairs]) if texts.matches else None
                query = read_queries.one(number)
                for start in range(0, len(pairs), PAIRS_PER_STEP):
                    step = slice(start, start + PAIRS_PER_STEP)
                    here = torch.from_numpy(places[part[step]])[None].to(device)
                    found = matches and moved(_of_pairs(matches, len(pairs), step), device)
                    scores[pairs[step]] = network.match(query, rows, offsets, here, found)[0].cpu()
    return scores


def _of_pairs(matches: Matches, pairs: int, some: slice) -> Matches:
    """The exact matches of a slice of the pairs."""
    width = (len(matches.offsets) - 1) // pairs
    first, last, _ = some.indices(pairs)
    offsets = matches.offsets[first * width : last * width + 1]
    return Matches(matches.positions[offsets[0] : offsets[-1]], offsets - offsets[0])


def _slices(queries: np.ndarray, documents: np.ndarray) -> Iterator[np.ndarray]:
    """Numbers of pairs by query, cut where there would be too many distinct documents in a slice."""
    order = np.argsort(queries, kind="stable")
    by_query = np.split(order, np.flatnonzero(np.diff(queries[order], prepend=-1)))[1:]
    seen = np.full(int(documents.max(initial=0)) + 1, -1)
    slice_number, count, parts = 0, 0, []
    for pairs in by_query:
        own = np.unique(documents[pairs])
        new = int((seen[own] != slice_number).sum())
        if parts and count + new > DOCUMENTS_AT_ONCE:
            yield np.concatenate(parts)
            slice_number, count, parts, new = slice_number + 1, 0, [], len(own)
        seen[own] = slice_number
        count += new
        parts.append(pairs)
    if parts:
        yield np.concatenate(parts)
