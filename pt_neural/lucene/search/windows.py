"""Windows of two terms: their queries, and how often they occur.

Lucene scores a span query by the statistics of its terms; Metzler & Croft smooth a window by its own frequency in the
collection. Since a term query may bring its own statistics, the terms of a window are given the statistics of the
window: how often it occurs, and in how many documents.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar, NamedTuple

from pt_neural.lucene.index.reader import Reader, remembered
from pt_neural.lucene.java.handles import bind, function, java_list, on_each, static
from pt_neural.lucene.java.jvm import apart, in_java, java_class
from pt_neural.lucene.search.scoring import QUERY, SEARCHER, FrequencySimilarity, searcher

_WINDOWS = "pt_neural.WindowQueries"

TURN = 100  # windows that are prepared while other threads wait, which takes some milliseconds
MOST_COUNTS = 100_000  # windows that a reader remembers the counts of
UNITS = 1 << 20  # frequencies are counted in whole units, whose sum does not depend on their order


class Window(NamedTuple):
    """Two terms next to each other in this order, or within ``width`` positions in any order."""

    first: str
    second: str
    ordered: bool
    width: int = 2

    @property
    def slop(self) -> int:
        """Maximum number of positions between the two terms."""
        return self.width - 2


def window_queries(
    reader: Reader, field: str, windows: Sequence[Window]
) -> tuple[Any, dict[Window, tuple[int, float]]]:
    """The queries of the windows that occur anywhere, in a Java list; and the place of each in it, with a factor.

    The factor corrects its score: Lucene adds up what the terms of a span query contribute. Since each brings the same
    statistics here, a window of two different terms would score twice.
    """
    counts = count_windows(reader, field, windows) if reader.statistics is None else reader.statistics.windows
    occurring = [window for window in windows if counts[window][0]]
    queries = in_java(java_list)(())
    for some in _in_turns(occurring):
        _add_claiming(reader, field, [(window, *counts[window]) for window in some], queries)
    factors = (0.5 if window.first != window.second else 1.0 for window in occurring)
    return queries, {window: place for window, *place in zip(occurring, count(), factors)}


@in_java
def _add_claiming(reader: Reader, field: str, counts: Sequence[tuple[Window, int, int]], queries: Any) -> None:
    """Add the queries of windows whose terms claim the statistics of their window to a Java list."""
    windows, documents, units = zip(*counts, strict=True)
    occurrences = [max(found, round(number / UNITS)) for found, number in zip(documents, units, strict=True)]
    if reader.statistics is not None:
        occurrences = [-number for number in occurrences]  # which GlobalStatistics.java reads
    made = java_class(_WINDOWS).claiming(reader.java, field, *_columns(windows), list(documents), occurrences)
    queries.addAll(made)


def count_windows(reader: Reader, field: str, windows: Sequence[Window]) -> dict[Window, tuple[int, int]]:
    """The number of documents with each window, and the sum of its frequencies in units of 1 / UNITS.

    Counts of the parts of a collection add up to those of the whole, whatever the parts. They are counted on all cores,
    while other threads take their turns.
    """
    known = _known_counts(reader, field)
    if len(known) > MOST_COUNTS:
        known.clear()
    counts = {window: known[window] for window in windows if window in known}
    for some in _in_turns([window for window in windows if window not in counts]):
        found = apart(_count_all(reader), PlainWindows(field).build(some), kept=reader)
        counts |= zip(some, _as_pairs(found), strict=True)
    known |= counts
    return counts


def _in_turns(windows: Sequence[Window]) -> list[Sequence[Window]]:
    return [windows[start : start + TURN] for start in range(0, len(windows), TURN)]


@remembered(maxsize=16)
def _known_counts(reader: Reader, field: str) -> dict[Window, tuple[int, int]]:
    return {}


@remembered(maxsize=1)
@in_java
def _count_all(reader: Reader) -> Any:
    """Java function from a list of queries to a list of their counts, ``long[]``."""
    handle = static("pt_neural.SpanFrequencies", "count", "long[]", SEARCHER, QUERY)
    bound = function(bind(handle, 0, searcher(reader, FrequencySimilarity())))
    return on_each(bound)


@dataclass(frozen=True)
class PlainWindows:
    """Queries of one window each, which score by Lucene's own statistics."""

    field: str
    slow: ClassVar[bool] = True

    @in_java
    def build(self, queries: Sequence[Window]) -> Any:
        """A Java list of the windows' queries."""
        return java_class(_WINDOWS).plain(self.field, *_columns(queries))

    def needs(self, queries: Sequence[Window]) -> tuple[set[str], set[Hashable]]:
        """The terms of the windows."""
        return {term for window in queries for term in window[:2]}, set()


def _columns(windows: Sequence[Window]) -> tuple[list[str], list[int], list[bool]]:
    """The terms of windows, two of each, their slops, and whether they are ordered, as Java takes them."""
    terms = [term for window in windows for term in window[:2]]
    return terms, [window.slop for window in windows], [window.ordered for window in windows]


@in_java
def _as_pairs(counts: Any) -> list[tuple[int, int]]:
    return [tuple(pair) for pair in counts.toArray()]
