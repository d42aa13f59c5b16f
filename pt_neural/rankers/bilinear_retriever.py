"""Exact retrieval by f(q, d) = q'Wd from kept documents."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from pt_neural.rankers.collection_scores import collection_scores
from pt_neural.rankers.retriever import Retriever
from pt_neural.rankers.term_vectors import TermVectors
from pt_neural.rankers.weighed import query_blocks

if TYPE_CHECKING:
    from pt_neural.rankers.bilinear import BilinearRanker


class BilinearRetriever(Retriever):
    """Retrieves the documents with the largest q'Wd, from all documents that a model kept.

    Equal scores are in ascending order of docno, also at the cut-off. A query without any known word finds nothing,
    and a document without any is never found. Where only single terms count, as for :class:`~pt_neural.TFIDF`, a
    document is found if it shares one with the query; where there are latent vectors, all others are.

    Args:
        model: Weighs the queries.
        vectors: What :meth:`~pt_neural.rankers.BilinearRanker.index` made, or the path of it.
        num_results: Documents a query.
        verbose: Show a progress bar over blocks of queries.

    Raises:
        TypeError: If ``num_results`` is no integer.
        ValueError: If it is below 1, or if another model made the vectors.
    """

    schematic = {"label": "BilinearRetriever", "help_url": None}

    def __init__(
        self,
        model: "BilinearRanker",
        vectors: TermVectors | str | os.PathLike,
        *,
        num_results: int = 1000,
        verbose: bool = False,
    ):
        super().__init__(model, vectors, TermVectors.of(vectors), num_results=num_results, verbose=verbose)

    def _scorer(self, texts: list[str], rows: np.ndarray) -> Callable[[slice], np.ndarray]:
        return lambda some: self._scores([texts[row] for row in rows[some]])

    def _scores(self, texts: list[str]) -> np.ndarray:
        blocks = (self.model.weigh_queries(texts[some]) for some in query_blocks(len(texts)))
        return np.concatenate([collection_scores(queries, self._table) for queries in blocks])
