"""Exact retrieval from a whole collection: every document is scored."""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._arguments import checked_number
from pt_neural._frames import Hits, retrieved_frame
from pt_neural.rankers.columns import distinct_queries
from pt_neural.rankers.ranker import Ranker

SCORES_PER_BLOCK = 2**24  # 64 MiB of float32


class Retriever(pt.Transformer):
    """Retrieves the documents of a collection with the highest scores.

    Documents with equal scores are in ascending order of docno, also at the cut-off. A query without any word that the
    model knows finds nothing, and a document without any is never found.

    Args:
        model: A ranker with the methods of :class:`~pt_neural.rankers.RepresentationRanker` that this calls.
        vectors: What the model's ``index`` returned, or its path.
        num_results: Documents to retrieve for each query.
        verbose: Show a progress bar.

    Raises:
        TypeError: If ``num_results`` is not an integer.
        ValueError: If it is below 1, or if another model made the vectors.
    """

    schematic = {"label": "Retriever", "help_url": None}

    def __init__(self, model: Ranker, vectors: Any, *, num_results: int = 1000, verbose: bool = False):
        self.model = model
        self.vectors = vectors
        self.num_results = checked_number("num_results", num_results, int, least=1)
        self.verbose = verbose
        self._kept = model.open_kept(vectors)
        self._kept.require_made_by(model)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Retrieve for the queries of ``inp``.

        Returns:
            The columns of the queries with ``docno, score, rank``, by query and rank.
        """
        pt.validate.query_frame(inp, ["query"], context=self)
        if inp.empty:
            return retrieved_frame(inp, [], pd.array([], dtype="str"))
        self._kept.require_made_by(self.model)
        rows, texts = distinct_queries(inp)
        return retrieved_frame(inp, list(self._search(texts, rows)), self._kept.docnos)

    def _search(self, texts: list[str], rows: np.ndarray) -> Iterator[Hits]:
        size = max(1, SCORES_PER_BLOCK // max(len(self._kept.docnos), 1))
        with pt.tqdm(total=len(rows), desc=repr(self), unit="query", disable=not self.verbose) as progress:
            for first in range(0, len(rows), self.model.queries_per_block):
                numbers, places = np.unique(rows[first : first + self.model.queries_per_block], return_inverse=True)
                queries = self.model.represent_queries([texts[number] for number in numbers])
                for start in range(0, len(places), size):
                    block = queries.take(places[start : start + size])
                    hits = best(self.model.score_all(block, self._kept), self._kept.order, self.num_results)
                    yield hits._replace(queries=hits.queries + first + start)
                    progress.update(len(places[start : start + size]))

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
        return id(self.model), os.fspath(self._kept.path), self.num_results

    def __repr__(self) -> str:
        return f"{self.model!r}.retriever(num_results={self.num_results})"


def best(scores: np.ndarray, order: np.ndarray, num_results: int) -> Hits:
    """The ``num_results`` largest scores of each row of ``(queries, documents)``; -inf is no hit.

    ``order`` is the place of each document among equal scores.
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
