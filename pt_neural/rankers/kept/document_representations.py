"""Documents as a trained interaction ranker encodes them, on disk: a matrix for each."""

import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyterrier as pt

from pt_neural._artifacts import METADATA, atomic_directory, opened_lazily, read_metadata, unchanged, write_metadata
from pt_neural._files import ArtifactError, GrowingArray, create_array, finite, is_count, load_array, rise, write_array
from pt_neural.datasets.docnos import DocnoTable
from pt_neural.rankers.kept.kept import FINGERPRINT, Kept
from pt_neural.text import ForwardIndex
from pt_neural.text.packed import offsets_of, ranges

Kind = Literal["float16", "int8"]
KINDS = ("float16", "int8")
LARGEST = {"float16": 65504.0, "int8": 127.0}
NUMBERS_PER_STEP = 262_144  # read at a time; they stay in the processor's cache until they are float32


class DocumentRepresentations(pt.Artifact, Kept):
    """The documents of a collection as a trained ranker encodes them, memory-mapped: one matrix per document.

    All matrices have the same number of columns and any number of rows. Numbers are stored as float16, or as int8 with
    one factor for each column of a matrix. Pickles as its path.

    Args:
        path: A directory that the ``index`` of a ranker wrote.
        verify: Compare all files with the digests that were written with them, which reads them all. By default, only
            what ``from_url`` and ``from_hf`` have downloaded.

    Attributes:
        documents: A forward index of the same collection.

    Raises:
        FileNotFoundError: If there is no such directory.
        ArtifactError: If the directory is damaged or holds something else.
    """

    ARTIFACT_TYPE = "document_representations"
    ARTIFACT_FORMAT = "pt_neural"

    def __init__(self, path: str | os.PathLike, *, verify: bool | None = None):
        super().__init__(Path(path).expanduser().absolute())
        self._metadata = read_metadata(self.path, **self.kind(), verify=verify)
        columns, dtype = self._metadata.get("columns"), self._metadata.get("dtype")
        known = isinstance(self._metadata.get(FINGERPRINT), str) and is_count(columns) and columns > 0
        if not known or not isinstance(dtype, str) or dtype not in KINDS:
            raise ArtifactError(f"{self.path / METADATA} is damaged: it does not say {FINGERPRINT}, columns or dtype")

    @classmethod
    def build(
        cls,
        path: str | os.PathLike,
        documents: Callable[[Path], ForwardIndex],
        encode: Callable[[ForwardIndex], Iterable[tuple[np.ndarray, np.ndarray]]],
        lengths: Callable[[ForwardIndex], np.ndarray],
        columns: int,
        *,
        fingerprint: str,
        dtype: Kind,
        overwrite: bool,
    ) -> "DocumentRepresentations":
        """Write the representations of a collection to a new directory; it appears when it is complete.

        ``documents`` writes a forward index to a directory. ``encode`` yields numbers of documents in it, each once,
        and the rows of their matrices one after the other, float32 of shape ``(sum of their lengths, columns)``;
        ``lengths`` gives the number of rows of each document, int64. Raises OSError if the disk is too full.
        """
        path = Path(path).expanduser()
        with atomic_directory(path, overwrite=overwrite, **cls.kind()) as directory:
            index = documents(directory / "documents")
            offsets = offsets_of(lengths(index))
            _require_space(directory, int(offsets[-1]) * columns * np.dtype(dtype).itemsize)
            write_array(directory / "offsets.npy", offsets)
            kept = create_array(directory / "rows.npy", dtype, (int(offsets[-1]), columns))
            factors = None
            if dtype == "int8":
                factors = create_array(directory / "factors.npy", "float32", (len(index), columns))
            for numbers, rows in encode(index):
                counts = offsets[numbers + 1] - offsets[numbers]
                if factors is not None:
                    factors[numbers] = _largest(rows, counts) / LARGEST[dtype]
                    rows = np.rint(rows / np.repeat(np.maximum(factors[numbers], 1e-30), counts, axis=0))
                kept[ranges(offsets[numbers], counts)] = rows.clip(-LARGEST[dtype], LARGEST[dtype])
            write_metadata(directory, **cls.kind(), **{FINGERPRINT: fingerprint}, dtype=dtype, columns=columns)
        return cls(path)

    @classmethod
    def merge(
        cls, path: str | os.PathLike, parts: Sequence[str | os.PathLike], *, overwrite: bool
    ) -> "DocumentRepresentations":
        """Join what one ranker has encoded of the parts of a collection, given by their paths, in their order."""
        path, kept = Path(path).expanduser(), [cls(part) for part in parts]
        columns, dtype = kept[0].columns, kept[0].dtype
        with atomic_directory(path, overwrite=overwrite, **cls.kind()) as directory:
            ForwardIndex.merge(directory / "documents", [one.documents for one in kept])
            _require_space(directory, sum(one._rows.nbytes for one in kept))
            write_array(directory / "offsets.npy", offsets_of(np.concatenate([np.diff(one._offsets) for one in kept])))
            _join(directory / "rows.npy", dtype, columns, [one._rows for one in kept])
            if dtype == "int8":
                _join(directory / "factors.npy", "float32", columns, [one._factors for one in kept])
            fingerprint = kept[0]._metadata[FINGERPRINT]
            write_metadata(directory, **cls.kind(), **{FINGERPRINT: fingerprint}, dtype=dtype, columns=columns)
        return cls(path)

    @staticmethod
    def kind() -> dict[str, str]:
        """The type and format of these artifacts."""
        return {"type": DocumentRepresentations.ARTIFACT_TYPE, "format": DocumentRepresentations.ARTIFACT_FORMAT}

    @property
    def docnos(self) -> DocnoTable:
        """The docno of each document."""
        return self.documents.docnos

    @property
    def dtype(self) -> Kind:
        """How numbers are stored."""
        return self._metadata["dtype"]

    @property
    def columns(self) -> int:
        """Columns of each matrix."""
        return self._metadata["columns"]

    @opened_lazily
    def documents(self) -> ForwardIndex:
        """The forward index of the same collection."""
        return ForwardIndex(self.path / "documents")

    @opened_lazily
    def _offsets(self) -> np.ndarray:
        offsets = self._array("offsets.npy", "int64", len(self) + 1)
        if not rise(offsets, int(offsets[-1])):
            raise ArtifactError(f"{self.path / 'offsets.npy'} is damaged: its numbers do not rise from 0")
        return offsets

    @opened_lazily
    def _rows(self) -> np.ndarray:
        return self._array("rows.npy", self.dtype, int(self._offsets[-1]), self.columns)

    @opened_lazily
    def _factors(self) -> np.ndarray:
        return self._array("factors.npy", "float32", len(self), self.columns)

    def _array(self, name: str, dtype: str, *shape: int) -> np.ndarray:
        array = load_array(self.path / name, dtype=np.dtype(dtype), ndim=len(shape))
        if array.shape != shape:
            raise ArtifactError(f"{self.path / name} is damaged: its shape is {array.shape}, not {shape}")
        return np.asarray(array)  # still mapped; NumPy copies from it faster

    def read(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The matrices of some documents, one after the other.

        Args:
            numbers: Numbers of documents in :attr:`documents`, int64, in any order.

        Returns:
            Rows, float32 of shape ``(all rows, columns)``, and where the rows of each document start, int64 of shape
            ``(len(numbers) + 1,)``.
        """
        starts = self._offsets[numbers]
        lengths = self._offsets[numbers + 1] - starts
        places = ranges(starts, lengths)
        owners = np.repeat(numbers, lengths) if self.dtype == "int8" else None
        rows = np.empty((len(places), self.columns), dtype=np.float32)
        step = max(1, NUMBERS_PER_STEP // self.columns)
        for start in range(0, len(rows), step):
            block = slice(start, start + step)
            kept = np.take(self._rows, places[block], axis=0)
            if owners is None:
                _widen(kept, rows[block])
            else:
                np.multiply(kept, np.take(self._factors, owners[block], axis=0), out=rows[block])
            if not finite(rows[block]):
                raise ArtifactError(f"{self.path / 'rows.npy'} or factors.npy is damaged: it holds NaN or infinity")
        return rows, offsets_of(lengths)

    def __len__(self) -> int:
        return len(self.documents)

    def __reduce__(self) -> tuple:
        return partial(DocumentRepresentations, verify=False), (str(self.path),)

    def __repr__(self) -> str:
        return f"DocumentRepresentations({Path(self.path).name!r}, {len(self):,} documents, {self.dtype})"


def forward_index_writer(
    corpus: Iterable[Mapping[str, Any]] | ForwardIndex, fields: Sequence[str], *, verbose: bool
) -> Callable[[Path], ForwardIndex]:
    """A function that writes a corpus, or copies a forward index, to a directory."""

    def write(path: Path) -> ForwardIndex:
        if isinstance(corpus, ForwardIndex):
            with unchanged(corpus.path, corpus._metadata):
                shutil.copytree(corpus.path, path)
            return ForwardIndex(path)
        return ForwardIndex.build(path, corpus, fields=fields, verbose=verbose)

    return write


def _largest(rows: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The largest absolute value in each column of each matrix, 0 where there are no rows."""
    largest = np.zeros((len(lengths), rows.shape[1]), dtype=np.float32)
    if len(rows):
        largest[lengths > 0] = np.maximum.reduceat(np.abs(rows), offsets_of(lengths)[:-1][lengths > 0])
    return largest


def _widen(halves: np.ndarray, into: np.ndarray) -> None:
    """Copy float16 to float32, faster than NumPy does."""
    import torch  # not needed to open representations

    torch.from_numpy(into).copy_(torch.from_numpy(halves))


def _require_space(directory: Path, needed: int) -> None:
    free = shutil.disk_usage(directory).free
    if needed > free:
        raise OSError(
            f"the representations take {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free; encode fewer "
            "documents, train a smaller model, or use dtype='int8'"
        )


def _join(path: Path, dtype: str, columns: int, arrays: Sequence[np.ndarray]) -> None:
    """Write arrays one after another."""
    with closing(GrowingArray(path, dtype, columns=columns)) as joined:
        for array in arrays:
            for start in range(0, len(array), NUMBERS_PER_STEP):
                joined.append(array[start : start + NUMBERS_PER_STEP])
