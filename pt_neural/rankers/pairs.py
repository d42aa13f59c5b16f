"""Pairs of queries and documents as the networks of interaction rankers take them."""

from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from pt_neural.rankers.hashed import HashedCorpus, HashedTexts
from pt_neural.text import PackedSequences
from pt_neural.text.packed import offsets_of


class Matches(NamedTuple):
    """Where the terms of queries stand in documents: the interaction matrices of pairs, without their zeros.

    Attributes:
        positions: Positions in the document, from 0, of the matches of each query term of each pair, int64.
        offsets: Where the matches of each query term start, int64 of shape (pairs * query terms + 1,).
    """

    positions: Tensor
    offsets: Tensor


class Pairing(NamedTuple):
    """Which queries of a batch its documents are matched with.

    Attributes:
        queries: Queries of each document, int64 of shape (documents, most queries of one document); 0 where it has
            fewer.
        places: Where each pair stands in ``queries``, read as one row, int64 of the shape of the pairs.
    """

    queries: Tensor
    places: Tensor


class PairInputs(NamedTuple):
    """A batch of pairs of a query and a document; each query and each document stands in it once.

    Attributes:
        matches: Exact matches of each pair; None if the network does not look at them.
        queries: The queries as sequences of words; None if the network looks at exact matches only.
        documents: The documents, the longest first; None likewise.
        pairing: Which queries the documents are matched with.
    """

    matches: Matches | None
    queries: HashedTexts | None
    documents: HashedTexts | None
    pairing: Pairing


def pair_up(queries: np.ndarray, documents: np.ndarray) -> Pairing:
    """Group pairs by document.

    Args:
        queries: The query of each pair, int64 of any shape.
        documents: The document of each pair, from 0 without gaps, of the same shape.
    """
    of_pairs, of_documents = queries.ravel(), documents.ravel()
    order = np.argsort(of_documents, kind="stable")
    counts = np.bincount(of_documents)
    grid = np.zeros((len(counts), int(counts.max(initial=1))), dtype=np.int64)
    columns = np.arange(len(order)) - np.repeat(offsets_of(counts)[:-1], counts)
    grid[of_documents[order], columns] = of_pairs[order]
    places = np.empty(len(order), dtype=np.int64)
    places[order] = of_documents[order] * grid.shape[1] + columns
    return Pairing(torch.from_numpy(grid), torch.from_numpy(places.reshape(queries.shape)))


def rounds(documents: np.ndarray, most: int) -> list[np.ndarray]:
    """Share out pairs so that each round has at most ``most`` pairs of any document.

    Args:
        documents: The document of each pair, from 0, int64 of shape (pairs,).
        most: Pairs of a document in a round.

    Returns:
        Numbers of the pairs of each round.
    """
    order = np.argsort(documents, kind="stable")
    counts = np.bincount(documents)
    columns = np.arange(len(order)) - np.repeat(offsets_of(counts)[:-1], counts)
    sequence = np.argsort(columns // most, kind="stable")
    sizes = np.bincount(columns // most)
    return np.split(order[sequence], np.cumsum(sizes)[:-1])


def moved(batch: Any, device: torch.device) -> Any:
    """A named tuple of tensors, or of such tuples, on a device."""
    if batch is None or isinstance(batch, Tensor):
        return batch if batch is None else batch.to(device)
    return type(batch)(*(moved(part, device) for part in batch))


def exact_matches(
    queries: PackedSequences,
    query_rows: np.ndarray,
    documents: PackedSequences,
    document_rows: np.ndarray,
    table: np.ndarray,
    *,
    max_terms: int | None = None,
) -> Matches:
    """Find the terms of queries in documents.

    Each term of a document is looked up once in a table of the query's terms, however many those are.

    Args:
        queries: Queries as term ids of the documents, -1 for terms that no document has.
        query_rows: The query of each pair, int64 of shape (pairs,).
        documents: Documents as term ids.
        document_rows: The document of each pair, int64 of shape (pairs,).
        table: Zeros, int32, one for each term id and one more; zeros again in the end.
        max_terms: Terms of a document that are looked at; None for all.

    Returns:
        Matches of as many query terms a pair as the longest of all queries has.
    """
    width = int(queries.lengths.max(initial=0))
    order = np.argsort(query_rows, kind="stable")
    starts = np.flatnonzero(np.diff(query_rows[order], prepend=-1))
    bags, positions = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for pairs in np.split(order, starts)[1:]:
        terms = queries[query_rows[pairs[0]]]
        by_occurrence = _occurrences(terms)
        texts = documents.take(document_rows[pairs] if by_occurrence else [], max_terms=max_terms)
        for places in by_occurrence:
            table[terms[places]] = places + 1
            found = table[texts.terms]
            table[terms[places]] = 0
            hits = np.flatnonzero(found)
            owners = np.searchsorted(texts.offsets, hits, side="right") - 1
            bags.append(pairs[owners] * width + found[hits] - 1)
            positions.append(hits - texts.offsets[owners])
    bag = np.concatenate(bags)
    sequence = np.argsort(bag, kind="stable")
    offsets = offsets_of(np.bincount(bag, minlength=len(query_rows) * width))
    return Matches(torch.from_numpy(np.concatenate(positions)[sequence]), torch.from_numpy(offsets))


def _occurrences(terms: np.ndarray) -> list[np.ndarray]:
    """Places of known terms: first those where a term stands for the first time, then the second, and so on."""
    places = np.flatnonzero(terms >= 0)
    found = []
    while len(places):
        _, first = np.unique(terms[places], return_index=True)
        found.append(places[first])
        places = np.delete(places, first)
    return found


class PairTexts:
    """Queries and documents of which any pairs can be taken.

    Args:
        queries: Queries as ids over their own terms.
        query_ids: The id of each of these among the documents' terms, -1 for those that no document has.
        documents: Documents as ids over their own terms; may be memory-mapped.
        num_terms: Number of the documents' terms.
        query_terms: Terms of a query that count.
        document_terms: Terms of a document that count.
        matches: Whether exact matches are wanted.
        query_bags: Letter n-grams of the queries' terms, see :func:`~pt_neural.rankers.hashed.word_bags`; None where
            the network does not read words.
        document_bags: Those of the documents' terms.
    """

    def __init__(
        self,
        queries: PackedSequences,
        query_ids: np.ndarray,
        documents: PackedSequences,
        num_terms: int,
        *,
        query_terms: int,
        document_terms: int,
        matches: bool,
        query_bags: csr_array | None = None,
        document_bags: csr_array | None = None,
    ):
        queries = queries.take(np.arange(len(queries)), max_terms=query_terms)
        self.queries = PackedSequences(query_ids[queries.terms], queries.offsets)
        self.documents = documents
        self.document_terms = document_terms
        self.matches = matches
        self.hashed_queries = self.hashed_documents = None
        if query_bags is not None:
            self.hashed_queries = HashedCorpus(queries, query_bags)
            self.hashed_documents = HashedCorpus(documents, document_bags, max_terms=document_terms, keep_rest=False)
        self._table = np.zeros(num_terms + 1, dtype=np.int32)

    def lengths(self, documents: np.ndarray) -> np.ndarray:
        """Number of terms of some documents that count, int64."""
        lengths = self.documents.offsets[documents + 1] - self.documents.offsets[documents]
        return np.minimum(lengths, self.document_terms)

    def take(self, queries: np.ndarray, documents: np.ndarray) -> PairInputs:
        """Some pairs.

        Args:
            queries: Numbers of queries, int64 of shape (pairs,) or (groups,).
            documents: Numbers of documents, int64 of shape (pairs,) or (groups, documents a group).
        """
        if documents.ndim == 2:
            queries = np.repeat(queries[:, None], documents.shape[1], axis=1)
        distinct_queries, query_rows = _distinct(queries)
        distinct_documents, document_rows = _distinct(documents)
        order = np.argsort(-self.lengths(distinct_documents), kind="stable")
        pairing = pair_up(query_rows, np.argsort(order)[document_rows])
        matches = hashed_queries = hashed_documents = None
        if self.matches:
            matches = self.find_matches(queries.ravel(), documents.ravel())
        if self.hashed_queries is not None:
            hashed_queries = self.hashed_queries.take(distinct_queries)
            hashed_documents = self.hashed_documents.take(distinct_documents[order])
        return PairInputs(matches, hashed_queries, hashed_documents, pairing)

    def find_matches(self, queries: np.ndarray, documents: np.ndarray) -> Matches:
        """Exact matches of pairs, given by numbers of queries and documents, int64 of shape (pairs,)."""
        return exact_matches(
            self.queries, queries, self.documents, documents, self._table, max_terms=self.document_terms
        )


def _distinct(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct ones, and the place of each among them in the shape given, which NumPy 2.0 forgot."""
    distinct, places = np.unique(numbers, return_inverse=True)
    return distinct, places.reshape(numbers.shape)
