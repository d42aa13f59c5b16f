"""A one-dimensional ``.npy`` file that grows while it is written."""

from pathlib import Path

import numpy as np


class GrowingArray:
    """Appends to a ``.npy`` file; nothing but the last piece is held in memory.

    Args:
        path: The file to create.
        dtype: Of its numbers.

    Example::

        numbers = GrowingArray(directory / "numbers.npy", "int32")
        numbers.append(np.array([1, 2]))
        numbers.close()
    """

    def __init__(self, path: Path, dtype: str):
        self._dtype = np.dtype(dtype)
        self._file = path.open("wb")
        self._length = 0
        self._write_header()

    def append(self, numbers: np.ndarray) -> None:
        """Write numbers behind those that are there."""
        self._file.write(np.ascontiguousarray(numbers, dtype=self._dtype).data)
        self._length += len(numbers)

    def close(self) -> None:
        """Write the length of the array, and close the file."""
        self._file.seek(0)
        self._write_header()  # NumPy leaves room for the length to grow, so that this one is as long as the first
        self._file.close()

    def _write_header(self) -> None:
        shape = {"descr": np.lib.format.dtype_to_descr(self._dtype), "fortran_order": False, "shape": (self._length,)}
        np.lib.format.write_array_header_1_0(self._file, shape)
