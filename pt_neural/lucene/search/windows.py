"""Windows of two terms: their queries, and how often they occur.

Lucene scores a span query by the statistics of its terms; Metzler & Croft smooth a window by its own frequency in the
collection. Since a term query may bring its own statistics, the terms of a window are given the statistics of the
window: how often it occurs, and in how many documents.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from pt_neural.lucene.index.reader import Reader
from pt_neural.lucene.java.jvm import in_java, java_class
from pt_neural.lucene.search.scoring import FrequencySimilarity, searcher

_SEARCHER = "org.apache.lucene.search.IndexSearcher"
_SPANS = "org.apache.lucene.queries.spans"

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


def window_query(reader: Reader, field: str, window: Window) -> tuple[Any, float] | None:
    """The query of a window and a factor that corrects its score; None if the window occurs nowhere.

    Lucene adds up what the terms of a span query contribute. Since each brings the same statistics here, a window
    of two different terms would score twice.
    """
    given = reader.statistics
    documents, units = count_window(reader, field, window) if given is None else given.windows[window]
    if documents == 0:
        return None
    occurrences = max(documents, round(units / UNITS))
    query = _claiming_query(reader.java, field, window, documents, occurrences if given is None else -occurrences)
    return query, 0.5 if window.first != window.second else 1.0


@functools.lru_cache(maxsize=10_000)
def _claiming_query(java: Any, field: str, window: Window, documents: int, occurrences: int) -> Any:
    """The query of a window whose terms claim its statistics; GlobalStatistics.java reads a negative number."""
    return _near(field, window, [_with_statistics(java, field, term, documents, occurrences) for term in window[:2]])


@functools.lru_cache(maxsize=10_000)
@in_java
def count_window(reader: Reader, field: str, window: Window) -> tuple[int, int]:
    """The number of documents with the window, and the sum of its frequencies in units of 1 / UNITS.

    Counts of the parts of a collection add up to those of the whole, whatever the parts.
    """
    term = java_class("org.apache.lucene.index.Term")
    span = java_class(f"{_SPANS}.SpanTermQuery")
    plain = _near(field, window, [span(term(field, text)) for text in window[:2]])
    documents, units = java_class("pt_neural.SpanFrequencies").count(searcher(reader, FrequencySimilarity()), plain)
    return documents, units


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
    lucene = java_class(_SEARCHER)(java, signature="(Lorg/apache/lucene/index/IndexReader;)V")
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
