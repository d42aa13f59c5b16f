"""Docnos of all documents, read in one go from the doc values that Anserini keeps for breaking ties."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pt_neural._artifacts import ArtifactError
from pt_neural.lucene.handles import (
    bind,
    chain,
    constant,
    constructor,
    feed,
    function,
    loop,
    method,
    number,
    reorder,
    signature,
)
from pt_neural.lucene.jvm import in_java, java_class

ID = "id"
SEPARATOR = "\0"

_BUILDER = "java.lang.StringBuilder"
_VALUES = "org.apache.lucene.index.BinaryDocValues"
_BYTES = "org.apache.lucene.util.BytesRef"


@in_java
def read_docnos(reader: Any) -> np.ndarray:
    """The docno of each document by Lucene's number, as an object array of strings.

    Raises:
        ArtifactError: If the index has no docnos, as one that Anserini did not build.
    """
    values = java_class("org.apache.lucene.index.MultiDocValues").getBinaryValues(reader, ID)
    if values is None:
        raise ArtifactError("this Lucene index has no field 'id' with doc values; was it built by Anserini?")
    text = function(_join_all(reader.maxDoc())).apply(values)
    names = text.split(SEPARATOR)[:-1]
    if len(names) != reader.maxDoc():
        raise ArtifactError(f"the index has {reader.maxDoc()} documents but {len(names)} docnos")
    return np.array(names, dtype=object)


def look_up(docnos: pd.Series, numbers: Mapping[str, int], path: Path) -> np.ndarray:
    """The number of each docno, int64.

    Raises:
        ValueError: If a docno is not in the index; it names up to five.
    """
    rows, distinct = pd.factorize(docnos, use_na_sentinel=False)
    found = np.fromiter((numbers.get(docno, -1) for docno in distinct), dtype=np.int64, count=len(distinct))
    unknown = [repr(distinct[i]) for i in np.flatnonzero(found < 0)]
    if unknown:
        raise ValueError(
            f"{len(unknown)} docnos are not in {path}, such as {', '.join(unknown[:5])}; use the index that holds "
            "these documents, or drop the rows"
        )
    return found[rows]


def _join_all(count: int) -> Any:
    """Handle from doc values to one string, in which a separator ends each docno."""
    times = reorder(constant("int", number("int", count)), signature("int", _VALUES))
    initial = reorder(constructor(_BUILDER), signature(_BUILDER, _VALUES))
    body = reorder(_append_next(), signature(_BUILDER, _BUILDER, "int", _VALUES), 0, 2)
    return chain(loop(times, initial, body), method(_BUILDER, "toString", "java.lang.String"))


def _append_next() -> Any:
    """Handle ``(builder, values) -> builder``: go to the next document and append its docno."""
    append = method(_BUILDER, "append", _BUILDER, "java.lang.String")
    current = chain(method(_VALUES, "binaryValue", _BYTES), method(_BYTES, "utf8ToString", "java.lang.String"))
    with_separator = bind(append, 1, SEPARATOR)
    append_current = chain(feed(append, 1, current), with_separator)
    advance = method(_VALUES, "nextDoc", "int")
    both = feed(reorder(append_current, signature(_BUILDER, "int", _BUILDER, _VALUES), 1, 2), 0, advance)
    return reorder(both, signature(_BUILDER, _BUILDER, _VALUES), 1, 0, 1)
