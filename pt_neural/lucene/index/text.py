"""The text of documents: kept beside the index in memory-mapped files, and loaded by docno.

Lucene reads a whole stored document for each hit whose text is wanted; here, a field of a document is one slice.
"""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._files import ArtifactError, GrowingArray, load_array, map_bytes, read_json, write_json
from pt_neural.lucene.index.directory import IndexDirectory
from pt_neural.lucene.index.reader import Reader, look_up, open_reader
from pt_neural.lucene.java.jvm import in_java
from pt_neural.text.docnos import DocnoTable

TEXT_FOLDER = "text"
BLOCK = 1000  # documents at a time

_SETTINGS, _OFFSETS, _TEXT, _SLOTS = "fields.json", "offsets.npy", "text.bin", "slots.npy"


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
        source = open_text(self.index.parts) or StoredFields(self.index.reader)
        missing = [field for field in self.fields if field not in source.fields]
        if missing:
            raise ValueError(
                f"{self.index.path} has not kept the text of {', '.join(missing)}; it has "
                f"{', '.join(source.fields) or 'none'}. Build it again with index.indexer(store_text=True, "
                "overwrite=True), or load text from the dataset"
            )
        docnos = self.index.docno_table
        if len(source) != len(docnos):
            raise ArtifactError(f"{self.index.path} is damaged: the text of {len(source)} of {len(docnos)} documents")
        found = look_up(inp["docno"], docnos, self.index.path)
        numbers, rows = np.unique(found, return_inverse=True)
        return inp.assign(**{field: texts[rows] for field, texts in self._read(source, numbers).items()})

    def _read(self, source: TextStores | StoredFields, numbers: np.ndarray) -> dict[str, np.ndarray]:
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
        self._ends: list[int] = [0]

    def __enter__(self) -> Self:
        self.directory.mkdir()
        self._file = (self.directory / _TEXT).open("wb")
        self._offsets = GrowingArray(self.directory / _OFFSETS, np.int64)
        return self

    def add(self, docno: str, values: Sequence[str]) -> None:
        """Add a document: its docno, and one string for each field."""
        for value in (docno, *values):
            self._ends.append(self._ends[-1] + self._file.write(value.encode("utf-8", "replace")))
        if len(self._ends) > BLOCK:
            self._flush()

    def _flush(self) -> None:
        self._offsets.append(np.array(self._ends[:-1], dtype=np.int64))
        del self._ends[:-1]

    def __exit__(self, kind: type | None, *_: Any) -> None:
        self._flush()
        self._offsets.append(np.array(self._ends))
        self._offsets.close()
        self._file.close()
        if kind is None:
            write_json(self.directory / _SETTINGS, {"fields": self.fields})


class TextStore:
    """Reads what :class:`TextStoreWriter` has written; ArtifactError if a file is missing or damaged.

    A document's place in the store is its slot; documents are kept in the order of the collection.
    """

    def __init__(self, directory: Path):
        self.directory = directory
        self.fields: list[str] = read_json(directory / _SETTINGS)["fields"]
        self._offsets = load_array(directory / _OFFSETS, dtype=np.int64)
        self._text = map_bytes(directory / _TEXT)
        if self._offsets[-1] != len(self._text) or (len(self._offsets) - 1) % self._stride:
            raise ArtifactError(f"{directory} is damaged: {_OFFSETS} does not fit {_TEXT}")

    @property
    def _stride(self) -> int:
        return len(self.fields) + 1

    def __len__(self) -> int:
        return (len(self._offsets) - 1) // self._stride

    @functools.cached_property
    def slots(self) -> np.ndarray:
        """The slot of each of Lucene's documents, int64."""
        if (self.directory / _SLOTS).is_file():
            slots = load_array(self.directory / _SLOTS, dtype=np.int64)
        else:  # from an earlier version
            index = self.directory.parent
            self._folder = tempfile.TemporaryDirectory(prefix="pt_neural-text-")  # removed at the end of the process
            slots = make_slots(self, open_reader(index, [index]).docnos, Path(self._folder.name))
        if len(slots) != len(self):
            raise ArtifactError(f"{self.directory} is damaged: {_SLOTS} does not fit {_OFFSETS}")
        return slots

    def docnos(self, slots: np.ndarray) -> list[str]:
        """The docnos of the documents in the given slots."""
        return self._column(0, slots)

    def read(self, field: str, numbers: np.ndarray) -> list[str]:
        """One field of the documents that Lucene has given these numbers."""
        return self._column(1 + self.fields.index(field), self.slots[numbers])

    def _column(self, column: int, slots: np.ndarray) -> list[str]:
        places = slots * self._stride + column
        text = self._text
        starts, ends = self._offsets[places].tolist(), self._offsets[places + 1].tolist()
        return [text[start:end].decode("utf-8") for start, end in zip(starts, ends, strict=True)]


def write_slots(directory: Path, docnos: DocnoTable) -> None:
    """Write the slots of a new text store beside it; ``docnos`` are in the order of Lucene's documents."""
    make_slots(TextStore(directory), docnos, directory)


def make_slots(store: TextStore, docnos: DocnoTable, folder: Path) -> np.ndarray:
    """Write the slot of each of Lucene's documents to a file in an existing folder, in constant memory."""
    slots = np.lib.format.open_memmap(folder / _SLOTS, mode="w+", dtype=np.int64, shape=(len(store),))
    for start in range(0, len(store), BLOCK):
        block = np.arange(start, min(start + BLOCK, len(store)))
        numbers = docnos.rows(store.docnos(block))
        if len(docnos) != len(store) or (numbers < 0).any():
            raise ArtifactError(f"{store.directory} is damaged: its documents are not those of the index")
        slots[numbers] = block
    slots.flush()
    return slots


class TextStores:
    """The text of an index in one or more parts, whose documents are numbered one part after the other."""

    def __init__(self, stores: Sequence[TextStore]):
        self.stores = stores
        self.fields = [field for field in stores[0].fields if all(field in store.fields for store in stores)]
        self._starts = np.cumsum([0, *map(len, stores)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def read(self, field: str, numbers: np.ndarray) -> list[str]:
        """One field of the documents with the given numbers, which ascend."""
        bounds = np.searchsorted(numbers, self._starts)
        texts: list[str] = []
        for i, store in enumerate(self.stores):
            own = numbers[bounds[i] : bounds[i + 1]]
            if len(own):
                texts += store.read(field, own - self._starts[i])
        return texts


def open_text(parts: Sequence[Path]) -> TextStores | None:
    """The text of an index in the given folders, each opened once; None if one of them has not kept any."""
    settings = [part.resolve() / TEXT_FOLDER / _SETTINGS for part in parts]
    if not all(file.is_file() for file in settings):
        return None
    return TextStores([_open(file.parent, file.stat().st_ino, file.stat().st_mtime_ns) for file in settings])


@functools.lru_cache(maxsize=1024)
def _open(directory: Path, inode: int, modified: int) -> TextStore:
    return TextStore(directory)


class StoredFields:
    """Reads what Lucene itself stores, for an index without a text store. Slow."""

    def __init__(self, reader: Reader):
        self.reader = reader
        self.fields = self._names()

    def __len__(self) -> int:
        return len(self.reader)

    @in_java
    def _names(self) -> list[str]:
        """The fields that the first document stores, and those within its JSON if that is stored."""
        if not len(self.reader):
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
