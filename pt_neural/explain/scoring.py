"""Scores of two-tower rankers from vectors, as the rankers themselves have them."""

import numpy as np

from pt_neural.rankers.row_scores import row_scores


def vector_scores(queries: np.ndarray, documents: np.ndarray, *, least: float) -> np.ndarray:
    """Dot products of query and document vectors, row by row.

    Args:
        queries: float32 of shape ``(n, dimensions)``, or one row for all documents.
        documents: float32 of shape ``(n, dimensions)``, or one row for all queries.
        least: What a document without a vector scores.

    Returns:
        float32 array of shape ``(n,)``.
    """
    rows = np.arange(max(len(queries), len(documents)))
    return row_scores(queries, rows % len(queries), documents, rows % len(documents), least=least)
