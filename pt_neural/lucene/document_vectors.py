"""Term vectors: which terms a document has, and how often, for many documents in one call."""

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pt_neural.lucene.batch import lines
from pt_neural.lucene.handles import (
    bind,
    chain,
    constructor,
    feed,
    function,
    loop,
    method,
    reorder,
    signature,
    static,
)
from pt_neural.lucene.jvm import in_java

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SEPARATOR = "\0"

_BUILDER = "java.lang.StringBuilder"
_OBJECT = "java.lang.Object"
_OPTIONAL = "java.util.Optional"
_READER = "org.apache.lucene.index.IndexReader"
_STRING = "java.lang.String"
_TERMS = "org.apache.lucene.index.Terms"
_TERMS_ENUM = "org.apache.lucene.index.TermsEnum"
_VECTORS = "org.apache.lucene.index.TermVectors"


class DocumentVectors(NamedTuple):
    """How often each term occurs in each document.

    Attributes:
        terms: The terms of all these documents in ascending order, an object array of strings.
        counts: int64, of shape ``(documents, terms)``; the sum of a row is the exact length of the document.
    """

    terms: np.ndarray
    counts: "csr_array"


@in_java
def read_vectors(reader: Any, field: str, documents: Sequence[int]) -> DocumentVectors:
    """The term vectors of documents given by Lucene's numbers; an empty row where there is none."""
    from scipy.sparse import csr_array

    texts = lines([str(number) for number in documents]).map(_read_one(reader, field)).toArray()
    pieces = [text.split(SEPARATOR)[:-1] for text in texts]
    occurring = np.array([term for piece in pieces for term in piece[::2]], dtype=object)
    counts = np.array([count for piece in pieces for count in piece[1::2]], dtype=np.int64)
    terms, columns = np.unique(occurring, return_inverse=True)
    ends = np.cumsum([0, *(len(piece) // 2 for piece in pieces)])
    return DocumentVectors(terms, csr_array((counts, columns, ends), shape=(len(pieces), len(terms))))


@functools.lru_cache(maxsize=256)
def _read_one(reader: Any, field: str) -> Any:
    """Java function from a document's number, as text, to its terms and their counts."""
    vectors = method(_READER, "termVectors", _VECTORS).bindTo(reader)  # not to be shared between threads
    of_field = bind(method(_VECTORS, "get", _TERMS, "int", _STRING), 2, field)
    parse = static("java.lang.Integer", "parseInt", "int", _STRING)
    find = feed(feed(of_field, 1, parse), 0, vectors).asType(signature(_OBJECT, _STRING))
    apply = bind(method(_OPTIONAL, "map", _OPTIONAL, "java.util.function.Function"), 1, function(_join_terms()))
    or_nothing = bind(method(_OPTIONAL, "orElse", _OBJECT, _OBJECT), 1, "")
    return function(chain(find, static(_OPTIONAL, "ofNullable", _OPTIONAL, _OBJECT), apply, or_nothing))


def _join_terms() -> Any:
    """Handle from ``Terms`` to one string: each term and its count, a separator after both."""
    length = chain(method(_TERMS, "size", "long"), static("java.lang.Math", "toIntExact", "int", "long"))
    types = (_TERMS, _TERMS_ENUM)
    count = reorder(length, signature("int", *types), 0)
    initial = reorder(constructor(_BUILDER), signature(_BUILDER, *types))
    body = reorder(_append_next(), signature(_BUILDER, _BUILDER, "int", *types), 0, 3)
    joined = chain(loop(count, initial, body), method(_BUILDER, "toString", _STRING))
    with_iterator = feed(joined, 1, method(_TERMS, "iterator", _TERMS_ENUM))
    return reorder(with_iterator, signature(_STRING, _TERMS), 0, 0)


def _append_next() -> Any:
    """Handle ``(builder, terms) -> builder``: go to the next term, append it and its count."""
    append = method(_BUILDER, "append", _BUILDER, _STRING)
    with_separator = bind(append, 1, SEPARATOR)
    go_on = method(_TERMS_ENUM, "next", "org.apache.lucene.util.BytesRef")
    as_text = method("org.apache.lucene.util.BytesRef", "utf8ToString", _STRING)
    term = chain(feed(append, 1, chain(go_on, as_text)), with_separator)
    append_number = method(_BUILDER, "append", _BUILDER, "long")
    count = chain(feed(append_number, 1, method(_TERMS_ENUM, "totalTermFreq", "long")), with_separator)
    both = feed(count, 0, term)
    return reorder(both, signature(_BUILDER, _BUILDER, _TERMS_ENUM), 0, 1, 1)
