"""The distinct terms of batches against a loop."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pt_neural.rankers.numbering import Numbering

BATCHES = st.lists(st.lists(st.integers(-2, 9), max_size=12), min_size=1, max_size=4)


@given(BATCHES)
def test_one_batch_after_another(batches):
    number = Numbering(12)
    for batch in batches:
        terms = np.array(batch, dtype=np.int32)
        distinct, places = number(terms)
        last_first = list(dict.fromkeys(reversed(batch)))[::-1]  # in the order of where each stands last
        assert distinct.tolist() == last_first
        assert places.tolist() == [last_first.index(term) for term in batch]


def test_the_terms_given_stay_as_they_are():
    terms = np.array([5, 3, 5])
    Numbering(6)(terms)
    assert terms.tolist() == [5, 3, 5]
