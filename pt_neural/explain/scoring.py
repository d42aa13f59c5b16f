"""Scores of two-tower rankers from vectors, as the rankers themselves have them."""

import numpy as np

from pt_neural.rankers.two_tower import row_scores


def vector_scores(queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """Dot products of query and document vectors, row by row; -1 where the document has no vector.

    Args:
        queries: float32 of shape ``(n, dimensions)``, or one row for all documents.
        documents: float32 of shape ``(n, dimensions)``, or one row for all queries.

    Returns:
        float32 array of shape ``(n,)``.
    """
    rows = np.arange(max(len(queries), len(documents)))
    return row_scores(queries, rows % len(queries), documents, rows % len(documents))
