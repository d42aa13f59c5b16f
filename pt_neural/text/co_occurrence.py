"""Which words occur in the same documents."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyterrier as pt
from scipy.sparse import csr_array

from pt_neural._arguments import checked_number

_BLOCK = 2**21  # most pairs of a feature and a word in memory at a time


def dice_neighbours(
    features: csr_array, words: csr_array, k: int, *, verbose: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The words most correlated with each feature: S_1 to S_k of correlated feature hashing (SSI paper, section 2.2.3).

    DICE(i, j) = 2 cooccur(i, j) / (occur(i) + occur(j)), each the number of documents. A feature that is itself one of
    the words is its own first neighbour, with coefficient 1.

    Args:
        features: Which documents have which features (words or bigrams), of shape ``(documents, features)``; anything
            but 0 counts as 1.
        words: The same for the F most frequent words, of shape ``(documents, F)``.
        k: Number of neighbours.
        verbose: Show a progress bar.

    Returns:
        Numbers of words by falling coefficient, ties by number, int32 of shape ``(features, k)``; and the coefficients,
        float32 of the same shape. Where fewer than k words co-occur with a feature, the rest is -1 and 0.
    """
    k = checked_number("k", k, int, least=1)
    if features.shape[0] != words.shape[0]:
        raise ValueError(f"features of {features.shape[0]:,} documents cannot occur with words of {words.shape[0]:,}")
    words, documents = _presence(words), _presence(features.T)
    occur, word_occur = np.diff(documents.indptr), np.bincount(words.indices, minlength=words.shape[1])
    numbers = np.full((documents.shape[0], k), -1, dtype=np.int32)
    coefficients = np.zeros(numbers.shape, dtype=np.float32)
    with pt.tqdm(total=len(numbers), desc="DICE neighbours", unit="feature", disable=not verbose) as bar:
        for start, stop in _blocks(documents, words):
            together = documents[start:stop] @ words
            occur_of_row = np.repeat(occur[start:stop], np.diff(together.indptr))
            together.data = 2 * together.data / (occur_of_row + word_occur[together.indices])
            rows, ranks, places = _largest(together, k)
            numbers[start + rows, ranks] = together.indices[places]
            coefficients[start + rows, ranks] = together.data[places]
            bar.update(stop - start)
    return numbers, coefficients


def _presence(matrix: csr_array) -> csr_array:
    """1 for anything but 0, int32."""
    presence = csr_array(matrix, copy=True)
    presence.sum_duplicates()
    presence.eliminate_zeros()
    presence.data = np.ones(presence.nnz, dtype=np.int32)
    return presence


def _blocks(documents: csr_array, words: csr_array) -> Iterator[tuple[int, int]]:
    """Ranges of features that together co-occur with at most about ``_BLOCK`` words."""
    pairs = np.append(0, np.cumsum(np.diff(words.indptr)[documents.indices]))[documents.indptr]
    ends = np.cumsum(np.minimum(np.diff(pairs), words.shape[1]))
    edges = [*np.flatnonzero(np.diff(ends // _BLOCK, prepend=-1)).tolist(), len(ends)]
    return pairwise(edges)


def _largest(matrix: csr_array, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The k largest values of each row, ties by column: their rows, ranks (from 0) and positions in the data."""
    rows = np.flatnonzero(np.diff(matrix.indptr))
    lengths, left = np.diff(matrix.indptr)[rows], matrix.data.copy()
    places = [np.zeros(0, dtype=np.int64)]
    for _ in range(k if len(rows) else 0):
        largest = np.maximum.reduceat(left, matrix.indptr[rows])
        found = np.flatnonzero((left == np.repeat(largest, lengths)) & (left > 0))
        left[found] = 0
        places.append(found)
    places = np.concatenate(places)
    row = np.searchsorted(matrix.indptr, places, side="right") - 1
    order = np.lexsort((matrix.indices[places], -matrix.data[places], row))
    row, places = row[order], places[order]
    ranks = np.arange(len(row)) - np.searchsorted(row, row)
    kept = ranks < k
    return row[kept], ranks[kept], places[kept]
