"""What was computed for a vocabulary, kept while it is asked for again: that of a forward index stays."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pt_neural.text import PackedSequences, Vocabulary


class LastVocabulary:
    """Keeps one result: that for the last vocabulary, and for what else it depends on."""

    def __init__(self):
        self._last: tuple[tuple, Any] | None = None

    def __call__(self, compute: Callable[[], Any], vocabulary: Vocabulary, *others: object) -> Any:
        """The result for these very objects, computed if they are not the last ones."""
        last, wanted = self._last, (vocabulary, *others)  # another thread may set another
        if last is None or len(last[0]) != len(wanted) or any(a is not b for a, b in zip(last[0], wanted, strict=True)):
            last = self._last = wanted, compute()
        return last[1]

    def __reduce__(self) -> tuple:
        return LastVocabulary, ()  # a copy reads its forward index anew


class OwnIds:
    """Turns ids of other vocabularies into those of one's own, which are looked up once for the last pair of them.

    Example::

        >>> sequences = PackedSequences.from_lists([[0, 1, -1]])
        >>> OwnIds()(sequences, Vocabulary(["river", "lake"]), Vocabulary(["city", "river"]))[0]
        array([ 1, -1, -1], dtype=int32)
    """

    def __init__(self):
        self._ids = LastVocabulary()

    def __call__(self, sequences: PackedSequences, other: Vocabulary, own: Vocabulary) -> PackedSequences:
        """Sequences of ids of another vocabulary as one's own ids; -1 is an unknown word."""
        ids = self._ids(lambda: np.append(other.mapping_to(own), np.int32(-1)), other, own)  # -1 stays -1
        return PackedSequences(ids[sequences.terms], sequences.offsets)
