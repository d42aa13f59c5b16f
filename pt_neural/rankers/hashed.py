"""Texts as networks over letter n-grams take them: each distinct word hashed once."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array, vstack
from torch import Tensor

from pt_neural.rankers.numbering import Numbering
from pt_neural.text import PackedSequences, WordHashing
from pt_neural.text.packed import offsets_of

PADDING = "<s>"


class HashedTexts(NamedTuple):
    """A batch of texts: sequences of words, and the letter n-grams of each distinct word.

    The last of the distinct words is the padding word, which no sequence holds.

    Attributes:
        ngrams: n-grams of the distinct words, word after word, int64.
        counts: How often each occurs in its word, float32.
        bags: Where the n-grams of each word start, int64 of shape (distinct words + 1,).
        words: The texts as places among the distinct words, text after text, int64.
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
    """The letter n-grams of each term, then those of the padding word, then none: row -1 is that of unknown terms."""
    bags = hashing.bags([*terms, PADDING])
    starts = np.append(bags.indptr, bags.indptr[-1])
    return csr_array((bags.data, bags.indices, starts), shape=(len(terms) + 2, len(hashing)))


class HashedCorpus:
    """Texts of which any batch can be taken: term sequences, and the letter n-grams of each distinct term.

    Args:
        sequences: Term ids of each text, -1 for a word without n-grams; may be memory-mapped.
        bags: What :func:`word_bags` gives for the terms.
        max_terms: Terms of a text that stay a sequence; the n-grams of the others are summed into one more word, as
            Duet's section 4.3 has it for CDSSM. None keeps all.
        keep_rest: Whether there is such a word; otherwise the rest is cut off.
        hashes_padding: Whether the padding word has the letter n-grams of ``<s>``, or none.
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
        """Some of the texts, as tensors.

        Args:
            rows: Numbers of texts, in the order wanted.
        """
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
    """Cut texts after ``max_terms`` words, and put one word in the place of the rest.

    Returns:
        The shorter texts, and the bags of the new words, which are numbered after the old ones.
    """
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
