"""The documents of a collection as sparse weights of terms, and as dense vectors if a model has them, on disk."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyterrier as pt
from scipy.sparse import csr_array

from pt_neural._artifacts import METADATA, atomic_directory, opened_lazily, read_metadata, write_metadata
from pt_neural._files import ArtifactError, GrowingArray, create_array, is_count, load_array, rise, write_array
from pt_neural.datasets.docnos import DocnoTable, DocnoWriter, docno_table
from pt_neural.rankers.kept.kept import FINGERPRINT, Kept
from pt_neural.rankers.kept.stored_rows import StoredRows
from pt_neural.rankers.kept.vectors import Batches, VectorTable
from pt_neural.rankers.vectors import Vectors
from pt_neural.text.packed import offsets_of, ranges

if TYPE_CHECKING:
    from pyterrier_dr import FlexIndex

COUNTS = ("documents", "terms", "weights")
WEIGHTS_PER_BLOCK = 1 << 20  # transposed in memory at a time


class TermVectors(pt.Artifact, Kept):
    """The documents of a collection as sparse and dense vectors, memory-mapped; pickles as its path.

    The weights of each document's terms are kept twice, by document and by term; dense vectors, where the model has
    them, are a ``pyterrier_dr.FlexIndex``. Nothing is read before it is used.

    Args:
        path: A directory that the ``index`` of a ranker wrote.
        verify: Compare all files with the digests that were written with them, which reads them all. By default, only
            what ``from_url`` and ``from_hf`` have downloaded.

    Raises:
        FileNotFoundError: On first use, if there is no such directory.
        ArtifactError: On first use, if the directory is damaged or holds something else.

    Example::

        vectors = tfidf.index("pydocs.terms", docs.get_corpus_iter())
        tfidf.retriever(vectors).search("pairwise distance")
        vectors.terms  # documents by terms, a csr matrix
    """

    ARTIFACT_TYPE = "term_vectors"
    ARTIFACT_FORMAT = "pt_neural"

    def __init__(self, path: str | os.PathLike, *, verify: bool | None = None):
        super().__init__(Path(path).expanduser().absolute())
        self._verify = verify

    @classmethod
    def of(cls, vectors: "TermVectors | str | os.PathLike") -> "TermVectors":
        """Kept vectors, given as such or by their path."""
        if isinstance(vectors, cls):
            return vectors
        if not isinstance(vectors, str | os.PathLike):
            raise TypeError(f"vectors are what model.index(path, corpus) gave, or its path, not {vectors!r:.80}")
        return cls(vectors)

    @staticmethod
    def kind() -> dict[str, str]:
        """The type and format of these artifacts."""
        return {"type": TermVectors.ARTIFACT_TYPE, "format": TermVectors.ARTIFACT_FORMAT}

    @classmethod
    def build(
        cls,
        path: str | os.PathLike,
        batches: Batches,
        *,
        fingerprint: str | None,
        overwrite: bool,
    ) -> "TermVectors":
        """Write the vectors of a collection to a new directory, which appears when it is complete, batch by batch.

        Batches are docnos and vectors; all have a dense part, or none. ValueError if a single document has a dense
        vector.
        """
        path = Path(path).expanduser()
        with atomic_directory(path, overwrite=overwrite, **cls.kind()) as directory:
            counts = _write_documents(directory, batches, fingerprint)
            write_metadata(directory, **cls.kind(), **counts, **{FINGERPRINT: fingerprint})
            _write_postings(directory, cls(directory).rows_of_terms)
        return cls(path)

    @classmethod
    def opened(cls, path: str | os.PathLike) -> "TermVectors":
        """The vectors at a path."""
        return cls(Path(path).expanduser())

    @cached_property
    def _metadata(self) -> dict:
        metadata = read_metadata(self.path, **self.kind(), verify=self._verify)
        if not all(is_count(metadata.get(name)) for name in COUNTS) or not isinstance(metadata.get("dense"), bool):
            raise ArtifactError(f"{self.path / METADATA} is damaged: it does not say {', '.join(COUNTS)} or dense")
        return metadata

    @opened_lazily
    def docnos(self) -> DocnoTable:
        """The docno of each document."""
        return docno_table(self.path, len(self))

    @property
    def terms(self) -> csr_array:
        """Weights of each document's terms, float32 of shape ``(documents, terms)``; copied to memory in part."""
        return self.rows_of_terms.matrix()

    @property
    def postings(self) -> csr_array:
        """The same by term, float32 of shape ``(terms, documents)``."""
        return self.rows_of_documents.matrix()

    @opened_lazily
    def rows_of_terms(self) -> StoredRows:
        """Weights of each document's terms, memory-mapped."""
        return self._stored("rows", len(self), self._metadata["terms"])

    @opened_lazily
    def rows_of_documents(self) -> StoredRows:
        """Weights of each term's documents, memory-mapped."""
        return self._stored("postings", self._metadata["terms"], len(self))

    @opened_lazily
    def dense(self) -> "FlexIndex | None":
        """The dense vectors; None if the model has none."""
        return VectorTable.opened(self.path / "dense") if self._metadata["dense"] else None

    @opened_lazily
    def vectors(self) -> Vectors:
        """All documents, memory-mapped."""
        return Vectors(self._dense_matrix() if self._metadata["dense"] else None, self.rows_of_terms)

    def block(self, rows: slice) -> Vectors:
        """Consecutive documents, memory-mapped."""
        return self.vectors.take(rows)

    def _dense_matrix(self) -> np.ndarray:
        path = self.path / "dense"
        matrix = VectorTable(path).matrix
        if len(matrix) != len(self):
            raise ArtifactError(f"{path} is damaged: it holds {len(matrix)} vectors, not {len(self)}")
        return matrix

    def _stored(self, name: str, rows: int, columns: int) -> StoredRows:
        lengths = {"weights": self._metadata["weights"], "indices": self._metadata["weights"], "offsets": rows + 1}
        kinds = {"weights": np.float32, "indices": np.int32, "offsets": np.int64}
        parts = {}
        for part, length in lengths.items():
            path = self.path / f"{name}_{part}.npy"
            parts[part] = np.asarray(load_array(path, dtype=kinds[part]))
            if len(parts[part]) != length:
                raise ArtifactError(f"{path} is damaged: it holds {len(parts[part])} numbers, not {length}")
        if not rise(parts["offsets"], lengths["weights"]):
            raise ArtifactError(f"{self.path / f'{name}_offsets.npy'} is damaged: its numbers do not rise from 0")
        return StoredRows(**parts, shape=(rows, columns), name=str(self.path / f"{name}_indices.npy"))

    def __len__(self) -> int:
        return self._metadata["documents"]

    def __reduce__(self) -> tuple:
        return partial(TermVectors, verify=False), (str(self.path),)

    def __repr__(self) -> str:
        return f"TermVectors({Path(self.path).name!r})"


def _write_documents(directory: Path, batches: Batches, fingerprint: str | None) -> dict[str, int | bool]:
    """Write docnos and vectors, sparse by document; gives the counts for the metadata."""
    batches = iter(batches)
    first = next(batches)
    with _Rows(directory, first[1].sparse) as rows:
        written = rows.write(chain([first], batches))
        if first[1].dense is None:
            for _ in written:
                pass
        else:
            VectorTable.build(directory / "dense", written, fingerprint=fingerprint, overwrite=False)
    return {**rows.counts(), "dense": first[1].dense is not None}


class _Rows:
    """Writes the sparse part of batches while they pass."""

    def __init__(self, directory: Path, terms: csr_array | None):
        self._terms = 0 if terms is None else terms.shape[1]
        self._docnos = DocnoWriter(directory)
        self._offsets = GrowingArray(directory / "rows_offsets.npy", "int64")
        self._weights = GrowingArray(directory / "rows_weights.npy", "float32")
        self._indices = GrowingArray(directory / "rows_indices.npy", "int32")

    def write(self, batches: Batches) -> Iterator[tuple[list[str], Vectors]]:
        """Write the batches, and pass them on."""
        for docnos, vectors in batches:
            self._docnos.extend(docnos)
            terms = csr_array((len(docnos), 0)) if vectors.sparse is None else vectors.sparse
            self._offsets.append(len(self._weights) + terms.indptr[1:].astype(np.int64))
            self._weights.append(terms.data)
            self._indices.append(terms.indices)
            yield docnos, vectors

    def counts(self) -> dict[str, int]:
        return {"documents": len(self._offsets) - 1, "terms": self._terms, "weights": len(self._weights)}

    def __enter__(self) -> "_Rows":
        self._docnos.__enter__()
        self._offsets.append(np.zeros(1))
        return self

    def __exit__(self, *exception: Any) -> None:
        with ExitStack() as files:  # all of them are closed, even if the disk is full
            files.push(self._docnos)
            for array in (self._offsets, self._weights, self._indices):
                files.callback(array.close)


def _write_postings(directory: Path, rows: StoredRows) -> None:
    """Write the transpose of documents by terms, block by block, so that memory does not grow with its size."""
    blocks = _blocks(rows)
    lengths = np.zeros(rows.shape[1], dtype=np.int64)
    for start, stop in blocks:
        lengths += np.bincount(rows[start:stop].indices, minlength=len(lengths))
    offsets = offsets_of(lengths)
    weights = create_array(directory / "postings_weights.npy", "float32", (len(rows.weights),))
    indices = create_array(directory / "postings_indices.npy", "int32", (len(rows.weights),))
    free = offsets[:-1].copy()  # where the next posting of each term goes
    for start, stop in blocks:
        block = rows[start:stop].tocsc()
        counts = np.diff(block.indptr)
        places = ranges(free, counts)
        weights[places], indices[places] = block.data, block.indices + start
        free += counts
    write_array(directory / "postings_offsets.npy", offsets)


def _blocks(rows: StoredRows) -> list[tuple[int, int]]:
    """The first document of each block, and the one after its last."""
    steps = np.arange(0, max(len(rows.weights), 1), WEIGHTS_PER_BLOCK)
    starts = np.unique(np.searchsorted(rows.offsets, steps, side="right") - 1)
    return list(zip(starts.tolist(), [*starts[1:].tolist(), rows.shape[0]], strict=True))
