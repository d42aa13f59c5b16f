"""Artifacts on disk: directories that are either complete or absent, and the checked reading of their files."""

import json
import mmap
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

METADATA = "pt_meta.json"


class ArtifactError(ValueError):
    """A directory does not hold the artifact that it should, or the artifact is damaged."""


@contextmanager
def atomic_directory(
    path: str | os.PathLike, *, overwrite: bool = False, type: str | None = None, format: str | None = None
) -> Iterator[Path]:
    """Yield a temporary directory beside ``path`` to write to, and move it to ``path`` if the block succeeds.

    Args:
        path: The directory to create. Missing parents are created.
        overwrite: Replace an artifact that is already there; it stays untouched until the block ends.
        type: Type of the artifact to be written. If given, an artifact of another type or format at ``path`` is refused
            at once, not only at the end.
        format: Its format.

    Raises:
        FileExistsError: If ``path`` exists and ``overwrite`` is false, if it is a file, or if it holds anything but an
            artifact of the type and format that was written.
    """
    path = Path(path)
    refuse_existing(path, overwrite=overwrite, type=type, format=format)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o777 & ~umask)
        written = read_json(temporary / METADATA) if (temporary / METADATA).exists() else {}
        refuse_existing(path, overwrite=overwrite, type=written.get("type"), format=written.get("format"))
        if overwrite:
            _replace_directory(temporary, path)
        else:
            _move_directory(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def refuse_existing(
    path: str | os.PathLike, *, overwrite: bool, type: str | None = None, format: str | None = None
) -> None:
    """Raise FileExistsError if writing an artifact to ``path`` would destroy something."""
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise FileExistsError(f"{path} is a file; name a directory that does not exist yet")
    if not path.exists() or not any(path.iterdir()):
        return
    if not overwrite:
        raise FileExistsError(f"{path} exists already; pass overwrite=True to replace it, or choose another path")
    if not (path / METADATA).exists():
        raise FileExistsError(f"{path} is not an artifact ({METADATA} is missing); it stays as it is")
    found = _kind(path)
    if type is not None and found != (type, format):
        raise FileExistsError(
            f"{path} holds a {found[0]}.{found[1]}, not a {type}.{format} to be replaced; it stays as it is. "
            "Choose another path, or delete it"
        )


def _kind(directory: Path) -> tuple[str | None, str | None]:
    """Type and format of an artifact; None if its metadata does not say."""
    try:
        metadata = read_json(directory / METADATA)
    except ArtifactError:
        return None, None
    return (metadata.get("type"), metadata.get("format")) if isinstance(metadata, dict) else (None, None)


def _move_directory(source: Path, target: Path) -> None:
    """Move in one step: if another process was faster, its directory stays and is never missing for a moment."""
    with suppress(OSError):  # an empty directory may be there
        target.rmdir()
    try:
        source.rename(target)
    except OSError:
        refuse_existing(target, overwrite=False)
        raise


def _replace_directory(source: Path, target: Path) -> None:
    if not target.exists():
        source.rename(target)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".old", dir=target.parent))
    target.rename(aside)
    try:
        source.rename(target)
    except OSError:
        aside.rename(target)
        raise
    shutil.rmtree(aside, ignore_errors=True)


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


def write_metadata(directory: str | os.PathLike, *, type: str, format: str, version: int = 1, **details: Any) -> None:
    """Write ``pt_meta.json``, which tells :meth:`pyterrier.Artifact.load` what a directory holds."""
    metadata = {"type": type, "format": format, "package_hint": "pt-neural", "version": version, **details}
    write_json(Path(directory) / METADATA, metadata)


def read_metadata(directory: str | os.PathLike, *, type: str, format: str, version: int = 1) -> dict[str, Any]:
    """Read and check ``pt_meta.json``; ``version`` is the newest version of the format that can be read.

    Raises:
        FileNotFoundError: If there is no such directory.
        ArtifactError: If the directory holds something else, is damaged, or has a newer version.
    """
    directory = Path(directory)
    if not directory.exists():
        raise FileNotFoundError(f"{directory} does not exist")
    if not directory.is_dir():
        raise ArtifactError(f"{directory} is a file; a {type} is a directory")
    metadata = read_json(directory / METADATA)
    found = _kind(directory)
    if found != (type, format):
        raise ArtifactError(f"{directory / METADATA} describes {found[0]}.{found[1]}, not {type}.{format}")
    if not isinstance(metadata.get("version", 1), int):
        raise ArtifactError(f"{directory / METADATA} is damaged: its version is {metadata['version']!r}")
    if metadata.get("version", 1) > version:
        raise ArtifactError(
            f"{directory / METADATA} has version {metadata['version']}, newer than the {version} that this "
            "pt_neural reads; upgrade with: pip install -U pt-neural"
        )
    return metadata
