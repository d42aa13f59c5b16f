"""Texts made of random words, the same for the same seed."""

import numpy as np


def synthetic_titles(words: int, titles: int, negatives: int, seed: int) -> dict[str, list]:
    """Titles of eight words, queries of three words of each, and for each query its title and its negatives.

    The candidates are numbers of titles, the query's own first.
    """
    generator = np.random.default_rng(seed)
    drawn = synthetic_words(words, generator).astype(object)[generator.integers(words, size=(titles, 8))]
    own = np.arange(titles)[:, None]
    steps = generator.integers(1, titles, size=(titles, negatives))
    candidates = np.hstack([own, (own + steps) % titles])  # a title is never its own negative
    return {
        "queries": [" ".join(title[:3]) for title in drawn],
        "titles": [" ".join(title) for title in drawn],
        "candidates": candidates.tolist(),
    }


def synthetic_words(count: int, generator: np.random.Generator) -> np.ndarray:
    """So many different words of four to ten letters."""
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words: dict[str, None] = {}
    while len(words) < count:
        words["".join(generator.choice(letters, size=generator.integers(4, 11)))] = None
    return np.array(list(words))
