"""Rankers whose distributed part reads documents that were encoded beforehand (Duet paper, section 6)."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from pt_neural._arguments import checked_choice
from pt_neural.models.duet_ranker import DuetRanker
from pt_neural.models.duet_scoring import read_documents
from pt_neural.rankers.ranker import require_same_fields
from pt_neural.rankers.representations import KINDS, DocumentRepresentations, Kind, forward_index_writer
from pt_neural.text import ForwardIndex, WordHashing
from pt_neural.training.examples import Examples
from pt_neural.training.sampling import Collate


class KeptDocumentsRanker(DuetRanker):
    """Base of the rankers with a distributed part, whose document side does not depend on the query.

    Args:
        representations: What :meth:`index` made, to re-rank by ``docno`` from documents that were encoded beforehand.
        **options: What :class:`~pt_neural.models.duet_ranker.DuetRanker` takes.
    """

    def __init__(self, *args: Any, representations: DocumentRepresentations | None, **options: Any):
        super().__init__(*args, **options)
        self.representations = representations

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
        return self.documents if self.representations is None else self.representations.documents

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

        What is kept of a document is a matrix of filters x hidden units, 180 KB as float16 and 90 KB as int8 with the
        sizes of the paper, whose own proposal (section 6), 300 x 899 numbers, would be three times larger and would
        leave the largest layer to be computed. It is exact but for the rounding: the scores of a trained model differ
        by less than 0.001 of their standard deviation with float16, and by less than 0.02 with int8 (0.002 on average).

        Args:
            path: Directory to create.
            corpus: Iterator of documents with ``docno`` and text, or a forward index.
            dtype: ``"float16"`` or ``"int8"``.
            overwrite: Replace representations that are there.
            verbose: Show progress bars.

        Returns:
            The representations, for ``representations=``; they hold a forward index too.
        """
        checked_choice("dtype", dtype, KINDS)
        network = self._fitted()
        if isinstance(corpus, ForwardIndex):
            require_same_fields(self.fields, corpus)
        return DocumentRepresentations.build(
            path,
            forward_index_writer(corpus, self.fields, verbose=verbose),
            lambda documents: self._encode(network, documents, verbose=verbose),
            (self.shape.filters, self.shape.hidden),
            model=self.fingerprint(),
            dtype=dtype,
            overwrite=overwrite,
        )

    def _encode(
        self, network: nn.Module, documents: ForwardIndex, *, verbose: bool
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows of the documents and what is kept of them."""
        texts = self._texts([], documents.all(), documents.vocabulary, self.hashing)
        every = np.arange(len(documents))
        for rows, _ in self._blocks(texts.lengths(every), every, unit="doc", verbose=verbose):
            with torch.inference_mode():
                yield rows, read_documents(network, texts, rows).cpu().numpy()

    def _begin(self, examples: Examples) -> tuple[WordHashing | None, nn.Module, Collate]:
        if self.representations is not None:
            raise ValueError(
                f"{self!r} has representations=, which a new training would not change: train without them, then set "
                "model.representations = model.index(path, corpus)"
            )
        return super()._begin(examples)

    def _kept_reader(self, frame: pd.DataFrame) -> Callable[[np.ndarray], Tensor] | None:
        kept = self.representations
        if kept is None:
            return None
        if kept.model != self.fingerprint():
            raise ValueError(
                f"{kept!r} was made by another model than this {self!r}, or by this one before it was fitted anew; "
                f"index the collection again: model.index({str(kept.path)!r}, corpus, overwrite=True)"
            )
        stored = kept.documents.rows(pd.unique(frame["docno"]))
        return lambda rows: torch.from_numpy(kept.read(stored[rows]))
