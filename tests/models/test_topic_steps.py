"""Expectation maximisation of topic models beside sums by hand, a plain NumPy loop, and non-negative factorisation."""

import math
from itertools import islice

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.decomposition import NMF

from pt_neural.models import topic_steps
from pt_neural.models.topic_steps import expectation_maximisation, fold_in

COUNTS = np.array([[2, 1, 0], [0, 1, 2]], dtype="f4")
WORD_TOPICS = np.array([[1 / 2, 1 / 4], [1 / 4, 1 / 4], [1 / 4, 1 / 2]], dtype="f4")
EQUAL = np.full((2, 2), 0.5, dtype="f4")


def random_start(documents=9, words=14, topics=3, seed=3):
    random = np.random.default_rng(seed)
    counts = random.poisson(0.9, (documents, words)).astype("f4")
    word_topics, document_topics = random.random((words, topics)), random.random((documents, topics))
    word_topics /= word_topics.sum(axis=0)
    document_topics /= document_topics.sum(axis=1, keepdims=True)
    return counts, word_topics.astype("f4"), document_topics.astype("f4")


def reference(counts, word_topics, document_topics, word_prior, topic_prior):
    """One iteration, with P(z|d, w) as an array of all documents, words and topics."""
    joint = document_topics[:, None, :] * word_topics[None, :, :]
    occurrences = counts[:, :, None] * joint / joint.sum(axis=2, keepdims=True)
    of_words, of_documents = occurrences.sum(axis=0) + word_prior, occurrences.sum(axis=1) + topic_prior
    return of_words / of_words.sum(axis=0), of_documents / of_documents.sum(axis=1, keepdims=True)


def log_likelihood(counts, word_topics, document_topics) -> float:
    return float((counts * np.log(document_topics.astype("f8") @ word_topics.T)).sum())


def test_one_iteration_by_hand():
    # P(z=0|d, w) is 2/3, 1/2 and 1/3 for the three words, so the first document has topic 0 2 * 2/3 + 1/2 times.
    start, first = islice(expectation_maximisation(csr_array(COUNTS), WORD_TOPICS, EQUAL), 2)
    assert start.log_likelihood == pytest.approx(4 * math.log(3 / 8) + 2 * math.log(1 / 4))
    assert start.log_posterior == start.log_likelihood
    np.testing.assert_allclose(first.document_topics, [[11 / 18, 7 / 18], [7 / 18, 11 / 18]], rtol=1e-6)
    np.testing.assert_allclose(first.word_topics, [[4 / 9, 2 / 9], [3 / 9, 3 / 9], [2 / 9, 4 / 9]], rtol=1e-6)


def test_pseudo_counts_by_hand():
    priors = {"word_prior": 1.0, "topic_prior": 0.5}
    start, first = islice(expectation_maximisation(csr_array(COUNTS), WORD_TOPICS, EQUAL, **priors), 2)
    of_priors = 4 * math.log(1 / 4) + 2 * math.log(1 / 2) + 0.5 * 4 * math.log(1 / 2)
    assert start.log_posterior - start.log_likelihood == pytest.approx(of_priors)
    np.testing.assert_allclose(first.document_topics, [[7 / 12, 5 / 12], [5 / 12, 7 / 12]], rtol=1e-6)
    np.testing.assert_allclose(first.word_topics, [[7 / 18, 5 / 18], [6 / 18, 6 / 18], [5 / 18, 7 / 18]], rtol=1e-6)


@pytest.mark.parametrize(("word_prior", "topic_prior"), [(0.0, 0.0), (0.01, 0.3)])
def test_each_iteration_is_that_of_a_loop_over_all_topics_and_its_log_posterior_grows(word_prior, topic_prior):
    counts, words, documents = random_start()
    steps = expectation_maximisation(
        csr_array(counts), words, documents, word_prior=word_prior, topic_prior=topic_prior
    )
    before = -math.inf
    for now in islice(steps, 30):
        np.testing.assert_allclose(now.word_topics, words, atol=2e-5)
        np.testing.assert_allclose(now.document_topics, documents, atol=2e-5)
        assert now.log_likelihood == pytest.approx(log_likelihood(counts, words, documents), rel=1e-5)
        assert now.log_posterior > before
        before = now.log_posterior
        words, documents = reference(counts, words, documents, word_prior, topic_prior)


def test_without_priors_it_ends_where_factorisation_by_divergence_does():
    counts, words, documents = random_start()
    lengths = counts.sum(axis=1, keepdims=True)
    settings = {"n_components": 3, "init": "custom", "solver": "mu", "beta_loss": "kullback-leibler", "tol": 0}
    factorisation = NMF(**settings, max_iter=2000)
    weights = factorisation.fit_transform(counts, W=documents * lengths, H=words.T.copy())
    product = weights @ factorisation.components_
    theirs = float((counts * np.log(np.maximum(product / product.sum(axis=1, keepdims=True), 1e-30))).sum())
    last = next(islice(expectation_maximisation(csr_array(counts), words, documents), 2000, None))
    assert last.log_likelihood == pytest.approx(theirs, rel=1e-3)
    further = NMF(**settings, max_iter=50)
    arguments = {"W": last.document_topics * lengths, "H": last.word_topics.T.copy()}
    weights = further.fit_transform(counts, **arguments)
    np.testing.assert_allclose(
        weights @ further.components_, lengths * (last.document_topics @ last.word_topics.T), atol=2e-3
    )


def test_results_are_the_same_with_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(topic_steps, "WORTH_A_THREAD", 0)
    counts, words, documents = random_start(documents=60, words=40)
    results = []
    for threads in (1, 2, 7):
        monkeypatch.setattr(topic_steps.numba, "get_num_threads", lambda threads=threads: threads)
        last = next(islice(expectation_maximisation(csr_array(counts), words, documents), 5, None))
        topics = fold_in(csr_array(counts), words, np.ones(3, "f4"))
        results.append((last.word_topics, last.document_topics, topics, last.log_likelihood))
    for other in results[1:]:
        for one, same in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, same)


def test_documents_and_words_that_do_not_occur():
    counts = np.array([[0, 0, 0], [1, 0, 2]], dtype="f4")
    without, with_priors = (
        next(islice(expectation_maximisation(csr_array(counts), WORD_TOPICS, EQUAL, **priors), 3, None))
        for priors in ({}, {"word_prior": 0.1, "topic_prior": 0.1})
    )
    assert without.document_topics[0].tolist() == [0, 0]
    assert without.word_topics[1].tolist() == [0, 0]
    assert with_priors.document_topics[0].tolist() == [0.5, 0.5]
    assert (with_priors.word_topics[1] > 0).all()
    assert np.isfinite([without.log_posterior, with_priors.log_posterior]).all()


def test_folding_in_by_hand():
    once = fold_in(csr_array(COUNTS), WORD_TOPICS, np.zeros(2, "f4"), iterations=1)
    np.testing.assert_allclose(once, [[11 / 18, 7 / 18], [7 / 18, 11 / 18]], rtol=1e-6)
    once = fold_in(csr_array(COUNTS), WORD_TOPICS, np.array([1, 2], "f4"), iterations=1)
    np.testing.assert_allclose(once, [[17 / 36, 19 / 36], [13 / 36, 23 / 36]], rtol=1e-6)


def test_folding_in_reaches_the_mixture_of_largest_posterior_probability_of_each_document():
    counts, words, _ = random_start()
    prior = np.array([0.5, 0.1, 0.2], "f4")
    topics = fold_in(csr_array(counts), words, prior, iterations=1000, tolerance=0)

    def posterior(document: np.ndarray, mixture: np.ndarray) -> float:
        return float(document @ np.log(words @ mixture) + prior @ np.log(mixture))

    random = np.random.default_rng(7)
    for document, mixture in zip(counts, topics, strict=True):
        others = [0.98 * mixture + 0.02 * other for other in random.dirichlet([1, 1, 1], 50)]
        assert max(posterior(document, other) for other in others) < posterior(document, mixture) + 1e-4
    alone = np.concatenate([fold_in(csr_array(row[None]), words, prior) for row in counts])
    np.testing.assert_array_equal(alone, fold_in(csr_array(counts), words, prior))


def test_folding_in_documents_without_words_or_with_words_of_no_topic():
    topics = fold_in(csr_array(np.array([[0, 0], [3, 0], [3, 5]], "f4")), np.array([[0, 0], [1, 0]], "f4"), EQUAL[0])
    assert topics[0].tolist() == [0, 0]
    assert topics[1].tolist() == [0.5, 0.5]
    assert topics[2, 0] > topics[2, 1] > 0
    assert fold_in(csr_array((0, 2), dtype="f4"), np.ones((2, 4), "f4"), np.ones(4, "f4")).shape == (0, 4)
