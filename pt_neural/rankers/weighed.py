"""Queries and documents as bilinear rankers multiply them: latent vectors, and weights of the documents' terms."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack

from pt_neural.rankers.row_scores import ROWS_PER_BLOCK, row_products
from pt_neural.rankers.vectors import require_same_dimensions

QUERIES_PER_BLOCK = 256  # whose weights of all terms of the documents may be in memory at a time


class Weighed(NamedTuple):
    """Queries or documents; the score of a pair is latent_q · latent_d + terms_q · terms_d.

    Attributes:
        latent: float32 of shape ``(texts, dimensions)``; None if there is no latent part.
        terms: float32 of shape ``(texts, terms of documents)``. Of documents a csr matrix. Of queries a csr matrix, or
            an array where few weights are zero, as in q'W for a dense W. None if there is no lexical part.
    """

    latent: np.ndarray | None
    terms: csr_array | np.ndarray | None

    def take(self, rows: np.ndarray | slice) -> "Weighed":
        """Some of the texts."""
        return Weighed(*(part if part is None else part[rows] for part in self))

    def known(self) -> np.ndarray:
        """Whether each text has any weight that is not zero, as one with a known word has: bool."""
        return np.logical_or.reduce([abs(part).sum(axis=1) > 0 for part in self if part is not None])


def query_blocks(count: int) -> list[slice]:
    """Ranges of so many queries, each small enough to be weighed at once."""
    starts = range(0, count, QUERIES_PER_BLOCK)
    return [slice(start, min(start + QUERIES_PER_BLOCK, count)) for start in starts]


def stacked(parts: Sequence[Weighed]) -> Weighed:
    """The documents of all parts, one after the other."""
    latent, terms = zip(*parts, strict=True)
    return Weighed(
        None if latent[0] is None else np.concatenate(latent), None if terms[0] is None else vstack(terms, format="csr")
    )


def products(queries: Weighed, query_rows: np.ndarray, documents: Weighed, document_rows: np.ndarray) -> np.ndarray:
    """Scores of pairs of a query and a document, in blocks that stay small.

    Args:
        queries: Distinct queries.
        query_rows: The query of each pair, int64 of shape ``(pairs,)``.
        documents: Distinct documents.
        document_rows: The document of each pair.

    Returns:
        float32 array of shape ``(pairs,)``.

    Raises:
        ValueError: If queries and documents cannot belong to one model.

    Example::

        >>> one = Weighed(None, csr_array(np.array([[0.6, 0.8, 0.0]], dtype=np.float32)))
        >>> products(one, np.array([0]), one, np.array([0]))
        array([1.], dtype=float32)
    """
    scores = np.zeros(len(query_rows), dtype=np.float32)
    if queries.latent is not None and documents.latent is not None:
        scores += row_products(queries.latent, query_rows, documents.latent, document_rows)
    if queries.terms is not None and documents.terms is not None:
        require_same_dimensions(queries.terms, documents.terms)
        for start in range(0, len(scores), ROWS_PER_BLOCK):
            block = slice(start, start + ROWS_PER_BLOCK)
            scores[block] += _term_products(queries.terms, query_rows[block], documents.terms[document_rows[block]])
    return scores


def _term_products(queries: csr_array | np.ndarray, query_rows: np.ndarray, documents: csr_array) -> np.ndarray:
    """Products of some queries and as many documents, row by row."""
    if not isinstance(queries, np.ndarray):
        return queries[query_rows].multiply(documents).sum(axis=1)
    weights = queries[np.repeat(query_rows, np.diff(documents.indptr)), documents.indices]
    return csr_array((weights * documents.data, documents.indices, documents.indptr), shape=documents.shape).sum(axis=1)
