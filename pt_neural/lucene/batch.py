"""Many lines of text through one Java function, in one call and on all cores."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pt_neural.lucene.handles import (
    array_getter,
    array_length,
    bind,
    chain,
    feed,
    getter,
    loop,
    method,
    number,
    reorder,
    signature,
    static,
)
from pt_neural.lucene.jvm import as_interface, java_class

HIT = np.dtype([("document", ">i4"), ("score", ">f4")])

_BUFFER = "java.nio.ByteBuffer"
_SCORE_DOC = "org.apache.lucene.search.ScoreDoc"
_TOP_DOCS = "org.apache.lucene.search.TopDocs"


def lines(texts: Sequence[str]) -> Any:
    """A parallel Java stream of strings, in order. Line breaks within a text become spaces."""
    encoded = clean("".join(" ".join(text.splitlines()) + "\n" for text in texts)).encode("utf-8")
    string = java_class("java.lang.String")(encoded, "UTF-8", signature="([BLjava/lang/String;)V")
    return as_interface("java.util.stream.Stream", string.lines().parallel())


def clean(text: str) -> str:
    """Text that Java can take: a lone surrogate, half of a character, becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def read_hits(packed: Any) -> np.ndarray:
    """What :func:`pack_hits` has packed: document numbers and scores, dtype HIT."""
    return np.frombuffer(packed.tostring(), dtype=HIT)


def pack_hits() -> Any:
    """Handle from ``TopDocs`` to ``byte[]``: document number (int) and score (float) of each hit, in order."""
    array = f"{_SCORE_DOC}[]"
    length = array_length(array)
    eightfold = bind(static("java.lang.Math", "multiplyExact", "int", "int", "int"), 1, number("int", HIT.itemsize))
    allocate = chain(length, eightfold, static(_BUFFER, "allocate", _BUFFER, "int"))
    write_next = feed(_write_hit(), 1, array_getter(array))
    body = reorder(write_next, signature(_BUFFER, _BUFFER, "int", array), 0, 2, 1)
    return chain(
        getter(_TOP_DOCS, "scoreDocs", array),
        loop(length, allocate, body),
        method(_BUFFER, "array", "byte[]"),
    )


def _write_hit() -> Any:
    """Handle ``(buffer, hit) -> buffer.putInt(hit.doc).putFloat(hit.score)``."""
    number = feed(method(_BUFFER, "putInt", _BUFFER, "int"), 1, getter(_SCORE_DOC, "doc", "int"))
    score = feed(method(_BUFFER, "putFloat", _BUFFER, "float"), 1, getter(_SCORE_DOC, "score", "float"))
    both = feed(score, 0, number)
    return reorder(both, signature(_BUFFER, _BUFFER, _SCORE_DOC), 0, 1, 1)
