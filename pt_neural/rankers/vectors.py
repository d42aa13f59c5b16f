"""Document vectors on disk: written once, read by docno as rows of a memory-mapped matrix."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd
from scipy.sparse import sparray

from pt_neural._artifacts import METADATA, atomic_directory, read_json, write_json
from pt_neural.rankers.kept_table import FINGERPRINT, KeptTable
from pt_neural.text import ForwardIndex, read_documents

if TYPE_CHECKING:
    from pyterrier_dr import FlexIndex

Records = Iterator[dict[str, Any]]
Encoded = TypeVar("Encoded")


class VectorTable(KeptTable):
    """The vectors of a ``pyterrier_dr.FlexIndex``, looked up by docno.

    Args:
        index: The index, or the path of its directory. Only the path is kept and pickled.
    """

    def __init__(self, index: "FlexIndex | str | os.PathLike"):
        path = getattr(index, "index_path", index)
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"vectors are what model.index(path, corpus) gave, or the path of it, not {index!r:.80}")
        self.path = os.path.abspath(os.path.expanduser(path))

    @cached_property
    def _content(self) -> tuple[list[str], np.ndarray]:
        docnos, matrix, _ = open_vectors(self.path).payload()
        return list(docnos), matrix

    @property
    def matrix(self) -> np.ndarray:
        """All vectors, memory-mapped, float32 of shape (documents, dimensions)."""
        return self._content[1]

    @property
    def docno_list(self) -> list[str]:
        """The docno of each row."""
        return self._content[0]

    @cached_property
    def empty(self) -> np.ndarray:
        """Rows whose vector is zero, int64."""
        return np.flatnonzero(~self.matrix.any(axis=1))

    def __reduce__(self) -> tuple:
        return VectorTable, (self.path,)


def open_vectors(path: str | os.PathLike) -> "FlexIndex":
    """Open a vector index; importing pyterrier_dr takes seconds, so it happens here and nowhere else."""
    from pyterrier_dr import FlexIndex

    return FlexIndex(os.fspath(path), verbose=False)


def require_same_dimensions(queries: np.ndarray | sparray, documents: np.ndarray | sparray) -> None:
    """Raise ValueError if query and document vectors cannot belong to one model."""
    if queries.shape[1] != documents.shape[1]:
        raise ValueError(
            f"query vectors have {queries.shape[1]} dimensions, document vectors {documents.shape[1]}; "
            "the vectors were made by another model"
        )


def write_vectors(
    path: str | os.PathLike, records: Records, *, fingerprint: str | None, overwrite: bool
) -> "FlexIndex":
    """Write ``{"docno": str, "doc_vec": float32 array}`` records to a new vector index, atomically.

    Args:
        path: Directory to create.
        records: The documents.
        fingerprint: That of the model that made them.
        overwrite: Replace a vector index that is there.

    Raises:
        FileExistsError: If there is something at ``path`` and ``overwrite`` is false, or no vector index.
        ValueError: If there is only one record, which FlexIndex cannot hold.
    """
    from pyterrier_dr import FlexIndex

    path = os.path.expanduser(path)
    kind = {"type": FlexIndex.ARTIFACT_TYPE, "format": FlexIndex.ARTIFACT_FORMAT}
    with atomic_directory(path, overwrite=overwrite, **kind) as temporary:
        FlexIndex(os.fspath(temporary), verbose=False).indexer(mode="overwrite").index(_several(iter(records)))
        write_json(temporary / METADATA, {**read_json(temporary / METADATA), FINGERPRINT: fingerprint})
    return open_vectors(path)


def _several(records: Records) -> Records:
    first, second = next(records), next(records, None)
    if second is None:
        raise ValueError("a vector index needs at least two documents; re-rank a single one by its text")
    yield from chain([first, second], records)


def corpus_batches(
    corpus: Iterable[Mapping[str, Any]] | pd.DataFrame,
    read: Callable[[Mapping[str, Any]], str],
    encode: Callable[[list[str]], Encoded],
    batch_size: int,
) -> Iterator[tuple[list[str], Encoded]]:
    """Encode a corpus batch by batch; ``read`` gives the text of a document. Yields docnos, and their encodings."""
    documents = read_documents(corpus)
    while batch := list(islice(documents, batch_size)):
        yield [docno for docno, _ in batch], encode([read(document) for _, document in batch])


def forward_index_batches(
    documents: ForwardIndex, encode: Callable[..., Encoded], batch_size: int
) -> Iterator[tuple[list[str], Encoded]]:
    """Encode the term sequences of a forward index batch by batch. Yields docnos, and their encodings."""
    docnos, sequences = documents.docnos, documents.all()
    for start in range(0, len(docnos), batch_size):
        rows = np.arange(start, min(start + batch_size, len(docnos)))
        yield docnos[start : start + batch_size], encode(sequences.take(rows), documents.vocabulary)


def vector_records(batches: Iterable[tuple[list[str], np.ndarray]]) -> Records:
    """One record a document, as vector indexes take them."""
    for docnos, vectors in batches:
        for docno, vector in zip(docnos, vectors, strict=True):
            yield {"docno": docno, "doc_vec": vector}
