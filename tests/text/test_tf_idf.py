import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfTransformer

from pt_neural.text import PackedSequences, Vocabulary, pack_texts
from pt_neural.text.tf_idf import TfIdf, document_frequency, inverse_document_frequency, tf_idf

TEXTS = ["A river, a city", "a river", "the river bank"]
LISTS = st.lists(st.lists(st.integers(-1, 6)))


@pytest.fixture
def counts() -> csr_array:
    return csr_array(np.random.default_rng(5).poisson(0.7, size=(20, 8)).astype(float))


@pytest.fixture
def vocabulary(counts) -> Vocabulary:
    frequency = (counts.toarray() > 0).sum(axis=0)
    return Vocabulary(list("abcdefgh"), frequency, frequency, num_documents=20)


@pytest.mark.parametrize("sublinear_tf", [False, True])
def test_weights_are_scikit_learns(counts, vocabulary, sublinear_tf):
    expected = TfidfTransformer(norm=None, sublinear_tf=sublinear_tf).fit_transform(counts)
    weights = tf_idf(counts, inverse_document_frequency(vocabulary), sublinear_tf=sublinear_tf)
    np.testing.assert_allclose(weights.toarray(), expected.toarray(), rtol=1e-6)


@pytest.mark.parametrize("sublinear_tf", [False, True])
def test_vectors_are_scikit_learns(counts, vocabulary, sublinear_tf):
    expected = TfidfTransformer(norm="l2", sublinear_tf=sublinear_tf).fit_transform(counts)
    before = counts.copy()
    vectors = TfIdf(vocabulary, sublinear_tf=sublinear_tf).of_counts(counts)
    np.testing.assert_allclose(vectors.toarray(), expected.toarray(), rtol=1e-6)
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(counts.toarray(), before.toarray())


def test_texts_by_hand():
    vocabulary = Vocabulary.build([["a", "river", "a", "city"], ["a", "river"], ["the", "river", "bank"]])
    vectors = TfIdf(vocabulary, sublinear_tf=True).of_texts(["a zebra: a city", "zebra", "", None, math.nan])
    a, city = (1 + math.log(2)) * (math.log(4 / 3) + 1), math.log(4 / 2) + 1
    expected = np.zeros((5, 5))
    expected[0, list(vocabulary.ids(["a", "city"]))] = np.array([a, city]) / math.hypot(a, city)
    np.testing.assert_allclose(vectors.toarray(), expected, rtol=1e-6)
    assert vectors.nnz == 2


def test_packed_texts_can_be_counted_and_weighed():
    sequences, terms = pack_texts(TEXTS)
    frequency = document_frequency(sequences, len(terms))
    assert dict(zip(terms, frequency.tolist(), strict=True)) == {"a": 2, "river": 3, "city": 1, "the": 1, "bank": 1}
    weights = TfIdf(Vocabulary(terms, document_frequency=frequency, num_documents=3), sublinear_tf=False)
    assert (weights.of_sequences(sequences) != weights.of_texts(TEXTS)).nnz == 0


@given(LISTS, st.booleans())
def test_any_sequences_have_length_one_or_nothing(lists, sublinear_tf):
    sequences = PackedSequences.from_lists(lists)
    known = [[term for term in terms if 0 <= term < 4] for terms in lists]
    frequency = document_frequency(sequences, 4)
    assert frequency.tolist() == [sum(term in terms for terms in lists) for term in range(4)]
    vocabulary = Vocabulary(list("abcd"), document_frequency=frequency, num_documents=len(lists))
    vectors = TfIdf(vocabulary, sublinear_tf=sublinear_tf).of_sequences(sequences)
    lengths = np.linalg.norm(vectors.toarray(), axis=1) if lists else np.zeros(0)
    np.testing.assert_allclose(lengths, [bool(terms) for terms in known], rtol=1e-6)
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


def test_document_frequencies_of_many_blocks(monkeypatch):
    lists = np.random.default_rng(2).integers(-1, 9, size=(50, 7)).tolist()
    expected = document_frequency(PackedSequences.from_lists(lists), 8)
    monkeypatch.setattr("pt_neural.text.tf_idf._BLOCK", 3)
    np.testing.assert_array_equal(document_frequency(PackedSequences.from_lists(lists), 8), expected)
    assert expected.tolist() == [sum(term in terms for terms in lists) for term in range(8)]


def test_a_vocabulary_must_be_counted():
    for use in (inverse_document_frequency, lambda vocabulary: TfIdf(vocabulary, sublinear_tf=True)):
        with pytest.raises(ValueError, match="no document frequencies"):
            use(Vocabulary(["a"]))
