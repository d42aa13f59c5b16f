"""Windows of two terms: their queries, and how often they occur.

Lucene scores a span query by the statistics of its terms; Metzler & Croft smooth a window by its own frequency in the
collection. Since a term query may bring its own statistics, the terms of a window are given the statistics of the
window: how often it occurs, and in how many documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pt_neural.lucene.index.reader import Reader, remembered
from pt_neural.lucene.java.handles import bind, function, java_list, on_each, static
from pt_neural.lucene.java.jvm import apart, in_java, java_class
from pt_neural.lucene.search.scoring import QUERY, SEARCHER, FrequencySimilarity, searcher

_SPANS = "org.apache.lucene.queries.spans"

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


def window_queries(reader: Reader, field: str, windows: Sequence[Window]) -> dict[Window, tuple[Any, float]]:
    """The query of each window that occurs anywhere, and a factor that corrects its score.

    Lucene adds up what the terms of a span query contribute. Since each brings the same statistics here, a window
    of two different terms would score twice.
    """
    counts = count_windows(reader, field, windows) if reader.statistics is None else reader.statistics.windows
    occurring = [window for window in windows if counts[window][0]]
    queries = {}
    for some in _in_turns(occurring):
        queries |= _build(reader, field, {window: counts[window] for window in some})
    return queries


@in_java
def _build(reader: Reader, field: str, counts: Mapping[Window, tuple[int, int]]) -> dict[Window, tuple[Any, float]]:
    queries = {}
    for window, (documents, units) in counts.items():
        occurrences = max(documents, round(units / UNITS))
        claimed = occurrences if reader.statistics is None else -occurrences  # which GlobalStatistics.java reads
        query = _claiming_query(reader, field, window, documents, claimed)
        queries[window] = query, 0.5 if window.first != window.second else 1.0
    return queries


@remembered(maxsize=10_000)
def _claiming_query(reader: Reader, field: str, window: Window, documents: int, occurrences: int) -> Any:
    """The query of a window whose terms claim its statistics."""
    terms = [_with_statistics(reader.java, field, term, documents, occurrences) for term in window[:2]]
    return _near(field, window, terms)


def count_windows(reader: Reader, field: str, windows: Sequence[Window]) -> dict[Window, tuple[int, int]]:
    """The number of documents with each window, and the sum of its frequencies in units of 1 / UNITS.

    Counts of the parts of a collection add up to those of the whole, whatever the parts. They are counted on all cores,
    while other threads take their turns.
    """
    known = _known_counts(reader, field)
    if len(known) > MOST_COUNTS:
        known.clear()
    counts = {window: count for window in windows if (count := known.get(window))}
    for some in _in_turns([window for window in windows if window not in counts]):
        found = apart(_count_all(reader), _plain_queries(field, some), kept=reader)
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
    count = static("pt_neural.SpanFrequencies", "count", "long[]", SEARCHER, QUERY)
    bound = function(bind(count, 0, searcher(reader, FrequencySimilarity())))
    return on_each(bound)


@in_java
def _plain_queries(field: str, windows: Sequence[Window]) -> Any:
    """A Java list of the windows' queries, which score by Lucene's own statistics."""
    term, span = java_class("org.apache.lucene.index.Term"), java_class(f"{_SPANS}.SpanTermQuery")
    return java_list(_near(field, window, [span(term(field, text)) for text in window[:2]]) for window in windows)


@in_java
def _as_pairs(counts: Any) -> list[tuple[int, int]]:
    return [tuple(pair) for pair in counts.toArray()]


def _near(field: str, window: Window, terms: list[Any]) -> Any:
    """A span query. Equal terms are taken in order, or else one occurrence would make a pair with itself."""
    near = java_class(f"{_SPANS}.SpanNearQuery")
    in_order = window.ordered or window.first == window.second
    builder = near.newOrderedNearQuery(field) if in_order else near.newUnorderedNearQuery(field)
    for term in terms:
        builder.addClause(term)
    builder.setSlop(window.slop)
    return builder.build()


def _with_statistics(java: Any, field: str, text: str, documents: int, occurrences: int) -> Any:
    """A span query of a term that claims the given statistics."""
    term = java_class("org.apache.lucene.index.Term")(field, text)
    kind = java_class("org.apache.lucene.index.TermStates")
    lucene = java_class(SEARCHER)(java, signature="(Lorg/apache/lucene/index/IndexReader;)V")
    real = kind.build(lucene, term, True)
    claimed = kind(lucene.getTopReaderContext())
    leaves = java.leaves()
    for i in range(leaves.size()):
        leaf = leaves.get(i)
        state = _state(real.get(leaf))
        if state is not None:
            claimed.register(state, i)
    claimed.accumulateStatistics(documents, occurrences)
    return java_class(f"{_SPANS}.SpanTermQuery")(term, claimed)


def _state(found: Any) -> Any:
    """Where a leaf keeps the term: Lucene 9 returns it, Lucene 10 a supplier of it."""
    return found.get() if hasattr(found, "get") else found
