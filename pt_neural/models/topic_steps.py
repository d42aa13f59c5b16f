"""The loops of topic models: expectation maximisation over the words of documents."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
from scipy.sparse import csr_array

from pt_neural.models.compiled import compiled

PARTS = 2  # of the documents, whose sums are taken apart and then added, whatever the number of threads
LEAST = 1e-30  # a probability that a loop may divide by


def fold_in(
    counts: csr_array, word_topics: np.ndarray, prior: np.ndarray, *, iterations: int = 100, tolerance: float = 1e-4
) -> np.ndarray:
    """The topic distributions of documents, with the topics as they are: P(z|d) of largest posterior probability.

    Each iteration takes P(z|d) to (prior_z + sum over w of n(d, w) P(z|d, w)) / its sum over z, with P(z|d, w) in
    proportion to P(w|z) P(z|d), from equal P(z|d) on (Hofmann 1999, section 3). A document's iterations end when no
    P(z|d) changes by more than the tolerance. Documents do not depend on each other.

    Args:
        counts: Occurrences n(d, w), float32 of shape ``(documents, words)``.
        word_topics: P(w|z), float32 of shape ``(words, topics)``.
        prior: Occurrences of each topic that a document is thought to have besides, float32 of shape ``(topics,)``;
            zeros for the maximum of the likelihood.
        iterations: Most iterations of a document.
        tolerance: See above.

    Returns:
        float32 of shape ``(documents, topics)``; rows add up to 1, and are zero for documents without words.
    """
    topics = np.zeros((counts.shape[0], word_topics.shape[1]), dtype=np.float32)
    arrays = counts.indptr.astype(np.int64), counts.indices.astype(np.int32), counts.data.astype(np.float32)

    def some(first: int, last: int) -> None:
        _fold_in(*arrays, word_topics, prior.astype(np.float32), iterations, tolerance, topics, first, last)

    _in_parts(some, counts.shape[0], parts=8 * numba.get_num_threads())
    return topics


def _in_parts(task: Callable[[int, int], object], count: int, parts: int) -> list:
    """Call a function with the bounds of each part of some documents, in threads; the results in order."""
    bounds = np.linspace(0, count, parts + 1).astype(int).tolist()
    with ThreadPoolExecutor(numba.get_num_threads()) as pool:
        return list(pool.map(task, bounds[:-1], bounds[1:]))


@compiled
def _fold_in(starts, words, weights, word_topics, prior, iterations, tolerance, topics, first, last):
    num_topics = word_topics.shape[1]
    share = np.empty(num_topics, dtype=np.float32)
    for document in range(first, last):
        begin, end = starts[document], starts[document + 1]
        if begin == end:
            continue
        current = topics[document]
        current[:] = np.float32(1.0 / num_topics)
        for _ in range(iterations):
            share[:] = prior
            for place in range(begin, end):
                of_word = word_topics[words[place]]
                likelihood = np.float32(0.0)
                for topic in range(num_topics):
                    likelihood += current[topic] * of_word[topic]
                scale = weights[place] / max(likelihood, np.float32(LEAST))
                for topic in range(num_topics):
                    share[topic] += scale * current[topic] * of_word[topic]
            total = np.float32(0.0)
            for topic in range(num_topics):
                total += share[topic]
            if total <= np.float32(0.0):
                break
            change = np.float32(0.0)
            for topic in range(num_topics):
                new = share[topic] / total
                change = max(change, abs(new - current[topic]))
                current[topic] = new
            if change <= tolerance:
                break
