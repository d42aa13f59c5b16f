"""Reader of letter n-grams: each distinct word of a batch is hashed once."""

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from scipy.sparse import csr_array, vstack
from torch import Tensor, nn

from pt_neural.rankers.readers.reader import Reader
from pt_neural.text import PackedSequences, Vocabulary, WordHashing, pack_texts
from pt_neural.text.numbering import Numbering
from pt_neural.text.packed import offsets_of, ranges
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


class HashedWords:
    """The letter n-grams of terms by id, hashed when a text first has them; of the padding word, -2; of none, -1.

    Who needs the words of a few documents does not wait for all words of a collection.

    Args:
        terms: Distinct terms.
        hashing: The letter n-grams that count.

    Attributes:
        num_ngrams: How many n-grams count.
    """

    def __init__(self, terms: Sequence[str], hashing: WordHashing):
        self._terms, self._hashing, self.num_ngrams = terms, hashing, len(hashing)
        self._starts = np.zeros(len(terms) + 2, dtype=np.int64)
        self._lengths = np.full(len(terms) + 2, -1, dtype=np.int32)  # -1 until a term is hashed
        self._lengths[-1] = 0
        self._ngrams, self._counts, self._end = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float32), 0

    def __len__(self) -> int:
        return len(self._lengths)

    def take(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The n-grams of some terms, term after term, int32; their counts, float32; and where each term starts."""
        lengths = self._lengths[ids]
        if (lengths < 0).any():
            with _hashing:
                self._hash(np.unique(ids[self._lengths[ids] < 0] % len(self)))
            lengths = self._lengths[ids]
        places = ranges(self._starts[ids], lengths)
        return self._ngrams[places], self._counts[places], offsets_of(lengths)

    def _hash(self, ids: np.ndarray) -> None:
        words = [self._terms[i] if i < len(self._terms) else PADDING for i in ids.tolist()]
        bags = self._hashing.bags(words)
        start, end = self._end, self._end + bags.nnz
        if end > len(self._ngrams):  # other threads may read the old arrays
            more = max(end, 3 * start // 2) - start
            self._counts = np.append(self._counts[:start], np.empty(more, dtype=np.float32))
            self._ngrams = np.append(self._ngrams[:start], np.empty(more, dtype=np.int32))
        self._counts[start:end], self._ngrams[start:end], self._end = bags.data, bags.indices, end
        self._starts[ids] = start + bags.indptr[:-1]
        self._lengths[ids] = np.diff(bags.indptr)  # last: now others may read them

    def __getstate__(self) -> dict[str, Any]:
        self.take(np.arange(len(self)))  # once, rather than in each process that gets a copy
        return {**self.__dict__, "_terms": (), "_hashing": None}


_hashing = Lock()


class HashedCorpus:
    """Texts as term ids, with the letter n-grams of each distinct term, to take batches from.

    With ``max_terms``, the n-grams of further terms are summed into one more word, as section 4.3 of the Duet paper
    does for CDSSM, or cut off if ``keep_rest`` is false. The padding word has the letter n-grams of ``<s>`` if
    ``hashes_padding``.
    """

    def __init__(
        self,
        sequences: PackedSequences,
        words: HashedWords,
        *,
        max_terms: int | None = None,
        keep_rest: bool = True,
        hashes_padding: bool = False,
    ):
        self.sequences = sequences
        self.words = words
        self.max_terms = max_terms
        self.keep_rest = keep_rest
        self.padding = -2 if hashes_padding else -1
        self._numbering = Numbering(len(words))

    def __len__(self) -> int:
        return len(self.sequences)

    def take(self, rows: np.ndarray) -> HashedTexts:
        """The texts with these numbers, as tensors."""
        sequences = self.sequences.take(rows, max_terms=None if self.keep_rest else self.max_terms)
        distinct, places = self._numbering(sequences.terms)
        words = PackedSequences(places, sequences.offsets)
        ngrams, counts, starts = self.words.take(np.append(distinct, self.padding))
        known = _any((np.diff(starts) > 0)[places], sequences.offsets)
        if self.keep_rest and self.max_terms is not None and (sequences.lengths > self.max_terms).any():
            bags = csr_array((counts, ngrams, starts), shape=(len(starts) - 1, self.words.num_ngrams))
            words, rest = _fold_rest(words, bags[:-1], self.max_terms)
            bags = vstack([bags[:-1], rest, bags[-1:]], format="csr")
            ngrams, counts, starts = bags.indices, bags.data, bags.indptr.astype(np.int64)
        arrays = ngrams.astype(np.int64), counts, starts, words.terms, words.offsets, known
        return HashedTexts(*map(torch.from_numpy, arrays))


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
        self._words = LastVocabulary()

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
        return self._corpus(sequences, HashedWords(terms, self.hashing))

    def read_documents(self, sequences: PackedSequences, vocabulary: Vocabulary) -> HashedCorpus:
        """Documents as sequences of hashed words; the words of the last vocabulary stay hashed."""
        words = self._words(lambda: HashedWords(vocabulary.terms, self.hashing), vocabulary)
        return self._corpus(sequences, words)

    def _corpus(self, sequences: PackedSequences, words: HashedWords) -> HashedCorpus:
        return HashedCorpus(sequences, words, max_terms=self.max_terms, hashes_padding=self.hashes_padding)

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
