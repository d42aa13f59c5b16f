"""Text of documents by docno, as a transformer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural.lucene.docnos import look_up
from pt_neural.lucene.jvm import in_java
from pt_neural.lucene.progress import in_chunks
from pt_neural.lucene.text_store import TextStore, open_text_store

if TYPE_CHECKING:
    from pt_neural.lucene.index import LuceneIndex

BLOCK = 1000  # documents between two steps of the progress bar


class TextLoader(pt.Transformer):
    """Adds text fields to rows with a docno; made by :meth:`LuceneIndex.text_loader`.

    Args:
        index: The index that was built with the text, or any Anserini index that stores it.
        fields: Names of the fields.
        verbose: Show a progress bar.
    """

    def __init__(self, index: LuceneIndex, fields: Sequence[str] = ("title", "text"), *, verbose: bool = False):
        self.index = index
        self.fields = [fields] if isinstance(fields, str) else list(fields)
        self.verbose = verbose

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add the fields.

        Args:
            inp: Any frame with ``docno``.

        Returns:
            The same rows in the same order, with a column of strings a field: ``""`` where a document has none.
            Rows of one document share one string.

        Raises:
            ValueError: If a docno is not in the index, or if the index has not kept a field.
        """
        pt.validate.columns(inp, includes=["docno"], context=self)
        if not len(inp):
            return inp.assign(**{field: pd.Series(dtype=object) for field in self.fields})
        store = open_text_store(self.index.path)
        source = StoredFields(self.index) if store is None else store
        missing = [field for field in self.fields if field not in source.fields]
        if missing:
            raise ValueError(_not_kept(self.index, missing, source.fields))
        places, rows = np.unique(look_up(inp["docno"], source.places, self.index.path), return_inverse=True)
        return inp.assign(**{field: texts[rows] for field, texts in self._read(source, places).items()})

    def _read(self, source: TextStore | StoredFields, places: np.ndarray) -> dict[str, np.ndarray]:
        texts = {field: np.empty(len(places), dtype=object) for field in self.fields}
        label = repr(self) if self.verbose else None
        for block in in_chunks(len(places), BLOCK, label=label, unit="documents"):
            for field, column in texts.items():
                column[block] = source.read(field, places[block])
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


class StoredFields:
    """The same for an index without a text store: what Lucene itself stores, which is slow to read."""

    def __init__(self, index: LuceneIndex):
        self.reader = index.reader
        self.fields = self._names()

    @property
    def places(self) -> dict[str, int]:
        """Lucene's document number of each docno."""
        return self.reader.numbers

    @in_java
    def _names(self) -> list[str]:
        """Fields that the first document stores; those within its JSON where it stores that."""
        if not self.places:
            return []
        stored = [field.name() for field in self._document(0).getFields().toArray()]
        raw = _json_object(self._document(0).get("raw"))
        return [*stored, *(name for name, value in raw.items() if isinstance(value, str) and name not in stored)]

    @in_java
    def read(self, field: str, places: np.ndarray) -> list[str]:
        """One field of the documents with the given numbers."""
        documents = [self._document(place) for place in places.tolist()]
        found = [document.get(field) for document in documents]
        return [
            _json_object(document.get("raw")).get(field) or "" if text is None else text
            for document, text in zip(documents, found, strict=True)
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


def _not_kept(index: LuceneIndex, missing: Sequence[str], kept: Sequence[str]) -> str:
    return (
        f"{index.path} has not kept the text of {', '.join(missing)}; it has {', '.join(kept) or 'none'}. Build it "
        "again with index.indexer(store_text=True, overwrite=True), or load text from the dataset"
    )
