"""The files of artifacts: written plainly, and checked when they are read."""

import errno
import json
import math
import mmap
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from threading import Lock
from typing import IO, Any

import numpy as np

_NUMBERS = 1 << 16  # compared at a time
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
# NumPy reads the header of a .npy file as a piece of Python, which Python 3.11 must not do in two threads at a time:
# "SystemError: AST constructor recursion depth mismatch".
_parsing = Lock()
_BLOCK = 1 << 20  # bytes written at a time where room cannot be taken otherwise


class ArtifactError(ValueError):
    """A directory does not hold the artifact that it should, or the artifact is damaged."""


class DiskFullError(OSError):
    """There is no room for what is to be written; the message says how much is needed."""


def write_json(path: str | os.PathLike, value: Any) -> None:
    """Write ``value`` as readable JSON."""
    Path(path).write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


@contextmanager
def reading(path: str | os.PathLike) -> Iterator[None]:
    """Turn whatever a parser raises at a missing or damaged file into an :class:`ArtifactError` that names it.

    Parsers of others raise anything: RecursionError, OverflowError, MemoryError, tokenize.TokenError. An error of the
    operating system, such as too many open files, says nothing about the file and stays as it is.
    """
    try:
        yield
    except FileNotFoundError:
        raise ArtifactError(f"{path} is missing; the directory is not a complete artifact") from None
    except (IsADirectoryError, NotADirectoryError):
        raise ArtifactError(f"{path} is damaged: it is not a file") from None
    except (ArtifactError, OSError):
        raise
    except Exception as error:
        raise ArtifactError(f"{path} is damaged: {type(error).__name__}: {error!s:.200}") from None


def read_json(path: str | os.PathLike) -> Any:
    """Read JSON; a missing or damaged file raises :class:`ArtifactError` naming it."""
    with reading(path):
        return json.loads(Path(path).read_text(encoding="utf-8"))


def read_object(path: str | os.PathLike) -> dict[str, Any]:
    """Read JSON that must be an object; a missing or damaged file raises :class:`ArtifactError` naming it."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise ArtifactError(f"{path} is damaged: it holds no JSON object")
    return value


@contextmanager
def replacing(path: str | os.PathLike, *, durable: bool = True) -> Iterator[Path]:
    """Yield a path to write a file to, which takes the place of ``path``, in one step, if the block succeeds.

    With ``durable=False``, the file need not be there after the machine has failed.

    Example::

        >>> with replacing("run.json") as unfinished:
        ...     write_json(unfinished, {"epochs": 3})
    """
    path = Path(path)
    unfinished = path.with_name(f"{path.name}.tmp")
    try:
        yield unfinished
        if durable:
            sync(unfinished)
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    if durable:
        sync(path.parent)


def sync(path: str | os.PathLike) -> None:
    """Wait until a file, or the list of a directory's files, is on the disk."""
    if os.name == "nt" and os.path.isdir(path):
        return  # Windows cannot open directories
    handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_tensors(path: str | os.PathLike, tensors: dict[str, np.ndarray]) -> None:
    """Write named arrays of any shapes and numeric dtypes as a safetensors file; OSError if it cannot be written."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    # safetensors writes the memory of an array in whatever order it is in.
    tensors = {name: np.asarray(array, order="C") for name, array in tensors.items()}
    path = Path(path)
    path.touch()
    mode = path.stat().st_mode
    try:
        save_file(tensors, path)
    except SafetensorError as error:  # even if it is the system's
        needed = sum(array.nbytes for array in tensors.values())
        raise OSError(f"{path} needs {needed:,} bytes, and {free_bytes(path)} are free: {error}") from None
    path.chmod(mode)  # safetensors' files can only be read by their owner


def read_tensors(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Read the arrays of a safetensors file; a missing or damaged file raises :class:`ArtifactError` naming it."""
    from safetensors.numpy import load_file

    with reading(path):
        Path(path).open("rb").close()  # safetensors calls a directory a missing device
        return load_file(path)


def load_array(path: str | os.PathLike, *, dtype: type, ndim: int = 1, memory_map: bool = True) -> np.ndarray:
    """Read, or memory-map, a ``.npy`` file that must hold an array of this kind; nothing is ever unpickled."""
    with reading(path), _parsing:
        array = np.load(path, mmap_mode="r", allow_pickle=False)  # takes no memory, whatever size the header names
    if array.dtype != dtype or array.ndim != ndim:
        raise ArtifactError(
            f"{path} is damaged: it holds {array.ndim} dimensions of {array.dtype}, not {ndim} of {np.dtype(dtype)}"
        )
    return array if memory_map else np.array(array)


def is_count(value: Any) -> bool:
    """Whether a value of JSON is an integer from 0 on that NumPy can hold."""
    return type(value) is int and 0 <= value < 2**63


def rise(offsets: np.ndarray, last: int) -> bool:
    """Whether numbers rise from 0 to ``last``, compared block by block, as there may be many on disk."""
    if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != last:
        return False
    blocks = (offsets[start : start + _NUMBERS + 1] for start in range(0, len(offsets), _NUMBERS))
    return not any((block[1:] < block[:-1]).any() for block in blocks)


def within(numbers: np.ndarray, end: int) -> bool:
    """Whether all of these signed integers are at least 0 and below ``end``, in one pass.

    Example::

        >>> within(np.array([0, 2, 5]), 5)
        False
    """
    unsigned = np.asarray(numbers).view(f"u{numbers.dtype.itemsize}")  # in which -1 is the largest number of all
    return len(unsigned) == 0 or int(unsigned.max()) < end


def finite(numbers: np.ndarray) -> bool:
    """Whether no number is NaN or infinite.

    Example::

        >>> finite(np.array([1.0, np.inf]))
        False
    """
    with np.errstate(all="ignore"):
        total = np.sum(numbers)  # in which NaN and infinity stay, and four times as fast as looking at each number
    return bool(np.isfinite(total) or np.isfinite(numbers).all())


def write_array(path: str | os.PathLike, array: np.ndarray) -> None:
    """Write a ``.npy`` file; OSError if there is no room for it."""
    array = np.asarray(array, order="C")
    with Path(path).open("wb") as file:
        _write_header(file, array.dtype, array.shape)
        take_room(file, array.nbytes)
        file.write(array.reshape(-1).view(np.uint8).data)


def create_array(path: str | os.PathLike, dtype: type | str, shape: tuple[int, ...]) -> np.ndarray:
    """A new ``.npy`` file, memory-mapped to be written in any order; OSError if there is no room for it.

    Writing to a map of a file without blocks on a full disk would end the process.
    """
    dtype = np.dtype(dtype)
    with Path(path).open("wb") as file:
        _write_header(file, dtype, shape)
        start = file.tell()
        take_room(file, math.prod(shape) * dtype.itemsize)
    return np.memmap(path, dtype, mode="r+", offset=start, shape=shape)


def take_room(file: IO[bytes], size: int) -> None:
    """Make a file that is open for writing so many bytes longer, with blocks of the disk behind them.

    The file's position stays. OSError if the disk has fewer free bytes.
    """
    file.flush()
    start = file.tell()
    try:
        if hasattr(os, "posix_fallocate"):
            if size:
                os.posix_fallocate(file.fileno(), start, size)
            return
        for place in range(0, size, _BLOCK):
            file.write(bytes(min(_BLOCK, size - place)))
        file.flush()
        file.seek(start)
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        name = os.path.join(gettempdir(), "a temporary file") if isinstance(file.name, int) else file.name
        message = f"the disk is full: {size:,} bytes are needed, and {free_bytes(name)} are free"
        raise DiskFullError(error.errno, message, name) from None


def free_bytes(path: str | os.PathLike) -> str:
    """The number of bytes that are free on the disk of a file, as text."""
    return f"{shutil.disk_usage(Path(path).parent).free:,}"


def map_bytes(path: str | os.PathLike) -> mmap.mmap | bytes:
    """Memory-map a file of bytes to be read; a missing file raises :class:`ArtifactError` naming it."""
    with reading(path), Path(path).open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return b""  # an empty file cannot be mapped
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


class GrowingArray:
    """A ``.npy`` file of numbers, or of rows with so many columns, that grows while it is written."""

    def __init__(self, path: Path, dtype: type | str, *, columns: int | None = None):
        self._dtype, self._columns = np.dtype(dtype), columns
        self._file = path.open("wb")
        self._length = 0
        _write_header(self._file, self._dtype, self._shape())

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
        with self._file:
            self._file.seek(0)
            # As long as the first one, since NumPy leaves room for the length to grow.
            _write_header(self._file, self._dtype, self._shape())

    def _shape(self) -> tuple[int, ...]:
        return (self._length,) if self._columns is None else (self._length, self._columns)


def _write_header(file: IO[bytes], dtype: np.dtype, shape: tuple[int, ...]) -> None:
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
