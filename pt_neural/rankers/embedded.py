"""Texts as networks over word embeddings take them: the vector of each distinct word of a batch once."""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.rankers.last_vocabulary import LastVocabulary
from pt_neural.rankers.numbering import Numbering
from pt_neural.rankers.pairs import Matches, exact_matches
from pt_neural.text import PackedSequences, Vocabulary

FREQUENT = 20_000  # words whose vectors tell the scale of all


class EmbeddedTexts(NamedTuple):
    """A batch of texts: sequences of words, and the vector of each distinct word.

    Attributes:
        vectors: Vectors of the distinct words, float32 of shape (distinct words, dimensions).
        words: The texts as places among the distinct words, text after text, int64.
        offsets: Where each text starts, int64 of shape (texts + 1,).
        known: Whether a text has any word with a vector of its own, bool of shape (texts,).
    """

    vectors: Tensor
    words: Tensor
    offsets: Tensor
    known: Tensor


class WordVectors:
    """A fixed vector for every word: its embedding, or the one vector of unknown words; and those of boundaries.

    Embeddings are divided by the root mean square of their components, so that weights may start as they do for
    inputs of unit variance, whatever trained the embeddings.

    Args:
        spaces: The embeddings.
        space: Which of their two vectors a word has.
        others: Vectors of the unknown word, of the end of a document, and of the beginning of each field, float32 of
            shape (2 + fields, dimensions).
    """

    def __init__(self, spaces: EmbeddingSpaces, space: Space, others: np.ndarray):
        self.spaces = spaces
        self.space = space
        self.others = others
        self._rows = LastVocabulary()

    @classmethod
    def draw(cls, spaces: EmbeddingSpaces, space: Space, boundaries: int) -> "WordVectors":
        """Draw the vectors that are not words' at random, with torch's generator."""
        return cls(spaces, space, torch.randn(1 + boundaries, spaces.dim).numpy())

    @cached_property
    def _scale(self) -> np.float32:
        frequent = np.asarray(self.spaces.vectors(self.space)[:FREQUENT])
        return np.float32(1 / max(np.sqrt(np.mean(np.square(frequent))), 1e-12))

    def rows(self, terms: Sequence[str]) -> np.ndarray:
        """The row of each term, of the boundaries, and of unknown terms, for which -1 stands: int64.

        Rows below ``len(self.spaces)`` are those of words.
        """
        known = self.spaces.ids(terms).astype(np.int64)
        unknown, boundaries = len(self.spaces), len(self.spaces) + np.arange(1, len(self.others))
        return np.concatenate([np.where(known < 0, unknown, known), boundaries, [unknown]])

    def rows_of(self, vocabulary: Vocabulary) -> np.ndarray:
        """Those of a vocabulary's terms, kept for the last one."""
        return self._rows(lambda: self.rows(vocabulary.terms), vocabulary)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Vectors of some rows, float32 of shape (len(rows), dimensions)."""
        words = rows < len(self.spaces)
        vectors = np.empty((len(rows), self.spaces.dim), dtype=np.float32)
        vectors[words] = self.spaces.vectors(self.space)[rows[words]] * self._scale
        vectors[~words] = self.others[rows[~words] - len(self.spaces)]
        return vectors


class EmbeddedCorpus:
    """Texts of which any batch can be taken.

    Args:
        sequences: Texts as term ids, -1 for unknown ones.
        rows: The rows of the terms among the vectors, then those of boundaries, then that of unknown terms.
        vectors: The vectors.
    """

    def __init__(self, sequences: PackedSequences, rows: np.ndarray, vectors: WordVectors):
        self.sequences = sequences
        self.vectors = vectors
        self._rows = rows
        self._number = Numbering(len(self._rows))

    def __len__(self) -> int:
        return len(self.sequences)

    def take(self, numbers: np.ndarray) -> EmbeddedTexts:
        """Some of the texts, as tensors.

        Args:
            numbers: Numbers of texts, in the order wanted.
        """
        sequences = self.sequences.take(numbers)
        distinct, places = self._number(sequences.terms)
        rows = self._rows[distinct]
        totals = np.concatenate([[0], np.cumsum((rows < len(self.vectors.spaces))[places])])
        known = totals[sequences.offsets[1:]] > totals[sequences.offsets[:-1]]
        arrays = self.vectors.take(rows), places, sequences.offsets, known
        return EmbeddedTexts(*map(torch.from_numpy, arrays))


class EmbeddedGroups(NamedTuple):
    """A batch of groups; each query and each document stands in it once.

    Attributes:
        queries: The queries.
        documents: The documents.
        query_rows: The query of each group, int64 of shape (groups,).
        document_rows: The documents of each group, int64 of shape (groups, documents a group).
        matches: Exact matches of each pair, group after group; None if the network does not look at them.
    """

    queries: EmbeddedTexts
    documents: EmbeddedTexts
    query_rows: Tensor
    document_rows: Tensor
    matches: Matches | None


class EmbeddedPairs:
    """Queries and documents of which any pairs can be taken.

    Args:
        queries: The queries.
        query_ids: The id of each term of the queries among those of the documents, -1 for those that no document has.
        documents: The documents.
        num_terms: Number of the documents' terms, boundaries included.
        matches: Whether the network looks at exact matches.
    """

    def __init__(
        self,
        queries: EmbeddedCorpus,
        query_ids: np.ndarray,
        documents: EmbeddedCorpus,
        num_terms: int,
        *,
        matches: bool = True,
    ):
        self.queries, self.documents, self.matches = queries, documents, matches
        self._query_terms = PackedSequences(query_ids[queries.sequences.terms], queries.sequences.offsets)
        self._table = np.zeros(num_terms + 1, dtype=np.int32)

    def __call__(self, queries: np.ndarray, documents: np.ndarray) -> EmbeddedGroups:
        """Groups of a query each: numbers of shape (groups,) and (groups, documents a group)."""
        distinct_queries, query_rows = np.unique(queries, return_inverse=True)
        distinct_documents, document_rows = np.unique(documents, return_inverse=True)
        matches = self.find_matches(np.repeat(queries, documents.shape[1]), documents.ravel()) if self.matches else None
        return EmbeddedGroups(
            self.queries.take(distinct_queries),
            self.documents.take(distinct_documents),
            torch.from_numpy(query_rows),
            torch.from_numpy(document_rows.reshape(documents.shape)),
            matches,
        )

    def find_matches(self, queries: np.ndarray, documents: np.ndarray) -> Matches:
        """Exact matches of pairs, given by numbers of queries and documents, int64 of shape (pairs,)."""
        return exact_matches(self._query_terms, queries, self.documents.sequences, documents, self._table)
