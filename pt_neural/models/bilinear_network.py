"""W of f(q, d) = q'Wd as the sum of parts, of which each kind of SSI has its own (SSI paper, section 2.2)."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn

from pt_neural.models.bilinear_shape import Shape, pair_places
from pt_neural.models.bilinear_steps import Parts, Rates, learn, learn_in_turn, pair_rows
from pt_neural.rankers.weighed import Weighed
from pt_neural.text.compiled import Rows
from pt_neural.training import Training
from pt_neural.training.sampling import Batch


class BilinearNetwork(nn.Module):
    """W of one kind; its parts are read and changed in place by :mod:`pt_neural.models.bilinear_steps`.

    Args:
        shape: What W is made of.
        deviation: Standard deviation of the first weights of U and V; None for 1/√N, with which scores of unit vectors
            start no larger than those of the identity.
        alike: Whether U and V start with the same weights, where queries and documents have the same terms.
        other_queries: Whether another task has a U of its own (section 2.4.2).
    """

    def __init__(
        self, shape: Shape, *, deviation: float | None = None, alike: bool = False, other_queries: bool = False
    ):
        super().__init__()
        self.shape = shape
        queries = min(shape.embedded_terms, shape.query_terms)
        documents = min(shape.embedded_terms, shape.document_terms)
        self.query_vectors = _random(queries, shape.dim, deviation)
        self.document_vectors = _random(0 if shape.symmetric else documents, shape.dim, deviation)
        self.other_query_vectors = _random(documents if other_queries else 0, shape.dim, deviation)
        self.hashed_query_vectors = _random(shape.hashed_terms, shape.hashed_dim, deviation)
        self.hashed_document_vectors = _random(shape.hashed_terms, shape.hashed_dim, deviation)
        if alike and not shape.symmetric:
            self.document_vectors.copy_(self.query_vectors)
            self.hashed_document_vectors.copy_(self.hashed_query_vectors)
        self.mixing = _kept(torch.ones(1))
        self.identity = _kept(torch.ones(1))
        self.diagonal = _kept(torch.ones(shape.document_terms if shape.diagonal == "learned" else 0))
        self.pairs = _kept(torch.zeros(shape.pairs))
        if shape.starts_at_identity:
            self.pairs.view(shape.query_terms, shape.document_terms).fill_diagonal_(1)
        self.sparse_values = _kept(torch.zeros(shape.nonzeros))
        self.sparse_columns = _kept(torch.zeros(shape.nonzeros, dtype=torch.int32))
        self.sparse_starts = _kept(torch.zeros(shape.query_terms + 1 if shape.nonzeros else 0, dtype=torch.int64))
        self.active = np.zeros(0, dtype=bool)
        self.learns_mixing = False
        self._query_places = pair_places(shape)

    @property
    def _vectors_of_documents(self) -> Tensor:
        return self.query_vectors if self.shape.symmetric else self.document_vectors

    def parts(self) -> Parts:
        """W as the compiled loops take it; they change it."""
        shape = self.shape
        fixed = shape.diagonal in ("identity", "factor")
        return Parts(
            _array(self.query_vectors),
            _array(self._vectors_of_documents),
            _array(self.hashed_query_vectors),
            _array(self.hashed_document_vectors),
            _array(self.mixing),
            np.ones(shape.document_terms, dtype=np.float32) if fixed else _array(self.diagonal),
            _array(self.identity),
            _array(self.pairs),
            self._query_places,
            self.active,
        )

    def other_parts(self) -> Parts:
        """W of another task between documents: V'V, or one with its own U; without a diagonal (equation 10)."""
        none = np.zeros((0, self.shape.hashed_dim), dtype=np.float32)
        vectors = self.other_query_vectors if len(self.other_query_vectors) else self._vectors_of_documents
        return self.parts()._replace(
            query_vectors=_array(vectors),
            hashed_query_vectors=none,
            hashed_document_vectors=none,
            diagonal=np.zeros(0, dtype=np.float32),
            pairs=np.zeros(0, dtype=np.float32),
        )

    def rates(self, learning_rate: float, margin: float) -> Rates:
        """How fast the parts learn; those that are not to be learned keep what they are."""
        kind = self.shape.diagonal
        if self.learns_mixing:
            return Rates(0.0, learning_rate, 0.0, 0.0, margin)
        return Rates(
            learning_rate,
            0.0,
            learning_rate if kind == "learned" else 0.0,
            learning_rate if kind == "factor" else 0.0,
            margin,
        )

    def of_words(self) -> "BilinearNetwork":
        """The model without hashed features, which learns for this one."""
        network = self._part(hashed_terms=0, hashed_dim=0)
        network.query_vectors, network.document_vectors = self.query_vectors, self.document_vectors
        return network

    def of_hashed(self) -> "BilinearNetwork":
        """The model of hashed features alone, likewise."""
        network = self._part(dim=0, embedded_terms=0, diagonal="none")
        network.hashed_query_vectors = self.hashed_query_vectors
        network.hashed_document_vectors = self.hashed_document_vectors
        return network

    def _part(self, **shape: Any) -> "BilinearNetwork":
        """A model of a part of this one's shape, whose vectors are still to be set."""
        with torch.random.fork_rng(devices=[]):  # the random numbers of the user stay as they are
            return BilinearNetwork(replace(self.shape, **shape))

    def learn(self, batch: Batch, training: Training) -> float:
        """Take the tuples of a batch one after the other, with a step for each that violates the margin.

        Args:
            batch: Groups whose inputs are :class:`~pt_neural.models.bilinear_batches.Tuples`.
            training: Learning rate and margin.

        Returns:
            The mean loss of the tuples, each before its step.
        """
        rates = self.rates(training.learning_rate, training.margin)
        other = batch.inputs.other
        if other is None:
            total, count = learn(self.parts(), *batch.inputs.groups(batch.valid), rates)
        else:
            of_other = self.other_parts(), *other.inputs.groups(other.valid)
            total, count = learn_in_turn(self.parts(), *batch.inputs.groups(batch.valid), *of_other, rates)
        return total / max(count, 1)

    def weigh_queries(self, terms: csr_array, hashed: csr_array | None) -> Weighed:
        """Queries as they are multiplied: Uq, and q'W for what W has beside U'V.

        Args:
            terms: Vectors of the queries over their terms.
            hashed: Their vectors over hashed features; None without correlated feature hashing.
        """
        latent = self._latent(terms, self.query_vectors, hashed, self.hashed_query_vectors, float(self.mixing))
        return Weighed(latent, self._lexical(terms) if self.shape.lexical else None)

    def weigh_documents(self, terms: csr_array, hashed: csr_array | None) -> Weighed:
        """Documents as they are multiplied: Vd, and d where W is more than U'V."""
        latent = self._latent(terms, self._vectors_of_documents, hashed, self.hashed_document_vectors)
        return Weighed(latent, terms if self.shape.lexical else None)

    def _latent(
        self,
        terms: csr_array,
        vectors: Tensor,
        hashed: csr_array | None,
        hashed_vectors: Tensor,
        mixing: float = 1.0,
    ) -> np.ndarray | None:
        parts = [terms[:, : len(vectors)] @ _array(vectors)] if self.shape.dim else []
        if self.shape.hashed_dim:
            parts.append(mixing * (hashed @ _array(hashed_vectors)))
        return np.concatenate(parts, axis=1) if parts else None

    def _lexical(self, queries: csr_array) -> csr_array | np.ndarray:
        """q'W, of all but U'V."""
        shape = self.shape
        if shape.nonzeros:
            return csr_array(queries @ self.sparse())
        if shape.pairs:
            weights = np.zeros((queries.shape[0], shape.document_terms), dtype=np.float32)
            pair_rows(self.parts(), rows_of(queries), weights)
            if shape.diagonal != "none":
                rows = np.repeat(np.arange(queries.shape[0]), np.diff(queries.indptr))
                weights[rows, queries.indices] += float(self.identity) * queries.data
            return weights
        if shape.diagonal == "learned":
            return _scaled_columns(queries, _array(self.diagonal))
        return queries * np.float32(self.identity)

    def forget_other_task(self) -> None:
        """Drop what only training needs."""
        self.other_query_vectors = _random(0, self.shape.dim, None)
        self.active = np.zeros(0, dtype=bool)

    def sparse(self) -> csr_array:
        """The weights that a sparse W has kept."""
        arrays = _array(self.sparse_values), _array(self.sparse_columns), _array(self.sparse_starts)
        return csr_array(arrays, shape=(self.shape.query_terms, self.shape.document_terms))

    def keep_largest(self, count: int) -> None:
        """Keep the weights of each row of W that are largest in absolute value; the others are 0, and stay so.

        This is step 2 of algorithm 2; of equal weights those of more frequent words are kept.
        """
        weights = _array(self.pairs).reshape(self.shape.query_terms, self.shape.document_terms)
        if not len(self.active):
            self.active = np.ones(weights.size, dtype=bool)
        active = self.active.reshape(weights.shape)
        for row, kept in zip(weights, active, strict=True):
            dropped = np.argsort(np.where(kept, -np.abs(row), np.inf), kind="stable")[count:]
            row[dropped], kept[dropped] = 0, False

    def compressed(self) -> "BilinearNetwork":
        """The same W, of which only the weights that are not 0 take memory."""
        weights = csr_array(_array(self.pairs).reshape(self.shape.query_terms, self.shape.document_terms))
        nonzeros = max(1, weights.nnz)  # W = 0 keeps one of them
        network = BilinearNetwork(replace(self.shape, pairs=0, starts_at_identity=False, nonzeros=nonzeros))
        network.sparse_values[: weights.nnz] = torch.from_numpy(weights.data)
        network.sparse_columns[: weights.nnz] = torch.from_numpy(weights.indices.astype(np.int32))
        network.sparse_starts[:] = torch.from_numpy(weights.indptr.astype(np.int64))
        return network


def rows_of(matrix: csr_array) -> Rows:
    """A sparse matrix as the compiled loops take it."""
    matrix.sort_indices()
    starts, terms = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False)
    return Rows(starts, terms, matrix.data.astype(np.float32, copy=False))


def no_rows(count: int) -> Rows:
    """Texts without terms."""
    return Rows(np.zeros(count + 1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32))


def _random(rows: int, dim: int, deviation: float | None) -> nn.Parameter:
    deviation = deviation or 1 / max(dim, 1) ** 0.5
    return _kept(torch.randn(rows, dim) * deviation if rows * dim else torch.zeros(0, dim))


def _kept(tensor: Tensor) -> nn.Parameter:
    return nn.Parameter(tensor, requires_grad=False)


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().numpy()


def _scaled_columns(matrix: csr_array, factors: np.ndarray) -> csr_array:
    return csr_array((matrix.data * factors[matrix.indices], matrix.indices, matrix.indptr), shape=matrix.shape)
