"""Dense vectors of documents in a ``pyterrier_dr.FlexIndex``: written once, read by docno, memory-mapped."""

import math
import os
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from pt_neural._artifacts import METADATA, atomic_directory, opened_lazily
from pt_neural._files import ArtifactError, is_count, read_object, reading, write_json
from pt_neural.datasets.docnos import OFFSETS, DocnoTable, DocnoWriter, docno_table
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

    @staticmethod
    def kind() -> dict[str, str]:
        """The type and format of a vector index, which are those of a FlexIndex."""
        return {"type": "dense_index", "format": "flex"}

    @classmethod
    def build(
        cls, path: str | os.PathLike, batches: Batches, *, fingerprint: str | None, overwrite: bool
    ) -> "VectorTable":
        """Write dense vectors to a new vector index, atomically, batch by batch: the files that a FlexIndex writes.

        Its own indexer takes one document at a time, which costs as much as a tenth of encoding. ValueError if there
        is only one document, which a FlexIndex cannot hold.
        """
        from npids import Lookup

        path = os.path.expanduser(path)
        with atomic_directory(path, overwrite=overwrite, **cls.kind()) as directory:
            number, size = 0, 0
            with (
                (directory / "vecs.f4").open("wb") as file,
                Lookup.builder(directory / "docnos.npids") as names,
                DocnoWriter(directory) as table,
            ):
                for docnos, vectors in batches:
                    file.write(np.ascontiguousarray(vectors.dense, dtype=np.float32).data)
                    number, size = number + len(docnos), vectors.dense.shape[1]
                    for docno in docnos:
                        names.add(docno)
                    table.extend(docnos)
                if number < 2:
                    raise ValueError("a vector index needs at least two documents; re-rank a single one by its text")
            write_json(
                directory / METADATA, {**cls.kind(), "vec_size": size, "doc_count": number, FINGERPRINT: fingerprint}
            )
        return cls(path)

    @staticmethod
    def opened(path: str | os.PathLike) -> "FlexIndex":
        """The index at a path, opened by pyterrier_dr, which takes seconds to import."""
        from pyterrier_dr import FlexIndex

        return FlexIndex(os.path.expanduser(path), verbose=False)

    @opened_lazily
    def matrix(self) -> np.ndarray:
        """All vectors, memory-mapped, float32 of shape (documents, dimensions)."""
        path, metadata = Path(self.path), read_object(Path(self.path) / METADATA)
        shape = metadata.get("doc_count"), metadata.get("vec_size")
        if not all(map(is_count, shape)) or {name: metadata.get(name) for name in self.kind()} != self.kind():
            raise ArtifactError(f"{path / METADATA} is damaged: it does not describe a vector index")
        with reading(path / "vecs.f4"):
            matrix = np.memmap(path / "vecs.f4", mode="r", dtype=np.float32)
        if matrix.size != math.prod(shape):
            raise ArtifactError(f"{path / 'vecs.f4'} is damaged: it does not hold {shape[0]} vectors of {shape[1]}")
        return matrix.reshape(shape)

    @property
    def vectors(self) -> Vectors:
        """All vectors, memory-mapped."""
        return Vectors(self.matrix)

    def block(self, rows: slice) -> Vectors:
        """The vectors of consecutive documents, memory-mapped."""
        return Vectors(self.matrix[rows])

    @opened_lazily
    def docnos(self) -> DocnoTable:
        """The docno of each row."""
        if (Path(self.path) / OFFSETS).exists():
            return docno_table(self.path, len(self))
        # The index is not one of ours.
        number = len(self)  # checks its metadata
        self._directory = TemporaryDirectory(prefix="pt_neural-docnos-")
        with reading(Path(self.path) / "docnos.npids"), DocnoWriter(self._directory.name) as docnos:
            found = self.opened(self.path).docnos()
            if len(found) != number:
                raise ValueError(f"it holds {len(found)} docnos, not {number}")
            docnos.extend(found)
        return docno_table(self._directory.name, number)

    def __len__(self) -> int:
        return len(self.matrix)

    def __reduce__(self) -> tuple:
        return VectorTable, (self.path,)
