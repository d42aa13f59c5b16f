"""DICE coefficients by hand, and against sets of documents, word by word."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from pt_neural.text import Bigrams, Vocabulary, tokenise, tokenise_packed
from pt_neural.text.co_occurrence import dice_neighbours
from pt_neural.text.counts import bag_of_words

PRESENCE = st.integers(0, 8).flatmap(
    lambda documents: st.tuples(
        st.lists(st.lists(st.integers(0, 2), min_size=5, max_size=5), min_size=documents, max_size=documents),
        st.lists(st.lists(st.integers(0, 2), min_size=6, max_size=6), min_size=documents, max_size=documents),
    )
)


def test_neighbours_by_hand():
    #                      a  b  c  d
    words = csr_array([[1, 1, 0, 0], [3, 0, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1]])
    numbers, coefficients = dice_neighbours(words, words, k=3)
    assert numbers.tolist() == [[0, 1, 2], [1, 0, -1], [2, 3, 0], [3, 2, -1]]
    expected = [[1, 2 * 2 / 5, 2 * 1 / 5], [1, 4 / 5, 0], [1, 2 * 1 / 3, 2 * 1 / 5], [1, 2 / 3, 0]]
    np.testing.assert_allclose(coefficients, expected, rtol=1e-6)
    assert numbers.dtype == np.int32
    assert coefficients.dtype == np.float32


def test_a_bigram_has_other_neighbours_than_its_words():
    texts = [
        "star trek voyager",
        "voyager and spock of star trek",
        "a bright star",
        "star and planet",
        "the planet of a star",
        "a trek in the mountains",
        "mountains and a trek",
    ]
    vocabulary = Vocabulary.build(map(tokenise, texts))
    packed = tokenise_packed(texts, vocabulary)
    words = bag_of_words(packed, len(vocabulary))
    bigrams = Bigrams.build(packed, len(vocabulary))
    star_trek = bag_of_words(bigrams.sequences(packed), len(bigrams))[:, [bigrams.names(vocabulary).index("star trek")]]
    others = ["planet", "mountains", "voyager", "spock"]
    numbers, coefficients = dice_neighbours(star_trek, words[:, vocabulary.ids(others)], k=2)
    assert [others[number] for number in numbers[0]] == ["voyager", "spock"]
    np.testing.assert_allclose(coefficients, [[2 * 2 / (2 + 2), 2 * 1 / (2 + 1)]], rtol=1e-6)
    alone, _ = dice_neighbours(words[:, vocabulary.ids(["star", "trek"])], words[:, vocabulary.ids(others)], k=1)
    assert [others[number] for number in alone[:, 0]] == ["planet", "mountains"]


@settings(max_examples=20)
@given(PRESENCE, st.integers(1, 8), st.sampled_from([1, 2**21]))
def test_neighbours_equal_a_loop(presence, k, block):
    features, words = (
        np.array(rows, dtype=np.int64).reshape(-1, width) for rows, width in zip(presence, (5, 6), strict=True)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pt_neural.text.co_occurrence._BLOCK", block)
        numbers, coefficients = dice_neighbours(csr_array(features), csr_array(words), k)
    for i in range(5):
        dice = {}
        for j in range(6):
            one, other = set(np.flatnonzero(features[:, i])), set(np.flatnonzero(words[:, j]))
            if one & other:
                dice[j] = Fraction(2 * len(one & other), len(one) + len(other))
        expected = sorted(dice, key=lambda j: (-dice[j], j))[:k]
        assert numbers[i].tolist() == expected + [-1] * (k - len(expected))
        np.testing.assert_allclose(
            coefficients[i], [float(dice[j]) for j in expected] + [0] * (k - len(expected)), rtol=1e-6
        )


def test_many_features_in_many_blocks(monkeypatch):
    presence = csr_array(np.random.default_rng(3).random((60, 40)) < 0.2)
    whole = dice_neighbours(presence, presence[:, :15], k=4)
    monkeypatch.setattr("pt_neural.text.co_occurrence._BLOCK", 50)
    for one, other in zip(whole, dice_neighbours(presence, presence[:, :15], k=4), strict=True):
        np.testing.assert_array_equal(one, other)


def test_nothing_to_compare_is_no_trouble():
    for shape in ((0, 3), (3, 0), (0, 0)):
        numbers, coefficients = dice_neighbours(csr_array(shape), csr_array((shape[0], 2)), k=2)
        assert numbers.shape == coefficients.shape == (shape[1], 2)
        assert (numbers == -1).all()
    assert (dice_neighbours(csr_array((3, 2)), csr_array((3, 0)), k=1)[0] == -1).all()


def test_clear_errors():
    with pytest.raises(ValueError, match="features of 3 documents cannot occur with words of 2"):
        dice_neighbours(csr_array((3, 2)), csr_array((2, 2)), k=1)
    with pytest.raises(ValueError, match="k must be at least 1"):
        dice_neighbours(csr_array((3, 2)), csr_array((3, 2)), k=0)
