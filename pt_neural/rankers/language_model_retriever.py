"""Exact retrieval by query likelihood: every document of a forward index is scored."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from pt_neural.rankers.kept_table import KeptTable
from pt_neural.rankers.ranker import require_forward_index, require_same_fields
from pt_neural.rankers.retriever import Retriever
from pt_neural.text import ForwardIndex

if TYPE_CHECKING:
    from pt_neural.rankers.language_model import LanguageModelRanker


class ForwardIndexTable(KeptTable):
    """The documents of a forward index, which no model made.

    Args:
        index: The forward index.
    """

    def __init__(self, index: ForwardIndex):
        self.index = index
        self.path: str | os.PathLike = index.path

    @property
    def docno_list(self) -> list[str]:
        """The docno of each document."""
        return self.index.docnos

    def require_made_by(self, model: "LanguageModelRanker") -> None:
        """Raise ValueError if the forward index holds other fields than the model reads."""
        require_same_fields(model.fields, self.index)


class LanguageModelRetriever(Retriever):
    """Retrieves the documents with the largest P(q|d), from all documents of a forward index.

    Equal scores are in ascending order of docno, also at the cut-off. A query without any known word finds nothing,
    and a document without any is never found. The counts of all documents are held in memory after the first query.

    Args:
        model: The ranker.
        documents: The forward index.
        num_results: Documents a query.
        verbose: Show a progress bar over blocks of queries.

    Raises:
        TypeError: If ``num_results`` is no integer, or ``documents`` no forward index.
        ValueError: If ``num_results`` is below 1, or if the forward index holds other fields than the model reads.
    """

    schematic = {"label": "LanguageModelRetriever", "help_url": None}

    def __init__(
        self, model: "LanguageModelRanker", documents: ForwardIndex, *, num_results: int = 1000, verbose: bool = False
    ):
        require_forward_index(documents)
        self.documents = documents
        super().__init__(model, documents, ForwardIndexTable(documents), num_results=num_results, verbose=verbose)

    def _scorer(self, texts: list[str], rows: np.ndarray) -> Callable[[slice], np.ndarray]:
        documents = self.model.read_whole(self._table.index)
        empty = documents.lengths == 0

        def score(some: slice) -> np.ndarray:
            scores = np.full((len(rows[some]), len(documents)), -np.inf)
            for row, text in zip(scores, rows[some], strict=True):
                words = self.model.query_words(texts[text])
                if len(words):
                    row[:] = self.model.log_likelihoods(words, documents)
            scores[:, empty] = -np.inf
            return scores

        return score
