import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pt_neural.text.numbering import Numbering


@settings(max_examples=30)
@given(st.lists(st.lists(st.integers(-2, 9), max_size=12), min_size=1, max_size=4))
def test_numbering_one_batch_after_another(batches):
    number = Numbering(12)
    for batch in batches:
        terms = np.array(batch, dtype=np.int32)
        distinct, places = number(terms)
        expected = list(dict.fromkeys(batch))
        assert distinct.tolist() == expected
        assert places.tolist() == [expected.index(term) for term in batch]
        assert terms.tolist() == batch


@pytest.mark.parametrize("term", [12, -13])
def test_numbering_refuses_other_terms(term):
    number = Numbering(12)
    with pytest.raises(IndexError, match="outside the vocabulary"):
        number(np.array([3, -2, term], dtype=np.int32))
    assert number(np.array([-2, 3], dtype=np.int32))[1].tolist() == [0, 1]
