import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, vstack
from sklearn.feature_extraction.text import TfidfTransformer

from pt_neural.text import ForwardIndex, PackedSequences, TfIdf, Vocabulary, tokenise
from pt_neural.text.counts import bag_of_words, count_corpus


def test_counts_known_terms_and_stores_no_zeros():
    sequences = PackedSequences.from_lists([[1, 0, 1, -1], [], [-1], [2, 5, 2, 2]])
    counts = bag_of_words(sequences, 3)
    assert vstack(list(counts)).toarray().tolist() == [[1, 2, 0], [0, 0, 0], [0, 0, 0], [0, 0, 3]]
    assert counts.dtype == np.float32
    assert counts.nnz == 3
    assert bag_of_words(PackedSequences.from_lists([]), 3).shape == (0, 3)


def test_corpus_frame_and_forward_index_agree_with_a_vocabulary(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("pt_neural.text.counts._BLOCK", 4)
    forward = ForwardIndex.build(tmp_path / "forward", corpus, verbose=False)
    tokens = [tokenise(f"{document['title']} {document['text']}") for document in corpus]
    for limits in ({}, {"min_count": 2}, {"max_terms": 5}, {"min_count": 2, "max_terms": 100}):
        expected = Vocabulary.build(tokens, **limits)
        for source in (iter(corpus), pd.DataFrame(corpus), forward):
            vocabulary, counts = count_corpus(source, verbose=False, **limits)
            assert vocabulary.terms == expected.terms
            assert vocabulary.document_frequency.tolist() == expected.document_frequency.tolist()
            assert vocabulary.num_documents == 6
            assert vstack(list(counts)).toarray().tolist() == [
                [words.count(term) for term in expected.terms] for words in tokens
            ]


def test_only_the_named_fields_are_counted(corpus):
    vocabulary, _ = count_corpus(corpus, fields=["title"], verbose=False)
    assert sorted(vocabulary.terms) == ["bm25", "cambridge", "giraffes", "okapi", "oxford", "rivers"]


def test_bad_corpora_are_refused(corpus):
    with pytest.raises(ValueError, match="no documents"):
        count_corpus([], verbose=False)
    with pytest.raises(ValueError, match="occurs twice"):
        count_corpus([corpus[0], corpus[0]], verbose=False)


@pytest.fixture
def counts() -> csr_array:
    return csr_array(np.random.default_rng(5).poisson(0.7, size=(20, 8)).astype(float))


@pytest.fixture
def vocabulary(counts) -> Vocabulary:
    frequency = (counts.toarray() > 0).sum(axis=0)
    return Vocabulary(list("abcdefgh"), frequency, frequency, num_documents=20)


@pytest.mark.parametrize("sublinear_tf", [False, True])
def test_tf_idf_vectors_are_scikit_learns(counts, vocabulary, sublinear_tf):
    reference = TfidfTransformer(norm="l2", sublinear_tf=sublinear_tf).fit(counts)
    before = counts.copy()
    weights = TfIdf(vocabulary, sublinear_tf=sublinear_tf)
    np.testing.assert_allclose(weights.idf, reference.idf_, rtol=1e-6)
    vectors = weights.of_counts(counts)
    np.testing.assert_allclose(vectors.toarray(), reference.transform(counts).toarray(), rtol=1e-6)
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(counts.toarray(), before.toarray())


def test_tf_idf_of_texts_by_hand():
    vocabulary = Vocabulary.build([["a", "river", "a", "city"], ["a", "river"], ["the", "river", "bank"]])
    vectors = TfIdf(vocabulary, sublinear_tf=True).of_texts(["a zebra: a city", "zebra", "", None, math.nan])
    a, city = (1 + math.log(2)) * (math.log(4 / 3) + 1), math.log(4 / 2) + 1
    expected = np.zeros((5, 5))
    expected[0, list(vocabulary.ids(["a", "city"]))] = np.array([a, city]) / math.hypot(a, city)
    np.testing.assert_allclose(vectors.toarray(), expected, rtol=1e-6)
    assert vectors.nnz == 2


@settings(max_examples=30)
@given(st.lists(st.lists(st.integers(-1, 6))), st.booleans())
def test_tf_idf_vectors_have_length_one_or_no_entries(lists, sublinear_tf):
    frequency = [sum(term in terms for terms in lists) for term in range(4)]
    vocabulary = Vocabulary(list("abcd"), document_frequency=frequency, num_documents=len(lists))
    vectors = TfIdf(vocabulary, sublinear_tf=sublinear_tf).of_sequences(PackedSequences.from_lists(lists))
    lengths = np.linalg.norm(vectors.toarray(), axis=1) if lists else np.zeros(0)
    np.testing.assert_allclose(lengths, [any(0 <= term < 4 for term in terms) for terms in lists], rtol=1e-6)
    assert vectors.shape == (len(lists), 4)
    assert vectors.has_canonical_format
    assert (vectors.data > 0).all()


def test_unordered_counts_come_out_in_order(vocabulary):
    unordered = csr_array((np.array([1, 2, 1]), np.array([5, 0, 5]), np.array([0, 3])), shape=(1, 8))
    ordered = csr_array(np.array([[2, 0, 0, 0, 0, 2, 0, 0]]))
    weights = TfIdf(vocabulary, sublinear_tf=True)
    vectors = weights.of_counts(unordered)
    assert vectors.indices.tolist() == [0, 5]
    np.testing.assert_array_equal(vectors.toarray(), weights.of_counts(ordered).toarray())
    assert unordered.nnz == 3


def test_tf_idf_needs_a_counted_vocabulary():
    with pytest.raises(ValueError, match="no document frequencies"):
        TfIdf(Vocabulary(["a"]), sublinear_tf=True)
