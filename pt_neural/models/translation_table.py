"""Sparse tables of translation probabilities, a row for each word of queries, a column for each word of documents."""

from collections.abc import Mapping

import numpy as np
from scipy.sparse import coo_array, csr_array

_PARTS = ("data", "indices", "indptr")


def most_probable(table: csr_array, top: int | None) -> csr_array:
    """Keep the most probable translations of each column; of equally probable ones those of the first rows.

    Args:
        table: Probabilities, a row for each translation.
        top: How many; None keeps all above 0.

    Returns:
        A table of the same shape.
    """
    columns = coo_array(table)
    order = np.lexsort((columns.row, -columns.data, columns.col))
    ranks = np.arange(table.nnz) - np.searchsorted(columns.col[order], columns.col[order])
    kept = np.sort(order[(columns.data[order] > 0) & (ranks < (table.nnz if top is None else top))])
    return csr_array((columns.data[kept], (columns.row[kept], columns.col[kept])), shape=table.shape)


def scaled_columns(table: csr_array, totals: np.ndarray | float = 1.0) -> csr_array:
    """Scale columns to certain totals; empty ones stay empty.

    Args:
        table: Probabilities.
        totals: What each column adds up to.
    """
    sums = table.sum(axis=0)
    scale = np.divide(totals, sums, out=np.zeros(len(sums)), where=sums > 0)
    return csr_array((table.data * scale[table.indices], table.indices, table.indptr), shape=table.shape)


def with_self_translation(table: csr_array, weight: float) -> csr_array:
    """Let words be translated into themselves: t'(w|w) = weight + (1 - weight) t(w|w), the others (1 - weight) t(q|w).

    Args:
        table: t(q|w), whose columns add up to 1, or to 0 for words without translation, which become their own only
            translation.
        weight: From 0 to 1.

    Returns:
        float32 of the same shape; its columns add up to 1.
    """
    translated = table.sum(axis=0) > 0
    words = np.arange(table.shape[1])
    own = csr_array((np.where(translated, weight, 1.0), (words, words)), shape=table.shape)
    mixed = csr_array((1 - weight) * table + own, dtype=np.float32)
    mixed.eliminate_zeros()
    mixed.sort_indices()
    return mixed


def largest(row: csr_array, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The largest entries above 0 of one row or one column of a table, of equal ones the first.

    Returns:
        Their places, and their values.
    """
    values = row.toarray().ravel()
    best = np.argsort(-values, kind="stable")[:k]
    best = best[values[best] > 0]
    return best, values[best]


def to_tensors(name: str, table: csr_array) -> dict[str, np.ndarray]:
    """A table as named arrays."""
    return {f"{name}.{part}": getattr(table, part) for part in _PARTS}


def from_tensors(name: str, tensors: Mapping[str, np.ndarray], shape: tuple[int, int]) -> csr_array:
    """Read what :func:`to_tensors` gave.

    Raises:
        KeyError: If an array is missing.
        ValueError: If the arrays make no table of that shape, or if a probability is not from 0 to 1.
    """
    data, indices, starts = (tensors[f"{name}.{part}"] for part in _PARTS)
    if not len(data) == len(indices) == starts[-1]:
        raise ValueError(f"{name} has {len(data)} values at {len(indices)} places, and not {starts[-1]} of both")
    table = csr_array((data, indices, starts), shape=shape)
    table.check_format(full_check=True)
    if not ((table.data >= 0) & (table.data <= 1)).all():
        raise ValueError(f"{name} holds what is no probability")
    return table
