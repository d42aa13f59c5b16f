"""The most probable way to cut a query into phrases."""

from collections.abc import Mapping

import numpy as np


def best_segmentations(
    words: np.ndarray, phrases: Mapping[tuple[int, int], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The largest product of probabilities of segments, for each of some documents, by dynamic programming.

    A query of j words has alpha_j = max over the length l of its last segment of alpha_{j-l} · P(segment|d), with
    alpha_0 = 1: the maximum in place of the sum over segmentations (Gao, He & Nie 2010).

    Args:
        words: log P(w|d) of each word of the query as a segment of its own, float64 of shape ``(documents, words)``.
        phrases: log P(phrase|d) of longer segments, by their first word (from 0) and length, float64 of shape
            ``(documents,)``; -inf is no segment.

    Returns:
        The logarithm of the largest product, float64 of shape ``(documents,)``, and the length of the last segment of
        the first words up to each one, int64 of shape ``(documents, words)``; of equal products the shorter segment.
    """
    count, num_words = words.shape
    best, lengths = [np.zeros(count)], np.ones((count, num_words), dtype=np.int64)
    by_end: dict[int, list[int]] = {}
    for first, length in sorted(phrases, key=lambda segment: segment[1]):
        by_end.setdefault(first + length - 1, []).append(length)
    for last in range(num_words):
        product = best[last] + words[:, last]
        for length in by_end.get(last, []):
            first = last + 1 - length
            other = best[first] + phrases[first, length]
            better = other > product
            product = np.where(better, other, product)
            lengths[better, last] = length
        best.append(product)
    return best[-1], lengths


def segments(lengths: np.ndarray) -> list[tuple[int, int]]:
    """First word and length of each segment, in their order.

    Args:
        lengths: Those of one document that :func:`best_segmentations` gives, of shape ``(words,)``.

    Example::

        >>> segments(np.array([1, 2, 1]))
        [(0, 2), (2, 1)]
    """
    found, end = [], len(lengths)
    while end:
        length = int(lengths[end - 1])
        end -= length
        found.append((end, length))
    return found[::-1]
