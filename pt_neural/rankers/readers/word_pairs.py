"""Reader of pairs of texts: exact matches of the query's terms in the document, and words as letter n-grams."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pt_neural._arguments import checked_integers, checked_number
from pt_neural.rankers.readers.hashed_ngrams import HashedCorpus, HashedTexts, HashedWords
from pt_neural.rankers.readers.reader import Reader
from pt_neural.text import PackedSequences, Vocabulary, WordHashing, pack_texts
from pt_neural.text.vocabulary import LastVocabulary


class Matches(NamedTuple):
    """Where the terms of queries occur in documents: the interaction matrices of pairs, without their zeros.

    Attributes:
        positions: Positions in the document, from 0, of the matches of each query term of each pair, int64.
        offsets: Where the matches of each query term start, int64 of shape (pairs * query terms + 1,).
    """

    positions: Tensor
    offsets: Tensor


class Pairing(NamedTuple):
    """Which queries of a batch its documents are matched with.

    Attributes:
        queries: Queries of each document, int64 of shape (documents, most queries of one document), padded with 0.
        places: The place of each pair in ``queries``, read as one row; int64, of the shape of the pairs.
    """

    queries: Tensor
    places: Tensor


class PairInputs(NamedTuple):
    """A batch of pairs of a query and a document; each text is in the batch once.

    Attributes:
        matches: Exact matches of each pair; None if the network does not use them.
        pairing: Which queries the documents are matched with.
        queries: The queries as sequences of words; None if the network uses exact matches only, or has read them.
        documents: The documents, the longest first; None in the same cases.
    """

    matches: Matches | None
    pairing: Pairing
    queries: HashedTexts | None = None
    documents: HashedTexts | None = None


class WordPairs(Reader):
    """Reads a pair as exact matches of its terms, as words made of letter n-grams, or both (Duet paper, section 3).

    Args:
        query_terms: Terms of a query that count.
        document_terms: Terms of a document that count.
        matches: Whether to look for exact matches.
        ngram_sizes: Lengths of the letter n-grams of ``#term#``; None if the network does not read words.
        num_ngrams: Number of n-grams to keep, the most frequent ones of the training documents; those of a ranker to
            start from are kept besides.

    Attributes:
        hashing: The n-grams of the training documents; None before :meth:`build`, or if words are not read.
    """

    def __init__(
        self,
        query_terms: int,
        document_terms: int,
        *,
        matches: bool = True,
        ngram_sizes: Sequence[int] | None = None,
        num_ngrams: int = 2000,
    ):
        self.query_terms = query_terms
        self.document_terms = document_terms
        self.matches = matches
        self.ngram_sizes = None if ngram_sizes is None else checked_integers("ngram_sizes", ngram_sizes, least=1)
        self.num_ngrams = checked_number("num_ngrams", num_ngrams, int, least=1)
        self.hashing: WordHashing | None = None
        self._words = LastVocabulary()

    def build(self, query_texts: Sequence[str], documents: PackedSequences, vocabulary: Vocabulary) -> None:
        """Collect the letter n-grams of the documents."""
        if self.ngram_sizes is not None:
            self.hashing = WordHashing.build(vocabulary, sizes=self.ngram_sizes, max_ngrams=self.num_ngrams)

    def grow(self, start: "WordPairs") -> None:
        """The n-grams of another reader, then those that only these documents have."""
        if self.hashing is not None:
            self.hashing = start.hashing.extended(self.hashing.ngrams)

    def read_queries(self, texts: Sequence[str]) -> HashedCorpus:
        """Queries as sequences of hashed words."""
        sequences, terms = pack_texts(texts)
        return HashedCorpus(sequences, HashedWords(terms, self.hashing), max_terms=self.query_terms, keep_rest=False)

    def read_documents(self, sequences: PackedSequences, vocabulary: Vocabulary) -> HashedCorpus:
        """Documents as sequences of hashed words; the words of the last vocabulary stay hashed."""
        words = self._words(partial(HashedWords, vocabulary.terms, self.hashing), vocabulary)
        return HashedCorpus(sequences, words, max_terms=self.document_terms, keep_rest=False)

    def pair(self, query_texts: Sequence[str], documents: PackedSequences, vocabulary: Vocabulary) -> "PairTexts":
        """Queries and documents to take batches of pairs from."""
        return PairTexts(self, query_texts, documents, vocabulary)

    def save(self, directory: Path) -> None:
        """Write the n-grams, if there are any."""
        if self.hashing is not None:
            self.hashing.save(directory)

    def load(self, directory: Path) -> None:
        """Read the n-grams, if there are any."""
        if self.ngram_sizes is not None:
            self.hashing = WordHashing.load(directory, self.ngram_sizes)

    def identity_parts(self) -> tuple[dict[str, np.ndarray], list[bytes]]:
        """The n-grams."""
        return {}, [] if self.hashing is None else ["\n".join(self.hashing.ngrams).encode(errors="surrogatepass")]


class PairTexts:
    """Queries and documents, as ids of the documents' terms, to take batches of pairs from.

    Args:
        reader: What to read of them.
        query_texts: The queries.
        documents: The documents as term ids; may be memory-mapped.
        vocabulary: Their terms.

    Attributes:
        lengths: Number of terms of each document that count, int64.
        hashed_queries: The queries as sequences of words; None if words are not read.
        hashed_documents: The documents as sequences of words; None if words are not read.
    """

    def __init__(
        self, reader: WordPairs, query_texts: Sequence[str], documents: PackedSequences, vocabulary: Vocabulary
    ):
        self.matches, self.document_terms = reader.matches, reader.document_terms
        sequences, terms = pack_texts(query_texts)
        queries = sequences.take(np.arange(len(sequences)), max_terms=reader.query_terms)
        ids, num_terms = vocabulary.ids(terms), len(vocabulary)
        self.queries, self.documents = PackedSequences(ids[queries.terms], queries.offsets), documents
        self.lengths = np.minimum(np.diff(documents.offsets), reader.document_terms)
        self.hashed_queries = self.hashed_documents = None
        if reader.hashing is not None:
            self.hashed_queries = HashedCorpus(queries, HashedWords(terms, reader.hashing))
            self.hashed_documents = reader.read_documents(documents, vocabulary)
        self._table = np.zeros(num_terms + 1, dtype=np.int32)

    def batch(self, queries: np.ndarray, documents: np.ndarray) -> PairInputs:
        """Pairs by numbers, of shape (pairs,) each, or (groups,) and (groups, documents per group)."""
        if documents.ndim == 2:
            queries = np.repeat(queries[:, None], documents.shape[1], axis=1)
        distinct_queries, query_rows = np.unique(queries, return_inverse=True)
        distinct_documents, document_rows = np.unique(documents, return_inverse=True)
        order = np.argsort(-self.lengths[distinct_documents], kind="stable")
        document_rows = np.argsort(order)[document_rows.reshape(documents.shape)]
        pairs = PairInputs(
            self.find_matches(queries.ravel(), documents.ravel()) if self.matches else None,
            pair_up(query_rows.reshape(documents.shape), document_rows),
        )
        if self.hashed_queries is None:
            return pairs
        hashed_documents = self.hashed_documents.take(distinct_documents[order])
        return pairs._replace(queries=self.hashed_queries.take(distinct_queries), documents=hashed_documents)

    def match(self, queries: np.ndarray, documents: np.ndarray, document_rows: np.ndarray) -> PairInputs:
        """Pairs of texts that a network has read already; ``document_rows`` are the documents' rows in the result."""
        return PairInputs(
            self.find_matches(queries, documents) if self.matches else None, pair_up(queries, document_rows)
        )

    def find_matches(self, queries: np.ndarray, documents: np.ndarray) -> Matches:
        """Exact matches of pairs, given by numbers of queries and documents, int64 of shape (pairs,)."""
        return exact_matches(
            self.queries, queries, self.documents, documents, self._table, max_terms=self.document_terms
        )


def pair_up(queries: np.ndarray, documents: np.ndarray) -> Pairing:
    """Group pairs by document, which are numbered from 0 without gaps; both arrays are int64 of one shape."""
    query_rows, document_rows = queries.ravel(), documents.ravel()
    order = np.argsort(document_rows, kind="stable")
    counts = np.bincount(document_rows)
    grid = np.zeros((len(counts), int(counts.max(initial=1))), dtype=np.int64)
    columns = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    grid[document_rows[order], columns] = query_rows[order]
    places = np.empty(len(order), dtype=np.int64)
    places[order] = document_rows[order] * grid.shape[1] + columns
    return Pairing(torch.from_numpy(grid), torch.from_numpy(places.reshape(queries.shape)))


def exact_matches(
    queries: PackedSequences,
    query_rows: np.ndarray,
    documents: PackedSequences,
    document_rows: np.ndarray,
    table: np.ndarray,
    *,
    max_terms: int | None = None,
) -> Matches:
    """Find the terms of queries in documents, for pairs of both.

    Each term of a document is looked up once in a table of the query's terms, however many there are. The table is
    int32 zeros, one for each term id and one more, and is zeros again in the end. The result has as many query terms
    for each pair as the longest of all queries.
    """
    width = int(np.diff(queries.offsets).max(initial=0))
    order = np.argsort(query_rows, kind="stable")  # pairs of the same query follow each other
    bounds = np.flatnonzero(np.diff(query_rows[order], prepend=-1, append=-1))
    starts, ends = documents.offsets[document_rows[order]], documents.offsets[document_rows[order] + 1]
    if max_terms is not None:
        ends = np.minimum(ends, starts + max_terms)
    offsets = np.zeros(len(order) + 1, dtype=np.int64)  # of the documents of all pairs, one after the other
    np.cumsum(ends - starts, out=offsets[1:])
    texts = [slice(*span) for span in zip(starts.tolist(), ends.tolist(), strict=True)]
    document_terms = np.asarray(documents.terms)  # still mapped; NumPy slices it faster
    slots, hits = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for first, last in pairwise(bounds.tolist()):
        query = query_rows[order[first]]
        terms = queries.terms[queries.offsets[query] : queries.offsets[query + 1]]
        if not (by_occurrence := _by_occurrence(terms)):
            continue
        block = np.concatenate([document_terms[text] for text in texts[first:last]])
        for places in by_occurrence:
            table[terms[places]] = places + 1
            found = table[block]
            table[terms[places]] = 0
            matched = np.flatnonzero(found)
            slots.append(found[matched] - 1)
            hits.append(matched + offsets[first])
    hit = np.concatenate(hits)
    pair = np.searchsorted(offsets, hit, side="right") - 1
    row = order[pair] * width + np.concatenate(slots)  # a query term of a pair, a row of the interaction matrices
    sequence = np.argsort(row, kind="stable")
    ends = np.cumsum(np.bincount(row, minlength=len(query_rows) * width))
    return Matches(torch.from_numpy((hit - offsets[pair])[sequence]), torch.from_numpy(np.append(0, ends)))


def _by_occurrence(terms: np.ndarray) -> list[np.ndarray]:
    """Places of known terms: of the first occurrence of each term, then of the second, and so on."""
    places = np.flatnonzero(terms >= 0)
    found = []
    while len(places):
        _, first = np.unique(terms[places], return_index=True)
        found.append(places[first])
        places = np.delete(places, first)
    return found
