"""Rankers whose distributed part reads documents that were encoded beforehand (Duet paper, section 6)."""

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from pt_neural.models.duet_ranker import DuetRanker
from pt_neural.models.duet_scoring import read_documents
from pt_neural.rankers.kept_documents import KeptDocuments
from pt_neural.text import ForwardIndex


class KeptDocumentsRanker(KeptDocuments, DuetRanker):
    """Base of the rankers with a distributed part, whose document side does not depend on the query.

    What is kept of a document is a matrix of filters x hidden units.

    Args:
        representations: What :meth:`index` made, to re-rank by ``docno`` from documents that were encoded beforehand.
        **options: What :class:`~pt_neural.models.duet_ranker.DuetRanker` takes.
    """

    def kept_columns(self) -> int:
        """Hidden units of the distributed part."""
        return self.shape.hidden

    def kept_lengths(self, documents: ForwardIndex) -> np.ndarray:
        """As many rows for each document as there are filters."""
        return np.full(len(documents), self.shape.filters, dtype=np.int64)

    def encode_kept(self, documents: ForwardIndex, *, verbose: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Encode all documents of a forward index, those of similar length together."""
        network = self._fitted()
        texts = self._texts([], documents.all(), documents.vocabulary, self.hashing)
        every = np.arange(len(documents))
        for numbers, _ in self._blocks(texts.lengths(every), every, unit="doc", verbose=verbose):
            with torch.inference_mode():
                yield numbers, read_documents(network, texts, numbers).flatten(0, 1).cpu().numpy()

    def _document_reader(self, frame: pd.DataFrame) -> Callable[[np.ndarray], Tensor] | None:
        read = self.kept_reader(frame)
        if read is None:
            return None
        return lambda numbers: torch.from_numpy(read(numbers)[0]).unflatten(0, (len(numbers), self.shape.filters))
