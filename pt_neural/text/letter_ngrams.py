"""Word hashing: words as bags of letter n-grams."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import repeat
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from pt_neural._arguments import checked_integers
from pt_neural._files import ArtifactError, read_object, write_json
from pt_neural.text.packed import offsets_of
from pt_neural.text.vocabulary import Vocabulary, read_lines, write_lines

BOUNDARY = "#"


class WordHashing:
    """Turns words into counts of the letter n-grams of ``#word#`` (CLSM paper, section 3.2; Duet paper, section 3.2).

    A new word still has the n-grams that it shares with known words; unknown n-grams are dropped.

    Args:
        ngrams: The known n-grams; an n-gram's position is its column.
        sizes: Lengths of the n-grams, such as ``(3,)`` for letter trigrams.

    Raises:
        ValueError: If an n-gram is repeated or contains a newline, or if a size is below 1.

    Example::

        >>> hashing = WordHashing.build(["boy"])
        >>> hashing.ngrams
        ['#bo', 'boy', 'oy#']
        >>> hashing.bags(["boy", "boys"]).toarray()
        array([[1., 1., 1.],
               [1., 1., 0.]], dtype=float32)
    """

    def __init__(self, ngrams: Sequence[str], sizes: Sequence[int] = (3,)):
        self.ngrams = list(ngrams)
        self.sizes = tuple(sorted(set(sizes)))
        if not self.sizes or self.sizes[0] < 1:
            raise ValueError(f"sizes must be lengths of at least 1, not {sizes!r}")
        if len(set(self.ngrams)) < len(self.ngrams) or any("\n" in ngram for ngram in self.ngrams):
            raise ValueError("n-grams must be distinct and contain no newline")

    @classmethod
    def build(
        cls, words: Vocabulary | Iterable[str], *, sizes: Sequence[int] = (3,), max_ngrams: int | None = None
    ) -> "WordHashing":
        """Collect the n-grams of distinct words, by falling frequency, ties in alphabetical order.

        With a vocabulary that has collection frequencies, these count for the n-grams of its words. ``max_ngrams``
        keeps only the most frequent; None keeps all.
        """
        frequencies: Iterable[int] = repeat(1)
        if isinstance(words, Vocabulary):
            if words.collection_frequency is not None:
                frequencies = words.collection_frequency.tolist()
            words = words.terms
        counts = Counter()
        for word, frequency in zip(words, frequencies, strict=False):
            for ngram in letter_ngrams(word, sizes):
                counts[ngram] += frequency
        return cls(sorted(counts, key=lambda ngram: (-counts[ngram], ngram))[:max_ngrams], sizes)

    def extended(self, ngrams: Iterable[str]) -> "WordHashing":
        """The same n-grams in the same columns, followed by those of the given ones that are new."""
        return WordHashing(list(dict.fromkeys([*self.ngrams, *ngrams])), self.sizes)

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {ngram: column for column, ngram in enumerate(self.ngrams)}

    def bags(self, words: Iterable[str]) -> csr_array:
        """The n-gram counts of distinct words: sparse float32 (words, len(self)), W_f of the CLSM paper."""
        column, sizes = self._columns.get, self.sizes
        bounded = [f"{BOUNDARY}{word}{BOUNDARY}" for word in words]
        columns = np.array(
            [column(word[i : i + size], -1) for word in bounded for size in sizes for i in range(len(word) - size + 1)],
            dtype=np.int64,
        )
        lengths = np.fromiter(map(len, bounded), dtype=np.int64)
        rows = np.repeat(np.arange(len(bounded)), sum(np.maximum(lengths - size + 1, 0) for size in sizes))
        known = columns >= 0
        places, counts = np.unique(rows[known] * len(self) + columns[known], return_counts=True)
        rows, columns = np.divmod(places, max(len(self), 1))
        offsets = offsets_of(np.bincount(rows, minlength=len(bounded)))
        return csr_array((counts.astype(np.float32), columns, offsets), shape=(len(bounded), len(self)))

    def __len__(self) -> int:
        return len(self.ngrams)

    def __repr__(self) -> str:
        return f"WordHashing({len(self):,} n-grams of {' and '.join(map(str, self.sizes))} letters)"

    def save(self, directory: str | Path) -> None:
        """Write ``ngrams.txt`` (UTF-8, one n-gram per line) and ``ngrams.json`` (their sizes)."""
        directory = Path(directory)
        write_lines(directory / "ngrams.txt", self.ngrams)
        write_json(directory / "ngrams.json", {"sizes": list(self.sizes)})

    @classmethod
    def load(cls, directory: str | Path, sizes: Sequence[int]) -> "WordHashing":
        """Read what :meth:`save` wrote; ArtifactError names a file that is missing or damaged, or has other sizes."""
        directory = Path(directory)
        ngrams, settings = read_lines(directory / "ngrams.txt"), read_object(directory / "ngrams.json")
        try:
            found = checked_integers("sizes", settings["sizes"], least=1)
            if set(found) != set(sizes):
                raise ValueError(f"sizes are {found}, not {tuple(sizes)}")
            return cls(ngrams, found)
        except (KeyError, TypeError, ValueError) as error:
            raise ArtifactError(f"{directory / 'ngrams.json'} or ngrams.txt is damaged: {error!r}") from None


def letter_ngrams(word: str, sizes: Sequence[int] = (3,)) -> list[str]:
    """The letter n-grams of ``#word#``, with repetitions, size after size.

    Example::

        >>> letter_ngrams("boy")
        ['#bo', 'boy', 'oy#']
    """
    bounded = f"{BOUNDARY}{word}{BOUNDARY}"
    return [bounded[i : i + size] for size in sizes for i in range(len(bounded) - size + 1)]
