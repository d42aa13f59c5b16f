"""Term weights: tf-idf."""

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_array

from pt_neural.text.counts import bag_of_words
from pt_neural.text.packed import PackedSequences
from pt_neural.text.vocabulary import Vocabulary, tokenise_packed

_BLOCK = 4096  # sequences whose counts are in memory at a time


class Counted(Protocol):
    """Terms that were counted: a :class:`Vocabulary`, or the :class:`~pt_neural.text.Bigrams` of one."""

    document_frequency: np.ndarray | None
    num_documents: int

    def __len__(self) -> int: ...


class TfIdf:
    """Turns texts into tf-idf vectors of length 1 (SSI paper, section 2.1): (1 + ln tf) idf or tf idf.

    Args:
        vocabulary: Terms with their document frequencies: a vocabulary, or bigrams.
        sublinear_tf: Take 1 + ln tf instead of the count tf.

    Attributes:
        idf: What :func:`inverse_document_frequency` gives, float32 of shape ``(len(vocabulary),)``.

    Raises:
        ValueError: If the vocabulary has no document frequencies.

    Example::

        >>> vocabulary = Vocabulary.build([["a", "river"], ["a", "city"]])
        >>> TfIdf(vocabulary, sublinear_tf=True).of_texts(["A city, a river", "zebra"]).toarray().round(3)
        array([[0.648, 0.538, 0.538],
               [0.   , 0.   , 0.   ]], dtype=float32)
    """

    def __init__(self, vocabulary: Counted, *, sublinear_tf: bool):
        self.vocabulary, self.sublinear_tf = vocabulary, sublinear_tf
        self.idf = inverse_document_frequency(vocabulary)

    def of_texts(self, texts: Iterable[Any]) -> csr_array:
        """The vectors of texts: what :meth:`of_sequences` returns. Anything but a string has no terms.

        Raises:
            TypeError: If the terms are bigrams, which are found in packed sequences.
        """
        if not isinstance(self.vocabulary, Vocabulary):
            raise TypeError(f"{self.vocabulary!r} cannot tokenise; call of_sequences(bigrams.sequences(sequences))")
        return self.of_sequences(tokenise_packed(texts, self.vocabulary, drop_unknown=True))

    def of_sequences(self, sequences: PackedSequences) -> csr_array:
        """The vectors of sequences of term ids; ids that the vocabulary lacks, such as -1, are passed over.

        Returns:
            float32 matrix of shape ``(len(sequences), len(vocabulary))`` with rows of length 1, all zero where no term
            is known; columns are in order, zeros are not stored.
        """
        return self.of_counts(bag_of_words(sequences, len(self.vocabulary)))

    def of_counts(self, counts: csr_array) -> csr_array:
        """The vectors of texts whose terms are counted: what :meth:`of_sequences` returns.

        Args:
            counts: Counts above 0, of shape ``(texts, len(vocabulary))``.
        """
        if not counts.has_canonical_format:
            counts = counts.copy()
            counts.sum_duplicates()
        weights = tf_idf(counts.astype(np.float32, copy=False), self.idf, sublinear_tf=self.sublinear_tf)
        return unit_rows(weights)

    def __repr__(self) -> str:
        return f"TfIdf({self.vocabulary!r}, sublinear_tf={self.sublinear_tf})"


def unit_rows(matrix: csr_array) -> csr_array:
    """Scale the rows of a matrix to length 1, in place; those without entries stay so."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    squares = np.square(matrix.data, dtype=np.float64)
    matrix.data /= np.sqrt(np.bincount(rows, squares, minlength=matrix.shape[0]))[rows]
    return matrix


def document_frequency(sequences: PackedSequences, num_terms: int) -> np.ndarray:
    """Count the sequences that hold each term; ids outside ``range(num_terms)`` are passed over.

    Returns:
        int64 array of shape ``(num_terms,)``.

    Example::

        >>> document_frequency(PackedSequences.from_lists([[1, 0, 1], [1, -1]]), 3)
        array([1, 2, 0])
    """
    frequency = np.zeros(num_terms, dtype=np.int64)
    for start in range(0, len(sequences), _BLOCK):
        block = sequences.take(np.arange(start, min(start + _BLOCK, len(sequences))))
        frequency += np.bincount(bag_of_words(block, num_terms).indices, minlength=num_terms)
    return frequency


def inverse_document_frequency(vocabulary: Counted) -> np.ndarray:
    """ln((1 + N) / (1 + df)) + 1 for each term, as scikit-learn's ``TfidfTransformer`` has it; float32.

    Args:
        vocabulary: Terms with their document frequencies in N documents.

    Raises:
        ValueError: If the vocabulary has no document frequencies.

    Example::

        >>> inverse_document_frequency(Vocabulary.build([["a", "river"], ["a", "city"]]))
        array([1.       , 1.4054651, 1.4054651], dtype=float32)
    """
    if vocabulary.document_frequency is None:
        raise ValueError(f"{vocabulary!r} has no document frequencies; count it with Vocabulary.build")
    return (np.log((1 + vocabulary.num_documents) / (1 + vocabulary.document_frequency)) + 1).astype(np.float32)


def tf_idf(counts: csr_array, idf: np.ndarray, *, sublinear_tf: bool = False) -> csr_array:
    """Weigh each count by its term's idf.

    Args:
        counts: Counts above 0, of shape ``(texts, terms)``.
        idf: Inverse document frequencies, of shape ``(terms,)``.
        sublinear_tf: Take 1 + ln tf instead of the count tf.

    Example::

        >>> tf_idf(csr_array([[2.0, 0.0], [1.0, 3.0]]), np.array([1.0, 0.5])).toarray()
        array([[2. , 0. ],
               [1. , 1.5]])
    """
    tf = 1 + np.log(counts.data) if sublinear_tf else counts.data
    return csr_array((tf * idf[counts.indices], counts.indices, counts.indptr), shape=counts.shape)
