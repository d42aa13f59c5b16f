"""The files of artifacts: written plainly, and checked when they are read."""

import json
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np


class ArtifactError(ValueError):
    """A directory does not hold the artifact that it should, or the artifact is damaged."""


def write_json(path: str | os.PathLike, value: Any) -> None:
    """Write ``value`` as readable JSON."""
    Path(path).write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


@contextmanager
def reading(path: str | os.PathLike, *damage: type[Exception]) -> Iterator[None]:
    """Turn the errors of reading a missing or damaged file into an :class:`ArtifactError` that names it."""
    try:
        yield
    except FileNotFoundError:
        raise ArtifactError(f"{path} is missing; the directory is not a complete artifact") from None
    except damage as error:
        raise ArtifactError(f"{path} is damaged: {error}") from None


def read_json(path: str | os.PathLike) -> Any:
    """Read JSON; a missing or damaged file raises :class:`ArtifactError` naming it."""
    with reading(path, UnicodeDecodeError, json.JSONDecodeError):
        return json.loads(Path(path).read_text(encoding="utf-8"))


def write_tensors(path: str | os.PathLike, tensors: dict[str, np.ndarray]) -> None:
    """Write named arrays of any shapes and numeric dtypes as a safetensors file."""
    from safetensors.numpy import save_file

    # safetensors writes the memory of an array in whatever order it is in.
    save_file({name: np.asarray(array, order="C") for name, array in tensors.items()}, path)
    umask = os.umask(0)
    os.umask(umask)
    Path(path).chmod(0o666 & ~umask)  # safetensors' files can only be read by their owner


def read_tensors(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Read the arrays of a safetensors file; a missing or damaged file raises :class:`ArtifactError` naming it."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    with reading(path, SafetensorError, OSError, ValueError, TypeError, KeyError):
        return load_file(path)


def load_array(path: str | os.PathLike, *, dtype: type, ndim: int = 1, memory_map: bool = True) -> np.ndarray:
    """Read, or memory-map, a ``.npy`` file that must hold an array of this kind; nothing is ever unpickled."""
    with reading(path, ValueError, EOFError, OSError):
        array = np.load(path, mmap_mode="r" if memory_map else None, allow_pickle=False)
    if array.dtype != dtype or array.ndim != ndim:
        raise ArtifactError(
            f"{path} is damaged: it holds {array.ndim} dimensions of {array.dtype}, not {ndim} of {np.dtype(dtype)}"
        )
    return array


def map_bytes(path: str | os.PathLike) -> mmap.mmap | bytes:
    """Memory-map a file of bytes to be read; a missing file raises :class:`ArtifactError` naming it."""
    with reading(path, OSError, ValueError), Path(path).open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return b""  # an empty file cannot be mapped
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


class GrowingArray:
    """A ``.npy`` file of numbers, or of rows with so many columns, that grows while it is written."""

    def __init__(self, path: Path, dtype: type | str, *, columns: int | None = None):
        self._dtype, self._columns = np.dtype(dtype), columns
        self._file = path.open("wb")
        self._length = 0
        self._write_header()

    def append(self, numbers: np.ndarray) -> None:
        """Write numbers at the end."""
        self._file.write(np.ascontiguousarray(numbers, dtype=self._dtype).data)
        self._length += len(numbers)

    def __len__(self) -> int:
        return self._length

    def close(self) -> None:
        """Write the length of the array, and close the file."""
        if self._file.closed:
            return
        self._file.seek(0)
        self._write_header()  # as long as the first one, since NumPy leaves room for the length to grow
        self._file.close()

    def _write_header(self) -> None:
        shape = (self._length,) if self._columns is None else (self._length, self._columns)
        header = {"descr": np.lib.format.dtype_to_descr(self._dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._file, header)
