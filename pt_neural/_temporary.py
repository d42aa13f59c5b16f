"""Arrays in temporary files without a name, which vanish with the process; ``TMPDIR`` says where."""

import math
import os
from collections.abc import Iterable, Iterator
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from pt_neural._files import take_room


def temporary_array(shape: tuple[int, ...], dtype: type | str) -> np.ndarray:
    """Zeros on disk, memory-mapped."""
    if 0 in shape:
        return np.zeros(shape, dtype)
    with TemporaryFile() as file:
        take_room(file, math.prod(shape) * np.dtype(dtype).itemsize)
        return np.asarray(np.memmap(file, dtype, mode="w+", shape=shape))


class Place(NamedTuple):
    """Where a :class:`Spool` has written an array."""

    file: IO[bytes]
    start: int
    dtype: np.dtype
    shape: tuple[int, ...]


class Spool:
    """Arrays and csr matrices that are written one by one, by any thread, and memory-mapped when they are read.

    A forked process reads what was written before, and writes to a file of its own.

    Example::

        >>> spool = Spool()
        >>> first, second = spool.write(np.arange(3)), spool.write(None)
        >>> spool.read(first), spool.read(second)
        (array([0, 1, 2]), None)
    """

    def __init__(self):
        self._lock, self._process = Lock(), None

    def write(self, array: np.ndarray | csr_array | None) -> Any:
        """Write an array, a csr matrix or None; gives what :meth:`read` takes."""
        if array is None:
            return None
        if isinstance(array, csr_array):
            return *map(self.write, (array.data, array.indices, array.indptr)), array.shape
        with self._lock:
            if self._process != os.getpid():
                self._file, self._process = TemporaryFile(), os.getpid()  # noqa: SIM115 (open while arrays are read)
            place = Place(self._file, self._file.seek(0, 2), array.dtype, array.shape)
            self._file.write(np.ascontiguousarray(array).data)
            self._file.flush()
        return place

    def read(self, place: Any) -> np.ndarray | csr_array | None:
        """What was written."""
        if place is None:
            return None
        if not isinstance(place, Place):
            return csr_array(tuple(map(self.read, place[:3])), shape=place[3])
        if 0 in place.shape:
            return np.zeros(place.shape, place.dtype)
        return np.asarray(np.memmap(place.file, place.dtype, mode="r", offset=place.start, shape=place.shape))


class SparseBlocks:
    """A sparse matrix in a temporary file, read in blocks of rows as often as one likes.

    Args:
        blocks: csr matrices of equal width, at least one; the rows of one follow those of another.

    Example::

        >>> [block.shape for block in SparseBlocks([csr_array((2, 3)), csr_array((1, 3))])]
        [(2, 3), (1, 3)]
    """

    def __init__(self, blocks: Iterable[csr_array]):
        self._spool = Spool()
        self._places = [self._spool.write(block) for block in blocks]
        self.shape = sum(place[3][0] for place in self._places), self._places[0][3][1]

    def __iter__(self) -> Iterator[csr_array]:
        return map(self._spool.read, self._places)
