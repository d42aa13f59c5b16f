"""Documents as language models read them: how often each word occurs, and whatever else a model keeps of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from pt_neural.text import PackedSequences
from pt_neural.text.counts import bag_of_words

_SUMS = 16  # weights of so many sums are dense at a time


@dataclass(frozen=True)
class DocumentCounts:
    """Some documents.

    Args:
        counts: Occurrences of words, float32 csr matrix of shape ``(documents, words)``.
        lengths: Words of each document that the model knows, float32 of shape ``(documents,)``.
        own: What a model keeps besides, a row for each document; None if nothing.
        postings: The transpose of ``counts``, where many queries are scored with all of the documents; None elsewhere.
    """

    counts: csr_array
    lengths: np.ndarray
    own: Any = None
    postings: csr_array | None = None

    @classmethod
    def of(cls, sequences: PackedSequences, num_words: int) -> "DocumentCounts":
        """Count the words of documents; ids outside ``range(num_words)`` are passed over."""
        counts = bag_of_words(sequences, num_words)
        return cls(counts, counts.sum(axis=1, dtype=np.float32))

    @classmethod
    def joined(cls, parts: Sequence["DocumentCounts"]) -> "DocumentCounts":
        """Documents that were read one part after the other."""
        counts = vstack([part.counts for part in parts], format="csr")
        lengths = np.concatenate([part.lengths for part in parts])
        return cls(counts, lengths, _stacked([part.own for part in parts]))

    def __len__(self) -> int:
        return self.counts.shape[0]

    def take(self, rows: np.ndarray) -> "DocumentCounts":
        """Some of the documents."""
        return DocumentCounts(self.counts[rows], self.lengths[rows], None if self.own is None else self.own[rows])

    def with_own(self, own: Any) -> "DocumentCounts":
        """The same documents with what a model keeps of them."""
        return replace(self, own=own)

    def with_postings(self) -> "DocumentCounts":
        """The same documents, whose counts of a few words are then found without reading all of them."""
        return replace(self, postings=self.counts.T.tocsr())

    def of_words(self, words: np.ndarray) -> np.ndarray:
        """How often each of some words occurs, float32 of shape ``(documents, words)``."""
        return self.counts[:, words].toarray() if self.postings is None else self.postings[words].toarray().T

    def sums(self, weights: csr_array) -> np.ndarray:
        """Weighted sums of each document's counts, where weights are of many words.

        Args:
            weights: float32 of shape ``(sums, words)``.

        Returns:
            float32 of shape ``(documents, sums)``.
        """
        sums = np.empty((len(self), weights.shape[0]), dtype=np.float32)
        for start in range(0, weights.shape[0], _SUMS):
            some = weights[start : start + _SUMS].toarray()  # with them dense, it takes half of the time
            sums[:, start : start + _SUMS] = self.counts @ np.ascontiguousarray(some.T)
        return sums


def _stacked(parts: Sequence[Any]) -> Any:
    """What a model keeps of some documents after what it keeps of others: arrays or csr matrices, or None for none."""
    if parts[0] is None:
        return None
    return vstack(parts, format="csr") if issparse(parts[0]) else np.concatenate(parts)
