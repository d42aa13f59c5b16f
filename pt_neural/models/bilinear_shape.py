"""What W of f(q, d) = q'Wd is made of (SSI paper, section 2.2)."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

PRIME = 2_654_435_761  # not next to a power of two, modulo which it would be 1 or -1

Diagonal = Literal["none", "identity", "factor", "learned"]


@dataclass(frozen=True)
class Shape:
    """What W is made of.

    Attributes:
        query_terms: Terms of queries.
        document_terms: Terms of documents.
        dim: Rows of U and V; 0 if there are none.
        embedded_terms: How many of the most frequent terms have columns in U and V.
        symmetric: Whether V is U.
        diagonal: ``"identity"``; one that is ``"learned"``; the identity times a ``"factor"`` that is; or ``"none"``.
        pairs: Weights of pairs of words: the number of terms of queries times that of documents, or the size of a hash
            table; 0 if there are none.
        shared_pairs: Whether they are a hash table, so that pairs share weights (equation 5).
        starts_at_identity: Whether the weights of pairs are those of the identity at first, else 0.
        nonzeros: Weights that a sparse W has kept; they stand in place of ``pairs``.
        hashed_terms: F of correlated feature hashing; 0 without.
        hashed_dim: Rows of its U and V.
    """

    query_terms: int
    document_terms: int
    dim: int = 0
    embedded_terms: int = 0
    symmetric: bool = False
    diagonal: Diagonal = "none"
    pairs: int = 0
    shared_pairs: bool = False
    starts_at_identity: bool = False
    nonzeros: int = 0
    hashed_terms: int = 0
    hashed_dim: int = 0

    @property
    def lexical(self) -> bool:
        """Whether documents are scored by their words, besides their vectors."""
        return self.diagonal != "none" or self.pairs > 0 or self.nonzeros > 0

    def to_json(self) -> dict[str, Any]:
        """All attributes."""
        return asdict(self)


def pair_places(shape: Shape) -> np.ndarray:
    """Where the weights of each term of queries begin, int64; that of a pair lies as far beyond as its other word is.

    Unconstrained, the weight of words s and t is the one at s D + t; hashed, it is that at h(s, t) = s P + t modulo H
    with a large prime P (section 2.2.3). Words are numbered from 0 by falling frequency.
    """
    if not shape.pairs:
        return np.zeros(0, dtype=np.int64)
    factor = PRIME if shape.shared_pairs else shape.document_terms
    return np.arange(shape.query_terms, dtype=np.int64) * factor % shape.pairs
