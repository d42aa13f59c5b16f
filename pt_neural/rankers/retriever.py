"""Exact retrieval from a whole collection: every document is scored."""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._arguments import checked_number
from pt_neural._files import ArtifactError
from pt_neural._frames import Hits, retrieved_frame, validated
from pt_neural.rankers.columns import distinct_queries
from pt_neural.rankers.kept.kept import Kept
from pt_neural.rankers.ranker import Ranker

DOCUMENTS_PER_BLOCK = 16_384
QUERIES_PER_BLOCK = 256  # whose scores of a block of documents, 16 MiB of float32, are in memory together
QUERIES_PER_PASS = 1024  # for which the collection is read once; more take more memory for their best documents


class Retriever(pt.Transformer):
    """Retrieves the documents of a collection with the highest scores.

    Documents with equal scores are in descending order of docno, also at the cut-off. A query without any word that the
    model knows finds nothing, and a document without any is never found.

    The collection is read block by block, once for 1,024 queries, and only the best documents so far are kept, so that
    memory does not grow with the collection. Scores do not depend on the other queries of a frame.

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
        with validated(inp, self) as v:
            v.query_frame(["query"])
        if inp.empty:
            return retrieved_frame(inp, [], pd.array([], dtype="str"))
        self._kept.require_made_by(self.model)
        rows, texts = distinct_queries(inp)
        found = self._search(texts)
        lengths = [len(found[text].documents) for text in rows]
        documents, scores = (np.concatenate([found[text][part] for text in rows]) for part in (0, 1))
        ranks = np.concatenate([np.arange(length) for length in lengths])
        hits = Hits(np.repeat(np.arange(len(rows)), lengths), documents, scores, ranks)
        return retrieved_frame(inp, [hits], self._kept.docnos)

    def _search(self, texts: list[str]) -> list["Best"]:
        found: list[Best] = []
        size = min(self.model.queries_per_block, QUERIES_PER_PASS)
        blocks = -(-len(texts) // size) * len(block_starts(self._kept))
        with pt.tqdm(total=blocks, desc=repr(self), unit="block", disable=not self.verbose or blocks == 1) as progress:
            for start in range(0, len(texts), size):
                some = texts[start : start + size]
                queries = self.model.adapt_queries(self.model.represent_queries(some), self._kept)
                found += search(self.model, queries, len(some), self._kept, self.num_results, progress.update)
        return found

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


class Best(NamedTuple):
    """The best documents of a query, best first."""

    documents: np.ndarray  # document numbers, int64
    scores: np.ndarray  # float64


def search(
    model: Any,
    queries: Any,
    num_queries: int,
    kept: Kept,
    num_results: int,
    progress: Callable[[], object] = lambda: None,
) -> list[Best]:
    """The documents with the largest scores for each query; -inf is no hit.

    Blocks of documents are read one after the other, each once for all queries, and have the same size whatever the
    number of queries and of documents.

    Args:
        model: A ranker with the method ``score_all``.
        queries: What its ``represent_queries`` gave.
        num_queries: How many they are.
        kept: The documents.
        num_results: How many documents to find for each query.
        progress: Called after each block.

    Raises:
        ArtifactError: If a score is NaN or infinite, which only damaged weights give.
    """
    numbers = np.arange(num_queries)
    parts = [numbers[start : start + QUERIES_PER_BLOCK] for start in range(0, len(numbers), QUERIES_PER_BLOCK)]
    parts = [(part, queries.take(part)) for part in parts]
    found = [_BestSoFar(num_results, kept.docnos.tie_order) for _ in numbers]
    for start in block_starts(kept):
        block = slice(start, min(start + DOCUMENTS_PER_BLOCK, len(kept)))
        for part, some in parts:
            scored = model.score_all(some, kept, block)
            if not scored.max(initial=-np.inf) < np.inf:
                raise ArtifactError(f"{model!r} or {kept.path} is damaged: some scores are NaN or infinite")
            for number, scores in zip(part, scored, strict=True):
                found[number].add(scores, start)
        progress()
    return [one.ranked() for one in found]


def block_starts(kept: Kept) -> range:
    """The first document of each block."""
    return range(0, len(kept), DOCUMENTS_PER_BLOCK)


class _BestSoFar:
    """The ``num_results`` best of the documents seen so far, and a few more until the next cut.

    ``tie_order`` gives the places of documents among equal scores; it is only asked about documents that tie.
    """

    def __init__(self, num_results: int, tie_order: Callable[[np.ndarray], np.ndarray]):
        self._num_results, self._tie_order = num_results, tie_order
        self._documents, self._scores = [], []
        self._number = 0
        self._least: np.floating | None = None  # documents with lower scores are out

    def add(self, scores: np.ndarray, first: int) -> None:
        """Take the scores of a block of documents, numbered from ``first``."""
        found = np.flatnonzero(scores > -np.inf if self._least is None else scores >= self._least)
        if not len(found):
            return
        self._documents.append(found + first)
        self._scores.append(scores[found])
        self._number += len(found)
        if self._number > 2 * self._num_results:
            self._cut()

    def _cut(self) -> None:
        documents, scores = np.concatenate(self._documents), np.concatenate(self._scores)
        self._least = np.partition(scores, -self._num_results)[-self._num_results]
        kept = scores > self._least
        tied = np.flatnonzero(scores == self._least)
        room = self._num_results - np.count_nonzero(kept)
        if len(tied) > room:
            tied = tied[np.argsort(self._tie_order(documents[tied]))[:room]]
        kept[tied] = True
        self._documents, self._scores, self._number = [documents[kept]], [scores[kept]], self._num_results

    def ranked(self) -> Best:
        """All that was found, best first."""
        if self._number > self._num_results:
            self._cut()
        if not self._number:
            return Best(np.empty(0, dtype=np.int64), np.empty(0))
        documents, scores = np.concatenate(self._documents), np.concatenate(self._scores).astype(np.float64)
        order = np.argsort(-scores, kind="stable")
        documents, scores = documents[order], scores[order]
        equal = scores[1:] == scores[:-1]
        tied = np.flatnonzero(np.r_[equal, False] | np.r_[False, equal])
        if len(tied):
            documents[tied] = documents[tied[np.lexsort((self._tie_order(documents[tied]), -scores[tied]))]]
        return Best(documents, scores)
