"""The sequential dependence model: terms, neighbouring terms, and pairs of terms within a window."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import pandas as pd

from pt_neural.lucene.index.directory import CONTENTS, IndexDirectory
from pt_neural.lucene.java.jvm import in_java, java_class
from pt_neural.lucene.search.queries import WeightedQueries
from pt_neural.lucene.search.retrievers import RetrieverOverBase, query_texts
from pt_neural.lucene.search.windows import Window, window_queries


class SDM(RetrieverOverBase):
    """Sequential dependence model over query likelihood or BM25; made by :meth:`LuceneIndex.sdm`.

    Metzler & Croft, SIGIR 2005: the score is ``weights[0]`` times the score of the terms, plus ``weights[1]`` times
    that of each pair of neighbouring query terms found next to each other in this order, plus ``weights[2]`` times that
    of the same pair found within ``window`` positions in any order. In this implementation:

    * Terms and windows are scored by the same formula, Lucene's query likelihood or BM25, and windows by *their own*
      statistics: how often the window occurs in the collection, and in how many documents. (Lucene and Anserini use
      the statistics of the terms instead.)
    * In an unordered window, two terms with g positions between them count 1 / (3 + g), as Lucene counts spans, or
      1 / (1 + g) if they are the same term. An occurrence makes no pair with itself: ``x x`` needs two.
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
    slow: ClassVar[bool] = True

    def build(self, queries: Sequence[tuple[str, Mapping[str, float] | None]]) -> Any:
        """Lucene queries from texts, each with weights of its terms, or None for their counts."""
        return WindowedQueries(self.index, self.field).build([self.parts(*query) for query in queries])

    def parts(self, text: str, weights: Mapping[str, float] | None) -> WindowedQuery:
        """The terms, their weight against the windows, and the windows of one query."""
        terms = self.index.analysis.terms(text)
        weights = Counter(terms) if weights is None else weights
        return WindowedQuery(weights, self.term_weight(terms), list(self._weighted_windows(terms)))

    def term_weight(self, terms: Sequence[str]) -> float:
        """The weight of the terms of a query against its windows; 1 for a query without windows."""
        return self.weights[0] if len(terms) > 1 else 1.0

    def needs(self, queries: Sequence[tuple[str, Mapping[str, float] | None]]) -> tuple[set[str], set[Hashable]]:
        """The terms of the texts and of the weights, and the windows of the texts."""
        analysis = self.index.analysis
        texts = [analysis.terms(text) for text, _ in queries]
        weighted, _ = WeightedQueries(self.field).needs([weights for _, weights in queries if weights is not None])
        windows = {window for terms in texts for window, _ in self._weighted_windows(terms)}
        return weighted.union(*texts), windows

    def _weighted_windows(self, terms: list[str]) -> Iterator[tuple[Window, float]]:
        """One ordered and one unordered window for each pair of neighbours in the query, unless it has no weight."""
        _, ordered, unordered = self.weights
        for (first, second), count in Counter(itertools.pairwise(terms)).items():
            near = Window(first, second, ordered=True), Window(first, second, ordered=False, width=self.window)
            for window, weight in zip(near, (ordered, unordered), strict=True):
                if weight:
                    yield window, weight * count


class WindowedQuery(NamedTuple):
    """Weighted terms, the weight of them all together, and weighted windows."""

    terms: Mapping[str, float]
    term_weight: float
    windows: Sequence[tuple[Window, float]]


@dataclass(frozen=True)
class WindowedQueries:
    """Queries of weighted terms and weighted windows."""

    index: IndexDirectory
    field: str
    slow: ClassVar[bool] = True

    def build(self, queries: Sequence[WindowedQuery]) -> Any:
        """Lucene queries from their parts."""
        bags = WeightedQueries(self.field).build([query.terms for query in queries])
        distinct = list(dict.fromkeys(window for query in queries for window, _ in query.windows))
        built, places = window_queries(self.index.reader, self.field, distinct)
        clauses = [
            [(places[window][0], weight * places[window][1]) for window, weight in query.windows if window in places]
            for query in queries
        ]
        return _joined(bags, [query.term_weight for query in queries], built, clauses)

    def needs(self, queries: Sequence[WindowedQuery]) -> tuple[set[str], set[Hashable]]:
        """The terms and the windows."""
        windows = {window for query in queries for window, _ in query.windows}
        return {term for query in queries for term in query.terms}, windows


@in_java
def _joined(
    bags: Any, term_weights: Sequence[float], windows: Any, clauses: Sequence[Sequence[tuple[int, float]]]
) -> Any:
    """A Java list of queries, each of a bag and of windows, which are given by their places and weights."""
    pairs = list(itertools.chain.from_iterable(clauses))
    places, weights = [place for place, _ in pairs], [weight for _, weight in pairs]
    counts = list(map(len, clauses))
    return java_class("pt_neural.WindowQueries").joined(bags, term_weights, windows, counts, places, weights)
