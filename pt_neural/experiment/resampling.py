"""Means of queries drawn anew and of differences with signs turned, in blocks that fit into memory."""

from collections.abc import Iterator

import numpy as np

BLOCK = 1 << 20  # resamples times queries at once


def resampled_means(values: np.ndarray, samples: int, seed: int) -> np.ndarray:
    """The mean of each column over as many rows as there are, drawn with replacement.

    Args:
        values: Shape (queries, systems).
        samples: How many times the rows are drawn; they are the same for all columns.
        seed: Of the draws.

    Returns:
        Shape (samples, systems).
    """
    rng, count = np.random.default_rng(seed), len(values)
    means = np.empty((samples, values.shape[1]))
    for block in _blocks(samples, count):
        size = block.stop - block.start
        drawn = rng.integers(count, size=(size, count)) + count * np.arange(size)[:, np.newaxis]
        times = np.bincount(drawn.ravel(), minlength=size * count).reshape(size, count)
        means[block] = times.astype(np.float64) @ values / count
    return means


def share_as_extreme(differences: np.ndarray, samples: int, seed: int) -> np.ndarray:
    """How often random signs give a mean as far from 0 as that of each column, which is the p-value of their test.

    Args:
        differences: Shape (queries, comparisons).
        samples: How many random signs to try. All are tried where there are no more of them than that.
        seed: Of the signs, which are the same for all columns.

    Returns:
        Shape (comparisons,). Of random signs, the ones observed count as one more sample, so that none is 0.
    """
    rng, count = np.random.default_rng(seed), len(differences)
    everything = count < 63 and 2**count <= samples
    total = 2**count if everything else samples
    tolerance = 1e-12 * np.abs(differences).sum(axis=0)  # sums of the same numbers, added in another order
    least = np.abs(differences.sum(axis=0)) - tolerance
    extreme = np.zeros(differences.shape[1])
    for block in _blocks(total, count):
        if everything:
            bits = np.arange(block.start, block.stop)[:, np.newaxis] >> np.arange(count) & 1
        else:
            bits = rng.integers(2, size=(block.stop - block.start, count), dtype=np.int8)
        extreme += (np.abs((2.0 * bits - 1) @ differences) >= least).sum(axis=0)
    return extreme / total if everything else (extreme + 1) / (total + 1)


def _blocks(samples: int, count: int) -> Iterator[slice]:
    """Slices of the samples, each of which fits into a block."""
    size = max(1, BLOCK // max(1, count))
    for start in range(0, samples, size):
        yield slice(start, min(start + size, samples))
