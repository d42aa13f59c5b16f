"""From what the user asks to Lucene queries: bags of words, and bags of weighted terms."""

import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pt_neural.lucene.analysis import Analysis
from pt_neural.lucene.batch import lines
from pt_neural.lucene.handles import bind, chain, function, method, signature, type_of
from pt_neural.lucene.jvm import java_class

_GENERATOR = "io.anserini.search.query.BagOfWordsQueryGenerator"
_QUERY = "org.apache.lucene.search.Query"
_ANALYZER = "org.apache.lucene.analysis.Analyzer"
_MAPPER = "com.fasterxml.jackson.databind.ObjectMapper"


class QueryBuilder(Protocol):
    """Builds Lucene queries. Frozen, so that equal builders share what they prepare in Java."""

    field: str

    def build(self, queries: Sequence[Any]) -> Any:
        """A ``java.util.List`` with one Lucene query an input, in order."""


@dataclass(frozen=True)
class TextQueries:
    """Plain text, analysed as the documents are, as a bag of words. No character has a meaning of its own."""

    analysis: Analysis
    field: str

    def build(self, queries: Sequence[str]) -> Any:
        """Lucene queries of texts."""
        to_query = _bag_of_words(self)
        return lines(queries).map(to_query).toList()


@dataclass(frozen=True)
class WeightedQueries:
    """Dictionaries from term to weight. The terms are taken as they are: analysed already."""

    field: str

    def build(self, queries: Sequence[Mapping[str, float]]) -> Any:
        """Lucene queries of weighted terms."""
        to_query = _weighted_terms(self)
        return lines([_weights_as_json(weights) for weights in queries]).map(to_query).toList()


@functools.cache
def _bag_of_words(kind: TextQueries) -> Any:
    build = method(_GENERATOR, "buildQuery", _QUERY, "java.lang.String", _ANALYZER, "java.lang.String")
    generator = java_class(_GENERATOR)()
    return function(bind(build.bindTo(generator), 0, kind.field, kind.analysis.to_java()))


@functools.cache
def _weighted_terms(kind: WeightedQueries) -> Any:
    build = method(_GENERATOR, "buildQuery", _QUERY, "java.lang.String", "java.util.Map")
    bag = bind(build.bindTo(java_class(_GENERATOR)()), 0, kind.field)
    mapper = java_class(_MAPPER)()
    types = mapper.getTypeFactory()
    kind_of_map = types.constructMapType(
        type_of("java.util.HashMap"), type_of("java.lang.String"), type_of("java.lang.Float")
    )
    read = method(
        _MAPPER, "readValue", "java.lang.Object", "java.lang.String", "com.fasterxml.jackson.databind.JavaType"
    )
    parse = bind(read.bindTo(mapper), 1, kind_of_map).asType(signature("java.util.Map", "java.lang.String"))
    return function(chain(parse, bag))


def _weights_as_json(weights: Mapping[str, float]) -> str:
    numbers = {str(term): float(weight) for term, weight in weights.items()}
    wrong = [term for term, weight in numbers.items() if not 0 <= weight < math.inf]
    if wrong:
        raise ValueError(f"query_toks: the weight of {wrong[0]!r} is {numbers[wrong[0]]}; Lucene needs weights >= 0")
    return json.dumps(numbers)
