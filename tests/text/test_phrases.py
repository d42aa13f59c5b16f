"""Phrases against slices of lists."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pt_neural.text import PackedSequences, Vocabulary
from pt_neural.text.phrases import Phrases

TEXTS = st.lists(st.lists(st.integers(-1, 4), max_size=8), min_size=1, max_size=5)


def slices(texts, num_words, length):
    found = [tuple(text[i : i + length]) for text in texts for i in range(len(text) - length + 1)]
    return {phrase for phrase in found if all(0 <= word < num_words for word in phrase)}


@settings(max_examples=30)
@given(TEXTS, st.integers(1, 4))
def test_all_phrases_of_texts_have_numbers(texts, max_length):
    phrases = Phrases.build(PackedSequences.from_lists(texts), 4, max_length=max_length)
    assert phrases.max_length == max_length
    words = [tuple(phrase.tolist()) for phrase in phrases.words(np.arange(len(phrases)))]
    expected = [{(word,) for word in range(4)}, *(slices(texts, 4, length) for length in range(2, max_length + 1))]
    assert words == [phrase for phrases in expected for phrase in sorted(phrases)]


@settings(max_examples=30)
@given(TEXTS, TEXTS)
def test_known_phrases_are_found_where_they_start(known, texts):
    phrases = Phrases.build(PackedSequences.from_lists(known), 4, max_length=3)
    words = [tuple(phrase.tolist()) for phrase in phrases.words(np.arange(len(phrases)))]
    places = [(text, start) for text in texts for start in range(len(text))]
    expected = [[tuple(text[start : start + length]) for length in (1, 2, 3)] for text, start in places]
    expected = [
        [
            words.index(phrase) if phrase in words and len(phrase) == length else -1
            for length, phrase in enumerate(row, 1)
        ]
        for row in expected
    ]
    found = phrases.numbers(PackedSequences.from_lists(texts))
    assert found.tolist() == expected
    assert found.shape == (len(places), 3)


def test_names():
    texts = PackedSequences.from_lists([[0, 1, 2]])
    phrases = Phrases.build(texts, 3, max_length=3)
    assert phrases.names([2, 4, 5, 0], Vocabulary(["new", "york", "city"])) == [
        "city",
        "york city",
        "new york city",
        "new",
    ]
    assert len(phrases) == 6
    assert repr(phrases) == "Phrases(3 words, 3 longer ones)"


def test_keys_that_name_no_phrases():
    for keys in ([[3, 2]], [[2, 2]], [[9]], [[-1]], [[1, 5], [6]]):
        with pytest.raises(ValueError, match="keys of phrases of"):
            Phrases([np.array(array) for array in keys], 3)
