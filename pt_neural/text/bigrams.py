"""Pairs of adjacent words, as features of texts."""

from pathlib import Path

import numpy as np

from pt_neural._files import ArtifactError, is_count, load_array, read_object, write_array, write_json
from pt_neural.text.counts import bag_of_words
from pt_neural.text.packed import PackedSequences, offsets_of
from pt_neural.text.vocabulary import Vocabulary


class Bigrams:
    """The bigrams of a collection, numbered from 0, with their document frequencies (SSI paper, section 2.2.3).

    A bigram is two known words next to each other in one text.

    Args:
        keys: The bigrams as ``first * num_terms + second``, in increasing order, int64.
        document_frequency: Number of documents with each bigram, int64.
        num_terms: Size of the vocabulary of words.
        num_documents: Number of documents counted, those without bigrams included.

    Raises:
        ValueError: If the keys do not increase or are out of range, or if a frequency is missing or impossible.

    Example::

        >>> from pt_neural.text import Vocabulary, tokenise_packed
        >>> vocabulary = Vocabulary(["pearl", "harbor", "city"])
        >>> words = tokenise_packed(["Pearl Harbor", "a city", "Pearl Harbor city"], vocabulary)
        >>> bigrams = Bigrams.build(words, len(vocabulary), min_documents=1)
        >>> bigrams.names(vocabulary), bigrams.document_frequency
        (['pearl harbor', 'harbor city'], array([2, 1]))
        >>> bigrams.sequences(words)[2]
        array([0, 1], dtype=int32)
    """

    def __init__(self, keys: np.ndarray, document_frequency: np.ndarray, *, num_terms: int, num_documents: int):
        self.keys = np.asarray(keys, dtype=np.int64)
        self.document_frequency = np.asarray(document_frequency, dtype=np.int64)
        self.num_terms, self.num_documents = int(num_terms), int(num_documents)
        if (np.diff(self.keys) <= 0).any() or not _within(self.keys, 0, self.num_terms**2 - 1):
            raise ValueError(f"keys must rise, from 0 or more to less than {self.num_terms:,} squared")
        if self.document_frequency.shape != self.keys.shape:
            raise ValueError(f"{len(keys):,} keys need as many frequencies, not {self.document_frequency.shape}")
        if not _within(self.document_frequency, 1, self.num_documents):
            raise ValueError(f"document frequencies must be from 1 to the number of documents, {self.num_documents:,}")

    @classmethod
    def build(
        cls, sequences: PackedSequences, num_terms: int, *, min_documents: int = 2, max_bigrams: int | None = None
    ) -> "Bigrams":
        """Count the bigrams of documents; ids outside ``range(num_terms)``, such as -1, are unknown words.

        Bigrams of fewer than ``min_documents`` documents are left out; of the others, ``max_bigrams`` keeps those of
        the most documents, ties by smaller key; None keeps all.
        """
        found = _keys(sequences, num_terms)
        keys, occurrences = np.unique(found[found >= 0], return_counts=True)
        keys = keys[occurrences >= min_documents]  # only these can occur in that many documents
        frequency = _document_frequency(PackedSequences(_positions(keys, found), sequences.offsets), len(keys))
        frequent = np.flatnonzero(frequency >= min_documents)
        kept = np.sort(frequent[np.argsort(-frequency[frequent], kind="stable")][:max_bigrams])
        return cls(keys[kept], frequency[kept], num_terms=num_terms, num_documents=len(sequences))

    def sequences(self, sequences: PackedSequences) -> PackedSequences:
        """The numbers of the known bigrams of each text, in order; texts over the vocabulary of :meth:`build`."""
        numbers = _positions(self.keys, _keys(sequences, self.num_terms))
        known = numbers >= 0
        return PackedSequences(numbers[known], offsets_of(known)[sequences.offsets])

    def names(self, vocabulary: Vocabulary) -> list[str]:
        """The bigrams as text, such as ``"pearl harbor"``; takes the vocabulary that they were built from."""
        if len(vocabulary) != self.num_terms:
            raise ValueError(f"{self!r} are made of {self.num_terms:,} words; {vocabulary!r} is another vocabulary")
        pairs = zip(*(numbers.tolist() for numbers in np.divmod(self.keys, self.num_terms)), strict=True)
        return [f"{vocabulary.terms[first]} {vocabulary.terms[second]}" for first, second in pairs]

    def __len__(self) -> int:
        return len(self.keys)

    def __repr__(self) -> str:
        return f"Bigrams({len(self):,} pairs)"

    def save(self, directory: str | Path) -> None:
        """Write ``keys.npy``, ``document_frequency.npy`` and ``bigrams.json`` to a directory."""
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        for name in _ARRAYS:
            write_array(directory / f"{name}.npy", getattr(self, name))
        write_json(directory / "bigrams.json", {name: getattr(self, name) for name in _SIZES})

    @classmethod
    def load(cls, directory: str | Path) -> "Bigrams":
        """Read what :meth:`save` wrote; ArtifactError names the file that is missing, damaged or does not fit."""
        directory = Path(directory)
        sizes = read_object(directory / "bigrams.json")
        if not all(is_count(sizes.get(name)) for name in _SIZES):
            raise ArtifactError(f"{directory / 'bigrams.json'} is damaged: {' or '.join(_SIZES)} is missing")
        arrays = [load_array(directory / f"{name}.npy", dtype=np.int64, memory_map=False) for name in _ARRAYS]
        try:
            return cls(*arrays, **{name: sizes[name] for name in _SIZES})
        except ValueError as error:
            raise ArtifactError(f"{directory / 'keys.npy'} does not fit the files beside it: {error}") from None


_BLOCK = 4096  # sequences whose counts are in memory at a time
_ARRAYS = ("keys", "document_frequency")
_SIZES = ("num_terms", "num_documents")


def _keys(sequences: PackedSequences, num_terms: int) -> np.ndarray:
    """The key of the bigram that starts at each word, int64; -1 where there is none, as at the end of a text."""
    first, second = sequences.terms, np.append(sequences.terms[1:], -1)
    keys = first.astype(np.int64) * num_terms + second
    keys[(first < 0) | (second < 0) | (first >= num_terms) | (second >= num_terms)] = -1
    ends = sequences.offsets[1:][sequences.lengths > 0]
    keys[ends - 1] = -1
    return keys


def _document_frequency(sequences: PackedSequences, num_terms: int) -> np.ndarray:
    """The number of sequences with each term, int64; ids outside ``range(num_terms)`` are ignored."""
    frequency = np.zeros(num_terms, dtype=np.int64)
    for start in range(0, len(sequences), _BLOCK):
        block = sequences.take(np.arange(start, min(start + _BLOCK, len(sequences))))
        frequency += np.bincount(bag_of_words(block, num_terms).indices, minlength=num_terms)
    return frequency


def _positions(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The position of each wanted key among the sorted keys, int32; -1 if it is missing."""
    positions = np.searchsorted(keys, wanted).astype(np.int32)
    positions[np.append(keys, -1)[positions] != wanted] = -1
    positions[wanted < 0] = -1
    return positions


def _within(values: np.ndarray, least: int, most: int) -> bool:
    return len(values) == 0 or (least <= values.min() and values.max() <= most)
