"""Lucene queries from what users ask: bags of words, and bags of weighted terms."""

import functools
import json
import numbers
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import pandas as pd

from pt_neural.lucene.index.analysis import Analysis
from pt_neural.lucene.java.handles import bind, chain, clean, function, java_list, lines, method, signature, type_of
from pt_neural.lucene.java.jackson import MAPPER, json_mapper
from pt_neural.lucene.java.jvm import in_java, java_class

_ANALYZER = "org.apache.lucene.analysis.Analyzer"
_GENERATOR = "io.anserini.search.query.BagOfWordsQueryGenerator"
_JAVA_TYPE = "com.fasterxml.jackson.databind.JavaType"
_QUERY = "org.apache.lucene.search.Query"
_STRING = "java.lang.String"

_QUOTES = re.compile("[\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}]")
MOST = 1e30  # of a weight: scores are sums of products of them, in single precision


class QueryBuilder(Protocol):
    """Builds Lucene queries. Frozen, so that equal builders share what they prepare in Java.

    Attributes:
        field: The field to search.
        slow: Whether to build and to search these queries takes so long that other threads should get their turns
            meanwhile.
    """

    field: str
    slow: ClassVar[bool]

    def build(self, queries: Sequence[Any]) -> Any:
        """A ``java.util.List`` with one Lucene query for each input, in order."""

    def needs(self, queries: Sequence[Any]) -> tuple[set[str], set[Hashable]]:
        """The analysed terms and the windows whose statistics the scores depend on."""


@dataclass(frozen=True)
class TextQueries:
    """Plain text as a bag of words, analysed as the documents are. No character is query syntax."""

    analysis: Analysis
    field: str
    slow: ClassVar[bool] = False

    @in_java
    def build(self, queries: Sequence[str]) -> Any:
        """Lucene queries from texts."""
        return lines(queries).map(_bag_of_words(self)).toList()

    def needs(self, queries: Sequence[str]) -> tuple[set[str], set[Hashable]]:
        """The terms of the texts."""
        return {term for text in queries for term in self.analysis.terms(text)}, set()


@dataclass(frozen=True)
class PhraseQueries:
    """Plain text in which words between double quotes are a phrase: it matches where they follow each other.

    A phrase is scored like a term, with the sum of the inverse document frequencies of its words, or of their
    log-likelihoods. Stop words in a phrase leave a gap that any word fills.
    """

    analysis: Analysis
    field: str
    slow: ClassVar[bool] = True

    def build(self, queries: Sequence[str]) -> Any:
        """Lucene queries from texts."""
        parts = [divide(text) for text in queries]
        bags = TextQueries(self.analysis, self.field).build([words for words, _ in parts])
        result = in_java(java_list)(())
        for i, (_, phrases) in enumerate(parts):
            self._add(result, bags, i, phrases)
        return result

    @in_java
    def _add(self, queries: Any, bags: Any, i: int, phrases: Sequence[str]) -> None:
        """Add the query of bag ``i`` and some phrases to a Java list."""
        should = java_class("org.apache.lucene.search.BooleanClause$Occur").SHOULD
        query = java_class("org.apache.lucene.search.BooleanQuery$Builder")()
        phrase_builder = java_class("org.apache.lucene.util.QueryBuilder")(self.analysis.to_java())
        for clause in [bags.get(i), *(phrase_builder.createPhraseQuery(self.field, clean(text)) for text in phrases)]:
            if clause is not None:  # only stop words
                query.add(clause, should)
        made = query.build()
        queries.add(made)

    def needs(self, queries: Sequence[str]) -> tuple[set[str], set[Hashable]]:
        """The terms of the texts."""
        return TextQueries(self.analysis, self.field).needs(queries)


def divide(text: str) -> tuple[str, list[str]]:
    """The words of a query that are not between double quotes, and what is between each pair of them."""
    pieces = _QUOTES.sub('"', text).split('"')
    if len(pieces) % 2 == 0:  # the last quote has no partner; it may be part of a word, as in Hebrew acronyms
        pieces[-2:] = ['"'.join(pieces[-2:])]
    return " ".join(pieces[::2]), [piece for piece in pieces[1::2] if piece.strip()]


@dataclass(frozen=True)
class WeightedQueries:
    """Dicts from term to weight. The terms are taken as they are: already analysed."""

    field: str
    slow: ClassVar[bool] = False

    @in_java
    def build(self, queries: Sequence[Mapping[str, float]]) -> Any:
        """Lucene queries from weighted terms."""
        return lines([_weights_as_json(weights) for weights in queries]).map(_weighted_terms(self)).toList()

    def needs(self, queries: Sequence[Mapping[str, float]]) -> tuple[set[str], set[Hashable]]:
        """The terms."""
        return {str(term) for weights in queries for term in weights}, set()


@functools.lru_cache(maxsize=64)
def _bag_of_words(builder: TextQueries) -> Any:
    """Java function from a text to its query."""
    build = method(_GENERATOR, "buildQuery", _QUERY, _STRING, _ANALYZER, _STRING)
    generator = java_class(_GENERATOR)()
    return function(bind(build.bindTo(generator), 0, builder.field, builder.analysis.to_java()))


@functools.cache
def _weighted_terms(builder: WeightedQueries) -> Any:
    """Java function from weighted terms, as JSON, to their query."""
    build = method(_GENERATOR, "buildQuery", _QUERY, _STRING, "java.util.Map")
    bag = bind(build.bindTo(java_class(_GENERATOR)()), 0, builder.field)
    mapper = json_mapper()
    types = mapper.getTypeFactory()
    weights = types.constructMapType(type_of("java.util.HashMap"), type_of(_STRING), type_of("java.lang.Float"))
    read = method(MAPPER, "readValue", "java.lang.Object", _STRING, _JAVA_TYPE)
    parse = bind(read.bindTo(mapper), 1, weights).asType(signature("java.util.Map", _STRING))
    return function(chain(parse, bag))


def _weights_as_json(weights: Mapping[str, float]) -> str:
    return json.dumps({str(term): float(weight) for term, weight in weights.items()})


def check_weights(frame: pd.DataFrame, what: object) -> None:
    """Raise TypeError or ValueError for rows of ``query_toks``, if there is this column, that are no weights of terms.

    A row is a dict from terms to numbers from 0 to ``MOST``, or missing.
    """
    checked = set()
    for row, weights in enumerate(frame["query_toks"].tolist() if "query_toks" in frame else ()):
        if id(weights) in checked:  # the rows of a query share one dict
            continue
        checked.add(id(weights))
        where = f"{what!s}: row {row} (from 0) of column 'query_toks'"
        if isinstance(weights, Mapping):
            for term, weight in weights.items():
                if not isinstance(weight, numbers.Real):
                    raise TypeError(f"{where}: the weight of {term!r:.80} is {weight!r:.80}, not a number")
                if not 0 <= weight <= MOST:
                    raise ValueError(f"{where}: the weight of {term!r:.80} is {weight!r:.80}, not from 0 to {MOST:g}")
        elif not (pd.api.types.is_scalar(weights) and pd.isna(weights)):
            raise TypeError(f"{where} holds {weights!r:.80}, not a dict from terms to weights")
