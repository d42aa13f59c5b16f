"""W of f(q, d) = q'Wd, a sum of parts that differ between the kinds of SSI (SSI paper, section 2.2)."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self

import numpy as np
import torch
from scipy.sparse import csr_array

from pt_neural._files import finite, rise, within
from pt_neural.models.ssi.steps import Parts, pair_rows
from pt_neural.rankers.vectors import Vectors
from pt_neural.text.compiled import Rows, loop_arrays

PRIME = 2_654_435_761  # not next to a power of two, since modulo that it would be 1 or -1

Diagonal = Literal["none", "identity", "factor", "learned"]

_INTEGERS = {"sparse_columns": np.int32, "sparse_starts": np.int64}  # the arrays that are not float32


@dataclass(frozen=True)
class Shape:
    """What W is made of.

    Attributes:
        query_terms: Terms of queries.
        document_terms: Terms of documents.
        dim: N, the rows of U and V; 0 without them.
        embedded_terms: How many of the most frequent terms have columns in U and V.
        symmetric: Whether V is U.
        diagonal: ``"identity"``, ``"learned"``, the identity times a learned ``"factor"``, or ``"none"``.
        pairs: Weights of pairs of words: the product of the numbers of terms, or the size of a hash table; 0 without.
        shared_pairs: Whether they are a hash table, in which pairs share weights (equation 5).
        starts_at_identity: Whether the weights of pairs are the identity at first, or else 0.
        nonzeros: Weights that a sparse W has kept, in place of ``pairs``.
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

    def arrays(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the arrays of W, by their names in :class:`Network`."""
        document_vectors = 0 if self.symmetric else min(self.embedded_terms, self.document_terms)
        return {
            "query_vectors": (min(self.embedded_terms, self.query_terms), self.dim),
            "document_vectors": (document_vectors, self.dim),
            "hashed_query_vectors": (self.hashed_terms, self.hashed_dim),
            "hashed_document_vectors": (self.hashed_terms, self.hashed_dim),
            "mixing": (1,),
            "identity": (1,),
            "diagonal": (self.document_terms if self.diagonal == "learned" else 0,),
            "pairs": (self.pairs,),
            "sparse_values": (self.nonzeros,),
            "sparse_columns": (self.nonzeros,),
            "sparse_starts": (self.query_terms + 1 if self.nonzeros else 0,),
        }


def pair_places(shape: Shape) -> np.ndarray:
    """Where in ``pairs`` the weights of each query term start, int64; the document term's number is added.

    Unconstrained, words s and t have the weight at s D + t; hashed, that at h(s, t) = s P + t modulo H with a large
    prime P (section 2.2.3). Words are numbered from 0 by falling frequency.
    """
    if not shape.pairs:
        return np.zeros(0, dtype=np.int64)
    factor = PRIME if shape.shared_pairs else shape.document_terms
    return np.arange(shape.query_terms, dtype=np.int64) * factor % shape.pairs


@dataclass
class Network:
    """W of one kind: arrays, float32 unless noted, which :mod:`~pt_neural.models.ssi.steps` changes in place.

    Attributes:
        shape: What W is made of.
        query_vectors: The columns of U, of shape (embedded terms, N).
        document_vectors: The columns of V, of the same shape; empty in a symmetric model, where V is U.
        hashed_query_vectors: U over hashed features, of shape (F, N).
        hashed_document_vectors: V over hashed features, of shape (F, N).
        mixing: Factor of the model over hashed features, of shape (1,).
        identity: Factor of the diagonal, of shape (1,).
        diagonal: D where it is learned, of shape (terms,).
        pairs: Weights of pairs of words, see :func:`pair_places`.
        sparse_values: The weights that a sparse W has kept, row after row.
        sparse_columns: Their document terms, int32.
        sparse_starts: Where the weights of each query term start, int64.
    """

    shape: Shape
    query_vectors: np.ndarray
    document_vectors: np.ndarray
    hashed_query_vectors: np.ndarray
    hashed_document_vectors: np.ndarray
    mixing: np.ndarray
    identity: np.ndarray
    diagonal: np.ndarray
    pairs: np.ndarray
    sparse_values: np.ndarray
    sparse_columns: np.ndarray
    sparse_starts: np.ndarray

    @classmethod
    def start(
        cls, shape: Shape, generator: torch.Generator, *, deviation: float | None = None, alike: bool = False
    ) -> Self:
        """W before it has learned.

        U and V are drawn by one of torch's generators with a standard ``deviation``; None for 1/√N, with which scores
        of unit vectors start no larger than those of the identity. ``alike`` gives both the same weights, where queries
        and documents have the same terms.
        """
        arrays = {name: np.zeros(size, dtype=_INTEGERS.get(name, np.float32)) for name, size in shape.arrays().items()}
        for name in ("query_vectors", "document_vectors", "hashed_query_vectors", "hashed_document_vectors"):
            arrays[name] = random_vectors(*arrays[name].shape, deviation, generator)
        if alike and not shape.symmetric:
            arrays["document_vectors"][:] = arrays["query_vectors"]
            arrays["hashed_document_vectors"][:] = arrays["hashed_query_vectors"]
        for name in ("mixing", "identity", "diagonal"):
            arrays[name][:] = 1
        if shape.starts_at_identity:
            np.fill_diagonal(arrays["pairs"].reshape(shape.query_terms, shape.document_terms), 1)
        return cls(shape, **arrays)

    @classmethod
    def from_arrays(cls, shape: Shape, arrays: Mapping[str, np.ndarray]) -> Self:
        """W of what :meth:`arrays` gave; ValueError if arrays do not fit the shape or make no such W."""
        for name, size in shape.arrays().items():
            dtype = np.dtype(_INTEGERS.get(name, np.float32))
            if name not in arrays or (arrays[name].shape, arrays[name].dtype) != (size, dtype):
                raise ValueError(f"{name} must be of shape {size} and type {dtype}")
            if not finite(arrays[name]):
                raise ValueError(f"{name} holds NaN or infinity")
        if shape.nonzeros and not rise(arrays["sparse_starts"], shape.nonzeros):
            raise ValueError("sparse_starts must rise from 0 to the number of weights")
        if not within(arrays["sparse_columns"], shape.document_terms):
            raise ValueError(f"sparse_columns must be from 0 to below {shape.document_terms:,}")
        return cls(shape, **{name: arrays[name] for name in shape.arrays()})

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays by their names."""
        return {field.name: getattr(self, field.name) for field in fields(self)[1:]}

    def words_only(self) -> Self:
        """The model without hashed features; it shares its vectors with this one."""
        return self._without("hashed_query_vectors", "hashed_document_vectors", hashed_terms=0, hashed_dim=0)

    def hashed_only(self) -> Self:
        """The model of hashed features alone; it shares its vectors with this one."""
        return self._without("query_vectors", "document_vectors", dim=0, embedded_terms=0, diagonal="none")

    def _without(self, *names: str, **shape: Any) -> Self:
        """A part of this model, which shares all other vectors and has factors of its own."""
        factors = {name: np.ones(1, dtype=np.float32) for name in ("mixing", "identity")}
        empty = {name: np.zeros((0, 0), dtype=np.float32) for name in names}
        return replace(self, shape=replace(self.shape, **shape), **factors, **empty)

    def copy_from(self, start: Self) -> None:
        """Copy the weights of a W of the same kind whose terms are the first ones of this W."""
        for name in ("query_vectors", "document_vectors", "mixing", "identity", "diagonal"):
            weights = getattr(start, name)
            getattr(self, name)[: len(weights)] = weights
        if self.shape.shared_pairs:
            self.pairs[:] = start.pairs
        elif self.shape.pairs:
            size = start.shape.query_terms, start.shape.document_terms
            weights = start.sparse().toarray() if start.shape.nonzeros else start.pairs.reshape(size)
            self.pairs.reshape(self.shape.query_terms, -1)[: size[0], : size[1]] = weights

    def parts(self, active: np.ndarray | None = None) -> Parts:
        """W for the compiled loops, which change the arrays in place; ``active`` says which ``pairs`` may change."""
        fixed = self.shape.diagonal in ("identity", "factor")
        return Parts(
            self.query_vectors,
            self._all_document_vectors,
            self.hashed_query_vectors,
            self.hashed_document_vectors,
            self.mixing,
            np.ones(self.shape.document_terms, dtype=np.float32) if fixed else self.diagonal,
            self.identity,
            self.pairs,
            pair_places(self.shape),
            np.zeros(0, dtype=bool) if active is None else active,
        )

    @property
    def _all_document_vectors(self) -> np.ndarray:
        return self.query_vectors if self.shape.symmetric else self.document_vectors

    def weigh_queries(self, terms: csr_array, hashed: csr_array | None) -> Vectors:
        """Uq, and q'W for all parts of W except U'V, from tf-idf vectors and hashed features of queries."""
        latent = self._latent(terms, self.query_vectors, hashed, self.hashed_query_vectors, float(self.mixing[0]))
        return Vectors(latent, self._lexical(terms) if self.shape.lexical else None)

    def weigh_documents(self, terms: csr_array, hashed: csr_array | None) -> Vectors:
        """Vd, and d where W has other parts than U'V, from tf-idf vectors and hashed features of documents."""
        latent = self._latent(terms, self._all_document_vectors, hashed, self.hashed_document_vectors)
        return Vectors(latent, terms if self.shape.lexical else None)

    def _latent(
        self,
        terms: csr_array,
        vectors: np.ndarray,
        hashed: csr_array | None,
        hashed_vectors: np.ndarray,
        mixing: float = 1.0,
    ) -> np.ndarray | None:
        parts = [terms[:, : len(vectors)] @ vectors] if self.shape.dim else []  # (texts, N)
        if self.shape.hashed_dim:
            parts.append(mixing * (hashed @ hashed_vectors))  # (texts, N of the second model)
        return np.concatenate(parts, axis=1) if parts else None

    def _lexical(self, queries: csr_array) -> csr_array | np.ndarray:
        """Q'W for all parts except U'V, of shape (queries, document terms)."""
        shape = self.shape
        if shape.nonzeros:
            return csr_array(queries @ self.sparse())
        if shape.pairs:
            weights = np.zeros((queries.shape[0], shape.document_terms), dtype=np.float32)
            pair_rows(self.parts(), rows_of(queries), weights)
            if shape.diagonal != "none":
                rows = np.repeat(np.arange(queries.shape[0]), np.diff(queries.indptr))
                weights[rows, queries.indices] += self.identity[0] * queries.data
            return weights
        if shape.diagonal == "learned":
            scaled = queries.data * self.diagonal[queries.indices]
            return csr_array((scaled, queries.indices, queries.indptr), shape=queries.shape)
        return queries * self.identity[0]

    def sparse(self) -> csr_array:
        """The weights that a sparse W has kept, of shape (query terms, document terms)."""
        arrays = self.sparse_values, self.sparse_columns, self.sparse_starts
        return csr_array(arrays, shape=(self.shape.query_terms, self.shape.document_terms))

    def truncated(self, dim: int, *, identity: bool) -> Self:
        """The U'V, plus I with ``identity``, that is nearest to a W of weights of pairs, by a truncated SVD."""
        from sklearn.utils.extmath import randomized_svd  # takes a second to import

        terms = self.shape.query_terms, self.shape.document_terms
        weights = self.sparse().toarray() if self.shape.nonzeros else self.pairs.reshape(terms).copy()
        if identity:
            weights[np.diag_indices_from(weights)] -= 1
        left, values, right = randomized_svd(weights, dim, random_state=0)
        halves = np.sqrt(values)
        diagonal = "identity" if identity else "none"
        shape = Shape(*terms, dim=dim, embedded_terms=max(terms), diagonal=diagonal)
        arrays = self.start(shape, torch.Generator()).arrays()
        arrays |= {"query_vectors": left * halves, "document_vectors": right.T * halves}
        return self.from_arrays(shape, arrays)

    def symmetric_part(self) -> Self:
        """(W + W')/2 of a W of weights of all pairs, or of U'V, where it is that of [U; V]'[V; U]/2."""
        if self.shape.pairs:
            weights = self.pairs.reshape(self.shape.query_terms, self.shape.document_terms)
            return replace(self, pairs=((weights + weights.T) / 2).ravel())
        both = np.concatenate([self.query_vectors, self.document_vectors], axis=1) / np.float32(np.sqrt(2))
        turned = np.roll(both, self.shape.dim, axis=1)
        shape = replace(self.shape, dim=2 * self.shape.dim)
        return replace(self, shape=shape, query_vectors=both, document_vectors=turned)

    def compressed(self) -> Self:
        """The same W, with memory only for the weights of pairs that are not 0."""
        weights = csr_array(self.pairs.reshape(self.shape.query_terms, self.shape.document_terms))
        nonzeros = max(1, weights.nnz)  # W = 0 keeps one of its weights
        values, columns = np.zeros(nonzeros, dtype=np.float32), np.zeros(nonzeros, dtype=np.int32)
        values[: weights.nnz], columns[: weights.nnz] = weights.data, weights.indices
        return replace(
            self,
            shape=replace(self.shape, pairs=0, starts_at_identity=False, nonzeros=nonzeros),
            pairs=np.zeros(0, dtype=np.float32),
            sparse_values=values,
            sparse_columns=columns,
            sparse_starts=weights.indptr.astype(np.int64),
        )


def random_vectors(rows: int, dim: int, deviation: float | None, generator: torch.Generator) -> np.ndarray:
    """Vectors of normally distributed weights, float32 of shape ``(rows, dim)``; see :meth:`Network.start`."""
    drawn = torch.randn(rows, dim, generator=generator).numpy()  # (rows, dim)
    return drawn * np.float32(deviation or 1 / max(dim, 1) ** 0.5)


def rows_of(matrix: csr_array) -> Rows:
    """Vectors of texts as the compiled loops take them; sorts the terms of each in place."""
    matrix.sort_indices()
    return loop_arrays(matrix.astype(np.float32, copy=False))


def no_rows(count: int) -> Rows:
    """Texts without terms."""
    return Rows(np.zeros(count + 1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32))
