"""Scores from the postings of a query's terms."""

from functools import partial

import numpy as np
from scipy.sparse import csr_array

from pt_neural.rankers.kept.stored_rows import StoredRows
from pt_neural.text.compiled import compiled, loop_arrays


def posting_scores(weights: csr_array, postings: StoredRows, block: slice) -> np.ndarray:
    """Products of queries, a csr matrix of term weights, with a block of documents: float32 ``(queries, documents)``.

    Only the postings within the block are read, and its scores fit into the processor's cache. ArtifactError if
    postings that are read cannot be right.

    Example::

        >>> postings = StoredRows(np.array([2, 3], np.float32), np.array([0, 2], np.int32), np.array([0, 2]), (1, 3))
        >>> posting_scores(csr_array(np.array([[5]], dtype=np.float32)), postings, slice(1, 3))
        array([[ 0., 15.]], dtype=float32)
    """
    scores = np.zeros((weights.shape[0], block.stop - block.start), dtype=np.float32)
    stored = postings.offsets, postings.indices, postings.weights
    if not _add_postings(*loop_arrays(weights), *stored, block.start, block.stop, postings.shape[1], scores):
        raise postings.damaged()
    return scores


@partial(compiled, exact=True)
def _add_postings(starts, terms, weights, offsets, documents, values, first, stop, number, scores):
    """Add the postings of documents from ``first`` to before ``stop``; False if they do not rise below ``number``."""
    for query in range(len(starts) - 1):
        for place in range(starts[query], starts[query + 1]):
            low, end = offsets[terms[place]], offsets[terms[place] + 1]
            high = end
            while low < high:  # the first posting of the block
                middle = (low + high) // 2
                if documents[middle] < 0:
                    return False
                if documents[middle] < first:
                    low = middle + 1
                else:
                    high = middle
            previous = first - 1
            while low < end and documents[low] < stop:
                if documents[low] <= previous:
                    return False
                previous = documents[low]
                scores[query, previous - first] += weights[place] * values[low]
                low += 1
            if low < end and documents[low] >= number:
                return False
    return True
