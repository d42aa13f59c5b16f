"""Scores of all documents of a collection at once, by postings or by rows."""

import numpy as np
from scipy.sparse import csr_array

from pt_neural.rankers.term_vectors import TermVectors
from pt_neural.rankers.vectors import require_same_dimensions
from pt_neural.rankers.weighed import Weighed

QUERIES_PER_PRODUCT = 16  # whose weights of a term lie in one cache line
FEW = 1 / 3  # of all weights: so many are as fast to read scattered, by postings, as all are in their order


def collection_scores(queries: Weighed, vectors: TermVectors) -> np.ndarray:
    """Scores of all documents for some queries.

    Args:
        queries: As a model weighs them.
        vectors: Documents that the model kept.

    Returns:
        float32 of shape ``(queries, documents)``; -inf for what must not be found: everything by a query without any
        known word, documents without any known word, and, where only single terms count, as without a latent part
        and with few weights of each query, documents that share no term with the query.

    Raises:
        ValueError: If queries and documents cannot belong to one model.
    """
    if queries.terms is None:
        scores = _latent_scores(queries.latent, vectors)
    else:
        scores = term_scores(queries.terms, vectors)
        if queries.latent is not None:
            scores += _latent_scores(queries.latent, vectors)
    if queries.latent is None and not isinstance(queries.terms, np.ndarray):
        scores[~_shared(queries.terms, scores, vectors)] = -np.inf
    else:
        scores[:, vectors.unknown] = -np.inf
    scores[~queries.known()] = -np.inf
    return scores


def _latent_scores(latent: np.ndarray, vectors: TermVectors) -> np.ndarray:
    require_same_dimensions(latent, vectors.weighed.latent)
    return latent @ vectors.weighed.latent.T


def term_scores(weights: csr_array | np.ndarray, vectors: TermVectors) -> np.ndarray:
    """The lexical part of the scores of all documents, float32 of shape ``(queries, documents)``."""
    require_same_dimensions(weights, vectors.terms)
    scores = np.empty((weights.shape[0], len(vectors)), dtype=np.float32)
    short = _are_short(weights, vectors)
    for product, chosen in ((_by_postings, short), (_by_rows, ~short)):
        numbers = np.flatnonzero(chosen)
        for start in range(0, len(numbers), QUERIES_PER_PRODUCT):
            some = numbers[start : start + QUERIES_PER_PRODUCT]
            scores[some] = product(weights[some], vectors)
    return scores


def _are_short(weights: csr_array | np.ndarray, vectors: TermVectors) -> np.ndarray:
    """Whether each query weighs terms with few postings."""
    if isinstance(weights, np.ndarray):
        return np.zeros(len(weights), dtype=bool)
    postings = np.diff(vectors.postings.indptr).astype(np.float64)
    return (weights != 0) @ postings < FEW * vectors.terms.nnz


def _by_postings(weights: csr_array, vectors: TermVectors) -> np.ndarray:
    return (weights @ vectors.postings).toarray()


def _by_rows(weights: csr_array | np.ndarray, vectors: TermVectors) -> np.ndarray:
    dense = weights if isinstance(weights, np.ndarray) else weights.toarray()
    return (vectors.terms @ np.ascontiguousarray(dense.T)).T


def _shared(weights: csr_array, scores: np.ndarray, vectors: TermVectors) -> np.ndarray:
    """Whether each document has a term that the query weighs."""
    if (weights.data >= 0).all():
        return scores > 0
    return term_scores(abs(weights), vectors) > 0  # where weights may cancel each other
