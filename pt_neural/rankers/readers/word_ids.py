"""Reader of word ids: texts as padded ids, for networks that own and train their table of word embeddings."""

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from pt_neural._arguments import checked_choice
from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.rankers.readers.embedded_words import (
    checked_spaces,
    require_known_words,
    require_same_spaces,
    spaces_identity,
)
from pt_neural.rankers.readers.reader import Reader
from pt_neural.text import PackedSequences, Vocabulary, pack_texts
from pt_neural.text.vocabulary import LastVocabulary, PerTerm


class WordIdGroups(NamedTuple):
    """A batch of groups of a query and several documents, as ids of words.

    Ids below ``num_known`` are rows of the embeddings, the id ``num_known`` is padding, and ids above belong to unknown
    words: equal words have equal ids, different words different ones.

    Attributes:
        queries: int64 of shape (groups, query words).
        documents: int64 of shape (groups, documents, document words).
        num_known: Number of words with an embedding.
    """

    queries: Tensor
    documents: Tensor
    num_known: int

    @property
    def query_mask(self) -> Tensor:
        """Whether there is a word, not padding: bool of shape (groups, query words)."""
        return self.queries != self.num_known

    @property
    def document_mask(self) -> Tensor:
        """Whether there is a word, not padding: bool of shape (groups, documents, document words)."""
        return self.documents != self.num_known


class WordIds(Reader):
    """Reads texts as ids of words, for networks that train word embeddings.

    The id of a word of the embeddings is its row. Every unknown word has an id of its own after those, a hash of its
    letters, so that it matches itself exactly and nothing else. A word of a document that is missing in the forward
    index matches no query word.

    Args:
        spaces: The word embeddings that training starts from.
        space: Which of a word's two vectors to use, ``"in"`` or ``"out"``.
        query_terms: Words of a query that are read.
        document_terms: Words of a document that are read.

    Raises:
        TypeError: If the embeddings are something else.
        ValueError: If there is no such space.

    Example::

        reader = WordIds(spaces, document_terms=100)
        embedding = reader.embedding()  # a layer for the network
    """

    def __init__(
        self, spaces: EmbeddingSpaces, space: Space = "in", *, query_terms: int = 8, document_terms: int = 200
    ):
        self.spaces, self.space = checked_spaces(spaces), checked_choice("space", space, ("in", "out"))
        self.query_terms, self.document_terms = query_terms, document_terms
        self._vocabulary_ids = LastVocabulary()

    @property
    def num_known(self) -> int:
        """Number of words with an embedding."""
        return len(self.spaces)

    def embedding(self) -> "WordEmbedding":
        """A new layer from ids to vectors, which starts with the vectors of the embedding spaces."""
        return WordEmbedding(self.spaces.vectors(self.space))

    def build(self, query_texts: Sequence[str], documents: PackedSequences, vocabulary: Vocabulary) -> None:
        """Check that a word of the documents has an embedding; there is nothing to learn."""
        require_known_words(self.spaces, vocabulary)

    def grow(self, start: "WordIds") -> None:
        """Check that the embeddings are the same; there is nothing to take over."""
        require_same_spaces(self.spaces, self.space, start.spaces, start.space)

    def ids(self, terms: Sequence[str]) -> np.ndarray:
        """The id of each term, then the id of missing terms, which -1 selects: int64."""
        return np.append(self._known_ids(terms), self.num_known + 1)

    def _known_ids(self, terms: Sequence[str]) -> np.ndarray:
        ids = self.spaces.ids(terms).astype(np.int64)
        for place in np.flatnonzero(ids < 0):
            ids[place] = self.num_known + 2 + _hash(terms[place])
        return ids

    def read_queries(self, texts: Sequence[str]) -> "PaddedTexts":
        """Queries as padded ids."""
        sequences, terms = pack_texts(texts)
        return PaddedTexts(sequences, self.ids(terms), self.query_terms, self.num_known)

    def read_documents(self, sequences: PackedSequences, vocabulary: Vocabulary) -> "PaddedTexts":
        """Documents as padded ids."""
        return PaddedTexts(sequences, self.document_ids(vocabulary), self.document_terms, self.num_known)

    def document_ids(self, vocabulary: Vocabulary) -> PerTerm:
        """The ids of the terms of documents, each found on first use; those of the last vocabulary are remembered."""
        missing = np.array([self.num_known + 1])
        return self._vocabulary_ids(lambda: PerTerm(self._known_ids, vocabulary.terms, missing), vocabulary)

    def pair(self, query_texts: Sequence[str], documents: PackedSequences, vocabulary: Vocabulary) -> "WordIdPairs":
        """Queries and documents to take batches of pairs from."""
        return WordIdPairs(self.read_queries(query_texts), self.read_documents(documents, vocabulary), self.num_known)

    def save(self, directory: Path) -> None:
        """Write nothing: the embeddings are the ranker's."""

    def load(self, directory: Path) -> None:
        """Read nothing."""

    def identity_parts(self) -> tuple[dict[str, np.ndarray], list[bytes]]:
        """The embeddings that training starts from."""
        return spaces_identity(self.spaces, self.space)


class WordEmbedding(nn.Embedding):
    """The vectors of words by their ids, which are trained; zeros for padding and for unknown words.

    Args:
        vectors: What the vectors of known words start as, of shape (known words, dimensions).
    """

    def __init__(self, vectors: np.ndarray):
        num_known, dim = vectors.shape
        table = torch.from_numpy(np.concatenate([vectors, np.zeros((1, dim), dtype=np.float32)]))
        super().__init__(num_known + 1, dim, padding_idx=num_known, _weight=table)

    def forward(self, ids: Tensor) -> Tensor:
        """Vectors of shape (..., dimensions) for ids of shape (...)."""
        return super().forward(ids.clamp(max=self.padding_idx))


class PaddedTexts:
    """Texts as padded ids, from term ids and the ids that :meth:`WordIds.ids` gave for the terms."""

    def __init__(self, sequences: PackedSequences, ids: np.ndarray | PerTerm, max_terms: int, padding: int):
        self.sequences, self.max_terms, self.padding = sequences, max_terms, padding
        self._ids = ids

    def __len__(self) -> int:
        return len(self.sequences)

    def take(self, numbers: np.ndarray) -> Tensor:
        """The texts with these numbers, int64 of shape (len(numbers), words of the longest, at least 1)."""
        texts = self.sequences.take(numbers, max_terms=self.max_terms)
        lengths = texts.lengths
        ids = np.full((len(texts), lengths.max(initial=1)), self.padding)
        ids[np.arange(ids.shape[1]) < lengths[:, None]] = self._ids[texts.terms]
        return torch.from_numpy(ids)


class WordIdPairs:
    """Queries and documents to take batches of pairs from."""

    def __init__(self, queries: PaddedTexts, documents: PaddedTexts, num_known: int):
        self.queries, self.documents, self.num_known = queries, documents, num_known

    def batch(self, queries: np.ndarray, documents: np.ndarray) -> WordIdGroups:
        """Groups of a query and its documents: numbers of shape (groups,) and (groups, documents per group)."""
        ids = self.documents.take(documents.ravel())  # (groups * documents, document words)
        return WordIdGroups(self.queries.take(queries), ids.view(*documents.shape, ids.shape[1]), self.num_known)


def _hash(term: str) -> int:
    """A number of 62 bits for a word, the same in every process."""
    digest = blake2b(term.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 2
