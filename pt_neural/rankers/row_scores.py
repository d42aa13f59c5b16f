"""Dot products of query and document vectors, one for each row of a frame."""

import numpy as np

from pt_neural.rankers.vectors import require_same_dimensions

ROWS_PER_BLOCK = 16_384


def row_scores(
    queries: np.ndarray, query_rows: np.ndarray, documents: np.ndarray, document_rows: np.ndarray, *, least: float
) -> np.ndarray:
    """What :func:`row_products` gives, but ``least`` for documents whose vector is zero."""
    scores = row_products(queries, query_rows, documents, document_rows)
    unanswered = np.flatnonzero(scores == 0)
    rows, places = np.unique(document_rows[unanswered], return_inverse=True)
    empty = ~documents[rows].any(axis=1)
    scores[unanswered[empty[places]]] = least
    return scores


def row_products(
    queries: np.ndarray, query_rows: np.ndarray, documents: np.ndarray, document_rows: np.ndarray
) -> np.ndarray:
    """Dot products ``queries[query_rows[i]] . documents[document_rows[i]]``, in blocks that stay small.

    Returns:
        float32 array of shape ``(len(query_rows),)``.
    """
    require_same_dimensions(queries, documents)
    scores = np.empty(len(query_rows), dtype=np.float32)
    for start in range(0, len(scores), ROWS_PER_BLOCK):
        block = slice(start, start + ROWS_PER_BLOCK)
        np.einsum("ij,ij->i", queries[query_rows[block]], documents[document_rows[block]], out=scores[block])
    return scores
