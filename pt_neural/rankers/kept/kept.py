"""The base of all that models write to disk about documents: docnos, rows, and which model made them."""

import os
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np

from pt_neural._artifacts import METADATA
from pt_neural._files import read_object
from pt_neural.datasets.docnos import DocnoTable, refuse_unknown

FINGERPRINT = "model_fingerprint"  # in the metadata


class Fingerprinted(Protocol):
    """A model with a fingerprint."""

    def fingerprint(self) -> str | None:
        """Differs between models that represent documents differently; None before the model is fitted."""


class Kept:
    """Base of documents written to ``path``; it knows the docno of each row, and which model made them."""

    path: str | os.PathLike

    @staticmethod
    @abstractmethod
    def kind() -> dict[str, str]:
        """The type and format of the artifact."""

    @property
    @abstractmethod
    def docnos(self) -> DocnoTable:
        """The docno of each row."""

    def __len__(self) -> int:
        return len(self.docnos)

    def rows(self, docnos: Sequence[str]) -> np.ndarray:
        """Row numbers of documents, int64; ValueError if a document is missing."""
        rows = self.docnos.rows(docnos)
        if (rows < 0).any():
            advice = "index the collection that the candidates come from"
            refuse_unknown(np.asarray(docnos, dtype=object)[rows < 0], self.path, advice)
        return rows

    @cached_property
    def _metadata(self) -> dict:
        return read_object(Path(self.path) / METADATA)

    def require_made_by(self, model: Fingerprinted) -> None:
        """Raise ValueError if another model made these, as far as can be told."""
        if not os.path.exists(self.path) or model.fingerprint() is None:
            return  # there is nothing yet to compare
        if self._metadata.get(FINGERPRINT) not in (None, model.fingerprint()):
            path = os.fspath(self.path)
            raise ValueError(
                f"what is kept in {path} was made by another model than this {model!r}, or by this one before it "
                f"was fitted anew; index the collection again: model.index({path!r}, corpus, overwrite=True)"
            )
