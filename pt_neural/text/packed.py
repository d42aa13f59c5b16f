"""Many term sequences in two arrays."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np

from pt_neural._files import rise


class PackedSequences:
    """Term sequences, one after the other in one array, and the offsets at which they start.

    Args:
        terms: int32 array of term ids, shape ``(num_terms,)``; -1 is an unknown term. May be memory-mapped.
        offsets: int64 array of shape ``(num_sequences + 1,)``; sequence ``i`` is
            ``terms[offsets[i]:offsets[i + 1]]``.
        field_ends: Where each field of each sequence ends, counted in terms from the start of the sequence: an integer
            array of shape ``(num_sequences, num_fields)``; None if the sequences are not divided into fields.

    Raises:
        ValueError: If the offsets do not start at 0, decrease, or do not end at ``len(terms)``.

    Example::

        >>> PackedSequences.from_lists([[3, 1, 4], [], [1, 5]])[2]
        array([1, 5], dtype=int32)
    """

    def __init__(self, terms: np.ndarray, offsets: np.ndarray, field_ends: np.ndarray | None = None):
        if not rise(offsets, len(terms)):
            raise ValueError(f"offsets must rise from 0 to the number of terms, {len(terms)}")
        self.terms = terms
        self.offsets = offsets
        self.field_ends = field_ends

    @classmethod
    def from_lists(cls, sequences: Iterable[Sequence[int]]) -> "PackedSequences":
        """Pack lists of term ids."""
        sequences = list(sequences)
        terms = np.fromiter(chain.from_iterable(sequences), dtype=np.int32)
        return cls(terms, offsets_of(np.fromiter(map(len, sequences), dtype=np.int64)))

    @property
    def lengths(self) -> np.ndarray:
        """Number of terms of each sequence, an int64 array."""
        return np.diff(self.offsets)

    def take(self, indices: np.ndarray | Sequence[int], *, max_terms: int | None = None) -> "PackedSequences":
        """Copy sequences in any order; an index may occur more than once.

        Args:
            indices: Integers from 0 to ``len(self) - 1``.
            max_terms: Truncate each sequence to this many terms; None copies it whole.

        Raises:
            IndexError: If an index is out of range or negative: -1 marks unknown rows elsewhere.
        """
        indices = np.asarray(indices, dtype=np.int64)
        if len(indices) and (indices.min() < 0 or indices.max() >= len(self)):
            raise IndexError(f"indices must be between 0 and {len(self) - 1}, not {indices.min()} to {indices.max()}")
        starts = self.offsets[:-1][indices]
        lengths = self.offsets[1:][indices] - starts
        if max_terms is not None:
            lengths = np.minimum(lengths, max_terms)
        field_ends = None
        if self.field_ends is not None:
            field_ends = np.minimum(self.field_ends[indices], lengths[:, None])
        return PackedSequences(np.asarray(self.terms[ranges(starts, lengths)]), offsets_of(lengths), field_ends)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        if not -len(self) <= index < len(self):
            raise IndexError(f"sequence {index} of {len(self)}")
        index %= len(self)
        return self.terms[self.offsets[index] : self.offsets[index + 1]]

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        return f"PackedSequences({len(self):,} sequences, {len(self.terms):,} terms)"


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    """The offsets of sequences of these lengths: where each starts, then where the last one ends; int64."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Ranges of consecutive numbers, one after the other, int64; each range has a first number and a length.

    Example::

        >>> ranges(np.array([7, 2]), np.array([2, 3]))
        array([7, 8, 2, 3, 4])
    """
    offsets = offsets_of(lengths)
    return np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)


def with_boundaries(sequences: PackedSequences, first: int, *, fields: int, max_terms: int) -> PackedSequences:
    r"""Put a boundary term before each field, and one after the last field; the result has no ``field_ends``.

    The boundary after the last field has the id ``first``; ``first + 1``, ``first + 2`` ... go before the fields.
    Sequences without ``field_ends`` are taken to be the last field. Each sequence is truncated to ``max_terms``,
    boundaries included.

    Example::

        >>> from pt_neural.text import pack_fields
        >>> sequences, _ = pack_fields(["river\x1ethe river"], 2)
        >>> with_boundaries(sequences, 7, fields=2, max_terms=9)[0]
        array([8, 0, 9, 1, 0, 7], dtype=int32)
    """
    all_rows = np.arange(len(sequences))
    sequences = sequences.take(all_rows, max_terms=max_terms)
    ends = sequences.field_ends
    if ends is None:
        ends = np.column_stack([np.zeros((len(sequences), fields - 1), dtype=np.int64), sequences.lengths])
    starts, width = np.column_stack([np.zeros(len(sequences), dtype=np.int64), ends]), fields + 1
    offsets = offsets_of(sequences.lengths + width)
    boundaries = offsets[:-1, None] + starts + np.arange(width)  # (sequences, fields + 1)
    terms = np.empty(offsets[-1], dtype=np.int32)
    is_word = np.ones(len(terms), dtype=bool)
    is_word[boundaries] = False
    terms[is_word] = sequences.terms
    terms[boundaries] = first + (np.arange(width) + 1) % width
    return PackedSequences(terms, offsets).take(all_rows, max_terms=max_terms)
