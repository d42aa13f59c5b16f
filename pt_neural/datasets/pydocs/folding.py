"""Near-identical texts found and folded, so that no query has a twin of its answer in the collection."""

from collections import defaultdict
from collections.abc import Sequence
from math import ceil

import numpy as np


def fold(texts: Sequence[Sequence[str]], threshold: float = 0.8, width: int = 5) -> list[int]:
    """For each tokenised text, the first kept text that is nearly the same, or the text itself.

    Two texts are nearly the same where the Jaccard similarity of their sets of ``width``-word shingles is at
    least ``threshold``. The search is exact: with shingles sorted from rare to frequent, two such sets share
    one of the first ``n - ceil(threshold * n) + 1`` shingles of each (prefix filtering, Chaudhuri et al.,
    ICDE 2006), so that only texts that share a rare shingle are ever compared.

    Args:
        texts: Tokens of each text, the preferred texts first.
        threshold: Least similarity at which a text is folded.
        width: Number of words in a shingle; a shorter text is filled up.

    Returns:
        One position a text; those kept point to themselves.

    Example:
        >>> fold([["a", "b"], ["c"], ["a", "b"]])
        [0, 1, 0]
    """
    shingles, shared = _shingles(texts, width)
    kept_with: dict[int, list[int]] = defaultdict(list)
    result = []
    for position, own in enumerate(shingles):
        prefix = own[: len(own) - ceil(threshold * len(own)) + 1]
        prefix = prefix[prefix >= shared].tolist()
        candidates = sorted({kept for shingle in prefix for kept in kept_with[shingle]})
        twin = next((kept for kept in candidates if _jaccard(own, shingles[kept]) >= threshold), position)
        result.append(twin)
        if twin == position:
            for shingle in prefix:
                kept_with[shingle].append(position)
    return result


def _shingles(texts: Sequence[Sequence[str]], width: int) -> tuple[list[np.ndarray], int]:
    """Each text's distinct shingles, numbered from rare to frequent, and the first number that two texts share."""
    vocabulary: dict[str, int] = {}
    distinct = []
    for tokens in texts:
        ids = [vocabulary.setdefault(token, len(vocabulary) + 1) for token in tokens]
        filled = np.array(ids + [0] * (width - len(ids)), dtype=np.uint64)
        distinct.append(np.unique(_hashes(np.lib.stride_tricks.sliding_window_view(filled, width))))
    if not distinct:
        return [], 0
    _, numbers, counts = np.unique(np.concatenate(distinct), return_inverse=True, return_counts=True)
    rarity = np.empty(len(counts), dtype=np.int64)
    rarity[np.argsort(counts, kind="stable")] = np.arange(len(counts))
    ends = np.cumsum([len(own) for own in distinct])[:-1]
    return [np.sort(own) for own in np.split(rarity[numbers], ends)], int((counts == 1).sum())


def _hashes(windows: np.ndarray) -> np.ndarray:
    """One 64-bit number a row, by polynomial hashing modulo 2**64; shape ``(len(windows),)``."""
    powers = np.array([pow(0x9E3779B97F4A7C15, power, 2**64) for power in range(windows.shape[1])], dtype=np.uint64)
    mixed = (windows * powers).sum(axis=1, dtype=np.uint64)
    return mixed ^ (mixed >> np.uint64(29))


def _jaccard(a: np.ndarray, b: np.ndarray) -> float:
    shared = len(np.intersect1d(a, b, assume_unique=True))
    return shared / (len(a) + len(b) - shared)
