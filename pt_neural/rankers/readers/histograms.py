"""Reader of histograms of the similarities between each term of a query and the words of a document."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from pt_neural._files import ArtifactError
from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.rankers.readers.embedded_words import require_same_spaces
from pt_neural.rankers.readers.reader import Reader
from pt_neural.text import PackedSequences, Vocabulary, pack_texts
from pt_neural.text.counts import bag_of_words
from pt_neural.text.numbering import Numbering
from pt_neural.text.vocabulary import LastVocabulary, PerTerm

STEP = np.float32(2**-11)  # components of unit vectors are multiples of it
QUERIES_PER_BLOCK = 4  # fewer repeat the work on documents' terms, more multiply terms that never meet
CELLS_PER_BLOCK = 2**20  # similarities at a time, so that their arrays stay in fast memory
TERMS_IN_BAGS = 2**26  # of all documents together; larger collections are read term by term
FREQUENCIES = "frequencies"  # folder of a saved reader


class HistogramInputs(NamedTuple):
    """A batch of pairs of a query and a document as histograms.

    Attributes:
        counts: Histogram of each query term of each pair, uint8 or int32 of shape (*pairs, terms, bins); zeros where a
            query has fewer terms.
        gates: Inputs of the gate for each term of each query, float32 of shape (queries, terms, features).
        lengths: Number of terms of each query, int64 of shape (queries,).
        queries: The query of each pair, int64 of the shape of the pairs.
    """

    counts: Tensor
    gates: Tensor
    lengths: Tensor
    queries: Tensor


class UnitVectors:
    """Unit vectors of words whose products are exact.

    Components are rounded to multiples of 2^-11. Sums of their products are then multiples of 2^-22, which float32
    holds without rounding, so a cosine does not depend on what else is computed with it, and never falls into another
    bin because of other rows of a frame. Cosines change by about 0.0002, where bins are 0.07 wide.
    """

    def __init__(self, spaces: EmbeddingSpaces, space: Space):
        self.spaces = spaces
        self.space = space
        self._rows = LastVocabulary()

    @cached_property
    def matrix(self) -> np.ndarray:
        """float32 of shape (words + 1, dimensions); the last row, of words without a vector, is zero."""
        vectors = self.spaces.vectors(self.space)
        matrix = np.zeros((len(vectors) + 1, vectors.shape[1]), dtype=np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, STEP * lengths, out=matrix[:-1], where=lengths > 0)
        np.rint(matrix, out=matrix)
        matrix *= STEP
        return matrix

    def rows(self, terms: Sequence[str]) -> np.ndarray:
        """The row of each term, then that of an unknown term; -1 if it has no vector; int32."""
        return np.append(self.spaces.ids(terms), np.int32(-1))

    def rows_of(self, vocabulary: Vocabulary) -> PerTerm:
        """The rows of a vocabulary's terms; the rows of the last vocabulary are remembered."""
        unknown = np.array([-1], dtype=np.int32)
        return self._rows(lambda: PerTerm(self.spaces.ids, vocabulary.terms, unknown), vocabulary)

    def __reduce__(self) -> tuple:
        return UnitVectors, (self.spaces, self.space)  # a copy computes its own


class Histograms(Reader):
    """Reads a pair as one histogram per query term, and each query term as the inputs of its gate.

    A histogram counts the terms of a document by their similarity s to one term of the query. The last bin counts
    occurrences of the same term, by its id; the others divide [-1, 1] into equal parts, so that s falls into bin
    ``int((s + 1) / 2 * (bins - 1))``, and s = 1 into the last of these. A word without a vector has s = 0 with all
    words but itself.

    Args:
        spaces: The word embeddings.
        space: Which of a word's two vectors to use.
        bins: Bins of a histogram, at most 256.
        query_terms: Terms of a query that count; None for all.
        document_terms: Terms of a document that count; None for all.
        gates_by_idf: Whether the input of a term's gate is its idf, or else its vector.

    Attributes:
        frequencies: The training terms with their document frequencies; None before :meth:`build`, or if gates do not
            use idf.
    """

    def __init__(
        self,
        spaces: EmbeddingSpaces,
        space: Space = "in",
        *,
        bins: int = 30,
        query_terms: int | None = None,
        document_terms: int | None = None,
        gates_by_idf: bool = True,
    ):
        self.units = UnitVectors(spaces, space)
        self.bins = bins
        self.query_terms = query_terms
        self.document_terms = document_terms
        self.gates_by_idf = gates_by_idf
        self.frequencies: Vocabulary | None = None

    @property
    def features(self) -> int:
        """Inputs of the gate for each term."""
        return 1 if self.gates_by_idf else self.units.spaces.dim

    def build(self, query_texts: Sequence[str], documents: PackedSequences, vocabulary: Vocabulary) -> None:
        """Count in how many documents each term occurs."""
        if self.gates_by_idf:
            self.frequencies = count_documents(documents, vocabulary)

    def grow(self, start: "Histograms") -> None:
        """Check that the embeddings are the same; document frequencies stay those of the training texts."""
        require_same_spaces(self.units.spaces, self.units.space, start.units.spaces, start.units.space)

    def read_queries(self, texts: Sequence[str]) -> PackedSequences:
        """Queries as ids of their own terms; histograms need the documents too, see :meth:`pair`."""
        return pack_texts(texts)[0]

    def read_documents(self, sequences: PackedSequences, vocabulary: Vocabulary) -> PackedSequences:
        """Documents as they are; histograms need the queries too, see :meth:`pair`."""
        return sequences

    def pair(self, query_texts: Sequence[str], documents: PackedSequences, vocabulary: Vocabulary) -> "HistogramPairs":
        """Queries and documents to take batches of histograms from."""
        return HistogramPairs(self, query_texts, documents, vocabulary)

    def gates(self, terms: Sequence[str]) -> np.ndarray:
        """Inputs of the gates of terms, float32 of shape (terms, features): idf, or vectors, zeros without one."""
        if self.frequencies is not None:
            return idf(terms, self.frequencies)[:, None]
        rows = self.units.spaces.ids(terms)
        vectors = np.zeros((len(rows), self.units.spaces.dim), dtype=np.float32)
        vectors[rows >= 0] = self.units.spaces.vectors(self.units.space)[rows[rows >= 0]]
        return vectors

    def save(self, directory: Path) -> None:
        """Write the document frequencies, if there are any."""
        if self.frequencies is not None:
            self.frequencies.save(directory / FREQUENCIES)

    def load(self, directory: Path) -> None:
        """Read the document frequencies, if gates need them."""
        if self.gates_by_idf:
            self.frequencies = Vocabulary.load(directory / FREQUENCIES)
            if self.frequencies.document_frequency is None:
                raise ArtifactError(f"{directory / FREQUENCIES / 'counts.json'} is damaged: no document frequencies")

    def identity_parts(self) -> tuple[dict[str, np.ndarray], list[bytes]]:
        """The embeddings, and the document frequencies."""
        arrays = {"vectors of words": self.units.spaces.vectors(self.units.space)}
        vocabularies = [self.units.spaces.vocabulary]
        if self.frequencies is not None:
            arrays["document frequencies"] = self.frequencies.document_frequency
            vocabularies.append(self.frequencies)
        return arrays, ["\n".join(words.terms).encode(errors="surrogatepass") for words in vocabularies]


class HistogramPairs:
    """Queries and documents to take batches of histograms from, see :class:`Histograms`.

    Similarities are computed once for each distinct term of some queries and each distinct term of their documents.
    Documents are turned into bags, their distinct terms with counts, which are fewer where words repeat.

    Args:
        reader: What to read of them.
        query_texts: The queries.
        documents: The documents as term ids; may be memory-mapped.
        vocabulary: Their terms.
    """

    def __init__(
        self, reader: Histograms, query_texts: Sequence[str], documents: PackedSequences, vocabulary: Vocabulary
    ):
        sequences, terms = pack_texts(query_texts)
        self.bins, self.matrix, self.document_terms = reader.bins, reader.units.matrix, reader.document_terms
        self.queries = sequences.take(np.arange(len(sequences)), max_terms=reader.query_terms)
        self.documents, self._occurrences = documents, None
        if len(documents.terms) <= TERMS_IN_BAGS:
            self.documents, self._occurrences = _bags(documents, reader.document_terms)
        # The row of each term in the matrix, its id among the documents' terms, and the inputs of its gate; each array
        # ends with those of an unknown term, -1.
        self._query_rows, self._document_rows = reader.units.rows(terms), reader.units.rows_of(vocabulary)
        self._query_ids = np.append(vocabulary.ids(terms), np.int32(-1))
        gates = reader.gates(terms)
        self._gates = np.append(gates, np.zeros((1, gates.shape[1]), dtype=np.float32), axis=0)
        self._numbering = Numbering(len(self._document_rows))
        self._remembered: tuple[np.ndarray, np.ndarray, list] | None = None

    def batch(self, queries: np.ndarray, documents: np.ndarray) -> HistogramInputs:
        """Pairs by numbers, of shape (pairs,) each, or (groups,) and (groups, documents per group)."""
        distinct, rows = np.unique(queries, return_inverse=True)
        rows = rows.reshape(queries.shape)
        if documents.ndim == 2:
            rows = np.repeat(rows[:, None], documents.shape[1], axis=1)
        terms = self._query_terms(distinct)  # (queries, terms)
        counts = np.zeros((*documents.shape, terms.shape[1], self.bins), dtype=np.float32)
        pair_counts = counts.reshape(-1, *counts.shape[-2:])  # (pairs, terms, bins)
        pair_queries, pair_documents = distinct[rows.ravel()], documents.ravel()
        for block in self.blocks(pair_queries, pair_documents):
            found = self._count(pair_queries[block], pair_documents[block])
            pair_counts[block, : found.shape[1]] = found
        arrays = _compact(counts), self._gates[terms], np.diff(self.queries.offsets)[distinct], rows
        return HistogramInputs(*map(torch.from_numpy, arrays))

    def batches(
        self, queries: np.ndarray, documents: np.ndarray, most: int, *, remember: bool
    ) -> Iterable[tuple[np.ndarray, HistogramInputs]]:
        """Numbers of pairs with their batch, for all of the given pairs and ``most`` pairs at a time.

        With ``remember``, the batches stay in memory for the next call with the very same arrays.
        """
        if self._remembered is not None and self._remembered[0] is queries and self._remembered[1] is documents:
            return self._remembered[2]
        blocks = self.blocks(queries, documents, most)
        batches = ((block, self.batch(queries[block], documents[block])) for block in blocks)
        if remember:
            batches = list(batches)
            self._remembered = queries, documents, batches
        return batches

    def blocks(self, queries: np.ndarray, documents: np.ndarray, most: int | None = None) -> list[np.ndarray]:
        """Divide pairs into blocks, so that pairs of similar queries are counted together.

        Blocks are numbers of pairs, at most ``most``; by default, of few queries.
        """
        lengths = np.diff(self.queries.offsets)[queries]
        order = np.lexsort((queries, lengths))
        if most is not None:
            return np.split(order, np.arange(most, len(order), most))
        query_number = np.cumsum(np.diff(queries[order], prepend=queries[order[:1]]) != 0)
        num_cells = np.cumsum((lengths * self._lengths(documents))[order])
        steps = np.diff(query_number // QUERIES_PER_BLOCK), np.diff(num_cells // CELLS_PER_BLOCK)
        return np.split(order, np.flatnonzero(steps[0] | steps[1]) + 1) if len(order) else []

    def _lengths(self, documents: np.ndarray) -> np.ndarray:
        lengths = self.documents.offsets[documents + 1] - self.documents.offsets[documents]
        return lengths if self.document_terms is None else np.minimum(lengths, self.document_terms)

    def _query_terms(self, queries: np.ndarray) -> np.ndarray:
        """The terms of queries, int64 of shape (queries, terms of the longest); -1 where a query has fewer."""
        chosen = self.queries.take(queries)
        lengths = np.diff(chosen.offsets)
        terms = np.full((len(queries), max(1, lengths.max(initial=0))), -1, dtype=np.int64)
        terms[np.arange(terms.shape[1]) < lengths[:, None]] = chosen.terms
        return terms

    def _count(self, queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
        """Histograms of some pairs, float32 of shape (pairs, terms, bins)."""
        texts = self.documents.take(documents, max_terms=self.document_terms)
        terms = self._query_terms(queries)  # (pairs, terms)
        distinct, columns = np.unique(terms, return_inverse=True)
        table, rows = self._table(texts.terms, distinct)
        cells = np.repeat(columns.reshape(terms.shape), np.diff(texts.offsets), axis=0)  # (document terms, terms)
        cells += (rows * len(distinct))[:, None]
        places = table.ravel().take(cells) + np.arange(terms.shape[1], dtype=np.int32) * self.bins
        # Turning a sparse matrix into a dense one adds up entries that share a place.
        shape = len(queries), terms.shape[1] * self.bins
        occurrences = np.ones(len(rows), dtype=np.float32)
        if self._occurrences is not None:
            occurrences = self._occurrences.take(documents).terms
        occurrences = np.repeat(occurrences, terms.shape[1])
        counts = csr_array((occurrences, places.ravel(), texts.offsets * terms.shape[1]), shape=shape).toarray()
        counts = counts.reshape(*terms.shape, self.bins)
        counts[terms < 0] = 0
        return counts

    def _table(self, document_terms: np.ndarray, query_terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The bin of each distinct document term with each query term, uint8, and the row of each document term."""
        ids = self._query_ids[query_terms]
        known = np.flatnonzero(ids >= 0)
        distinct, rows = self._numbering(np.concatenate([document_terms, ids[known]]))
        similarities = self.matrix[self._document_rows[distinct]] @ self.matrix[self._query_rows[query_terms]].T
        half = np.float32((self.bins - 1) / 2)
        similarities *= half
        similarities += half
        table = np.clip(similarities, 0, self.bins - 2, out=similarities).astype(np.uint8)
        table[rows[len(document_terms) :], known] = self.bins - 1
        return table, rows[: len(document_terms)]


def _bags(documents: PackedSequences, max_terms: int | None) -> tuple[PackedSequences, PackedSequences]:
    """The distinct terms of each document, and the number of occurrences of each, float32."""
    if max_terms is not None:
        documents = documents.take(np.arange(len(documents)), max_terms=max_terms)
    shifted = PackedSequences(documents.terms + 1, documents.offsets)  # unknown terms, -1, count too
    bags = bag_of_words(shifted, int(shifted.terms.max(initial=0)) + 1)
    offsets = bags.indptr.astype(np.int64)
    return PackedSequences(bags.indices - 1, offsets), PackedSequences(bags.data, offsets)


def _compact(counts: np.ndarray) -> np.ndarray:
    """Counts as uint8 if they fit, else int32."""
    return counts.astype(np.uint8 if counts.max(initial=0) < 256 else np.int32)


def count_documents(documents: PackedSequences, vocabulary: Vocabulary) -> Vocabulary:
    """The vocabulary with the number of documents that have each term, unless it has these numbers already."""
    if vocabulary.document_frequency is not None:
        return vocabulary
    bags = bag_of_words(documents, len(vocabulary))
    frequency = np.bincount(bags.indices, minlength=len(vocabulary))
    return Vocabulary(vocabulary.terms, vocabulary.collection_frequency, frequency, len(documents))


def idf(terms: Sequence[str], frequencies: Vocabulary) -> np.ndarray:
    """ln((N + 1) / df) of each term, float32; that of df = 1 for terms that no document has.

    Example::

        >>> idf(["a", "unseen"], Vocabulary.build([["a", "river"], ["a", "city"]]))
        array([0.4054651, 1.0986123], dtype=float32)
    """
    known = np.append(frequencies.document_frequency, 1)[frequencies.ids(terms)]
    return np.log((frequencies.num_documents + 1) / np.maximum(known, 1)).astype(np.float32)
