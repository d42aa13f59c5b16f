"""Text of documents beside the index: one file of UTF-8, one of offsets, both memory-mapped.

Lucene would load a whole stored document for each hit that it is asked about; here any field of any document
is one slice.
"""

import functools
import mmap
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from pt_neural._artifacts import ArtifactError, read_json, write_json

FOLDER = "text"
_SETTINGS, _OFFSETS, _TEXT = "fields.json", "offsets.npy", "text.bin"


class TextStoreWriter:
    """A context that writes a text store.

    Args:
        directory: Where to; it is created.
        fields: Names of the fields of a document, beside its docno.
    """

    def __init__(self, directory: Path, fields: Sequence[str]):
        self.directory = directory
        self.fields = list(fields)
        self._ends = array("q", [0])

    def __enter__(self) -> Self:
        self.directory.mkdir()
        self._file = (self.directory / _TEXT).open("wb")
        return self

    def add(self, docno: str, values: Sequence[str]) -> None:
        """Add a document: its docno, and one string a field."""
        for value in (docno, *values):
            self._ends.append(self._ends[-1] + self._file.write(value.encode("utf-8", "replace")))

    def __exit__(self, kind: type | None, *_: Any) -> None:
        self._file.close()
        if kind is None:
            np.save(self.directory / _OFFSETS, np.frombuffer(self._ends, dtype=np.int64))
            write_json(self.directory / _SETTINGS, {"fields": self.fields})


class TextStore:
    """Reads what :class:`TextStoreWriter` has written.

    Args:
        directory: The directory of the store.

    Raises:
        ArtifactError: If a file is missing or damaged.
    """

    def __init__(self, directory: Path):
        self.directory = directory
        self.fields: list[str] = read_json(directory / _SETTINGS)["fields"]
        try:
            self._offsets = np.load(directory / _OFFSETS, mmap_mode="r")
            self._text = _map(directory / _TEXT)
        except (OSError, ValueError) as error:
            raise ArtifactError(f"{directory} is damaged: {error}") from None
        if self._offsets[-1] != len(self._text) or (len(self._offsets) - 1) % self._stride:
            raise ArtifactError(f"{directory} is damaged: {_OFFSETS} does not fit {_TEXT}")

    @property
    def _stride(self) -> int:
        return len(self.fields) + 1

    def __len__(self) -> int:
        return (len(self._offsets) - 1) // self._stride

    @functools.cached_property
    def places(self) -> dict[str, int]:
        """The place of each docno in the store."""
        return {docno: place for place, docno in enumerate(self._column(0, np.arange(len(self))))}

    def read(self, field: str, places: np.ndarray) -> list[str]:
        """One field of the documents at the given places."""
        return self._column(1 + self.fields.index(field), places)

    def _column(self, column: int, places: np.ndarray) -> list[str]:
        slots = np.asarray(places) * self._stride + column
        text = self._text
        starts, ends = self._offsets[slots].tolist(), self._offsets[slots + 1].tolist()
        return [text[start:end].decode("utf-8") for start, end in zip(starts, ends, strict=True)]


def _map(path: Path) -> mmap.mmap | bytes:
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return b""  # an empty file cannot be mapped
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def open_text_store(index: Path) -> TextStore | None:
    """The text store of an index, opened once; None if the index has none."""
    settings = index / FOLDER / _SETTINGS
    if not settings.is_file():
        return None
    status = settings.stat()
    return _open(index.resolve() / FOLDER, status.st_ino, status.st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _open(directory: Path, inode: int, modified: int) -> TextStore:
    return TextStore(directory)
