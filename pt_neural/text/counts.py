"""Texts as bags of words: term counts and tf-idf weights."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyterrier as pt
from scipy.sparse import csr_array

from pt_neural._temporary import SparseBlocks
from pt_neural.datasets.documents import read_documents, with_bar
from pt_neural.text.forward_index import ForwardIndex
from pt_neural.text.packed import PackedSequences, offsets_of
from pt_neural.text.term_spool import TermSpool, load_sequences
from pt_neural.text.tokens import TEXT_FIELDS, join_fields, tokenise, tokenise_packed
from pt_neural.text.vocabulary import Vocabulary

_BLOCK = 32_768  # documents whose terms are in memory at a time


def bag_of_words(sequences: PackedSequences, num_terms: int) -> csr_array:
    """Count the terms of each sequence, sparse float32 (sequences, terms); unknown ids, such as -1, are ignored."""
    known = (sequences.terms >= 0) & (sequences.terms < num_terms)
    num_known_before = offsets_of(known)
    terms = sequences.terms[known]
    ones = np.ones(len(terms), dtype=np.float32)
    counts = csr_array((ones, terms, num_known_before[sequences.offsets]), shape=(len(sequences), num_terms))
    counts.sum_duplicates()
    return counts


def count_corpus(
    corpus: Iterable[Mapping[str, Any]] | pd.DataFrame | ForwardIndex,
    *,
    min_count: int = 1,
    max_terms: int | None = None,
    fields: Sequence[str] = TEXT_FIELDS,
    desc: str = "counting terms",
    verbose: bool = True,
) -> tuple[Vocabulary, SparseBlocks]:
    """Count the terms of a collection in one pass, with only its vocabulary in memory.

    The corpus is an iterable of documents with ``docno`` and at least one of the fields, a frame of them, or a forward
    index, which has its own fields. Terms that occur less often than ``min_count`` are left out; ``max_terms`` keeps
    only the most frequent. Returns the vocabulary, and the float32 counts of shape (documents, terms), in blocks of
    documents.

    Example::

        >>> vocabulary, counts = count_corpus([{"docno": "d1", "text": "A river, a city."}], verbose=False)
        >>> dict(zip(vocabulary.terms, next(iter(counts)).toarray()[0].tolist()))
        {'a': 2.0, 'city': 1.0, 'river': 1.0}
    """
    limits = {"min_count": min_count, "max_terms": max_terms}
    if isinstance(corpus, ForwardIndex):
        vocabulary = most_frequent(corpus.vocabulary, **limits)
        with pt.tqdm(total=len(corpus), desc=desc, unit="doc", disable=not verbose) as bar:
            return vocabulary, _count_in_blocks(corpus.all(), len(vocabulary), bar)
    with TemporaryDirectory() as name, TermSpool(Path(name)) as spool:
        for _, document in with_bar(read_documents(corpus), corpus, desc=desc, verbose=verbose):
            spool.append(tokenise(join_fields(document, fields)))
        vocabulary = spool.finish(**limits)
        return vocabulary, _count_in_blocks(load_sequences(Path(name)), len(vocabulary))


def most_frequent(vocabulary: Vocabulary, *, min_count: int, max_terms: int | None) -> Vocabulary:
    """The most frequent terms of a forward index's vocabulary, which lists them first; ids stay the same."""
    num_frequent = int((vocabulary.collection_frequency >= min_count).sum())
    kept = slice(num_frequent if max_terms is None else min(num_frequent, max_terms))
    frequencies = vocabulary.collection_frequency[kept], vocabulary.document_frequency[kept]
    return Vocabulary(vocabulary.terms[kept], *frequencies, vocabulary.num_documents)


def _count_in_blocks(sequences: PackedSequences, num_terms: int, bar: Any = None) -> SparseBlocks:
    def blocks() -> Iterator[csr_array]:
        for start in range(0, len(sequences), _BLOCK):
            rows = np.arange(start, min(start + _BLOCK, len(sequences)))
            yield bag_of_words(sequences.take(rows), num_terms)
            if bar is not None:
                bar.update(len(rows))

    return SparseBlocks(blocks())


class Counted(Protocol):
    """Terms with document frequencies: a :class:`Vocabulary`, or :class:`~pt_neural.text.Bigrams` over one."""

    document_frequency: np.ndarray | None
    num_documents: int

    def __len__(self) -> int: ...


class TfIdf:
    """Turns texts into tf-idf vectors of length 1 (SSI paper, section 2.1): (1 + ln tf) idf or tf idf.

    Args:
        vocabulary: Terms with document frequencies: a vocabulary, or bigrams.
        sublinear_tf: Weigh a term that occurs tf times by 1 + ln tf instead of tf.

    Attributes:
        idf: ln((1 + N) / (1 + df)) + 1 for a term in df of N documents, as in scikit-learn's ``TfidfTransformer``;
            float32 of shape ``(len(vocabulary),)``.

    Raises:
        ValueError: If the vocabulary has no document frequencies.

    Example::

        >>> vocabulary = Vocabulary.build([["a", "river"], ["a", "city"]])
        >>> TfIdf(vocabulary, sublinear_tf=True).of_texts(["A city, a river", "zebra"]).toarray().round(3)
        array([[0.648, 0.538, 0.538],
               [0.   , 0.   , 0.   ]], dtype=float32)
    """

    def __init__(self, vocabulary: Counted, *, sublinear_tf: bool):
        if vocabulary.document_frequency is None:
            raise ValueError(f"{vocabulary!r} has no document frequencies; count them with Vocabulary.build")
        self.vocabulary, self.sublinear_tf = vocabulary, sublinear_tf
        idf = np.log((1 + vocabulary.num_documents) / (1 + vocabulary.document_frequency)) + 1
        self.idf = idf.astype(np.float32)

    def of_texts(self, texts: Iterable[Any]) -> csr_array:
        """The vectors of texts, as :meth:`of_sequences` returns them; TypeError if the terms are bigrams."""
        if not isinstance(self.vocabulary, Vocabulary):
            raise TypeError(f"{self.vocabulary!r} cannot tokenise; call of_sequences(bigrams.sequences(sequences))")
        return self.of_sequences(tokenise_packed(texts, self.vocabulary, drop_unknown=True))

    def of_sequences(self, sequences: PackedSequences) -> csr_array:
        """The vectors of sequences of term ids, sparse float32 (sequences, terms) in canonical format.

        Ids outside the vocabulary, such as -1, are ignored. Rows have length 1, or are empty where no term is known.
        """
        return self.of_counts(bag_of_words(sequences, len(self.vocabulary)))

    def of_counts(self, counts: csr_array) -> csr_array:
        """The vectors of texts with these term counts, all above 0, as :meth:`of_sequences` returns them."""
        if not counts.has_canonical_format:
            counts = counts.copy()
            counts.sum_duplicates()
        tf = counts.data.astype(np.float32, copy=False)
        tf = 1 + np.log(tf) if self.sublinear_tf else tf
        weights = csr_array((tf * self.idf[counts.indices], counts.indices, counts.indptr), shape=counts.shape)
        return _unit_rows(weights)

    def __repr__(self) -> str:
        return f"TfIdf({self.vocabulary!r}, sublinear_tf={self.sublinear_tf})"


def _unit_rows(matrix: csr_array) -> csr_array:
    """Scale the rows of a matrix to length 1, in place; empty rows stay empty."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    squares = np.square(matrix.data, dtype=np.float64)
    matrix.data /= np.sqrt(np.bincount(rows, squares, minlength=matrix.shape[0]))[rows]
    return matrix
