import json
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pt_neural._files import ArtifactError
from pt_neural.text import Bigrams, PackedSequences, TfIdf, Vocabulary, tokenise_packed

TEXTS = ["Pearl Harbor, Pearl Harbor", "the pearl harbor", "harbor city", "", "city", "pearl"]
VOCABULARY = Vocabulary(["pearl", "harbor", "city"])
WORDS = 4  # ids from here on are unknown, as -1 is
LISTS = st.lists(st.lists(st.integers(-1, WORDS + 1)))


def pairs_of(terms):
    """The pairs of adjacent known words, one by one."""
    return [(a, b) for a, b in pairwise(terms) if 0 <= a < WORDS and 0 <= b < WORDS]


@pytest.fixture
def texts() -> PackedSequences:
    return tokenise_packed(TEXTS, VOCABULARY)


@pytest.fixture
def bigrams(texts) -> Bigrams:
    return Bigrams.build(texts, len(VOCABULARY), min_documents=1)


def test_bigrams_by_hand(texts, bigrams):
    assert bigrams.names(VOCABULARY) == ["pearl harbor", "harbor pearl", "harbor city"]
    assert bigrams.keys.tolist() == [1, 3, 5]
    assert bigrams.document_frequency.tolist() == [2, 1, 1]
    assert bigrams.num_documents == 6
    assert [numbers.tolist() for numbers in bigrams.sequences(texts)] == [[0, 1, 0], [0], [2], [], [], []]
    assert bigrams.sequences(texts).terms.dtype == np.int32
    assert repr(bigrams) == "Bigrams(3 pairs)"


def test_an_unknown_word_breaks_a_pair(bigrams):
    assert len(bigrams.sequences(tokenise_packed(["pearl big harbor", "pearl"], VOCABULARY)).terms) == 0


@settings(max_examples=40)
@given(LISTS, st.integers(1, 3), st.none() | st.integers(0, 3))
def test_bigrams_equal_a_loop(lists, min_documents, max_bigrams):
    frequency = Counter(pair for terms in lists for pair in set(pairs_of(terms)))
    ranked = sorted(frequency, key=lambda pair: (-frequency[pair], pair))
    kept = sorted([pair for pair in ranked if frequency[pair] >= min_documents][:max_bigrams])
    sequences = PackedSequences.from_lists(lists)
    bigrams = Bigrams.build(sequences, WORDS, min_documents=min_documents, max_bigrams=max_bigrams)
    assert [divmod(key, WORDS) for key in bigrams.keys.tolist()] == kept
    assert bigrams.document_frequency.tolist() == [frequency[pair] for pair in kept]
    expected = [[kept.index(pair) for pair in pairs_of(terms) if pair in kept] for terms in lists]
    assert [numbers.tolist() for numbers in bigrams.sequences(sequences)] == expected


def test_keys_do_not_overflow():
    last = 2**31 - 2
    bigrams = Bigrams.build(PackedSequences.from_lists([[last, last]]), last + 1, min_documents=1)
    assert bigrams.keys.tolist() == [last * (last + 1) + last]


def test_bigrams_are_weighed_as_words_are(texts, bigrams):
    weights = TfIdf(bigrams, sublinear_tf=False)
    pearl_harbor, harbor_pearl = np.log(7 / 3) + 1, np.log(7 / 2) + 1
    expected = np.array([2 * pearl_harbor, harbor_pearl, 0]) / np.hypot(2 * pearl_harbor, harbor_pearl)
    vectors = weights.of_sequences(bigrams.sequences(texts)).toarray()
    np.testing.assert_allclose(vectors[0], expected, rtol=1e-6)
    with pytest.raises(TypeError, match=r"of_sequences\(bigrams\.sequences"):
        weights.of_texts(TEXTS)


def test_save_and_load(bigrams, texts, tmp_path):
    bigrams.save(tmp_path / "bigrams")
    loaded = Bigrams.load(tmp_path / "bigrams")
    assert loaded.names(VOCABULARY) == bigrams.names(VOCABULARY)
    assert loaded.document_frequency.tolist() == bigrams.document_frequency.tolist()
    assert loaded.num_documents == 6
    assert loaded.sequences(texts).terms.tolist() == bigrams.sequences(texts).terms.tolist()


@pytest.mark.parametrize("name", ["keys.npy", "document_frequency.npy", "bigrams.json"])
def test_damage_is_named(bigrams, tmp_path, name):
    bigrams.save(tmp_path)
    content = (tmp_path / name).read_bytes()
    for damage in (content[:-3], b"\xff\xfe garbage", None):
        if damage is None:
            (tmp_path / name).unlink()
        else:
            (tmp_path / name).write_bytes(damage)
        with pytest.raises(ArtifactError, match=name.replace(".", r"\.")):
            Bigrams.load(tmp_path)


def test_sizes_that_do_not_fit_are_damage(bigrams, tmp_path):
    bigrams.save(tmp_path)
    for sizes in ([], {"num_terms": 3}, {"num_terms": 2, "num_documents": 6}, {"num_terms": 3, "num_documents": "6"}):
        (tmp_path / "bigrams.json").write_text(json.dumps(sizes))
        with pytest.raises(ArtifactError, match=r"(bigrams\.json is damaged|keys\.npy does not fit)"):
            Bigrams.load(tmp_path)


def test_impossible_bigrams_are_refused():
    for keys, frequency, message in [
        ([3, 1], [1, 1], "keys must rise"),
        ([1, 1], [1, 1], "keys must rise"),
        ([9], [1], "less than 3 squared"),
        ([-1], [1], "from 0 or more"),
        ([1, 2], [1], "as many frequencies"),
        ([1], [7], "number of documents, 6"),
        ([1], [0], "from 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            Bigrams(np.array(keys), np.array(frequency), num_terms=3, num_documents=6)


def test_names_need_the_vocabulary_of_the_bigrams(bigrams):
    with pytest.raises(ValueError, match="another vocabulary"):
        bigrams.names(Vocabulary(["pearl", "harbor"]))
