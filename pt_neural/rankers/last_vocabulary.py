"""What was computed for a vocabulary, kept while it is asked for again: that of a forward index stays."""

from collections.abc import Callable
from typing import Any

from pt_neural.text import Vocabulary


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
