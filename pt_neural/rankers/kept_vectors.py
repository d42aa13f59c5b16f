"""Rankers that can read documents from vectors that they made beforehand."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural.rankers.kept_table import KeptTable
from pt_neural.rankers.ranker import Ranker
from pt_neural.text import ForwardIndex

T = TypeVar("T")


class KeptVectors(Ranker):
    """Base of the rankers whose documents have vectors of some kind, which their ``index`` keeps on disk.

    Args:
        fields: Text columns, joined by a space; those that a frame lacks are passed over, one must be there. None for
            those of ``documents``, or ``title`` and ``text`` without a forward index.
        documents: A forward index: re-ranking then needs ``docno`` only, no text and no tokenising.
        vectors: What ``index`` made: re-ranking then only multiplies vectors.
        batch_size: Documents encoded at a time.
        verbose: Show a progress bar while encoding documents.

    Attributes:
        least_score: What a document without a vector scores.
    """

    least_score: float

    def __init__(
        self,
        *,
        fields: str | Sequence[str] | None = None,
        documents: ForwardIndex | None = None,
        vectors: Any = None,
        batch_size: int = 1024,
        verbose: bool = False,
    ):
        if documents is not None and vectors is not None:
            raise ValueError("give documents or vectors, not both: each tells where document vectors come from")
        super().__init__(fields=fields, documents=documents, batch_size=batch_size, verbose=verbose)
        self.vectors = vectors

    @property
    def vectors(self) -> Any:
        """Kept vectors to re-rank with; ``model.vectors = model.index(..)`` sets them after training.

        Those that :meth:`index` of another model made are refused, and so are this one's from before a new training.
        """
        return self._vectors

    @vectors.setter
    def vectors(self, vectors: Any) -> None:
        table = None if vectors is None else self._open(vectors)
        if table is not None:
            table.require_made_by(self)
        self._vectors, self._table = vectors, table

    @abstractmethod
    def _open(self, vectors: Any) -> KeptTable:
        """The table of what ``index`` made, or of the path of it."""

    def _check_options(self) -> None:
        if self._table is not None:
            self._table.require_made_by(self)

    def _require_no_vectors(self) -> None:
        if self.vectors is not None:
            raise ValueError(
                f"{self!r} has vectors=, which a new training would not change: train without them, then set "
                "model.vectors = model.index(path, corpus)"
            )

    def _distinct_documents(self, frame: pd.DataFrame) -> tuple[np.ndarray, list[str]]:
        """The number of each row's document, from 0, and the distinct documents: texts, or docnos of ``documents``."""
        if self.documents is not None:
            rows, docnos = pd.factorize(frame["docno"], use_na_sentinel=False)
            return rows, list(docnos)
        rows, texts = pd.factorize(np.array(self.frame_texts(frame), dtype=object))
        return rows, list(texts)

    def _in_batches(self, encode: Callable[[Sequence[str]], T], documents: Sequence[str]) -> list[T]:
        """Encode documents ``batch_size`` at a time, with a progress bar if the model is verbose."""
        starts = range(0, len(documents), self.batch_size)
        progress = pt.tqdm(starts, desc=f"{self!r} documents", unit="batch", disable=not self.verbose)
        return [encode(documents[start : start + self.batch_size]) for start in progress]
