"""Phrases of a few adjacent words, numbered."""

from collections.abc import Sequence

import numpy as np

from pt_neural.text.packed import PackedSequences, offsets_of
from pt_neural.text.vocabulary import Vocabulary


class Phrases:
    """Known words and phrases, numbered: first the words by their ids, then phrases of two words, and so on.

    Every prefix of a phrase is a phrase too. A phrase has no unknown words.

    Args:
        keys: For each length from two words on, the phrases of that length in increasing order, int64: the number of
            the prefix among the phrases of its length, times ``num_words``, plus the last word.
        num_words: Size of the vocabulary of words.

    Raises:
        ValueError: If the keys do not increase, or are out of range.

    Example::

        >>> from pt_neural.text import Vocabulary, tokenise_packed
        >>> vocabulary = Vocabulary(["new", "york", "city"])
        >>> words = tokenise_packed(["New York City", "city"], vocabulary)
        >>> phrases = Phrases.build(words, len(vocabulary), max_length=3)
        >>> phrases.names([0, 3, 5], vocabulary)
        ['new', 'new york', 'new york city']
        >>> phrases.numbers(words)
        array([[ 0,  3,  5],
               [ 1,  4, -1],
               [ 2, -1, -1],
               [ 2, -1, -1]])
    """

    def __init__(self, keys: Sequence[np.ndarray], num_words: int):
        self.keys = [np.asarray(array, dtype=np.int64) for array in keys]
        self.num_words = int(num_words)
        sizes = [self.num_words, *map(len, self.keys)]
        self.starts = np.cumsum([0, *sizes])
        for length, (array, size) in enumerate(zip(self.keys, sizes[:-1], strict=True), start=2):
            inside = array.ndim == 1 and (not len(array) or (array[0] >= 0 and array[-1] < size * self.num_words))
            if not inside or (array[1:] <= array[:-1]).any():
                raise ValueError(f"keys of phrases of {length} words must rise, and name known phrases and words")

    @classmethod
    def build(cls, sequences: PackedSequences, num_words: int, *, max_length: int) -> "Phrases":
        """Collect the phrases of texts up to a length; ids outside ``range(num_words)``, such as -1, are unknown."""
        phrases = cls([], num_words)
        while phrases.max_length < max_length:
            keys = phrases._longer(sequences, phrases.numbers(sequences)[:, -1], phrases.max_length)
            phrases = cls([*phrases.keys, np.unique(keys[keys >= 0])], num_words)
        return phrases

    @property
    def max_length(self) -> int:
        """Number of words of the longest phrases."""
        return len(self.keys) + 1

    def numbers(self, sequences: PackedSequences) -> np.ndarray:
        """The phrases of one word, two words, and so on that start at each word of texts: int64 (words, max_length).

        -1 where the phrase is unknown or would run past the end of the text.
        """
        terms = np.asarray(sequences.terms, dtype=np.int64)
        found = np.full((len(terms), self.max_length), -1, dtype=np.int64)
        found[:, 0] = np.where((terms >= 0) & (terms < self.num_words), terms, -1)
        for length, keys in enumerate(self.keys, start=1):
            wanted = self._longer(sequences, found[:, length - 1], length)
            places = np.searchsorted(keys, wanted)
            known = (wanted >= 0) & (np.append(keys, -1)[places] == wanted)
            found[known, length] = places[known] + self.starts[length]
        return found

    def _longer(self, sequences: PackedSequences, numbers: np.ndarray, length: int) -> np.ndarray:
        """The key of each phrase extended by the next word; -1 where there is no phrase or no known next word."""
        ends = np.repeat(sequences.offsets[1:], sequences.lengths)
        places = np.flatnonzero((numbers >= 0) & (np.arange(len(ends)) + length < ends))
        words = np.asarray(sequences.terms[places + length], dtype=np.int64)
        known = (words >= 0) & (words < self.num_words)
        keys = np.full(len(ends), -1, dtype=np.int64)
        keys[places[known]] = (numbers[places] - self.starts[length - 1])[known] * self.num_words + words[known]
        return keys

    def words(self, numbers: np.ndarray) -> PackedSequences:
        """The words of phrases given by number: one sequence of term ids per phrase."""
        rest = np.asarray(numbers, dtype=np.int64)
        lengths = np.searchsorted(self.starts, rest, side="right")
        words = np.full((len(rest), self.max_length), -1, dtype=np.int32)
        for length in range(self.max_length, 1, -1):
            longer = lengths >= length
            keys = self.keys[length - 2][rest[longer] - self.starts[length - 1]]
            shorter, words[longer, length - 1] = np.divmod(keys, self.num_words)
            rest = rest.copy()
            rest[longer] = shorter + self.starts[length - 2]
        words[:, 0] = rest
        return PackedSequences(words[words >= 0], offsets_of(lengths))

    def names(self, numbers: np.ndarray | Sequence[int], vocabulary: Vocabulary) -> list[str]:
        """Phrases given by number as text, such as ``"new york"``."""
        return [" ".join(vocabulary.terms[word] for word in words) for words in self.words(numbers)]

    def __len__(self) -> int:
        return int(self.starts[-1])

    def __repr__(self) -> str:
        return f"Phrases({self.num_words:,} words, {len(self) - self.num_words:,} longer ones)"
