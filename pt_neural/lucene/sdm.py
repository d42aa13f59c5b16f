"""The sequential dependence model: terms, neighbouring terms, and pairs of terms within a window."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from pt_neural.lucene.jvm import java_class
from pt_neural.lucene.over_base import OverBase
from pt_neural.lucene.queries import WeightedQueries
from pt_neural.lucene.reader import Reader
from pt_neural.lucene.retrievers import CONTENTS, query_texts
from pt_neural.lucene.windows import Window, window_query

if TYPE_CHECKING:
    import pandas as pd

    from pt_neural.lucene.index import LuceneIndex

_SEARCH = "org.apache.lucene.search"


@dataclass(frozen=True)
class SDMQueries:
    """Text, and weights of terms or None, as terms and windows, for the index whose statistics score the windows."""

    index: LuceneIndex
    field: str
    weights: tuple[float, float, float]
    window: int

    def build(self, queries: Sequence[tuple[str, Mapping[str, float] | None]]) -> Any:
        """Lucene queries of texts; where there are weights, the terms are those that have one."""
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
        """What a term counts beside the windows of a query; 1 where there are none."""
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
        """One ordered and one unordered window for each two neighbours in the query."""
        _, ordered, unordered = self.weights
        result = []
        for (first, second), count in Counter(itertools.pairwise(terms)).items():
            near = Window(first, second, ordered=True), Window(first, second, ordered=False, width=self.window)
            for window, weight in zip(near, (ordered, unordered), strict=True):
                found = window_query(reader, self.field, window) if weight else None
                if found is not None:
                    result.append((found[0], weight * count * found[1]))
        return result


class SDM(OverBase):
    """Sequential dependence model over query likelihood or BM25; made by :meth:`LuceneIndex.sdm`.

    Metzler & Croft, SIGIR 2005: the score is ``w[0]`` times that of the terms, plus ``w[1]``
    times that of each two neighbouring terms of the query found next to each other in this order, plus ``w[2]``
    times that of the same two found within ``window`` positions in any order. What is particular here:

    * Terms and windows are scored by the same function, query likelihood or BM25 as Lucene has it, and windows by
      *their own* statistics: in how many documents and how often the window occurs in the collection. (Lucene and
      Anserini take those of the terms instead.)
    * Within an unordered window, two terms with g positions between them count 1 / (1 + g), which is how Lucene
      counts spans. One occurrence makes no pair with itself: ``x x`` needs two.
    * A query of one term scores as the base does; one without terms finds nothing.
    * With a column ``query_toks``, the terms and how much each counts come from there, and the windows still from
      the text of ``query``. Counts of the query's own terms as weights change no score.

    A window is looked up once for each index and then remembered.
    """

    label = "SDM"
    takes_weights = True
    needs_text = True
    own_parameters = ("weights", "window")

    def __init__(
        self,
        index: LuceneIndex,
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
