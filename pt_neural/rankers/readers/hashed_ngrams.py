"""Reader of letter n-grams: each distinct word of a batch is hashed once."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from scipy.sparse import csr_array, vstack
from torch import Tensor, nn

from pt_neural.rankers.readers.reader import Reader
from pt_neural.text import PackedSequences, Vocabulary, WordHashing, pack_texts
from pt_neural.text.packed import Numbering, offsets_of
from pt_neural.text.vocabulary import LastVocabulary

PADDING = "<s>"


class HashedTexts(NamedTuple):
    """A batch of texts: sequences of words, and the letter n-grams of each distinct word.

    The last of the distinct words is the padding word, which no text contains.

    Attributes:
        ngrams: n-grams of the distinct words, word after word, int64.
        counts: Occurrences of each n-gram in its word, float32.
        bags: Where the n-grams of each word start, int64 of shape (distinct words + 1,).
        words: The texts, one after another, as places among the distinct words, int64.
        offsets: Where each text starts, int64 of shape (texts + 1,).
        known: Whether a text has any n-gram that the model knows, bool of shape (texts,).
    """

    ngrams: Tensor
    counts: Tensor
    bags: Tensor
    words: Tensor
    offsets: Tensor
    known: Tensor


def word_bags(terms: Sequence[str], hashing: WordHashing) -> csr_array:
    """The letter n-grams of each term, then of the padding word, then an empty row for unknown terms, -1."""
    bags = hashing.bags([*terms, PADDING])
    starts = np.append(bags.indptr, bags.indptr[-1])
    return csr_array((bags.data, bags.indices, starts), shape=(len(terms) + 2, len(hashing)))


class HashedCorpus:
    """Texts as term ids, with the letter n-grams of each distinct term, to take batches from.

    With ``max_terms``, the n-grams of further terms are summed into one more word, as section 4.3 of the Duet paper
    does for CDSSM, or cut off if ``keep_rest`` is false. The padding word has the letter n-grams of ``<s>`` if
    ``hashes_padding``.
    """

    def __init__(
        self,
        sequences: PackedSequences,
        bags: csr_array,
        *,
        max_terms: int | None = None,
        keep_rest: bool = True,
        hashes_padding: bool = False,
    ):
        self.sequences = sequences
        self.bags = bags
        self.max_terms = max_terms
        self.keep_rest = keep_rest
        self.padding = -2 if hashes_padding else -1
        self._numbering = Numbering(bags.shape[0])

    def __len__(self) -> int:
        return len(self.sequences)

    def take(self, rows: np.ndarray) -> HashedTexts:
        """The texts with these numbers, as tensors."""
        sequences = self.sequences.take(rows, max_terms=None if self.keep_rest else self.max_terms)
        distinct, places = self._numbering(sequences.terms)
        words = PackedSequences(places, sequences.offsets)
        bags = self.bags[distinct]
        known = _any((np.diff(bags.indptr) > 0)[places], sequences.offsets)
        if self.keep_rest and self.max_terms is not None and (sequences.lengths > self.max_terms).any():
            words, rest = _fold_rest(words, bags, self.max_terms)
            bags = vstack([bags, rest], format="csr")
        bags = vstack([bags, self.bags[[self.padding]]], format="csr")
        return HashedTexts(
            torch.from_numpy(bags.indices.astype(np.int64)),
            torch.from_numpy(bags.data),
            torch.from_numpy(bags.indptr.astype(np.int64)),
            torch.from_numpy(words.terms),
            torch.from_numpy(words.offsets),
            torch.from_numpy(known),
        )


def _any(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Whether any value of each sequence is true."""
    totals = np.concatenate([[0], np.cumsum(values)])
    return totals[offsets[1:]] > totals[offsets[:-1]]


def _fold_rest(words: PackedSequences, bags: csr_array, max_terms: int) -> tuple[PackedSequences, csr_array]:
    """Replace all words after the first ``max_terms`` by one word; the bags of the new words follow the old ones."""
    lengths = words.lengths
    long = np.flatnonzero(lengths > max_terms)
    place = np.arange(len(words.terms)) - np.repeat(words.offsets[:-1], lengths)
    rest = words.terms[place >= max_terms]
    ones = np.ones(len(rest), dtype=np.float32)
    occurrences = csr_array((ones, rest, offsets_of(lengths[long] - max_terms)), shape=(len(long), bags.shape[0]))
    terms = words.terms.copy()
    terms[words.offsets[long] + max_terms] = bags.shape[0] + np.arange(len(long))
    shorter = PackedSequences(terms[place <= max_terms], offsets_of(np.minimum(lengths, max_terms + 1)))
    return shorter, csr_array(occurrences @ bags)


class HashedPairs:
    """Queries and documents to take batches of groups from; each text is in a batch once."""

    def __init__(self, queries: HashedCorpus, documents: HashedCorpus):
        self.queries, self.documents = queries, documents

    def batch(self, queries: np.ndarray, documents: np.ndarray) -> "HashedGroups":
        """Groups of a query and its documents: numbers of shape (groups,) and (groups, documents per group)."""
        distinct_queries, query_rows = np.unique(queries, return_inverse=True)
        distinct_documents, document_rows = np.unique(documents, return_inverse=True)
        return HashedGroups(
            self.queries.take(distinct_queries),
            self.documents.take(distinct_documents),
            torch.from_numpy(query_rows),
            torch.from_numpy(document_rows.reshape(documents.shape)),
        )


class HashedGroups(NamedTuple):
    """A batch of groups; each text is in the batch once.

    Attributes:
        queries: The queries.
        documents: The documents.
        query_rows: The query of each group, int64 of shape (groups,).
        document_rows: The documents of each group, int64 of shape (groups, documents per group).
    """

    queries: HashedTexts
    documents: HashedTexts
    query_rows: Tensor
    document_rows: Tensor


class HashedNgrams(Reader):
    """Reads texts as words, and words as letter n-grams (word hashing; CLSM paper, section 3.2).

    Args:
        sizes: Lengths of the letter n-grams.
        max_terms: Terms of a text to read as a sequence, see :class:`HashedCorpus`; None for all.
        hashes_padding: Whether the padding word has letter n-grams.

    Attributes:
        hashing: The n-grams of the training texts; None before :meth:`build`.
    """

    def __init__(self, sizes: Sequence[int] = (3,), *, max_terms: int | None = None, hashes_padding: bool = False):
        self.sizes = tuple(sizes)
        self.max_terms = max_terms
        self.hashes_padding = hashes_padding
        self.hashing: WordHashing | None = None
        self._bags = LastVocabulary()

    def build(self, query_texts: Sequence[str], documents: PackedSequences, vocabulary: Vocabulary) -> None:
        """Collect the letter n-grams of queries and documents."""
        _, query_terms = pack_texts(query_texts)
        padding = [PADDING] if self.hashes_padding else []
        words = dict.fromkeys([*query_terms, *vocabulary.terms, *padding])
        self.hashing = WordHashing.build(words, sizes=self.sizes)
        if not len(self.hashing):
            raise ValueError(
                f"no word to train on has {' or '.join(map(str, self.sizes))} letters, counting its boundaries: the "
                "documents and the queries are empty"
            )

    def grow(self, start: "HashedNgrams") -> None:
        """The n-grams of another reader, then those that only these texts have."""
        self.hashing = start.hashing.extended(self.hashing.ngrams)

    def read_queries(self, texts: Sequence[str]) -> HashedCorpus:
        """Queries as sequences of hashed words."""
        sequences, terms = pack_texts(texts)
        return self._corpus(sequences, word_bags(terms, self.hashing))

    def read_documents(self, sequences: PackedSequences, vocabulary: Vocabulary) -> HashedCorpus:
        """Documents as sequences of hashed words; the words of the last vocabulary stay hashed."""
        return self._corpus(sequences, self._bags(lambda: word_bags(vocabulary.terms, self.hashing), vocabulary))

    def _corpus(self, sequences: PackedSequences, bags: csr_array) -> HashedCorpus:
        return HashedCorpus(sequences, bags, max_terms=self.max_terms, hashes_padding=self.hashes_padding)

    def pair(self, query_texts: Sequence[str], documents: PackedSequences, vocabulary: Vocabulary) -> HashedPairs:
        """Queries and documents to take batches of groups from."""
        return HashedPairs(self.read_queries(query_texts), self.read_documents(documents, vocabulary))

    def save(self, directory: Path) -> None:
        """Write the n-grams."""
        self.hashing.save(directory)

    def load(self, directory: Path) -> None:
        """Read the n-grams."""
        self.hashing = WordHashing.load(directory, self.sizes)

    def identity_parts(self) -> tuple[dict[str, np.ndarray], list[bytes]]:
        """The n-grams."""
        return {}, ["\n".join(self.hashing.ngrams).encode(errors="surrogatepass")]


class HashingLayer(nn.Module):
    """Projects each distinct word of a batch: the sum of the weight rows of its letter n-grams.

    A dense bag of n-grams is never made, and a word costs its n-grams once, however often it occurs.

    Args:
        num_ngrams: Number of letter n-grams.
        units: Length of a word's projection.
        bound: Initial weights are drawn uniformly from -bound to bound. A text has few of all n-grams, so the number
            of inputs says little about the right scale.
    """

    def __init__(self, num_ngrams: int, units: int, *, bound: float):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_ngrams, units).uniform_(-bound, bound))

    def forward(self, texts: HashedTexts) -> Tensor:
        """Projections of shape (distinct words, units)."""
        return F.embedding_bag(
            texts.ngrams, self.weight, texts.bags, mode="sum", per_sample_weights=texts.counts, include_last_offset=True
        )
