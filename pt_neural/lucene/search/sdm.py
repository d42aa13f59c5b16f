"""The sequential dependence model: terms, neighbouring terms, and pairs of terms within a window.

Lucene scores a span query by the statistics of its terms; Metzler & Croft smooth a window by its own frequency in the
collection. Since a term query may bring its own statistics, the terms of a window are given the statistics of the
window: how often it occurs, and in how many documents.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

import pandas as pd

from pt_neural.lucene.index.directory import CONTENTS, IndexDirectory
from pt_neural.lucene.index.reader import Reader
from pt_neural.lucene.java.jvm import java_class
from pt_neural.lucene.search.queries import WeightedQueries
from pt_neural.lucene.search.retrievers import RetrieverOverBase, query_texts
from pt_neural.lucene.search.scoring import FrequencySimilarity, read_hits, search_function, searcher

_SEARCH = "org.apache.lucene.search"
_SPANS = "org.apache.lucene.queries.spans"


class SDM(RetrieverOverBase):
    """Sequential dependence model over query likelihood or BM25; made by :meth:`LuceneIndex.sdm`.

    Metzler & Croft, SIGIR 2005: the score is ``weights[0]`` times the score of the terms, plus ``weights[1]`` times
    that of each pair of neighbouring query terms found next to each other in this order, plus ``weights[2]`` times that
    of the same pair found within ``window`` positions in any order. In this implementation:

    * Terms and windows are scored by the same formula, Lucene's query likelihood or BM25, and windows by *their own*
      statistics: how often the window occurs in the collection, and in how many documents. (Lucene and Anserini use
      the statistics of the terms instead.)
    * In an unordered window, two terms with g positions between them count 1 / (1 + g), as Lucene counts spans. An
      occurrence makes no pair with itself: ``x x`` needs two.
    * A query of one term scores as the base does; a query without terms finds nothing.
    * A column ``query_toks`` gives the terms and their weights, but windows still come from the text of ``query``.
      Weights that are the counts of the query's own terms change no score.

    A window is looked up once per index and then remembered.
    """

    label = "SDM"
    needs_text = True
    own_parameters = ("weights", "window")

    def __init__(
        self,
        index: IndexDirectory,
        *,
        base: str = "ql",
        weights: tuple[float, float, float] = (0.85, 0.10, 0.05),
        window: int = 8,
        k1: float = 0.9,
        b: float = 0.4,
        mu: float = 1000,
        field: str = CONTENTS,
        num_results: int = 1000,
        verbose: bool = False,
    ):
        usable = [isinstance(weight, Real) and 0 <= weight < math.inf for weight in weights]
        if usable != [True] * 3 or weights[0] == 0:
            raise ValueError(f"weights={weights!r:.80}, but SDM needs three weights >= 0, the first above 0")
        if not isinstance(window, Integral) or window < 2:
            raise ValueError(f"window={window!r:.80}, but two terms take a whole number of positions, at least 2")
        self.weights = tuple(weights)
        self.window = window
        super().__init__(index, base=base, k1=k1, b=b, mu=mu, field=field, num_results=num_results, verbose=verbose)

    def builder(self, *, weighted: bool) -> SDMQueries:
        """Terms and windows."""
        self.index.require_positions(self.field)
        return SDMQueries(self.index, self.field, self.weights, self.window)

    def _prepare(self, inp: pd.DataFrame) -> tuple[SDMQueries, list[Any]]:
        builder, queries = super()._prepare(inp)
        if "query_toks" in inp.columns:
            return builder, list(zip(query_texts(inp), queries, strict=True))
        return builder, [(text, None) for text in queries]


@dataclass(frozen=True)
class SDMQueries:
    """Queries of terms and windows, made for one index, whose statistics are in the windows."""

    index: IndexDirectory
    field: str
    weights: tuple[float, float, float]
    window: int

    def build(self, queries: Sequence[tuple[str, Mapping[str, float] | None]]) -> Any:
        """Lucene queries from texts, each with weights of its terms, or None for their counts."""
        reader, analysis = self.index.reader, self.index.analysis
        texts = [analysis.terms(text) for text, _ in queries]
        weights = [Counter(text) if given is None else given for text, (_, given) in zip(texts, queries, strict=True)]
        bags = WeightedQueries(self.field).build(weights)
        built = [self._query(reader, text, bags.get(i)) for i, text in enumerate(texts)]
        result = java_class("java.util.ArrayList")()
        for query in built:
            result.add(query)
        return result

    def term_weight(self, terms: Sequence[str]) -> float:
        """The weight of the terms of a query against its windows; 1 for a query without windows."""
        return self.weights[0] if len(terms) > 1 else 1.0

    def _query(self, reader: Reader, terms: list[str], bag: Any) -> Any:
        should = java_class(f"{_SEARCH}.BooleanClause$Occur").SHOULD
        boosted = java_class(f"{_SEARCH}.BoostQuery")
        builder = java_class(f"{_SEARCH}.BooleanQuery$Builder")()
        for query, weight in [(bag, self.term_weight(terms)), *self._windows(reader, terms)]:
            clause = boosted(query, weight)
            builder.add(clause, should)
        return builder.build()

    def _windows(self, reader: Reader, terms: list[str]) -> list[tuple[Any, float]]:
        """One ordered and one unordered window for each pair of neighbours in the query."""
        _, ordered, unordered = self.weights
        result = []
        for (first, second), count in Counter(itertools.pairwise(terms)).items():
            near = Window(first, second, ordered=True), Window(first, second, ordered=False, width=self.window)
            for window, weight in zip(near, (ordered, unordered), strict=True):
                found = window_query(reader, self.field, window) if weight else None
                if found is not None:
                    result.append((found[0], weight * count * found[1]))
        return result


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


@functools.lru_cache(maxsize=10_000)
def window_query(reader: Reader, field: str, window: Window) -> tuple[Any, float] | None:
    """The query of a window and a factor that corrects its score; None if the window occurs nowhere.

    Lucene adds up what the terms of a span query contribute. Since each brings the same statistics here, a window
    of two different terms would score twice.
    """
    statistics = _statistics(reader, field, window)
    if statistics is None:
        return None
    query = _near(field, window, [_with_statistics(reader, field, term, *statistics) for term in window[:2]])
    return query, 0.5 if window.first != window.second else 1.0


def _statistics(reader: Reader, field: str, window: Window) -> tuple[int, int] | None:
    """Number of documents with the window, and number of windows."""
    lower_frequency = int(reader.document_frequencies(window[:2], field).min())
    if lower_frequency == 0:
        return None
    term = java_class("org.apache.lucene.index.Term")
    span = java_class(f"{_SPANS}.SpanTermQuery")
    plain = _near(field, window, [span(term(field, text)) for text in window[:2]])
    find = search_function(reader, FrequencySimilarity(), lower_frequency)
    frequencies = read_hits(find.apply(plain))["score"]
    if not len(frequencies):
        return None
    return len(frequencies), max(len(frequencies), round(float(frequencies.sum())))


def _near(field: str, window: Window, terms: list[Any]) -> Any:
    """A span query. Equal terms are taken in order, or else one occurrence would make a pair with itself."""
    near = java_class(f"{_SPANS}.SpanNearQuery")
    in_order = window.ordered or window.first == window.second
    builder = near.newOrderedNearQuery(field) if in_order else near.newUnorderedNearQuery(field)
    for term in terms:
        builder.addClause(term)
    builder.setSlop(window.slop)
    return builder.build()


def _with_statistics(reader: Reader, field: str, text: str, documents: int, occurrences: int) -> Any:
    """A span query of a term that claims the given statistics."""
    term = java_class("org.apache.lucene.index.Term")(field, text)
    kind = java_class("org.apache.lucene.index.TermStates")
    lucene = searcher(reader, FrequencySimilarity())
    real = kind.build(lucene, term, True)
    claimed = kind(lucene.getTopReaderContext())
    leaves = reader.java.leaves()
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
