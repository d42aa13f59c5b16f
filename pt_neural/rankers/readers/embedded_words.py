"""Reader of word embeddings: texts as sequences of words, each with a fixed vector."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pt_neural._arguments import checked_choice
from pt_neural._files import ArtifactError, finite, load_array, write_array
from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.rankers.readers.reader import Reader
from pt_neural.rankers.readers.word_pairs import Matches, exact_matches
from pt_neural.text import PackedSequences, Vocabulary, pack_texts, with_boundaries
from pt_neural.text.numbering import Numbering
from pt_neural.text.vocabulary import LastVocabulary, PerTerm

FREQUENT = 20_000  # most frequent words, whose vectors set the scale
OTHERS = "other_vectors.npy"


class EmbeddedTexts(NamedTuple):
    """A batch of texts: sequences of words, and the vector of each distinct word.

    Attributes:
        vectors: Vectors of the distinct words, float32 of shape (distinct words, dimensions).
        words: The texts, one after another, as places among the distinct words, int64.
        offsets: Where each text starts, int64 of shape (texts + 1,).
        known: Whether a text has any word with an embedding, bool of shape (texts,).
    """

    vectors: Tensor
    words: Tensor
    offsets: Tensor
    known: Tensor


class EmbeddedGroups(NamedTuple):
    """A batch of groups of a query and several documents; each text is in the batch once.

    Attributes:
        queries: The queries.
        documents: The documents.
        query_rows: The query of each group, int64 of shape (groups,).
        document_rows: The documents of each group, int64 of shape (groups, documents per group).
        matches: Exact matches of each pair, group after group; None if the network does not use them.
    """

    queries: EmbeddedTexts
    documents: EmbeddedTexts
    query_rows: Tensor
    document_rows: Tensor
    matches: Matches | None


class EmbeddedWords(Reader):
    """Reads texts as sequences of words, each with a fixed vector (Match-Tensor paper, sections 3.1 and 5.2).

    A word has its embedding, and all unknown words share one random vector. Boundary tokens, which have random vectors
    too, stand before each field of a document and after the last. Embeddings are divided by the root mean square of
    their components, so that weights can start as they do for inputs of unit variance, however the embeddings were
    trained.

    Args:
        spaces: The word embeddings.
        space: Which of a word's two vectors to use, ``"in"`` or ``"out"``.
        query_terms: Words of a query that are read.
        document_terms: Words of a document that are read, boundaries included.
        fields: Number of fields that boundary tokens tell apart; 0 for no boundaries.
        matches: Whether the network uses exact matches.

    Raises:
        TypeError: If the embeddings are something else.
        ValueError: If there is no such space.

    Attributes:
        other_vectors: Vectors of unknown words, of the end of a document and of the beginning of each field, float32 of
            shape (1 or 2 + fields, dimensions); None before :meth:`build`.
    """

    def __init__(
        self,
        spaces: EmbeddingSpaces,
        space: Space = "in",
        *,
        query_terms: int = 8,
        document_terms: int = 200,
        fields: int = 0,
        matches: bool = True,
    ):
        self.spaces, self.space = checked_spaces(spaces), checked_choice("space", space, ("in", "out"))
        self.query_terms, self.document_terms = query_terms, document_terms
        self.fields, self.matches = fields, matches
        self.other_vectors: np.ndarray | None = None
        self._vocabulary_rows = LastVocabulary()

    @property
    def _num_others(self) -> int:
        return 2 + self.fields if self.fields else 1

    @cached_property
    def _scale(self) -> np.float32:
        frequent = np.asarray(self.spaces.vectors(self.space)[:FREQUENT])
        return np.float32(1 / max(np.sqrt(np.mean(np.square(frequent))), 1e-12))

    def build(self, query_texts: Sequence[str], documents: PackedSequences, vocabulary: Vocabulary) -> None:
        """Draw the vectors of unknown words and boundaries from torch's random generator."""
        require_known_words(self.spaces, vocabulary)
        self.other_vectors = torch.randn(self._num_others, self.spaces.dim).numpy()

    def grow(self, start: "EmbeddedWords") -> None:
        """Take the vectors that were drawn; the embeddings and the number of fields must be the same."""
        require_same_spaces(self.spaces, self.space, start.spaces, start.space)
        if self.fields != start.fields:
            raise ValueError(
                f"the ranker to start from tells {start.fields} fields apart, and this one {self.fields}: give the "
                "same number of fields"
            )
        self.other_vectors = start.other_vectors

    def rows(self, terms: Sequence[str]) -> np.ndarray:
        """The row of each term, then of each boundary, then of unknown terms, which -1 selects: int64.

        Words with an embedding have the rows below ``len(self.spaces)``.
        """
        return np.concatenate([self._word_rows(terms), self._other_rows])

    def _word_rows(self, terms: Sequence[str]) -> np.ndarray:
        known = self.spaces.ids(terms).astype(np.int64)
        return np.where(known < 0, len(self.spaces), known)

    @property
    def _other_rows(self) -> np.ndarray:
        return len(self.spaces) + np.arange(1, self._num_others + 1) % self._num_others

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """The vectors with these row numbers, float32 of shape (len(rows), dimensions)."""
        known = rows < len(self.spaces)
        vectors = np.empty((len(rows), self.spaces.dim), dtype=np.float32)
        vectors[known] = self.spaces.vectors(self.space)[rows[known]] * self._scale
        vectors[~known] = self.other_vectors[rows[~known] - len(self.spaces)]
        return vectors

    def read_queries(self, texts: Sequence[str]) -> "EmbeddedCorpus":
        """Queries as sequences of words."""
        return self._read_queries(*pack_texts(texts))

    def _read_queries(self, sequences: PackedSequences, terms: Sequence[str]) -> "EmbeddedCorpus":
        sequences = sequences.take(np.arange(len(sequences)), max_terms=self.query_terms)
        return EmbeddedCorpus(sequences, self.rows(terms), self)

    def read_documents(self, sequences: PackedSequences, vocabulary: Vocabulary) -> "EmbeddedCorpus":
        """Documents as sequences of words and boundaries; the rows of the last vocabulary are remembered."""
        if self.fields:
            sequences = with_boundaries(sequences, len(vocabulary), fields=self.fields, max_terms=self.document_terms)
        else:
            sequences = sequences.take(np.arange(len(sequences)), max_terms=self.document_terms)
        others = self._other_rows
        rows = self._vocabulary_rows(lambda: PerTerm(self._word_rows, vocabulary.terms, others), vocabulary)
        return EmbeddedCorpus(sequences, rows, self)

    def pair(self, query_texts: Sequence[str], documents: PackedSequences, vocabulary: Vocabulary) -> "EmbeddedPairs":
        """Queries and documents to take batches of pairs from."""
        sequences, terms = pack_texts(query_texts)
        queries = self._read_queries(sequences, terms)
        query_terms = None
        if self.matches:
            query_terms = PackedSequences(vocabulary.ids(terms)[queries.sequences.terms], queries.sequences.offsets)
        return EmbeddedPairs(queries, self.read_documents(documents, vocabulary), query_terms)

    def save(self, directory: Path) -> None:
        """Write the vectors that were drawn."""
        write_array(directory / OTHERS, self.other_vectors)

    def load(self, directory: Path) -> None:
        """Read the vectors that were drawn."""
        vectors = load_array(directory / OTHERS, dtype=np.float32, ndim=2, memory_map=False)
        fits = len(vectors) > 2 if self.fields else len(vectors) == 1
        if not fits or vectors.shape[1] != self.spaces.dim or not finite(vectors):
            raise ArtifactError(f"{directory / OTHERS} is damaged: it does not fit the other files")
        self.other_vectors, self.fields = vectors, max(0, len(vectors) - 2)

    def identity_parts(self) -> tuple[dict[str, np.ndarray], list[bytes]]:
        """The embeddings, and the vectors that were drawn."""
        arrays, words = spaces_identity(self.spaces, self.space)
        return {**arrays, "other_vectors": self.other_vectors}, words


def checked_spaces(spaces: EmbeddingSpaces) -> EmbeddingSpaces:
    """The embedding spaces; TypeError if they are something else."""
    if not isinstance(spaces, EmbeddingSpaces):
        raise TypeError(f"spaces must be pn.EmbeddingSpaces, not {spaces!r:.80}")
    return spaces


def spaces_identity(spaces: EmbeddingSpaces, space: Space) -> tuple[dict[str, np.ndarray], list[bytes]]:
    """The vectors of a space, and their words as bytes."""
    return {"spaces": spaces.vectors(space)}, ["\n".join(spaces.vocabulary.terms).encode(errors="surrogatepass")]


def require_same_spaces(spaces: EmbeddingSpaces, space: Space, others: EmbeddingSpaces, other_space: Space) -> None:
    """Raise ValueError if a network that has learned to read one space could not read the other."""
    same_words = spaces is others or spaces.vocabulary.terms == others.vocabulary.terms
    if not same_words or not np.array_equal(spaces.vectors(space), others.vectors(other_space)):
        raise ValueError(
            f"the ranker to start from has learned to read other word vectors than those of {spaces!r}, and equal "
            "words have unlike vectors in spaces trained apart: give both rankers the same spaces, of the "
            "texts of both collections for example"
        )


def require_known_words(spaces: EmbeddingSpaces, vocabulary: Vocabulary) -> None:
    """Raise ValueError if no term of the documents has an embedding."""
    if not (spaces.ids(vocabulary.terms) >= 0).any():
        raise ValueError(
            f"no word of the documents has a vector in {spaces!r}: train the embeddings on the same collection, or on "
            "one in the same language"
        )


class EmbeddedCorpus:
    """Texts as term ids, -1 for unknown terms, to take batches from.

    ``rows`` are the rows of the terms in the reader's vectors, and at the end the row of unknown terms.
    """

    def __init__(self, sequences: PackedSequences, rows: np.ndarray | PerTerm, reader: EmbeddedWords):
        self.sequences = sequences
        self.reader = reader
        self._rows = rows
        self._number = Numbering(len(rows))

    def __len__(self) -> int:
        return len(self.sequences)

    @property
    def num_terms(self) -> int:
        """Number of different ids in the sequences, including -1."""
        return len(self._rows)

    def take(self, numbers: np.ndarray) -> EmbeddedTexts:
        """The texts with these numbers, as tensors."""
        sequences = self.sequences.take(numbers)
        distinct, words = self._number(sequences.terms)
        rows = self._rows[distinct]
        totals = np.concatenate([[0], np.cumsum((rows < len(self.reader.spaces))[words])])
        known = totals[sequences.offsets[1:]] > totals[sequences.offsets[:-1]]
        arrays = self.reader.vectors(rows), words, sequences.offsets, known
        return EmbeddedTexts(*map(torch.from_numpy, arrays))


class EmbeddedPairs:
    """Queries and documents to take batches of pairs from.

    ``query_terms`` are the queries as term ids of the documents, -1 for other terms; None if exact matches are not
    used.
    """

    def __init__(self, queries: EmbeddedCorpus, documents: EmbeddedCorpus, query_terms: PackedSequences | None):
        self.queries, self.documents = queries, documents
        self._query_terms = query_terms
        self._table = np.zeros(documents.num_terms, dtype=np.int32)

    def batch(self, queries: np.ndarray, documents: np.ndarray) -> EmbeddedGroups:
        """Groups of a query and its documents: numbers of shape (groups,) and (groups, documents per group)."""
        distinct_queries, query_rows = np.unique(queries, return_inverse=True)
        distinct_documents, document_rows = np.unique(documents, return_inverse=True)
        return EmbeddedGroups(
            self.queries.take(distinct_queries),
            self.documents.take(distinct_documents),
            torch.from_numpy(query_rows),
            torch.from_numpy(document_rows.reshape(documents.shape)),
            self.find_matches(np.repeat(queries, documents.shape[1]), documents.ravel()),
        )

    def find_matches(self, queries: np.ndarray, documents: np.ndarray) -> Matches | None:
        """Exact matches of pairs, given by numbers of queries and documents, int64 of shape (pairs,)."""
        if self._query_terms is None:
            return None
        return exact_matches(self._query_terms, queries, self.documents.sequences, documents, self._table)
