"""Terms, their ids, and how often they occur."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from pt_neural._files import (
    ArtifactError,
    is_count,
    load_array,
    read_object,
    reading,
    within,
    write_array,
    write_json,
)
from pt_neural.text.packed import PackedSequences


class Vocabulary:
    """Terms with ids from 0, and their frequencies if they were counted.

    Args:
        terms: Distinct strings without tab or newline; a term's position is its id.
        collection_frequency: Occurrences of each term, int64; None if not counted.
        document_frequency: Number of documents with each term, int64; None if not counted.
        num_documents: Number of documents counted, empty ones included.

    Raises:
        ValueError: If a term is repeated or contains a tab or newline, or if a count is missing.

    Example::

        >>> vocabulary = Vocabulary.build([["a", "river"], ["a", "city"]])
        >>> vocabulary.terms, vocabulary.document_frequency
        (['a', 'city', 'river'], array([2, 1, 1]))
    """

    def __init__(
        self,
        terms: Sequence[str],
        collection_frequency: np.ndarray | None = None,
        document_frequency: np.ndarray | None = None,
        num_documents: int = 0,
    ):
        self.terms = list(terms)
        self.collection_frequency = _counts(collection_frequency, self.terms)
        self.document_frequency = _counts(document_frequency, self.terms)
        self.num_documents = int(num_documents)
        _check_terms(self.terms)

    @classmethod
    def build(
        cls, token_lists: Iterable[Sequence[str]], *, min_count: int = 1, max_terms: int | None = None
    ) -> "Vocabulary":
        """Count terms and number them by falling collection frequency, ties in alphabetical order.

        Args:
            token_lists: The tokens of each document; read once.
            min_count: Leave out terms that occur less often.
            max_terms: Keep only this many of the most frequent terms; None keeps all.
        """
        occurrences, documents, num_documents = Counter(), Counter(), 0
        for tokens in token_lists:
            occurrences.update(tokens)
            documents.update(set(tokens))
            num_documents += 1
        terms = list(occurrences)
        frequency = np.fromiter(map(occurrences.get, terms), dtype=np.int64)
        kept = rank_terms(terms, frequency, min_count=min_count, max_terms=max_terms)
        terms = [terms[i] for i in kept]
        return cls(terms, frequency[kept], np.fromiter(map(documents.get, terms), dtype=np.int64), num_documents)

    @classmethod
    def union(cls, vocabularies: Iterable["Vocabulary"]) -> "Vocabulary":
        """The vocabulary of a collection from those of its parts, all of them counted: as :meth:`build` numbers terms.

        Example::

            >>> both = Vocabulary.union(Vocabulary.build([tokens]) for tokens in (["a", "river"], ["river", "city"]))
            >>> both.terms, both.document_frequency
            (['river', 'a', 'city'], array([2, 1, 1]))
        """
        numbers: dict[str, int] = {}
        counts = [np.zeros(0, dtype=np.int64) for _ in _FREQUENCIES]
        num_documents = 0
        for vocabulary in vocabularies:
            places = [numbers.setdefault(term, len(numbers)) for term in vocabulary.terms]
            counts = [np.pad(count, (0, len(numbers) - len(count))) for count in counts]
            for name, count in zip(_FREQUENCIES, counts, strict=True):
                count[places] += getattr(vocabulary, name)
            num_documents += vocabulary.num_documents
        terms = list(numbers)
        order = rank_terms(terms, counts[0], min_count=1, max_terms=None)
        return cls([terms[i] for i in order], *(count[order] for count in counts), num_documents)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {term: i for i, term in enumerate(self.terms)}

    def lookup(self, tokens: Iterable[str]) -> Iterator[int]:
        """Yield the id of each token, -1 where it is unknown."""
        return map(self._ids.get, tokens, repeat(-1))

    def ids(self, tokens: Iterable[str]) -> np.ndarray:
        """Ids of tokens as an int32 array, -1 where a token is unknown."""
        return np.fromiter(self.lookup(tokens), dtype=np.int32)

    def subset(self, terms: Sequence[str]) -> "Vocabulary":
        """Some of the terms, in the order given, with their counts."""
        ids = self.ids(terms)
        counts = {name: getattr(self, name)[ids] for name in _FREQUENCIES if getattr(self, name) is not None}
        return Vocabulary(terms, num_documents=self.num_documents, **counts)

    def mapping_to(self, other: "Vocabulary") -> np.ndarray:
        """The id of each term in another vocabulary: int32 array of shape ``(len(self),)``, -1 where it is missing."""
        return other.ids(self.terms)

    def after(self, first: "Vocabulary") -> "Vocabulary":
        """All terms of another vocabulary with the same ids, then the others; frequencies are those counted here.

        Example::

            >>> grown = Vocabulary.build([["a", "river"]]).after(Vocabulary(["city", "a"]))
            >>> grown.terms, grown.document_frequency
            (['city', 'a', 'river'], array([0, 1, 1]))
        """
        terms = list(dict.fromkeys([*first.terms, *self.terms]))
        ids = self.ids(terms)  # -1 selects the 0 at the end
        counts = [getattr(self, name) for name in _FREQUENCIES]
        counts = [None if count is None else np.append(count, 0)[ids] for count in counts]
        return Vocabulary(terms, *counts, self.num_documents)

    def __contains__(self, term: object) -> bool:
        return term in self._ids

    def __len__(self) -> int:
        return len(self.terms)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self):,} terms)"

    def save(self, directory: str | Path) -> None:
        """Write ``terms.txt`` (UTF-8, one term per line), ``counts.json`` and the frequencies as ``.npy`` files."""
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        write_lines(directory / "terms.txt", self.terms)
        counted = [name for name in _FREQUENCIES if getattr(self, name) is not None]
        for name in counted:
            write_array(directory / f"{name}.npy", getattr(self, name))
        write_json(directory / "counts.json", {"num_documents": self.num_documents, "counted": counted})

    @classmethod
    def load(cls, directory: str | Path) -> "Vocabulary":
        """Read what :meth:`save` wrote; ArtifactError names the file that is missing, damaged or does not fit."""
        directory = Path(directory)
        terms = read_lines(directory / "terms.txt")
        counts = read_object(directory / "counts.json")
        num_documents, counted = counts.get("num_documents"), counts.get("counted")
        if not is_count(num_documents) or not isinstance(counted, list):
            raise ArtifactError(f"{directory / 'counts.json'} is damaged: it does not say num_documents and counted")
        frequencies, ends = {}, (MOST, num_documents + 1)
        for name, end in zip(_FREQUENCIES, ends, strict=True):
            if name in counted:
                file = directory / f"{name}.npy"
                frequencies[name] = load_array(file, dtype=np.int64, memory_map=False)
                if not within(frequencies[name], end):
                    raise ArtifactError(f"{file} is damaged: it holds counts below 0 or above {end - 1:,}")
        try:
            return cls(terms, num_documents=num_documents, **frequencies)
        except ValueError as error:
            raise ArtifactError(f"{directory / 'terms.txt'} is damaged or does not fit its counts: {error}") from None


MOST = 2**40  # counts are below, so that those of eight million terms add up to an int64
_FREQUENCIES = ("collection_frequency", "document_frequency")


class LastVocabulary:
    """Caches the result for the last vocabulary asked for, and for any other objects that the result depends on.

    A forward index always has the same vocabulary, so whatever is computed from it is computed once.
    """

    def __init__(self):
        self._last: tuple[tuple, Any] | None = None

    def __call__(self, compute: Callable[[], Any], vocabulary: Vocabulary, *others: object) -> Any:
        """The result for exactly these objects; ``compute`` is called if they are not those of the last call."""
        last, wanted = self._last, (vocabulary, *others)  # read once: another thread may replace it
        if last is None or len(last[0]) != len(wanted) or any(a is not b for a, b in zip(last[0], wanted, strict=True)):
            last = self._last = wanted, compute()
        return last[1]

    def __reduce__(self) -> tuple:
        return LastVocabulary, ()  # the result is not pickled


class PerTerm:
    """A number for each term, which is computed when it is first asked for, then some further numbers.

    It is indexed by arrays of term ids as an array is, so that -1 is the last of the further numbers. Who needs the
    words of a few documents does not wait for all words of a collection.

    Args:
        compute: Gives the numbers of some terms, above the least that their type can hold.
        terms: The terms, by id.
        others: The further numbers, in an array of the type of all.

    Example::

        >>> PerTerm(lambda terms: list(map(len, terms)), ["a", "river"], np.array([0]))[np.array([1, -1])]
        array([5, 0])
    """

    def __init__(self, compute: Callable[[list[str]], Any], terms: Sequence[str], others: np.ndarray):
        self._compute, self._terms = compute, terms
        self._open = np.iinfo(others.dtype).min
        self._values = np.append(np.full(len(terms), self._open, dtype=others.dtype), others)

    def __getitem__(self, ids: np.ndarray) -> np.ndarray:
        values = self._values[ids]
        if (is_open := values == self._open).any():
            new = np.unique(ids[is_open] % len(self))
            self._values[new] = self._compute([self._terms[term] for term in new.tolist()])
            values = self._values[ids]
        return values

    def __len__(self) -> int:
        return len(self._values)

    def __getstate__(self) -> dict[str, Any]:
        self[np.arange(len(self))]  # once, rather than in each process that gets a copy
        return {**self.__dict__, "_compute": None, "_terms": ()}


class OwnIds:
    """Turns term ids of another vocabulary into one's own; the last mapping is cached."""

    def __init__(self):
        self._ids = LastVocabulary()

    def __call__(self, sequences: PackedSequences, other: Vocabulary, own: Vocabulary) -> PackedSequences:
        """The sequences over the vocabulary ``other`` as term ids of ``own``; -1 is an unknown word."""
        unknown = np.array([-1], dtype=np.int32)  # -1 stays -1
        ids = self._ids(lambda: PerTerm(own.ids, other.terms, unknown), other, own)
        return PackedSequences(ids[sequences.terms], sequences.offsets)


def rank_terms(terms: Sequence[str], frequency: np.ndarray, *, min_count: int, max_terms: int | None) -> np.ndarray:
    """Positions of the terms to keep, by falling frequency, ties in alphabetical order."""
    # Python sorts the strings, since NumPy would pad every term to the length of the longest.
    order = sorted(range(len(terms)), key=terms.__getitem__)
    order = np.array(order, dtype=np.int64)
    order = order[np.argsort(-frequency[order], kind="stable")]
    return order[frequency[order] >= min_count][:max_terms]


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write strings without newlines, one per line, in UTF-8 that may hold lone surrogates."""
    with path.open("w", encoding="utf-8", errors="surrogatepass", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def read_lines(path: Path) -> list[str]:
    """Read what :func:`write_lines` wrote; ArtifactError if the file is missing or damaged."""
    with reading(path):
        text = path.read_bytes().decode("utf-8", errors="surrogatepass")
    *lines, rest = text.split("\n")  # only a line feed ends a line
    if rest:
        raise ArtifactError(f"{path} is damaged: its last line is cut off")
    return lines


def _counts(frequency: np.ndarray | None, terms: Sequence[str]) -> np.ndarray | None:
    if frequency is None:
        return None
    frequency = np.asarray(frequency, dtype=np.int64)
    if frequency.shape != (len(terms),):
        raise ValueError(f"{len(terms)} terms need {len(terms)} counts, not an array of shape {frequency.shape}")
    return frequency


def _check_terms(terms: Sequence[str]) -> None:
    for term in terms:
        if "\n" in term or "\t" in term:
            raise ValueError(f"a term must not contain a tab or newline: {term!r}")
    if len(set(terms)) < len(terms):
        repeated, count = Counter(terms).most_common(1)[0]
        raise ValueError(f"terms must be distinct: {repeated!r} occurs {count} times")
