"""What rewriters that expand queries by feedback documents share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._frames import Hits, numbers_in, ranks, validated
from pt_neural.lucene.index.directory import IndexDirectory
from pt_neural.lucene.index.reader import Reader, look_up
from pt_neural.lucene.search.queries import check_weights
from pt_neural.lucene.search.retrievers import group_queries


class QueryExpansion(pt.Transformer):
    """Base of rewriters: queries, or results whose best documents are the feedback, become expanded queries.

    Attributes:
        index: The index.
        fb_docs: Number of feedback documents.
        keep_documents: Return incoming results with all rows and columns, and ``query_toks`` beside them.
    """

    index: IndexDirectory
    fb_docs: int
    keep_documents: bool

    @abstractmethod
    def expand(self, queries: pd.DataFrame, feedback: Hits | None) -> list[dict[str, float]]:
        """The terms and weights of each query.

        Args:
            queries: Frame with ``qid`` and ``query``, not empty.
            feedback: The feedback documents; None to retrieve them.
        """

    @abstractmethod
    def on(self, index: IndexDirectory) -> Self:
        """The same transformer of another index."""

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Expand queries.

        Args:
            inp: Frame with ``qid`` and ``query``. With ``docno`` and ``score``, the best ``fb_docs`` rows of a query
                are its feedback documents.

        Returns:
            One row per query, with its columns and ``query_toks``, a dict from analysed term to weight. A query that no
            document matches keeps only its own terms. With ``keep_documents``, all incoming rows and columns.

        Raises:
            ValueError: If a feedback document is not in the index, or if the index lacks positions or term vectors that
                are needed.
        """
        with validated(inp, self) as validator:
            validator.query_frame(["query"], mode="retrieve")
            validator.result_frame(["query", "score"], mode="feedback")
        check_weights(inp, self)
        opened = self.on(self.index.opened()) if len(inp) else self
        if "docno" not in inp.columns:
            return _with_weights(inp, opened.expand(inp, None) if len(inp) else [])
        groups, firsts = group_queries(inp)
        queries = inp.iloc[firsts][_query_columns(inp)]
        weights: list[dict[str, float]] = []
        if len(inp):
            weights = opened.expand(queries, best_rows(inp, groups, opened.index.reader, self.fb_docs))
        if self.keep_documents:
            return _with_weights(inp, [weights[group] for group in groups])
        return _with_weights(queries, weights)

    def subtransformers(self) -> dict:
        """None: what retrieves the feedback documents is a part of this transformer, not a stage before it."""
        return {}


def best_rows(results: pd.DataFrame, groups: np.ndarray, reader: Reader, number: int) -> Hits:
    """The best ``number`` documents of each query in a result frame; ``groups`` number the queries of its rows.

    A document that is listed twice counts once; rows whose score is not finite are left out.
    """
    scores, docnos = numbers_in(results, "score", "feedback documents"), results["docno"]
    repeated = pd.DataFrame({"query": groups, "docno": docnos.to_numpy()}).duplicated().to_numpy()
    rows = np.flatnonzero(np.isfinite(scores) & ~repeated)
    positions = ranks(pd.Series(groups[rows]), scores[rows], docnos.iloc[rows])
    rows, positions = rows[positions < number], positions[positions < number]
    order = np.lexsort((positions, groups[rows]))
    rows, positions = rows[order], positions[order]
    return Hits(groups[rows], look_up(docnos.iloc[rows], reader.docnos, reader.path), scores[rows], positions)


def _query_columns(frame: pd.DataFrame) -> list[str]:
    named = [column for column in frame.columns if isinstance(column, str)]  # PyTerrier asks how they begin
    columns = set(pt.model.query_columns(frame[named]))
    return [column for column in frame.columns if column in columns]


def _with_weights(frame: pd.DataFrame, weights: list[dict[str, float]]) -> pd.DataFrame:
    column = np.empty(len(frame), dtype=object)
    column[:] = weights
    return frame.reset_index(drop=True).assign(query_toks=column)
