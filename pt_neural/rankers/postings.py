"""Weights by term, made of those by document, in memory that does not grow with the collection."""

from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from pt_neural.text.packed import offsets_of, ranges

WEIGHTS_PER_BLOCK = 1 << 22  # transposed in memory at a time


def write_postings(directory: Path, rows: csr_array) -> None:
    """Write the transpose of a matrix, which may be memory-mapped.

    Args:
        directory: An existing directory, which receives ``postings_weights.npy``, ``postings_indices.npy`` (numbers of
            documents, rising for each term) and ``postings_offsets.npy``.
        rows: Documents by terms.
    """
    blocks = _blocks(rows)
    lengths = np.zeros(rows.shape[1], dtype=np.int64)
    for start, stop in blocks:
        lengths += np.bincount(rows.indices[rows.indptr[start] : rows.indptr[stop]], minlength=len(lengths))
    offsets = offsets_of(lengths)
    weights = _create(directory / "postings_weights.npy", "float32", rows.nnz)
    indices = _create(directory / "postings_indices.npy", "int32", rows.nnz)
    free = offsets[:-1].copy()  # where the next posting of each term goes
    for start, stop in blocks:
        block = rows[start:stop].tocsc()
        counts = np.diff(block.indptr)
        places = ranges(free, counts)
        weights[places], indices[places] = block.data, block.indices + start
        free += counts
    np.save(directory / "postings_offsets.npy", offsets)


def _blocks(rows: csr_array) -> list[tuple[int, int]]:
    """First document of each block, and the one behind its last."""
    steps = np.arange(0, max(rows.nnz, 1), WEIGHTS_PER_BLOCK)
    starts = np.unique(np.searchsorted(rows.indptr, steps, side="right") - 1)
    return list(zip(starts.tolist(), [*starts[1:].tolist(), rows.shape[0]], strict=True))


def _create(path: Path, dtype: str, length: int) -> np.memmap:
    return np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=(length,))
