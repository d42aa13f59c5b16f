"""Numbers for the distinct terms of a batch."""

from collections.abc import Callable
from functools import cache

import numpy as np


class Numbering:
    """Numbers the distinct terms of a batch, in time that does not depend on the size of the vocabulary.

    Negative ids count from the end of the vocabulary, as in NumPy.

    Example::

        >>> Numbering(9)(np.array([4, 7, 4]))
        (array([4, 7]), array([0, 1, 0]))
    """

    def __init__(self, num_terms: int):
        self._places = np.full(num_terms, -1, dtype=np.int64)  # between batches, all are -1

    def __call__(self, terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The distinct terms of a batch, ordered by their first occurrence, and the place of each term among them."""
        return _loop()(terms, self._places)


@cache
def _loop() -> Callable:
    from pt_neural.text.compiled import compiled  # here, as importing a ranker must not wait for the compiler

    return compiled(_number)


def _number(terms: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    distinct, found, count = np.empty_like(terms), np.empty(len(terms), dtype=np.int64), 0
    for number in range(len(terms)):
        term = terms[number]
        if not -len(places) <= term < len(places):
            places[distinct[:count]] = -1
            raise IndexError("a term id is outside the vocabulary")
        if places[term] < 0:
            places[term] = count
            distinct[count] = term
            count += 1
        found[number] = places[term]
    for number in range(count):
        places[distinct[number]] = -1
    return distinct[:count].copy(), found
