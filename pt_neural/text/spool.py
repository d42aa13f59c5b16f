"""Token lists to disk as term ids, in memory that does not grow with the collection."""

from array import array
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pt_neural.text.arrays import load_array
from pt_neural.text.packed import PackedSequences, offsets_of
from pt_neural.text.vocabulary import Vocabulary, rank_terms

_BLOCK = 1 << 20  # terms held in memory


class TermSpool:
    """Writes token lists to a directory as packed term ids while it counts the terms.

    A term's final id is known only when all terms are counted. So each term gets a number when it is first seen,
    and :meth:`finish` renumbers the file.

    Args:
        directory: An existing directory, which receives ``terms.npy`` and ``offsets.npy``.

    Example::

        with TermSpool(directory) as spool:
            spool.append(["a", "river"])
            vocabulary = spool.finish()
        sequences = load_sequences(directory)
    """

    def __init__(self, directory: Path):
        self.directory = directory
        self._numbers: defaultdict[str, int] = defaultdict()
        self._numbers.default_factory = self._numbers.__len__
        self._raw = directory / "terms.raw"
        self._file = self._raw.open("wb")
        self._pending = array("i")
        self._pending_lengths = array("q")
        self._lengths = array("q")
        self._collection_frequency = np.zeros(0, dtype=np.int64)
        self._document_frequency = np.zeros(0, dtype=np.int64)

    def __enter__(self) -> "TermSpool":
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()
        self._raw.unlink(missing_ok=True)

    def __len__(self) -> int:
        return len(self._lengths) + len(self._pending_lengths)

    def append(self, tokens: Sequence[str]) -> None:
        """Add the tokens of one document."""
        self._pending.extend(map(self._numbers.__getitem__, tokens))
        self._pending_lengths.append(len(tokens))
        if len(self._pending) >= _BLOCK:
            self._flush()

    def finish(self, *, min_count: int = 1, max_terms: int | None = None) -> Vocabulary:
        """Write the arrays and return the vocabulary; terms that it leaves out have the id -1 in the arrays.

        Args:
            min_count: Leave out terms that occur less often.
            max_terms: Keep only that many of the most frequent terms; None keeps all.
        """
        self._flush()
        self._file.close()
        terms = list(self._numbers)
        kept = rank_terms(terms, self._collection_frequency, min_count=min_count, max_terms=max_terms)
        self._write_renumbered(kept)
        np.save(self.directory / "offsets.npy", offsets_of(np.array(self._lengths, dtype=np.int64)))
        return Vocabulary(
            [terms[i] for i in kept], self._collection_frequency[kept], self._document_frequency[kept], len(self)
        )

    def _flush(self) -> None:
        numbers = np.array(self._pending, dtype=np.int32)
        documents = np.repeat(np.arange(len(self._pending_lengths)), np.array(self._pending_lengths, dtype=np.int64))
        pairs = np.unique(documents * len(self._numbers) + numbers)
        self._collection_frequency = self._added(self._collection_frequency, numbers)
        self._document_frequency = self._added(self._document_frequency, pairs % max(len(self._numbers), 1))
        self._file.write(numbers.tobytes())
        self._lengths.extend(self._pending_lengths)
        del self._pending[:], self._pending_lengths[:]

    def _added(self, frequency: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        total = np.bincount(numbers, minlength=len(self._numbers)).astype(np.int64)
        total[: len(frequency)] += frequency
        return total

    def _write_renumbered(self, kept: np.ndarray) -> None:
        ids = np.full(len(self._numbers), -1, dtype=np.int32)
        ids[kept] = np.arange(len(kept), dtype=np.int32)
        size = self._raw.stat().st_size // ids.itemsize
        terms = np.lib.format.open_memmap(self.directory / "terms.npy", mode="w+", dtype=np.int32, shape=(size,))
        with self._raw.open("rb") as raw:
            for start in range(0, size, _BLOCK):
                terms[start : start + _BLOCK] = ids[np.fromfile(raw, dtype=np.int32, count=_BLOCK)]
        terms.flush()


def load_sequences(directory: Path) -> PackedSequences:
    """Map the sequences that a :class:`TermSpool` wrote.

    Raises:
        ArtifactError: If a file is missing or damaged.
        ValueError: If the two files do not fit each other.
    """
    terms = load_array(directory / "terms.npy", dtype=np.int32)
    return PackedSequences(terms, load_array(directory / "offsets.npy", dtype=np.int64))
