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

from pt_neural._files import (
    ArtifactError,
    GrowingArray,
    create_array,
    load_array,
    map_bytes,
    read_json,
    reading,
    write_json,
)
from pt_neural._frames import validated
from pt_neural.datasets.docnos import DocnoTable
from pt_neural.lucene.index.directory import IndexDirectory
from pt_neural.lucene.index.opened import LatestOpened
from pt_neural.lucene.index.reader import DOCNOS_FOLDER, SEPARATOR, Reader, look_up, open_reader, remembered
from pt_neural.lucene.java.handles import bind, chain, function, method
from pt_neural.lucene.java.jvm import in_java, naming
from pt_neural.text.tokens import TEXT_FIELDS

TEXT_FOLDER = "text"
BLOCK = 1000  # documents at a time

_STRING = "java.lang.String"
_SETTINGS, _OFFSETS, _TEXT, _SLOTS = "fields.json", "offsets.npy", "text.bin", "slots.npy"


class TextLoader(pt.Transformer):
    """Adds text fields to rows with a docno; made by :meth:`LuceneIndex.text_loader`.

    Args:
        index: An index that was built with the text, or any Anserini index that stores it.
        fields: Names of the fields; None for all that the index holds.
        verbose: Show a progress bar.
    """

    def __init__(self, index: IndexDirectory, fields: Sequence[str] | None = None, *, verbose: bool = False):
        self.index = index
        self.fields = [fields] if isinstance(fields, str) else None if fields is None else list(fields)
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
        with validated(inp, self) as v:
            v.columns(includes=["docno"])
        if not len(inp) and (self.fields is not None or not self.index.built()):
            return inp.assign(**{field: pd.Series(dtype=object) for field in self.fields or TEXT_FIELDS})
        source = open_text(self.index) or StoredFields(self.index.reader)
        fields = self._checked(source)
        found = look_up(inp["docno"], source.docnos, self.index.path)
        numbers, rows = np.unique(found, return_inverse=True)
        return inp.assign(**{field: texts[rows] for field, texts in self._read(source, fields, numbers).items()})

    def _checked(self, source: TextStores | StoredFields) -> list[str]:
        """The fields to load."""
        path, held = self.index.path, source.held
        if not held:
            raise ValueError(
                f"{path} has not kept the text of its documents. Build it again with index.indexer(store_text=True, "
                "overwrite=True), or load text from the dataset"
            )
        missing = [field for field in self.fields or () if field not in source.fields]
        if missing:
            raise ValueError(
                f"{path} holds the text of {', '.join(held)}, but not of {', '.join(missing)}. Load what it holds, "
                f"text_loader({held!r}), or build it again with these fields: index.indexer(fields=..., overwrite=True)"
                ", or metadata=... for those that are not to be searched"
            )
        return held if self.fields is None else self.fields

    def _read(
        self, source: TextStores | StoredFields, fields: Sequence[str], numbers: np.ndarray
    ) -> dict[str, np.ndarray]:
        texts = {field: np.empty(len(numbers), dtype=object) for field in fields}
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
        return f"TextLoader({self.index.name!r}{'' if self.fields is None else f', {self.fields!r}'})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TextLoader) and (self.index, self.fields) == (other.index, other.fields)

    def __hash__(self) -> int:
        return hash((TextLoader, self.index, self.fields and tuple(self.fields)))


class TextStoreWriter:
    """A context that writes a text store to a new directory: one file of UTF-8 and one of offsets."""

    def __init__(self, directory: Path, fields: Sequence[str]):
        self.directory = directory
        self.fields = list(fields)
        self._empty = set(fields)  # those that no document has had so far
        self._ends: list[int] = [0]

    def __enter__(self) -> Self:
        self.directory.mkdir()
        self._file = (self.directory / _TEXT).open("wb")
        self._offsets = GrowingArray(self.directory / _OFFSETS, np.int64)
        return self

    def add(self, docno: str, values: Sequence[str]) -> None:
        """Add a document: its docno, and one string for each field."""
        if self._empty:
            self._empty.difference_update(field for field, value in zip(self.fields, values, strict=True) if value)
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
            empty = [field for field in self.fields if field in self._empty]
            write_json(self.directory / _SETTINGS, {"fields": self.fields, "empty": empty})


class TextStore:
    """Reads what :class:`TextStoreWriter` has written; ArtifactError if a file is missing or damaged.

    A document's place in the store is its slot; documents are kept in the order of the collection.
    """

    def __init__(self, directory: Path):
        self.directory = directory
        self.fields, empty = _read_fields(directory / _SETTINGS)
        self.held = [field for field in self.fields if field not in empty]
        self._offsets = load_array(directory / _OFFSETS, dtype=np.int64)
        self._text = map_bytes(directory / _TEXT)
        if not len(self._offsets) or self._offsets[-1] != len(self._text) or (len(self._offsets) - 1) % self._stride:
            raise ArtifactError(f"{directory} is damaged: {_OFFSETS} does not fit {_TEXT}")
        self._slots = load_array(directory / _SLOTS, dtype=np.int64) if (directory / _SLOTS).is_file() else None

    @property
    def _stride(self) -> int:
        return len(self.fields) + 1

    def __len__(self) -> int:
        return (len(self._offsets) - 1) // self._stride

    @functools.cached_property
    def slots(self) -> np.ndarray:
        """The slot of each of Lucene's documents, int64."""
        slots, index = self._slots, self.directory.parent
        if slots is None:  # from an earlier version
            self._folder = tempfile.TemporaryDirectory(prefix="pt_neural-text-")  # removed at the end of the process
            slots = make_slots(self, open_reader(index, lambda: [index]).docnos, Path(self._folder.name))
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
        if ((slots < 0) | (slots >= len(self))).any():
            raise ArtifactError(f"{self.directory / _SLOTS} is damaged: it names documents that do not exist")
        places = slots * self._stride + column
        starts, ends = self._offsets[places], self._offsets[places + 1]
        if ((starts < 0) | (starts > ends) | (ends > len(self._text))).any():
            raise ArtifactError(f"{self.directory / _OFFSETS} is damaged: its numbers do not ascend")
        text = self._text
        with reading(self.directory / _TEXT):
            return [text[a:b].decode("utf-8") for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]


def _read_fields(file: Path) -> tuple[list[str], list[str]]:
    """The names of all fields, and of those that no document has."""
    settings = read_json(file)
    named = [settings.get("fields"), settings.get("empty", [])] if isinstance(settings, dict) else [None]
    for names in named:
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ArtifactError(f"{file} is damaged: it does not list the names of fields")
    return named[0], named[1]


def write_slots(directory: Path, docnos: DocnoTable) -> None:
    """Write the slots of a new text store beside it; ``docnos`` are in the order of Lucene's documents."""
    make_slots(TextStore(directory), docnos, directory)


def make_slots(store: TextStore, docnos: DocnoTable, folder: Path) -> np.ndarray:
    """Write the slot of each of Lucene's documents to a file in an existing folder, in constant memory."""
    slots = create_array(folder / _SLOTS, np.int64, (len(store),))
    for start in range(0, len(store), BLOCK):
        block = np.arange(start, min(start + BLOCK, len(store)))
        numbers = docnos.rows(store.docnos(block))
        if len(docnos) != len(store) or (numbers < 0).any():
            raise ArtifactError(f"{store.directory} is damaged: its documents are not those of the index")
        slots[numbers] = block
    return slots


class TextStores:
    """The text of an index in one or more parts, whose documents are numbered one part after the other."""

    def __init__(self, path: Path, stores: Sequence[TextStore], docnos: DocnoTable):
        if sum(map(len, stores)) != len(docnos):
            raise ArtifactError(f"{path} is damaged: the text of {sum(map(len, stores))} of {len(docnos)} documents")
        self.stores = stores
        self.docnos = docnos
        self.fields = [field for field in stores[0].fields if all(field in store.fields for store in stores)]
        self.held = [field for field in self.fields if any(field in store.held for store in stores)] or self.fields
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


def open_text(index: IndexDirectory) -> TextStores | None:
    """The text of an index; None if one of its parts has not kept any."""
    if not all((part / TEXT_FOLDER / _SETTINGS).is_file() for part in index.parts):
        return None
    return _texts.open(index.path, lambda: index.parts)


def _open_text(path: Path, parts: Sequence[Path]) -> TextStores:
    stores = [TextStore(part / TEXT_FOLDER) for part in parts]
    if (path / DOCNOS_FOLDER).is_dir():
        return TextStores(path, stores, DocnoTable(path / DOCNOS_FOLDER))
    return TextStores(path, stores, open_reader(path, lambda: parts).docnos)  # from an earlier version


_texts = LatestOpened(_open_text)


class StoredFields:
    """Reads what Lucene itself stores, for an index without a text store. Slow."""

    def __init__(self, reader: Reader):
        self.reader = reader
        self.docnos = reader.docnos
        self.fields = self._names()
        texts = [field for field in self.fields if field not in ("id", "raw")]
        self.held = texts or [field for field in self.fields if field == "raw"]

    @in_java
    def _names(self) -> list[str]:
        """The fields that the first document stores, and those within its JSON if that is stored."""
        if not len(self.reader):
            return []
        with naming(self.reader.path):
            return self._names_in_first()

    def _names_in_first(self) -> list[str]:
        stored = [field.name() for field in self._document(0).getFields().toArray()]
        raw = _json_object(self._document(0).get("raw"))
        return [*stored, *(name for name, value in raw.items() if isinstance(value, str) and name not in stored)]

    @in_java
    def read(self, field: str, numbers: np.ndarray) -> list[str]:
        """One field of the documents with the given numbers."""
        stored = _stored_text(self.reader, field)
        with naming(self.reader.path):
            return [self._text(stored, self._document(number), field) for number in numbers.tolist()]

    def _text(self, stored: Any, document: Any, field: str) -> str:
        if document.getField(field) is None:
            text = _json_object(document.get("raw")).get(field)
            return text if isinstance(text, str) else ""
        return stored.apply(document).removeprefix(SEPARATOR)

    def _document(self, number: int) -> Any:
        stored = self.reader.java.storedFields()
        return stored.document(number)


@remembered(maxsize=16)
def _stored_text(reader: Reader, field: str) -> Any:
    """Java function from a document to the separator and the text of a field."""
    get = bind(method("org.apache.lucene.document.Document", "get", _STRING, _STRING), 1, field)
    return function(chain(get, bind(method(_STRING, "concat", _STRING, _STRING), 0, SEPARATOR)))


def _json_object(raw: str | None) -> dict[str, Any]:
    try:
        value = json.loads(raw or "")
    except json.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}
