"""What the retrievers share that build on another one, their base."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt_neural.lucene.retrievers import Retriever
from pt_neural.lucene.similarities import BM25Similarity, QLSimilarity, Similarity

if TYPE_CHECKING:
    from pt_neural.lucene.index import LuceneIndex


class OverBase(Retriever):
    """Plain text, scored as the base scores it: ``"bm25"`` with its k1 and b, or ``"ql"`` with its mu."""

    takes_weights = False
    own_parameters: tuple[str, ...]  # besides those of the base

    def __init__(
        self,
        index: LuceneIndex,
        *,
        base: str,
        k1: float,
        b: float,
        mu: float,
        field: str,
        num_results: int,
        verbose: bool,
    ):
        if base not in ("ql", "bm25"):
            raise ValueError(f"base={base!r}, but {self.label} scores by 'bm25' or 'ql'")
        self.base = base
        self.k1 = k1
        self.b = b
        self.mu = mu
        super().__init__(index, field=field, num_results=num_results, verbose=verbose)

    @property
    def parameters(self) -> tuple[str, ...]:
        """What tells one setting from another."""
        return ("base", *self.own_parameters, *(("mu",) if self.base == "ql" else ("k1", "b")))

    def similarity(self) -> Similarity:
        """That of the base."""
        return QLSimilarity(self.mu) if self.base == "ql" else BM25Similarity(self.k1, self.b)
