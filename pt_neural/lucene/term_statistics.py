"""In how many documents terms occur, and how often in the collection, for many terms in one call."""

import functools
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from pt_neural.lucene.batch import lines
from pt_neural.lucene.handles import bind, chain, constructor, function, method, static
from pt_neural.lucene.jvm import in_java

Statistic = Literal["docFreq", "totalTermFreq"]

_KINDS = {"docFreq": "int", "totalTermFreq": "long"}
_STRING = "java.lang.String"
_TERM = "org.apache.lucene.index.Term"


@in_java
def read_statistic(reader: Any, statistic: Statistic, field: str, terms: Sequence[str]) -> np.ndarray:
    """A number that Lucene keeps of each analysed term, int64 of shape ``(len(terms),)``; 0 for unknown ones."""
    numbers = lines(terms).map(_statistic(reader, statistic, field)).toArray()
    return np.array(list(numbers), dtype=np.int64)


@functools.lru_cache(maxsize=256)
def _statistic(reader: Any, name: Statistic, field: str) -> Any:
    """Java function from a term to the number, as text."""
    to_term = bind(constructor(_TERM, _STRING, _STRING), 0, field)
    look_up = method("org.apache.lucene.index.IndexReader", name, _KINDS[name], _TERM).bindTo(reader)
    return function(chain(to_term, look_up, static(_STRING, "valueOf", _STRING, _KINDS[name])))
