"""Interaction rankers whose document side can be computed beforehand and kept."""

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any

import numpy as np
import pandas as pd

from pt_neural._arguments import checked_choice
from pt_neural.rankers.interaction import Interaction
from pt_neural.rankers.ranker import require_same_fields
from pt_neural.rankers.representations import KINDS, DocumentRepresentations, Kind, forward_index_writer
from pt_neural.rankers.trained import Trained
from pt_neural.text import ForwardIndex


class KeptDocuments(Interaction):
    """Base of the interaction rankers that make a matrix of each document without looking at the query.

    Args:
        representations: What :meth:`index` made, to re-rank by ``docno`` from documents that were encoded beforehand.
        **options: What the other bases take.
    """

    def __init__(self, *args: Any, representations: DocumentRepresentations | None, **options: Any):
        super().__init__(*args, **options)
        self.representations = representations

    @abstractmethod
    def kept_columns(self) -> int:
        """Columns of a document's matrix."""

    @abstractmethod
    def kept_lengths(self, documents: ForwardIndex) -> np.ndarray:
        """Rows of the matrix of each document of a forward index, int64 of shape (documents,)."""

    @abstractmethod
    def encode_kept(self, documents: ForwardIndex, *, verbose: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Encode all documents of a forward index, in blocks.

        Args:
            documents: The forward index.
            verbose: Show a progress bar.

        Yields:
            Numbers of documents, each once and in any order, and the rows of their matrices one after the other,
            float32 of shape (sum of their lengths, columns).
        """

    @property
    def representations(self) -> DocumentRepresentations | None:
        """Kept documents; ``model.representations = model.index(path, corpus)`` sets them after training.

        They are then read instead of ``documents``.
        """
        return self._representations

    @representations.setter
    def representations(self, representations: DocumentRepresentations | None) -> None:
        if representations is not None and not isinstance(representations, DocumentRepresentations):
            raise TypeError(
                "representations must be what model.index(path, corpus) gave, or pt.Artifact.load(path) of it, not "
                f"{representations!r:.80}"
            )
        self._representations = representations

    def kept_documents(self) -> ForwardIndex | None:
        """Where documents are read from by docno; None where frames must bring their text."""
        return super().kept_documents() if self.representations is None else self.representations.documents

    def index(
        self,
        path: str | os.PathLike,
        corpus: Iterable[Mapping[str, Any]] | ForwardIndex,
        *,
        dtype: Kind = "float16",
        overwrite: bool = False,
        verbose: bool = True,
    ) -> DocumentRepresentations:
        """Encode a collection once, so that re-ranking by ``docno`` leaves out all that does not depend on the query.

        What is kept of a document, and how large it is, the class says. It is exact but for the rounding.

        Args:
            path: Directory to create.
            corpus: Iterator of documents with ``docno`` and text, or a forward index.
            dtype: ``"float16"``, or ``"int8"``, which takes half the room.
            overwrite: Replace representations that are there.
            verbose: Show progress bars.

        Returns:
            The representations, for ``representations=``; they hold a forward index too.

        Raises:
            RuntimeError: If the model is not trained.
            ValueError: If ``dtype`` is another one, or if the forward index holds other fields than the model reads.
            FileExistsError: If something is there and ``overwrite`` is false.
            OSError: If the disk is too full.

        Example::

            model.representations = model.index("kept", docs.get_corpus_iter())
            model.transform(results)  # qid, query and docno are enough
        """
        checked_choice("dtype", dtype, KINDS)
        self._fitted()
        if isinstance(corpus, ForwardIndex):
            require_same_fields(self.fields, corpus)
        return DocumentRepresentations.build(
            path,
            forward_index_writer(corpus, self.fields, verbose=verbose),
            lambda documents: self.encode_kept(documents, verbose=verbose),
            self.kept_lengths,
            self.kept_columns(),
            model=self.fingerprint(),
            dtype=dtype,
            overwrite=overwrite,
        )

    @wraps(Trained.fit)
    def fit(self, *frames: pd.DataFrame, **named: pd.DataFrame) -> "KeptDocuments":  # noqa: D102 (wraps gives it)
        if self.representations is not None:
            raise ValueError(
                f"{self!r} has representations=, which a new training would not change: train without them, then set "
                "model.representations = model.index(path, corpus)"
            )
        return super().fit(*frames, **named)

    def kept_reader(self, frame: pd.DataFrame) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] | None:
        """A function that reads what is kept of the documents of a frame; None where nothing is kept.

        Args:
            frame: Has ``docno``.

        Returns:
            A function of numbers among the frame's distinct docnos, in the order in which they are first seen. It
            gives what :meth:`~pt_neural.rankers.representations.DocumentRepresentations.read` does: rows and offsets.

        Raises:
            ValueError: If another model made the representations.
        """
        kept = self.representations
        if kept is None:
            return None
        if kept.model != self.fingerprint():
            raise ValueError(
                f"{kept!r} was made by another model than this {self!r}, or by this one before it was fitted anew; "
                f"index the collection again: model.index({str(kept.path)!r}, corpus, overwrite=True)"
            )
        stored = kept.documents.rows(pd.unique(frame["docno"]))
        return lambda numbers: kept.read(stored[numbers])
