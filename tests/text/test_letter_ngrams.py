"""Word hashing as in section 3.2 of the CLSM paper."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pt_neural._files import ArtifactError
from pt_neural.text import Vocabulary, WordHashing, tokenise
from pt_neural.text.letter_ngrams import letter_ngrams

WORDS = st.lists(st.text(st.characters(exclude_characters="\n"), max_size=12), unique=True, max_size=8)
SIZES = st.sets(st.integers(1, 5), min_size=1, max_size=3)


def test_the_papers_boy():
    assert letter_ngrams("boy") == ["#bo", "boy", "oy#"]
    hashing = WordHashing.build(["boy", "girl"])
    row = dict(zip(hashing.ngrams, hashing.bags(["boy"]).toarray()[0], strict=True))
    assert {ngram for ngram, count in row.items() if count == 1} == {"#bo", "boy", "oy#"}
    assert sum(row.values()) == 3


def test_ngrams_are_counted():
    hashing = WordHashing.build(["banana"])
    row = hashing.bags(["banana"]).toarray()[0]
    assert dict(zip(hashing.ngrams, row, strict=True)) == {"#ba": 1, "ban": 1, "ana": 2, "nan": 1, "na#": 1}


def test_short_words_and_other_sizes():
    assert letter_ngrams("a") == ["#a#"]
    assert letter_ngrams("") == []
    assert letter_ngrams("ab", (1, 4, 5)) == ["#", "a", "b", "#", "#ab#"]


def test_unseen_words_have_those_ngrams_that_were_seen():
    hashing = WordHashing.build(["boy"])
    np.testing.assert_array_equal(
        hashing.bags(["boys", "soy", "girl", ""]).toarray(), [[1, 1, 0], [0, 0, 1], [0] * 3, [0] * 3]
    )


@settings(max_examples=30)
@given(WORDS, WORDS, SIZES)
def test_bags_are_counters_of_known_ngrams(seen, words, sizes):
    hashing = WordHashing.build(seen, sizes=sizes)
    bags = hashing.bags(words)
    assert bags.shape == (len(words), len(hashing))
    assert bags.dtype == np.float32
    assert bags.has_canonical_format
    for word, row in zip(words, bags.toarray(), strict=True):
        bounded = f"#{word}#"
        counted = Counter(bounded[i : i + n] for n in sizes for i in range(len(bounded)) if i + n <= len(bounded))
        known = {ngram: count for ngram, count in counted.items() if ngram in set(hashing.ngrams)}
        assert {hashing.ngrams[column]: row[column] for column in np.flatnonzero(row)} == known


def test_frequent_ngrams_come_first():
    assert WordHashing.build(["ab", "abc"]).ngrams == ["#ab", "ab#", "abc", "bc#"]
    vocabulary = Vocabulary.build([["ab", "cab", "cab"]])
    assert WordHashing.build(vocabulary).ngrams == ["ab#", "#ca", "cab", "#ab"]
    assert WordHashing.build(vocabulary, max_ngrams=2).ngrams == ["ab#", "#ca"]
    assert WordHashing.build(Vocabulary(["ab", "cab"])).ngrams[0] == "ab#"
    assert len(WordHashing.build([])) == 0
    assert WordHashing.build([]).bags(["boy"]).shape == (1, 0)


def test_a_letter_outside_the_basic_plane_is_one_letter():
    assert letter_ngrams("𝒶𐐨z") == ["#𝒶𐐨", "𝒶𐐨z", "𐐨z#"]
    word = tokenise("𐐀𐐁")[0]
    assert WordHashing.build([word]).bags([word]).sum() == 2


def test_save_and_load(tmp_path):
    words = [*tokenise("Grüße 東京 naïve हिन्दी 𐐀𐐁 a\u0301x ½ x\x85y x\u2028y"), "\ud800"]
    hashing = WordHashing.build(words, sizes=(2, 3))
    hashing.save(tmp_path)
    loaded = WordHashing.load(tmp_path, (2, 3))
    with pytest.raises(
        ArtifactError, match=r"ngrams\.json or ngrams\.txt is damaged: .*sizes are \(2, 3\), not \(3,\)"
    ):
        WordHashing.load(tmp_path, (3,))
    assert (loaded.ngrams, loaded.sizes) == (hashing.ngrams, hashing.sizes)
    np.testing.assert_array_equal(loaded.bags(words).toarray(), hashing.bags(words).toarray())


def test_damage_is_named(tmp_path):
    WordHashing.build(["boy"]).save(tmp_path)
    for damage in ("{}", "[]", '{"sizes": [0]}', '{"sizes": "three"}', '{"sizes": null}'):
        (tmp_path / "ngrams.json").write_text(damage)
        with pytest.raises(ArtifactError, match=r"ngrams\.json (or ngrams\.txt )?is damaged"):
            WordHashing.load(tmp_path, (3,))
    WordHashing.build(["boy"]).save(tmp_path)
    (tmp_path / "ngrams.txt").write_text("#bo\n#bo\n")
    with pytest.raises(ArtifactError, match="must be distinct"):
        WordHashing.load(tmp_path, (3,))
    (tmp_path / "ngrams.txt").unlink()
    with pytest.raises(ArtifactError, match=r"ngrams\.txt is missing"):
        WordHashing.load(tmp_path, (3,))


def test_clear_errors_and_repr():
    for sizes in ((), (0,), (-1, 3)):
        with pytest.raises(ValueError, match="lengths of at least 1"):
            WordHashing(["boy"], sizes)
    with pytest.raises(ValueError, match="distinct"):
        WordHashing(["boy", "boy"])
    with pytest.raises(ValueError, match="newline"):
        WordHashing(["bo\n"])
    assert repr(WordHashing.build(["boy"], sizes=(3, 2))) == "WordHashing(7 n-grams of 2 and 3 letters)"


def test_further_ngrams_come_after_those_that_are_known():
    hashing = WordHashing.build(["boy"])
    extended = hashing.extended(WordHashing.build(["boys", "toy"]).ngrams)
    assert extended.ngrams[:3] == hashing.ngrams == ["#bo", "boy", "oy#"]
    assert sorted(extended.ngrams[3:]) == ["#to", "oys", "toy", "ys#"]
    assert extended.sizes == hashing.sizes
