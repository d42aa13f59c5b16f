"""Near-identical texts found and folded, so that no query has a twin of its answer in the collection."""

import zlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from math import ceil


def fold(texts: Sequence[Sequence[str]], threshold: float = 0.8, width: int = 5) -> list[int]:
    """For each tokenised text, the first earlier text that is nearly the same, or the text itself.

    Two texts are nearly the same where the Jaccard similarity of their sets of ``width``-word shingles is at
    least ``threshold``. The search is exact: with shingles sorted from rare to frequent, two such sets share
    one of the first ``n - ceil(threshold * n) + 1`` shingles of each (prefix filtering, Chaudhuri et al.,
    ICDE 2006), so that only texts that share a rare shingle are ever compared.

    Args:
        texts: Tokens of each text, the preferred texts first.
        threshold: Least similarity at which a text is folded.
        width: Number of words in a shingle; shorter texts are one shingle.

    Returns:
        One position a text; those kept point to themselves.

    Example:
        >>> fold([["a", "b"], ["c"], ["a", "b"]])
        [0, 1, 0]
    """
    shingles = [_shingles(tokens, width) for tokens in texts]
    frequency = Counter(shingle for found in shingles for shingle in found)
    kept_with: dict[int, list[int]] = defaultdict(list)
    result = []
    for position, own in enumerate(shingles):
        rare_first = sorted(own, key=lambda shingle: (frequency[shingle], shingle))
        prefix = [s for s in rare_first[: len(own) - ceil(threshold * len(own)) + 1] if frequency[s] > 1]
        candidates = sorted({kept for shingle in prefix for kept in kept_with[shingle]})
        twin = next((kept for kept in candidates if _jaccard(own, shingles[kept]) >= threshold), position)
        result.append(twin)
        if twin == position:
            for shingle in prefix:
                kept_with[shingle].append(position)
    return result


def _shingles(tokens: Sequence[str], width: int) -> set[int]:
    """Checksums of all runs of ``width`` words: the same in every process, unlike ``hash``."""
    ids = [zlib.crc32(token.encode()) for token in tokens]
    return {hash(tuple(ids[start : start + width])) for start in range(max(1, len(ids) - width + 1))}


def _jaccard(a: set[int], b: set[int]) -> float:
    shared = len(a & b)
    return shared / ((len(a) + len(b) - shared) or 1)
