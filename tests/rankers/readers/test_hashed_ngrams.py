"""Batches of hashed texts against loops over words."""

import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from pt_neural.rankers.readers.hashed_ngrams import PADDING, HashedCorpus, HashedNgrams, HashedPairs, HashedWords
from pt_neural.text import PackedSequences, Vocabulary, WordHashing

TERMS = ["boy", "boys", "girl", "xx", "𐐨𐐩"]
HASHING = WordHashing.build(["boy", "girls", PADDING])
TEXTS = st.lists(st.lists(st.integers(-1, len(TERMS) - 1), max_size=9), min_size=1, max_size=6)


def corpus_of(texts, **options) -> HashedCorpus:
    return HashedCorpus(PackedSequences.from_lists(texts), HashedWords(TERMS, HASHING), **options)


def dense_words(batch) -> np.ndarray:
    """The counts of each distinct word of a batch, as the tensors give them."""
    shape = len(batch.bags) - 1, len(HASHING)
    return csr_array((batch.counts.numpy(), batch.ngrams.numpy(), batch.bags.numpy()), shape=shape).toarray()


def dense_texts(batch) -> list[np.ndarray]:
    """The counts of each word of each text."""
    rows = dense_words(batch)[batch.words.numpy()]
    return np.split(rows, batch.offsets.numpy()[1:-1])


def expected(text, max_terms=None) -> np.ndarray:
    """The counts of each word of a text, n-gram by n-gram."""
    rows = np.zeros((len(text), len(HASHING)), dtype="f4")
    for row, term in zip(rows, text, strict=True):
        word = f"#{TERMS[term]}#" if term >= 0 else ""
        for i in range(len(word) - 2):
            if word[i : i + 3] in HASHING.ngrams:
                row[HASHING.ngrams.index(word[i : i + 3])] += 1
    if max_terms is not None and len(text) > max_terms:
        return np.vstack([rows[:max_terms], rows[max_terms:].sum(axis=0)])
    return rows


@given(TEXTS, st.sampled_from([None, 1, 2, 5]), st.data())
def test_any_batch_equals_a_loop_over_words(texts, max_terms, data):
    corpus = corpus_of(texts, max_terms=max_terms)
    rows_of_text = st.lists(st.integers(0, len(texts) - 1), max_size=8)
    for _ in range(2):  # what a batch leaves behind does not show in the next one
        rows = data.draw(rows_of_text)
        batch = corpus.take(np.array(rows, dtype=np.int64))
        assert len(batch.offsets) == len(rows) + 1
        assert batch.known.tolist() == [bool(expected(texts[row]).any()) for row in rows]
        for found, row in zip(dense_texts(batch), rows, strict=False):
            np.testing.assert_array_equal(found, expected(texts[row], max_terms))
        assert not dense_words(batch)[-1].any()
        assert not (batch.words == len(batch.bags) - 2).any()


def test_tensors_are_what_networks_take():
    batch = corpus_of([[0, -1], []]).take(np.arange(2))
    kinds = {name: getattr(batch, name).dtype for name in batch._fields}
    integers = dict.fromkeys(("ngrams", "bags", "words", "offsets"), torch.int64)
    assert kinds == {**integers, "counts": torch.float32, "known": torch.bool}


def test_a_word_of_a_thousand_occurrences_has_its_ngrams_once():
    batch = corpus_of([[0] * 1000, [0, 2] * 500]).take(np.array([0, 1, 0]))
    assert len(batch.bags) - 1 == 3  # boy, girl, the padding
    assert len(batch.ngrams) == 3 + 3
    assert len(batch.words) == 3000


def test_the_padding_word_has_its_ngrams_if_asked_for():
    batch = corpus_of([[0]], hashes_padding=True).take(np.array([0]))
    padding = [HASHING.ngrams.index(ngram) for ngram in ("#<s", "<s>", "s>#")]
    assert np.flatnonzero(dense_words(batch)[-1]).tolist() == sorted(padding)


def test_an_unknown_term_keeps_its_place_and_has_no_ngrams():
    batch = corpus_of([[-1, 0, -1], [-1]]).take(np.arange(2))
    assert [rows.any(axis=1).tolist() for rows in dense_texts(batch)] == [[False, True, False], [False]]
    assert batch.known.tolist() == [True, False]


def test_one_term_beyond_the_sequence_stays_as_it_is():
    text = [0, 2, 1]
    np.testing.assert_array_equal(dense_texts(corpus_of([text], max_terms=2).take([0]))[0], expected(text))


def test_a_batch_costs_nothing_for_the_terms_that_it_lacks(monkeypatch):
    num_terms = 1_000_000
    words = HashedWords(list(map(str, range(num_terms))), HASHING)
    corpus = HashedCorpus(PackedSequences.from_lists([[5, num_terms - 1, 5]]), words)
    made = []
    for name in ("zeros", "empty", "arange", "flatnonzero", "diff"):
        original = getattr(np, name)
        monkeypatch.setattr(np, name, lambda *a, _made=original, **k: made.append(_made(*a, **k)) or made[-1])
    batch = corpus.take(np.array([0]))
    assert len(batch.bags) - 1 == 3
    assert made
    assert max(map(np.size, made)) < 100


def test_terms_may_be_memory_mapped(tmp_path):
    np.save(tmp_path / "terms.npy", np.array([0, 2, 1], dtype=np.int32))
    terms = np.load(tmp_path / "terms.npy", mmap_mode="r")
    corpus = HashedCorpus(PackedSequences(terms, np.array([0, 2, 3])), HashedWords(TERMS, HASHING))
    np.testing.assert_array_equal(dense_texts(corpus.take(np.array([1])))[0], expected([1]))


def test_rows_out_of_range():
    with pytest.raises(IndexError, match="between 0 and 0"):
        corpus_of([[0]]).take(np.array([1]))


def test_each_query_and_document_of_a_batch_of_groups_stands_once():
    queries, documents = corpus_of([[0], [1], [2]]), corpus_of([[0, 1], [2], [3], [4]])
    inputs = HashedPairs(queries, documents).batch(np.array([2, 0, 2]), np.array([[3, 1], [0, 1], [1, 3]]))
    assert len(inputs.queries.offsets) - 1 == 2
    assert len(inputs.documents.offsets) - 1 == 3
    assert inputs.query_rows.tolist() == [1, 0, 1]
    assert inputs.document_rows.tolist() == [[2, 1], [0, 1], [1, 2]]
    np.testing.assert_array_equal(dense_texts(inputs.documents)[1], expected([2]))


def test_a_term_is_hashed_when_a_text_first_has_it(monkeypatch):
    hashed, bags = [], WordHashing.bags
    monkeypatch.setattr(WordHashing, "bags", lambda self, words: hashed.append(words) or bags(self, words))
    texts = [[0], [2, 0, -1], [1], [3, 4]]
    corpus = corpus_of(texts)
    for row, new in ((0, [["boy"]]), (1, [["girl"]]), (0, []), (2, [["boys"]])):
        np.testing.assert_array_equal(dense_texts(corpus.take([row]))[0], expected(texts[row]))
        assert hashed == new
        hashed.clear()
    copy = pickle.loads(pickle.dumps(corpus))  # which comes with all of them
    assert hashed == [["xx", "𐐨𐐩", PADDING]]
    for text, found in zip(texts, dense_texts(copy.take(range(4))), strict=True):
        np.testing.assert_array_equal(found, expected(text))
    assert len(hashed) == 1


def test_the_reader_learns_ngrams_and_hashes_a_vocabulary_once(tmp_path):
    reader = HashedNgrams((2, 3), max_terms=2, hashes_padding=True)
    documents, vocabulary = PackedSequences.from_lists([[0, 1], [1]]), Vocabulary(["girl", "boy"])
    reader.build(["a query"], documents, vocabulary)
    assert {"#bo", "bo", "#qu", "s>#"} <= set(reader.hashing.ngrams)
    reader.save(tmp_path)
    loaded = HashedNgrams((2, 3), max_terms=2, hashes_padding=True)
    loaded.load(tmp_path)
    assert loaded.identity_parts() == reader.identity_parts()
    read = reader.read_documents(documents, vocabulary)
    assert len(read) == 2
    assert reader.read_documents(documents, vocabulary).words is read.words
    with pytest.raises(ValueError, match="no word to train on has 3 letters"):
        HashedNgrams().build([""], PackedSequences.from_lists([[]]), Vocabulary([]))
