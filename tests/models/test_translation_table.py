"""Tables of translations against tables written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from pt_neural.models.translation_table import (
    from_tensors,
    largest,
    most_probable,
    scaled_columns,
    to_tensors,
    with_self_translation,
)

TABLE = csr_array([[0.5, 0.25, 0.0], [0.25, 0.25, 0.0], [0.25, 0.5, 0.0]])


def test_the_most_probable_translations_stay():
    assert most_probable(TABLE, 1).toarray().tolist() == [[0.5, 0, 0], [0, 0, 0], [0, 0.5, 0]]
    assert most_probable(TABLE, 2).toarray().tolist() == [[0.5, 0.25, 0], [0.25, 0, 0], [0, 0.5, 0]]
    assert most_probable(TABLE, None).toarray().tolist() == TABLE.toarray().tolist()


@given(st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3), min_size=1, max_size=7), st.integers(1, 4))
def test_each_column_keeps_its_largest(rows, top):
    table = np.array(rows, dtype=float)
    kept = most_probable(csr_array(table), top).toarray()
    for column, left in zip(table.T, kept.T, strict=True):
        best = sorted(range(len(column)), key=lambda row: (-column[row], row))[:top]
        assert left.tolist() == [value if row in best else 0 for row, value in enumerate(column)]


def test_columns_are_scaled():
    scaled = scaled_columns(csr_array([[1.0, 0.0], [3.0, 0.0]]), np.array([2.0, 5.0]))
    assert scaled.toarray().tolist() == [[0.5, 0], [1.5, 0]]


def test_words_are_translated_into_themselves():
    mixed = with_self_translation(TABLE, 0.2)
    expected = [[0.2 + 0.8 * 0.5, 0.8 * 0.25, 0], [0.8 * 0.25, 0.2 + 0.8 * 0.25, 0], [0.8 * 0.25, 0.8 * 0.5, 1]]
    np.testing.assert_allclose(mixed.toarray(), expected, rtol=1e-6)
    assert mixed.dtype == np.float32
    assert with_self_translation(TABLE, 1.0).toarray().tolist() == np.eye(3).tolist()


def test_the_largest_entries():
    places, values = largest(TABLE[[0]], 2)
    assert (places.tolist(), values.tolist()) == ([0, 1], [0.5, 0.25])
    places, values = largest(TABLE[:, [1]], 9)
    assert (places.tolist(), values.tolist()) == ([2, 0, 1], [0.5, 0.25, 0.25])


def test_tables_are_saved_as_arrays():
    tensors = to_tensors("words", TABLE)
    assert (from_tensors("words", tensors, (3, 3)) != TABLE).nnz == 0
    with pytest.raises(KeyError):
        from_tensors("others", tensors, (3, 3))


@pytest.mark.parametrize(
    "damage",
    [
        {"words.indices": np.full(6, 9, dtype=np.int32)},
        {"words.indptr": np.array([0, 2, 3, 5], dtype=np.int32)},
        {"words.data": np.full(6, np.nan)},
        {"words.data": np.full(6, -0.5)},
    ],
)
def test_damaged_tables_are_refused(damage):
    with pytest.raises(ValueError, match=r"."):
        from_tensors("words", {**to_tensors("words", TABLE), **damage}, (3, 3))
