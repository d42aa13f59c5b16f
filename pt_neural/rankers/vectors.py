"""Queries and documents as dense vectors, sparse weights of terms, or both; and their products."""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack

from pt_neural._forks import without_lost_threads

ROWS_PER_BLOCK = 16_384
QUERIES_PER_PRODUCT = 16  # their weights of a term lie in one cache line
LEAST_DOCUMENTS = 32  # in a product of matrices


class Vectors(NamedTuple):
    """Queries or documents; the score of a pair is dense_q · dense_d + sparse_q · sparse_d.

    Attributes:
        dense: float32 of shape ``(texts, dimensions)``; None if there is no dense part.
        sparse: float32 of shape ``(texts, terms of documents)``. For documents a csr matrix. For queries a csr matrix,
            or an array where few weights are zero, as in q'W for a dense W. None if there is no sparse part.
    """

    dense: np.ndarray | None
    sparse: csr_array | np.ndarray | None = None

    @property
    def number(self) -> int:
        """How many texts there are; ``len`` is the number of parts."""
        return (self.sparse if self.dense is None else self.dense).shape[0]

    def take(self, rows: np.ndarray | slice) -> "Vectors":
        """Some of the texts."""
        return Vectors(*(part if part is None else part[rows] for part in self))

    def known(self) -> np.ndarray:
        """Whether each text has a weight other than zero, which any known word gives it: bool."""
        found = [self.dense.any(axis=1)] if self.dense is not None else []
        if self.sparse is not None:
            found.append((self.sparse != 0).sum(axis=1) > 0)
        return np.logical_or.reduce(found)


def stacked(parts: Sequence[Vectors]) -> Vectors:
    """The texts of all parts, one part after another."""
    if len(parts) == 1:
        return parts[0]
    dense, sparse = zip(*parts, strict=True)
    return Vectors(
        None if dense[0] is None else np.concatenate(dense),
        None if sparse[0] is None else vstack(sparse, format="csr"),
    )


def products(queries: Vectors, query_rows: np.ndarray, documents: Vectors, document_rows: np.ndarray) -> np.ndarray:
    """Scores of pairs of a query and a document, float32 of shape ``(pairs,)``, in blocks that stay small.

    Example::

        >>> one = Vectors(None, csr_array(np.array([[0.6, 0.8, 0.0]], dtype=np.float32)))
        >>> products(one, np.array([0]), one, np.array([0]))
        array([1.], dtype=float32)
    """
    scores = np.zeros(len(query_rows), dtype=np.float32)
    with_dense = queries.dense is not None and documents.dense is not None
    with_sparse = queries.sparse is not None and documents.sparse is not None
    for left, right in zip(queries, documents, strict=True):
        if left is not None and right is not None:
            require_same_dimensions(left, right)
    for start in range(0, len(scores), ROWS_PER_BLOCK):
        block = slice(start, start + ROWS_PER_BLOCK)
        if with_dense:
            left, right = queries.dense[query_rows[block]], documents.dense[document_rows[block]]
            np.einsum("ij,ij->i", left, right, out=scores[block])
        if with_sparse:
            scores[block] += _sparse_products(queries.sparse, query_rows[block], documents.sparse[document_rows[block]])
    return scores


def _sparse_products(queries: csr_array | np.ndarray, query_rows: np.ndarray, documents: csr_array) -> np.ndarray:
    """Products of queries and documents, row by row."""
    if not isinstance(queries, np.ndarray):
        return queries[query_rows].multiply(documents).sum(axis=1)
    weights = queries[np.repeat(query_rows, np.diff(documents.indptr)), documents.indices]
    return csr_array((weights * documents.data, documents.indices, documents.indptr), shape=documents.shape).sum(axis=1)


def all_products(queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """Products of all queries with all documents, float32 of shape ``(queries, documents)``.

    The bits of a product of matrices depend on the shapes of both: always 16 queries are multiplied, and 32 documents
    or more, some of them zeros if there are fewer, so that a score does not depend on the others.

    Example::

        >>> all_products(np.eye(2, dtype=np.float32), np.array([[3, 5]], dtype=np.float32))
        array([[3.],
               [5.]], dtype=float32)
    """
    import torch  # whose products of few rows are three times as fast as NumPy's

    without_lost_threads()
    require_same_dimensions(queries, documents)
    scores = np.empty((len(queries), len(documents)), dtype=np.float32)
    some = torch.zeros(QUERIES_PER_PRODUCT, queries.shape[1])
    if len(documents) < LEAST_DOCUMENTS:
        documents = np.concatenate([documents, np.zeros_like(documents, shape=(LEAST_DOCUMENTS, queries.shape[1]))])
    products = torch.empty(len(documents), QUERIES_PER_PRODUCT)
    with warnings.catch_warnings():  # documents may be mapped for reading only, and nothing is written
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        matrix = torch.from_numpy(np.asarray(documents))
    for start in range(0, len(queries), QUERIES_PER_PRODUCT):
        block = scores[start : start + QUERIES_PER_PRODUCT]
        some.zero_()
        some.numpy()[: len(block)] = queries[start : start + QUERIES_PER_PRODUCT]
        torch.mm(matrix, some.T, out=products)
        block[:] = products.numpy().T[: len(block), : scores.shape[1]]
    return scores


def require_same_dimensions(queries: np.ndarray | csr_array, documents: np.ndarray | csr_array) -> None:
    """Raise ValueError if query and document vectors cannot belong to one model."""
    if queries.shape[1] != documents.shape[1]:
        raise ValueError(
            f"query vectors have {queries.shape[1]} dimensions, document vectors {documents.shape[1]}; "
            "the vectors were made by another model"
        )
