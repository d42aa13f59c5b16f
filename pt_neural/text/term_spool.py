"""The tokens of a collection, spooled to disk as term ids."""

from array import array
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from pt_neural._files import GrowingArray, load_array
from pt_neural.text.packed import PackedSequences
from pt_neural.text.vocabulary import Vocabulary, rank_terms

_BLOCK = 1 << 20  # tokens held in memory


class TermSpool:
    """Writes token lists to ``terms.npy`` and ``offsets.npy`` in an existing directory, counting terms as it goes.

    Memory grows with the vocabulary, not with the number of tokens. A term's final id is known only once all terms are
    counted, so each term gets a provisional number when it first appears, and :meth:`finish` renumbers the file.
    """

    def __init__(self, directory: Path):
        self.directory = directory
        self._numbers: defaultdict[str, int] = defaultdict()
        self._numbers.default_factory = self._numbers.__len__
        self._raw = directory / "terms.raw"
        self._file = self._raw.open("wb")
        self._pending = array("i")
        self._pending_lengths = array("q")
        self._num_terms = 0
        self._offsets = GrowingArray(directory / "offsets.npy", np.int64)
        self._offsets.append(np.zeros(1))
        self._collection_frequency = np.zeros(0, dtype=np.int64)
        self._document_frequency = np.zeros(0, dtype=np.int64)

    def __enter__(self) -> "TermSpool":
        return self

    def __exit__(self, *exception: object) -> None:
        with ExitStack() as closing:  # all of them, even if the disk is full
            closing.callback(self._raw.unlink, missing_ok=True)
            closing.callback(self._file.close)
            closing.callback(self._offsets.close)

    def __len__(self) -> int:
        return len(self._offsets) - 1 + len(self._pending_lengths)

    def append(self, tokens: Sequence[str]) -> None:
        """Add the tokens of one document."""
        self._pending.extend(map(self._numbers.__getitem__, tokens))
        self._pending_lengths.append(len(tokens))
        if len(self._pending) >= _BLOCK:
            self._flush()

    def finish(self, *, min_count: int = 1, max_terms: int | None = None) -> Vocabulary:
        """Write the arrays and return the vocabulary; terms left out of it are -1 in the arrays."""
        self._flush()
        self._file.close()
        self._offsets.close()
        terms = list(self._numbers)
        kept = rank_terms(terms, self._collection_frequency, min_count=min_count, max_terms=max_terms)
        self._write_renumbered(kept)
        return Vocabulary(
            [terms[i] for i in kept], self._collection_frequency[kept], self._document_frequency[kept], len(self)
        )

    def _flush(self) -> None:
        numbers = np.array(self._pending, dtype=np.int32)
        lengths = np.array(self._pending_lengths, dtype=np.int64)
        documents = np.repeat(np.arange(len(lengths)), lengths)
        pairs = np.unique(documents * len(self._numbers) + numbers)
        self._collection_frequency = self._count(numbers, self._collection_frequency)
        self._document_frequency = self._count(pairs % max(len(self._numbers), 1), self._document_frequency)
        self._file.write(numbers.tobytes())
        self._offsets.append(self._num_terms + np.cumsum(lengths))
        self._num_terms += len(numbers)
        del self._pending[:], self._pending_lengths[:]

    def _count(self, numbers: np.ndarray, counts_so_far: np.ndarray) -> np.ndarray:
        total = np.bincount(numbers, minlength=len(self._numbers)).astype(np.int64)
        total[: len(counts_so_far)] += counts_so_far
        return total

    def _write_renumbered(self, kept: np.ndarray) -> None:
        ids = np.full(len(self._numbers), -1, dtype=np.int32)
        ids[kept] = np.arange(len(kept), dtype=np.int32)
        size = self._raw.stat().st_size // ids.itemsize
        terms = GrowingArray(self.directory / "terms.npy", np.int32)
        with self._raw.open("rb") as raw:
            for _ in range(0, size, _BLOCK):
                terms.append(ids[np.fromfile(raw, dtype=np.int32, count=_BLOCK)])
        terms.close()


def load_sequences(directory: Path) -> PackedSequences:
    """Memory-map the sequences that a :class:`TermSpool` wrote; ValueError if the two files do not fit together."""
    terms = load_array(directory / "terms.npy", dtype=np.int32)
    return PackedSequences(terms, load_array(directory / "offsets.npy", dtype=np.int64))
