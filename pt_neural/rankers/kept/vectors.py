"""Dense vectors of documents in a ``pyterrier_dr.FlexIndex``: written once, read by docno, memory-mapped."""

import os
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from pt_neural._artifacts import METADATA, atomic_directory, read_json, write_json
from pt_neural.rankers.kept.kept import FINGERPRINT, Kept
from pt_neural.rankers.vectors import Vectors

if TYPE_CHECKING:
    from pyterrier_dr import FlexIndex

Batches = Iterable[tuple[list[str], Vectors]]


class VectorTable(Kept):
    """The vectors of a ``pyterrier_dr.FlexIndex``, given as such or by its path, which alone is pickled."""

    def __init__(self, index: "FlexIndex | str | os.PathLike"):
        path = getattr(index, "index_path", index)
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"vectors are what model.index(path, corpus) gave, or its path, not {index!r:.80}")
        self.path = os.path.abspath(os.path.expanduser(path))

    @classmethod
    def of(cls, vectors: "FlexIndex | str | os.PathLike") -> "VectorTable":
        """The table of a vector index, given as such or by its path."""
        return cls(vectors)

    @classmethod
    def build(
        cls, path: str | os.PathLike, batches: Batches, *, fingerprint: str | None, overwrite: bool
    ) -> "FlexIndex":
        """Write dense vectors to a new vector index, atomically, batch by batch.

        ValueError if there is only one document, which a FlexIndex cannot hold.
        """
        from pyterrier_dr import FlexIndex

        path = os.path.expanduser(path)
        kind = {"type": FlexIndex.ARTIFACT_TYPE, "format": FlexIndex.ARTIFACT_FORMAT}
        with atomic_directory(path, overwrite=overwrite, **kind) as temporary:
            FlexIndex(os.fspath(temporary), verbose=False).indexer(mode="overwrite").index(_records(batches))
            write_json(temporary / METADATA, {**read_json(temporary / METADATA), FINGERPRINT: fingerprint})
        return open_vectors(path)

    @cached_property
    def _content(self) -> tuple[list[str], np.ndarray]:
        docnos, matrix, _ = open_vectors(self.path).payload()
        return list(docnos), matrix

    @property
    def matrix(self) -> np.ndarray:
        """All vectors, memory-mapped, float32 of shape (documents, dimensions)."""
        return self._content[1]

    @property
    def vectors(self) -> Vectors:
        """All vectors, memory-mapped."""
        return Vectors(self.matrix)

    @property
    def docno_list(self) -> list[str]:
        """The docno of each row."""
        return self._content[0]

    @cached_property
    def unknown(self) -> np.ndarray:
        """Rows whose vector is zero, int64."""
        return np.flatnonzero(~self.matrix.any(axis=1))

    def __len__(self) -> int:
        return len(self.matrix)

    def __reduce__(self) -> tuple:
        return VectorTable, (self.path,)


def open_vectors(path: str | os.PathLike) -> "FlexIndex":
    """Open a vector index; importing pyterrier_dr takes seconds, so it happens only when one is needed."""
    from pyterrier_dr import FlexIndex

    return FlexIndex(os.fspath(path), verbose=False)


def _records(batches: Batches) -> Iterator[dict[str, Any]]:
    """One record per document, as vector indexes take them."""
    records = (
        {"docno": docno, "doc_vec": vector}
        for docnos, vectors in batches
        for docno, vector in zip(docnos, vectors.dense, strict=True)
    )
    first, second = next(records), next(records, None)
    if second is None:
        raise ValueError("a vector index needs at least two documents; re-rank a single one by its text")
    return chain([first, second], records)
