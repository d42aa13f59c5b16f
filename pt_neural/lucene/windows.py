"""Pairs of terms within a window, as Lucene queries that are scored by statistics of their own.

Lucene scores a span query by the statistics of its terms. Metzler & Croft smooth a window by its own
frequency in the collection. A term query may bring its statistics with it, so the terms of a window bring
those of the window: how often it occurs, and in how many documents.
"""

import functools
from typing import Any, NamedTuple

from pt_neural.lucene.batch import read_hits
from pt_neural.lucene.jvm import java_class
from pt_neural.lucene.reader import Reader
from pt_neural.lucene.search import search_function
from pt_neural.lucene.similarities import FrequencySimilarity

_SPANS = "org.apache.lucene.queries.spans"


class Window(NamedTuple):
    """Two terms next to each other in this order, or within ``width`` positions in any order."""

    first: str
    second: str
    ordered: bool
    width: int = 2

    @property
    def slop(self) -> int:
        """Positions between the two terms, at most."""
        return self.width - 2


@functools.lru_cache(maxsize=10_000)
def window_query(reader: Reader, field: str, window: Window) -> tuple[Any, float] | None:
    """The query of a window and the factor that makes its score one window's; None if it occurs nowhere.

    Lucene adds up what the terms of a span query contribute. Here each brings the same statistics, so that
    the score of a window of two terms comes out twice.
    """
    found = _statistics(reader, field, window)
    if found is None:
        return None
    query = _near(field, window, [_with_statistics(reader, field, term, *found) for term in window[:2]])
    return query, 0.5 if window.first != window.second else 1.0


def _statistics(reader: Reader, field: str, window: Window) -> tuple[int, int] | None:
    """Number of documents with the window, and number of windows."""
    rarer = int(reader.document_frequencies(window[:2], field).min())
    if rarer == 0:
        return None
    term = java_class("org.apache.lucene.index.Term")
    span = java_class(f"{_SPANS}.SpanTermQuery")
    plain = _near(field, window, [span(term(field, text)) for text in window[:2]])
    find = search_function(reader, FrequencySimilarity(), rarer)
    frequencies = read_hits(find.apply(plain))["score"]
    if not len(frequencies):
        return None
    return len(frequencies), max(len(frequencies), round(float(frequencies.sum())))


def _near(field: str, window: Window, terms: list[Any]) -> Any:
    """A span query. Two equal terms are taken in order, else one occurrence would make a pair with itself."""
    near = java_class(f"{_SPANS}.SpanNearQuery")
    in_order = window.ordered or window.first == window.second
    builder = near.newOrderedNearQuery(field) if in_order else near.newUnorderedNearQuery(field)
    for term in terms:
        builder.addClause(term)
    builder.setSlop(window.slop)
    return builder.build()


def _with_statistics(reader: Reader, field: str, text: str, documents: int, occurrences: int) -> Any:
    """A span query of a term that claims to occur so often."""
    term = java_class("org.apache.lucene.index.Term")(field, text)
    kind = java_class("org.apache.lucene.index.TermStates")
    searcher = reader.searcher(FrequencySimilarity())
    real = kind.build(searcher, term, True)
    claimed = kind(searcher.getTopReaderContext())
    leaves = reader.java.leaves()
    for i in range(leaves.size()):
        leaf = leaves.get(i)
        state = _state(real.get(leaf))
        if state is not None:
            claimed.register(state, i)
    claimed.accumulateStatistics(documents, occurrences)
    return java_class(f"{_SPANS}.SpanTermQuery")(term, claimed)


def _state(found: Any) -> Any:
    """Where a leaf keeps the term; Lucene 9 says so at once, Lucene 10 when asked once more."""
    return found.get() if hasattr(found, "get") else found
