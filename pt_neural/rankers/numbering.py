"""The distinct terms of a batch, in time that does not depend on the vocabulary."""

import numpy as np


class Numbering:
    """Numbers the distinct terms of one batch after another.

    Args:
        num_terms: Size of the vocabulary; negative ids count from its end, as NumPy has it.

    Example::

        >>> Numbering(9)(np.array([4, 7, 4]))
        (array([7, 4]), array([1, 0, 1]))
    """

    def __init__(self, num_terms: int):
        self._places = np.empty(num_terms, dtype=np.int64)  # of the terms of a batch; stale for all others

    def __call__(self, terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The distinct ones of some terms, and the place of each term among them."""
        # Each term's place is where it stands last. No step touches all terms of the vocabulary, which may be millions.
        order = np.arange(len(terms))
        self._places[terms] = order
        distinct = terms[self._places[terms] == order]
        self._places[distinct] = order[: len(distinct)]
        return distinct, self._places[terms]
