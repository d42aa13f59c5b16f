"""Scoring functions: plain settings here, Lucene objects on demand."""

from dataclasses import dataclass
from typing import Any

from pt_neural.lucene.jvm import java_class


@dataclass(frozen=True)
class BM25Similarity:
    """Lucene's BM25, with Anserini's defaults."""

    k1: float = 0.9
    b: float = 0.4

    def __post_init__(self) -> None:
        if not 0 <= self.k1 < float("inf"):
            raise ValueError(f"k1={self.k1}, but BM25 needs k1 >= 0")
        if not 0 <= self.b <= 1:
            raise ValueError(f"b={self.b}, but BM25 needs b between 0 and 1")

    def to_java(self) -> Any:
        """The Lucene object."""
        return java_class("org.apache.lucene.search.similarities.BM25Similarity")(float(self.k1), float(self.b))


@dataclass(frozen=True)
class QLSimilarity:
    """Lucene's query likelihood with Dirichlet smoothing."""

    mu: float = 1000.0

    def __post_init__(self) -> None:
        if not 0 < self.mu < float("inf"):
            raise ValueError(f"mu={self.mu}, but Dirichlet smoothing needs mu > 0")

    def to_java(self) -> Any:
        """The Lucene object."""
        java = java_class("org.apache.lucene.search.similarities.LMDirichletSimilarity")
        return java(float(self.mu), signature="(F)V")


@dataclass(frozen=True)
class FrequencySimilarity:
    """The frequency itself is the score: Anserini's similarity for learned impacts."""

    def to_java(self) -> Any:
        """The Lucene object."""
        return java_class("io.anserini.search.similarity.ImpactSimilarity")()


Similarity = BM25Similarity | QLSimilarity | FrequencySimilarity
