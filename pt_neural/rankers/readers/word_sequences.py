"""Reader of word ids without padding: each text, and each distinct word, is in a batch once."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pt_neural._files import ArtifactError
from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.rankers.readers.histograms import FREQUENCIES, count_documents, idf
from pt_neural.rankers.readers.word_ids import WordIds
from pt_neural.rankers.readers.word_pairs import Matches, exact_matches
from pt_neural.text import PackedSequences, Vocabulary, pack_texts
from pt_neural.text.numbering import Numbering
from pt_neural.text.vocabulary import PerTerm


class WordTexts(NamedTuple):
    """A batch of texts: sequences of words, and the id of each distinct word.

    Attributes:
        ids: Ids of the distinct words as in :class:`WordIds`, int64 of shape (distinct words,); there is no padding.
        words: The texts, one after another, as places among the distinct words, int64 of shape (words,).
        offsets: Where each text starts, int64 of shape (texts + 1,).
        idf: The idf of each distinct word, float32; None if the network does not use it, and for documents.
    """

    ids: Tensor
    words: Tensor
    offsets: Tensor
    idf: Tensor | None = None

    def padded(self) -> tuple[Tensor, Tensor]:
        """Places of the words of each text, and whether there is a word; (texts, words of the longest, at least 1).

        Where a text has ended, the place is one beyond the distinct words.
        """
        lengths = self.offsets.diff()
        longest = max(1, int(lengths.max())) if len(lengths) else 1
        is_word = torch.arange(longest, device=lengths.device) < lengths[:, None]
        places = torch.full(is_word.shape, len(self.ids), dtype=torch.int64, device=lengths.device)
        return places.masked_scatter_(is_word, self.words), is_word


class WordGroups(NamedTuple):
    """A batch of groups of a query and several documents.

    Attributes:
        queries: The distinct queries.
        documents: The distinct documents.
        query_rows: The query of each group, int64 of shape (groups,).
        document_rows: The documents of each group, int64 of shape (groups, documents per group).
    """

    queries: WordTexts
    documents: WordTexts
    query_rows: Tensor
    document_rows: Tensor


class WordSequences(WordIds):
    """Reads texts as sequences of word ids, see :class:`WordIds`, for networks that work once on each distinct word.

    Args:
        spaces: The word embeddings.
        space: Which of a word's two vectors to use, ``"in"`` or ``"out"``.
        query_terms: Words of a query that are read.
        document_terms: Words of a document that are read.
        idf: Whether the network uses the idf of query words, ln((N + 1) / df) in the training documents.
        matches: Whether the network uses exact matches, which the rows of documents that it has read do not show.

    Raises:
        TypeError: If the embeddings are something else.
        ValueError: If there is no such space.

    Attributes:
        frequencies: The training terms with their document frequencies; None before :meth:`build` or without idf.
    """

    def __init__(
        self,
        spaces: EmbeddingSpaces,
        space: Space = "in",
        *,
        query_terms: int = 8,
        document_terms: int = 200,
        idf: bool = False,
        matches: bool = False,
    ):
        super().__init__(spaces, space, query_terms=query_terms, document_terms=document_terms)
        self.idf, self.matches = idf, matches
        self.frequencies: Vocabulary | None = None

    def build(self, query_texts: Sequence[str], documents: PackedSequences, vocabulary: Vocabulary) -> None:
        """Check that a word of the documents has an embedding, and count documents if the network uses idf."""
        super().build(query_texts, documents, vocabulary)
        if self.idf:
            self.frequencies = count_documents(documents, vocabulary)

    def read_queries(self, texts: Sequence[str]) -> "WordCorpus":
        """Queries as sequences of words."""
        return self._read_queries(*pack_texts(texts))

    def _read_queries(self, sequences: PackedSequences, terms: Sequence[str]) -> "WordCorpus":
        weights = None if self.frequencies is None else np.append(idf(terms, self.frequencies), np.float32(0))
        return WordCorpus(sequences, self.ids(terms), self.query_terms, weights)

    def read_documents(self, sequences: PackedSequences, vocabulary: Vocabulary) -> "WordCorpus":
        """Documents as sequences of words."""
        return WordCorpus(sequences, self.document_ids(vocabulary), self.document_terms)

    def pair(self, query_texts: Sequence[str], documents: PackedSequences, vocabulary: Vocabulary) -> "WordPairGroups":
        """Queries and documents to take batches of groups from."""
        sequences, terms = pack_texts(query_texts)
        queries = self._read_queries(sequences, terms)
        in_documents = None
        if self.matches:
            read = queries.sequences
            in_documents = PackedSequences(vocabulary.ids(terms)[read.terms], read.offsets)
        return WordPairGroups(queries, self.read_documents(documents, vocabulary), in_documents)

    def save(self, directory: Path) -> None:
        """Write the document frequencies, if there are any."""
        if self.frequencies is not None:
            self.frequencies.save(directory / FREQUENCIES)

    def load(self, directory: Path) -> None:
        """Read the document frequencies, if the network uses idf."""
        if self.idf:
            self.frequencies = Vocabulary.load(directory / FREQUENCIES)
            if self.frequencies.document_frequency is None:
                raise ArtifactError(f"{directory / FREQUENCIES / 'counts.json'} is damaged: no document frequencies")

    def identity_parts(self) -> tuple[dict[str, np.ndarray], list[bytes]]:
        """The embeddings, and the document frequencies."""
        arrays, words = super().identity_parts()
        if self.frequencies is None:
            return arrays, words
        terms = "\n".join(self.frequencies.terms).encode(errors="surrogatepass")
        return {**arrays, "document frequencies": self.frequencies.document_frequency}, [*words, terms]


class WordCorpus:
    """Texts as term ids, -1 for unknown terms, to take batches from.

    ``ids`` are the ids of the terms, and at the end that of unknown terms; ``idf`` are their weights in this order.
    """

    def __init__(
        self, sequences: PackedSequences, ids: np.ndarray | PerTerm, max_terms: int, idf: np.ndarray | None = None
    ):
        self.sequences = sequences.take(np.arange(len(sequences)), max_terms=max_terms)
        self._ids, self._idf = ids, idf
        self._number = Numbering(len(ids))

    def __len__(self) -> int:
        return len(self.sequences)

    @property
    def num_terms(self) -> int:
        """Number of possible term ids, -1 included."""
        return len(self._ids)

    def take(self, numbers: np.ndarray) -> WordTexts:
        """The texts with these numbers, as tensors."""
        texts = self.sequences.take(numbers)
        distinct, words = self._number(texts.terms)
        weights = None if self._idf is None else torch.from_numpy(self._idf[distinct])
        return WordTexts(*map(torch.from_numpy, (self._ids[distinct], words, texts.offsets)), weights)


class WordPairGroups:
    """Queries and documents to take batches of groups from.

    ``query_terms`` are the queries as term ids of the documents, -1 for other terms; None if the network does without
    exact matches, or finds them by the ids of words.
    """

    def __init__(self, queries: WordCorpus, documents: WordCorpus, query_terms: PackedSequences | None = None):
        self.queries, self.documents = queries, documents
        self._query_terms = query_terms
        self._table = np.zeros(0 if query_terms is None else documents.num_terms, dtype=np.int32)

    def batch(self, queries: np.ndarray, documents: np.ndarray) -> WordGroups:
        """Groups of a query and its documents: numbers of shape (groups,) and (groups, documents per group)."""
        distinct_queries, query_rows = np.unique(queries, return_inverse=True)
        distinct_documents, document_rows = np.unique(documents, return_inverse=True)
        return WordGroups(
            self.queries.take(distinct_queries),
            self.documents.take(distinct_documents),
            torch.from_numpy(query_rows),
            torch.from_numpy(document_rows.reshape(documents.shape)),
        )

    def find_matches(self, queries: np.ndarray, documents: np.ndarray) -> Matches | None:
        """Exact matches of pairs, given by numbers of queries and documents, int64 of shape (pairs,)."""
        if self._query_terms is None:
            return None
        return exact_matches(self._query_terms, queries, self.documents.sequences, documents, self._table)
