"""The dynamic programme against all segmentations."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pt_neural.models.phrase_segmentation import best_segmentations, segments


def all_segmentations(num_words, first=0):
    if first == num_words:
        yield []
    for length in range(1, num_words - first + 1):
        for rest in all_segmentations(num_words, first + length):
            yield [(first, length), *rest]


@given(st.integers(1, 6), st.integers(0, 1000))
def test_no_segmentation_is_more_probable(num_words, seed):
    random = np.random.default_rng(seed)
    words = np.log(random.random((3, num_words)))
    phrases = {
        (first, length): np.log(random.random(3)) * random.choice([1, 3, np.inf])
        for length in (2, 3)
        for first in range(num_words - length + 1)
        if random.random() < 0.7
    }
    values = {**{(place, 1): words[:, place] for place in range(num_words)}, **phrases}
    best, lengths = best_segmentations(words, phrases)
    for document in range(3):
        possible = {
            sum(values[segment][document] for segment in segmentation): segmentation
            for segmentation in all_segmentations(num_words)
            if all(segment in values for segment in segmentation)
        }
        np.testing.assert_allclose(best[document], max(possible))
        assert segments(lengths[document]) == possible[max(possible)]


def test_a_query_without_words_has_no_segments():
    best, lengths = best_segmentations(np.zeros((2, 0)), {})
    assert best.tolist() == [0, 0]
    assert segments(lengths[0]) == []


def test_of_equal_products_words_stay_words():
    _, lengths = best_segmentations(np.log([[0.5, 0.5]]), {(0, 2): np.log([0.25])})
    assert segments(lengths[0]) == [(0, 1), (1, 1)]
