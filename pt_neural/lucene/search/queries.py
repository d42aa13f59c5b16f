"""Lucene queries from what users ask: bags of words, and bags of weighted terms."""

import functools
import json
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pt_neural.lucene.index.analysis import Analysis
from pt_neural.lucene.java.handles import bind, chain, function, lines, method, signature, type_of
from pt_neural.lucene.java.jvm import java_class

_ANALYZER = "org.apache.lucene.analysis.Analyzer"
_GENERATOR = "io.anserini.search.query.BagOfWordsQueryGenerator"
_JAVA_TYPE = "com.fasterxml.jackson.databind.JavaType"
_MAPPER = "com.fasterxml.jackson.databind.ObjectMapper"
_QUERY = "org.apache.lucene.search.Query"
_STRING = "java.lang.String"


class QueryBuilder(Protocol):
    """Builds Lucene queries. Frozen, so that equal builders share what they prepare in Java."""

    field: str

    def build(self, queries: Sequence[Any]) -> Any:
        """A ``java.util.List`` with one Lucene query for each input, in order."""

    def needs(self, queries: Sequence[Any]) -> tuple[set[str], set[Hashable]]:
        """The analysed terms and the windows whose statistics the scores depend on."""


@dataclass(frozen=True)
class TextQueries:
    """Plain text as a bag of words, analysed as the documents are. No character is query syntax."""

    analysis: Analysis
    field: str

    def build(self, queries: Sequence[str]) -> Any:
        """Lucene queries from texts."""
        return lines(queries).map(_bag_of_words(self)).toList()

    def needs(self, queries: Sequence[str]) -> tuple[set[str], set[Hashable]]:
        """The terms of the texts."""
        return {term for text in queries for term in self.analysis.terms(text)}, set()


@dataclass(frozen=True)
class WeightedQueries:
    """Dicts from term to weight. The terms are taken as they are: already analysed."""

    field: str

    def build(self, queries: Sequence[Mapping[str, float]]) -> Any:
        """Lucene queries from weighted terms."""
        return lines([_weights_as_json(weights) for weights in queries]).map(_weighted_terms(self)).toList()

    def needs(self, queries: Sequence[Mapping[str, float]]) -> tuple[set[str], set[Hashable]]:
        """The terms."""
        return {str(term) for weights in queries for term in weights}, set()


@functools.cache
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
    mapper = java_class(_MAPPER)()
    types = mapper.getTypeFactory()
    weights = types.constructMapType(type_of("java.util.HashMap"), type_of(_STRING), type_of("java.lang.Float"))
    read = method(_MAPPER, "readValue", "java.lang.Object", _STRING, _JAVA_TYPE)
    parse = bind(read.bindTo(mapper), 1, weights).asType(signature("java.util.Map", _STRING))
    return function(chain(parse, bag))


def _weights_as_json(weights: Mapping[str, float]) -> str:
    numbers = {str(term): float(weight) for term, weight in weights.items()}
    wrong = [term for term, weight in numbers.items() if not 0 <= weight < math.inf]
    if wrong:
        raise ValueError(f"query_toks: the weight of {wrong[0]!r} is {numbers[wrong[0]]}; Lucene needs weights >= 0")
    return json.dumps(numbers)
