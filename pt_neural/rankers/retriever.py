"""Exact retrieval from kept document vectors: every document is scored."""

import os
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._arguments import checked_number
from pt_neural._frames import Hits, retrieved_frame
from pt_neural.rankers.columns import distinct_queries
from pt_neural.rankers.kept_table import KeptTable
from pt_neural.rankers.vectors import VectorTable, require_same_dimensions

if TYPE_CHECKING:
    from pyterrier_dr import FlexIndex

    from pt_neural.rankers.kept_vectors import KeptVectors
    from pt_neural.rankers.two_tower import TwoTower

SCORES_PER_BLOCK = 2**24  # 64 MiB of float32


class Retriever(pt.Transformer):
    """Base of the transformers that score every document that a model kept.

    Equal scores are in ascending order of docno, also at the cut-off.

    Args:
        model: Made what was kept.
        vectors: What the model's ``index`` gave.
        table: The documents of it.
        num_results: Documents a query.
        verbose: Show a progress bar over blocks of queries.

    Raises:
        TypeError: If ``num_results`` is no integer.
        ValueError: If it is below 1, or if another model made the vectors.
    """

    def __init__(self, model: "KeptVectors", vectors: Any, table: KeptTable, *, num_results: int, verbose: bool):
        self.model = model
        self.vectors = vectors
        self.num_results = checked_number("num_results", num_results, int, least=1)
        self.verbose = verbose
        self._table = table
        self._table.require_made_by(model)

    @abstractmethod
    def _scorer(self, texts: list[str], rows: np.ndarray) -> Callable[[slice], np.ndarray]:
        """A function that scores all documents for some of the queries.

        Args:
            texts: Distinct queries.
            rows: The text of each query.

        Returns:
            A function from a slice of the queries to float32 scores of shape ``(queries, documents)``, -inf for what
            must not be found.
        """

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Retrieve for the queries of ``inp``.

        Returns:
            The columns of the queries with ``docno, score, rank``, by query and rank.
        """
        pt.validate.query_frame(inp, ["query"], context=self)
        if inp.empty:
            return retrieved_frame(inp, [], pd.array([], dtype="str"))
        self._table.require_made_by(self.model)
        rows, texts = distinct_queries(inp)
        return retrieved_frame(inp, list(self._search(texts, rows)), self._table.docnos)

    def _search(self, texts: list[str], rows: np.ndarray) -> Iterator[Hits]:
        scorer = self._scorer(texts, rows)
        size = max(1, SCORES_PER_BLOCK // len(self._table.docnos))
        starts = range(0, len(rows), size)
        for start in pt.tqdm(starts, desc=repr(self), unit="block", disable=not self.verbose):
            hits = best(scorer(slice(start, start + size)), self._table.order, self.num_results)
            yield hits._replace(queries=hits.queries + start)

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer:
        """Retrieve no more documents than a later cut-off keeps."""
        return pt.inspect.transformer_apply_attributes(self, num_results=min(k, self.num_results))

    def subtransformers(self) -> dict:
        """None: the model is what this transformer is made of, not a stage before it."""
        return {}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple:
        return id(self.model), os.fspath(self._table.path), self.num_results

    def __repr__(self) -> str:
        return f"{self.model!r}.retriever(num_results={self.num_results})"


class VectorRetriever(Retriever):
    """Retrieves the documents with the largest dot products, from all documents of a vector index.

    Equal scores are in ascending order of docno, also at the cut-off. A query whose vector is zero, as one without any
    word that the model knows, finds nothing, and a document whose vector is zero is never found.

    Args:
        model: Encodes the queries.
        vectors: Index of document vectors that the model made.
        num_results: Documents a query.
        verbose: Show a progress bar over blocks of queries.

    Raises:
        TypeError: If ``num_results`` is no integer.
        ValueError: If it is below 1, or if another model made the vectors.
    """

    schematic = {"label": "VectorRetriever", "help_url": None}

    def __init__(self, model: "TwoTower", vectors: "FlexIndex", *, num_results: int = 1000, verbose: bool = False):
        super().__init__(model, vectors, VectorTable(vectors), num_results=num_results, verbose=verbose)

    def _scorer(self, texts: list[str], rows: np.ndarray) -> Callable[[slice], np.ndarray]:
        queries = self.model.encode_queries(texts)[rows]
        documents, empty = self._table.matrix, self._table.empty
        require_same_dimensions(queries, documents)

        def score(some: slice) -> np.ndarray:
            scores = queries[some] @ documents.T
            scores[:, empty] = -np.inf
            scores[~queries[some].any(axis=1)] = -np.inf
            return scores

        return score


def best(scores: np.ndarray, order: np.ndarray, num_results: int) -> Hits:
    """The largest scores of each row; equal ones in the order given.

    Args:
        scores: Shape (queries, documents); -inf is no hit.
        order: The place of each document among equal scores.
        num_results: Hits a query.
    """
    num_results = min(num_results, scores.shape[1])
    cut = scores.shape[1] - num_results
    least = np.partition(scores, cut, axis=1)[:, cut, None]
    queries, documents = np.nonzero((scores >= least) & (scores > -np.inf))
    kept = scores[queries, documents]
    sorting = np.lexsort((order[documents], -kept, queries))
    queries, documents, kept = queries[sorting], documents[sorting], kept[sorting]
    lengths = np.bincount(queries, minlength=len(scores))
    ranks = np.arange(len(queries)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    first = ranks < num_results
    return Hits(queries[first], documents[first], kept[first].astype(np.float64), ranks[first])
