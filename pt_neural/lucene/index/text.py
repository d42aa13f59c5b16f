"""The text of documents: kept beside the index in memory-mapped files, and loaded by docno.

Lucene reads a whole stored document for each hit whose text is wanted; here, a field of a document is one slice.
"""

from __future__ import annotations

import functools
import json
import mmap
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._artifacts import ArtifactError, read_json, write_json
from pt_neural.lucene.index.directory import IndexDirectory
from pt_neural.lucene.index.reader import Reader, look_up
from pt_neural.lucene.java.jvm import in_java

TEXT_FOLDER = "text"
BLOCK = 1000  # documents between two steps of the progress bar

_SETTINGS, _OFFSETS, _TEXT = "fields.json", "offsets.npy", "text.bin"


class TextLoader(pt.Transformer):
    """Adds text fields to rows with a docno; made by :meth:`LuceneIndex.text_loader`.

    Args:
        index: An index that was built with the text, or any Anserini index that stores it.
        fields: Names of the fields.
        verbose: Show a progress bar.
    """

    def __init__(self, index: IndexDirectory, fields: Sequence[str] = ("title", "text"), *, verbose: bool = False):
        self.index = index
        self.fields = [fields] if isinstance(fields, str) else list(fields)
        self.verbose = verbose

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add the fields.

        Args:
            inp: Any frame with ``docno``.

        Returns:
            The same rows in the same order, with a column of strings for each field: ``""`` where a document does not
            have it. Rows of the same document share one string.

        Raises:
            ValueError: If a docno is not in the index, or if the index has not kept the text of a field.
        """
        pt.validate.columns(inp, includes=["docno"], context=self)
        if not len(inp):
            return inp.assign(**{field: pd.Series(dtype=object) for field in self.fields})
        store = open_text_store(self.index.path)
        source = StoredFields(self.index.reader) if store is None else store
        missing = [field for field in self.fields if field not in source.fields]
        if missing:
            raise ValueError(
                f"{self.index.path} has not kept the text of {', '.join(missing)}; it has "
                f"{', '.join(source.fields) or 'none'}. Build it again with index.indexer(store_text=True, "
                "overwrite=True), or load text from the dataset"
            )
        numbers, rows = np.unique(look_up(inp["docno"], source.numbers, self.index.path), return_inverse=True)
        return inp.assign(**{field: texts[rows] for field, texts in self._read(source, numbers).items()})

    def _read(self, source: TextStore | StoredFields, numbers: np.ndarray) -> dict[str, np.ndarray]:
        texts = {field: np.empty(len(numbers), dtype=object) for field in self.fields}
        with pt.tqdm(total=len(numbers), desc=repr(self), unit=" documents", disable=not self.verbose) as bar:
            for start in range(0, len(numbers), BLOCK):
                block = numbers[start : start + BLOCK]
                for field, column in texts.items():
                    column[start : start + BLOCK] = source.read(field, block)
                bar.update(len(block))
        return texts

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer:
        """Load the text of the first ``k`` documents only."""
        return pt.RankCutoff(k) >> self

    def schematic(self, *, input_columns: list[str] | None = None) -> dict[str, Any]:
        """How PyTerrier draws it."""
        return {"label": "Text", "help_url": None}

    def __repr__(self) -> str:
        return f"TextLoader({self.index.name!r}, {self.fields!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TextLoader) and (self.index, self.fields) == (other.index, other.fields)

    def __hash__(self) -> int:
        return hash((TextLoader, self.index, tuple(self.fields)))


class TextStoreWriter:
    """A context that writes a text store to a new directory: one file of UTF-8 and one of offsets."""

    def __init__(self, directory: Path, fields: Sequence[str]):
        self.directory = directory
        self.fields = list(fields)
        self._ends = array("q", [0])

    def __enter__(self) -> Self:
        self.directory.mkdir()
        self._file = (self.directory / _TEXT).open("wb")
        return self

    def add(self, docno: str, values: Sequence[str]) -> None:
        """Add a document: its docno, and one string for each field."""
        for value in (docno, *values):
            self._ends.append(self._ends[-1] + self._file.write(value.encode("utf-8", "replace")))

    def __exit__(self, kind: type | None, *_: Any) -> None:
        self._file.close()
        if kind is None:
            np.save(self.directory / _OFFSETS, np.frombuffer(self._ends, dtype=np.int64))
            write_json(self.directory / _SETTINGS, {"fields": self.fields})


class TextStore:
    """Reads what :class:`TextStoreWriter` has written; ArtifactError if a file is missing or damaged."""

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
    def numbers(self) -> dict[str, int]:
        """The number in the store of each docno's document."""
        return {docno: number for number, docno in enumerate(self._column(0, np.arange(len(self))))}

    def read(self, field: str, numbers: np.ndarray) -> list[str]:
        """One field of the documents with the given numbers."""
        return self._column(1 + self.fields.index(field), numbers)

    def _column(self, column: int, numbers: np.ndarray) -> list[str]:
        slots = np.asarray(numbers) * self._stride + column
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
    settings = index / TEXT_FOLDER / _SETTINGS
    if not settings.is_file():
        return None
    status = settings.stat()
    return _open(index.resolve() / TEXT_FOLDER, status.st_ino, status.st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _open(directory: Path, inode: int, modified: int) -> TextStore:
    return TextStore(directory)


class StoredFields:
    """Reads what Lucene itself stores, for an index without a text store. Slow."""

    def __init__(self, reader: Reader):
        self.reader = reader
        self.fields = self._names()

    @property
    def numbers(self) -> dict[str, int]:
        """Lucene's document number of each docno."""
        return self.reader.numbers

    @in_java
    def _names(self) -> list[str]:
        """The fields that the first document stores, and those within its JSON if that is stored."""
        if not self.numbers:
            return []
        stored = [field.name() for field in self._document(0).getFields().toArray()]
        raw = _json_object(self._document(0).get("raw"))
        return [*stored, *(name for name, value in raw.items() if isinstance(value, str) and name not in stored)]

    @in_java
    def read(self, field: str, numbers: np.ndarray) -> list[str]:
        """One field of the documents with the given numbers."""
        documents = [self._document(number) for number in numbers.tolist()]
        texts = [document.get(field) for document in documents]
        return [
            _json_object(document.get("raw")).get(field) or "" if text is None else text
            for document, text in zip(documents, texts, strict=True)
        ]

    def _document(self, number: int) -> Any:
        stored = self.reader.java.storedFields()
        return stored.document(number)


def _json_object(raw: str | None) -> dict[str, Any]:
    try:
        value = json.loads(raw or "")
    except json.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}
