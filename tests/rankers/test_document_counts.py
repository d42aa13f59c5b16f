"""Counts of words of documents, against what stands in the documents and dense matrices."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from pt_neural.rankers.document_counts import DocumentCounts
from pt_neural.text import PackedSequences


def test_counts_by_document_and_by_word_are_the_same():
    counts = DocumentCounts.of(PackedSequences.from_lists([[2, 0, 2, -1], [], [1]]), 3)
    words = np.array([2, 1])
    assert counts.of_words(words).tolist() == [[2, 0], [0, 0], [0, 1]]
    assert counts.lengths.tolist() == [3, 0, 1]
    np.testing.assert_array_equal(counts.with_postings().of_words(words), counts.of_words(words))
    weights = DocumentCounts.of(PackedSequences.from_lists([[0, 2], [1, 1]]), 3).counts
    assert counts.sums(weights).tolist() == [[3, 0], [0, 0], [0, 2]]
    assert counts.sums(weights[:0]).shape == (3, 0)


def test_any_number_of_sums():
    random = np.random.default_rng(5)
    counts, weights = (random.poisson(0.3, (rows, 30)).astype("f4") for rows in (7, 50))
    documents = DocumentCounts(csr_array(counts), counts.sum(axis=1))
    np.testing.assert_allclose(documents.sums(csr_array(weights)), counts @ weights.T, rtol=1e-6)


@pytest.mark.parametrize("sparse", [True, False])
def test_parts_are_joined_with_what_a_model_keeps(sparse):
    counts = DocumentCounts.of(PackedSequences.from_lists([[2, 0, 2, -1], [], [1]]), 3)
    assert DocumentCounts.joined([counts, counts]).own is None
    kept = counts.with_own(counts.counts if sparse else counts.counts.toarray())
    joined = DocumentCounts.joined([kept, kept.take(np.array([0]))])
    assert joined.counts.toarray().tolist() == [[1, 0, 2], [0, 0, 0], [0, 1, 0], [1, 0, 2]]
    assert joined.lengths.tolist() == [3, 0, 1, 3]
    np.testing.assert_array_equal(joined.own.toarray() if sparse else joined.own, joined.counts.toarray())
