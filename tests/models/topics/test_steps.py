"""Iterations of topic models beside sums by hand, plain NumPy, non-negative factorisation and scipy's optimisers."""

import math
import os
import subprocess
import sys
from itertools import islice

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.decomposition import NMF

from pt_neural._temporary import SparseBlocks
from pt_neural.models.topics import steps
from pt_neural.models.topics.steps import Bilingual, bilingual_maximisation, expectation_maximisation, fold_in

COUNTS = np.array([[2, 1, 0], [0, 1, 2]], dtype="f4")
WORD_TOPICS = np.array([[1 / 2, 1 / 4], [1 / 4, 1 / 4], [1 / 4, 1 / 2]], dtype="f4")
EQUAL = np.full((2, 2), 0.5, dtype="f4")


def blocks(counts, size=1000):
    return SparseBlocks(csr_array(counts[start : start + size]) for start in range(0, len(counts), size))


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
    start, first = islice(expectation_maximisation(blocks(COUNTS), WORD_TOPICS, EQUAL), 2)
    assert start.log_likelihood == pytest.approx(4 * math.log(3 / 8) + 2 * math.log(1 / 4))
    assert start.log_posterior == start.log_likelihood
    np.testing.assert_allclose(first.document_topics, [[11 / 18, 7 / 18], [7 / 18, 11 / 18]], rtol=1e-6)
    np.testing.assert_allclose(first.word_topics, [[4 / 9, 2 / 9], [3 / 9, 3 / 9], [2 / 9, 4 / 9]], rtol=1e-6)


def test_pseudo_counts_by_hand():
    priors = {"word_prior": 1.0, "topic_prior": 0.5}
    start, first = islice(expectation_maximisation(blocks(COUNTS), WORD_TOPICS, EQUAL, **priors), 2)
    of_priors = 4 * math.log(1 / 4) + 2 * math.log(1 / 2) + 0.5 * 4 * math.log(1 / 2)
    assert start.log_posterior - start.log_likelihood == pytest.approx(of_priors)
    np.testing.assert_allclose(first.document_topics, [[7 / 12, 5 / 12], [5 / 12, 7 / 12]], rtol=1e-6)
    np.testing.assert_allclose(first.word_topics, [[7 / 18, 5 / 18], [6 / 18, 6 / 18], [5 / 18, 7 / 18]], rtol=1e-6)


@pytest.mark.parametrize(("word_prior", "topic_prior"), [(0.0, 0.0), (0.01, 0.3)])
def test_each_iteration_is_that_of_a_loop_over_all_topics_and_its_log_posterior_grows(word_prior, topic_prior):
    counts, words, documents = random_start()
    priors = {"word_prior": word_prior, "topic_prior": topic_prior}
    before = -math.inf
    for now in islice(expectation_maximisation(blocks(counts), words, documents, **priors), 30):
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
    last = next(islice(expectation_maximisation(blocks(counts), words, documents), 2000, None))
    assert last.log_likelihood == pytest.approx(theirs, rel=1e-3)
    further = NMF(**settings, max_iter=50)
    arguments = {"W": last.document_topics * lengths, "H": last.word_topics.T.copy()}
    weights = further.fit_transform(counts, **arguments)
    np.testing.assert_allclose(
        weights @ further.components_, lengths * (last.document_topics @ last.word_topics.T), atol=2e-3
    )


def test_results_are_the_same_with_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(steps, "WORTH_A_THREAD", 0)
    counts, words, documents = random_start(documents=60, words=40)
    results = []
    for threads in (1, 2, 7):
        monkeypatch.setattr(steps, "num_threads", lambda threads=threads: threads)
        last = next(islice(expectation_maximisation(blocks(counts), words, documents), 5, None))
        topics = fold_in(csr_array(counts), words, np.ones(3, "f4"))
        results.append((last.word_topics, last.document_topics, topics, last.log_likelihood))
    for other in results[1:]:
        for one, same in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, same)


@pytest.mark.parametrize("size", [1, 7, 59, 60])
def test_results_are_the_same_with_any_blocks(size):
    counts, words, documents = random_start(documents=60, words=40)
    counts[3] = 0
    priors = {"word_prior": 0.1, "topic_prior": 0.2}
    found = expectation_maximisation(blocks(counts, size), words, documents.copy(), **priors)
    expected = expectation_maximisation(blocks(counts), words, documents.copy(), **priors)
    for one, same in islice(zip(found, expected, strict=True), 6):
        np.testing.assert_array_equal(one.word_topics, same.word_topics)
        np.testing.assert_array_equal(one.document_topics, same.document_topics)
        assert one.log_posterior == pytest.approx(same.log_posterior, rel=1e-12)


def test_documents_and_words_that_do_not_occur():
    counts = np.array([[0, 0, 0], [1, 0, 2]], dtype="f4")
    without, with_priors = (
        next(islice(expectation_maximisation(blocks(counts), WORD_TOPICS, EQUAL, **priors), 3, None))
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


# Bilingual topics

EXACT = {"tolerance": 2e-6, "steps": 5000}


def counted(rows) -> csr_array:
    return csr_array(np.array(rows, dtype=np.float32))


def iterations(start: dict, number: int, **options) -> list[Bilingual]:
    return list(islice(bilingual_maximisation(**start, **options), number + 1))


def made(pairs: int = 6, topics: int = 3, query_words: int = 5, document_words: int = 7, seed: int = 0) -> dict:
    random = np.random.default_rng(seed)
    queries, documents = (random.poisson(0.7, (pairs, words)) for words in (query_words, document_words))
    queries[np.arange(pairs), np.arange(pairs) % query_words] += 1
    documents[np.arange(pairs), np.arange(pairs) % document_words] += 1
    return {
        "queries": counted(queries),
        "documents": counted(documents),
        "query_topics": random.dirichlet(np.ones(query_words), topics).T.astype(np.float32),
        "document_topics": random.dirichlet(np.ones(document_words), topics).T.astype(np.float32),
        "topics": random.dirichlet(np.ones(topics), pairs).astype(np.float32),
    }


# One pair: query "a", document "x y"; P_Q(a|z) is .8 and .4, P_D(x|z) .6 and .2, P_D(y|z) .4 and .8.
SMALL = {
    "queries": counted([[1, 0]]),
    "documents": counted([[1, 1]]),
    "query_topics": np.array([[0.8, 0.4], [0.2, 0.6]], dtype=np.float32),
    "document_topics": np.array([[0.6, 0.2], [0.4, 0.8]], dtype=np.float32),
    "topics": np.array([[0.5, 0.5]], dtype=np.float32),
}


def test_a_bilingual_iteration_by_hand():
    """P(z|a) is (2/3, 1/3), P(z|x) is (3/4, 1/4), P(z|y) is (1/3, 2/3); of the first topic 7/4 words in all."""
    start, after = iterations(SMALL, 1, steps=0)
    assert start.objective == pytest.approx(np.log(0.6 * 0.4 * 0.6))
    assert start.difference == pytest.approx(2 * (2 / 3 - (3 / 4 + 1 / 3) / 2))
    np.testing.assert_allclose(after.topics, [[7 / 12, 5 / 12]], rtol=1e-6)
    np.testing.assert_allclose(after.query_topics, [[1, 1], [0, 0]])
    np.testing.assert_allclose(after.document_topics, [[9 / 13, 3 / 11], [4 / 13, 8 / 11]], rtol=1e-6)
    expected = np.log(1 * (7 / 12 * 9 / 13 + 5 / 12 * 3 / 11) * (7 / 12 * 4 / 13 + 5 / 12 * 8 / 11))
    assert after.objective == pytest.approx(expected)


def test_bilingual_pseudo_counts_by_hand():
    after = iterations(SMALL, 1, steps=0, word_prior=0.5, topic_prior=1)[1]
    np.testing.assert_allclose(after.topics, [[(7 / 4 + 1) / 5, (5 / 4 + 1) / 5]], rtol=1e-6)
    np.testing.assert_allclose(after.query_topics[:, 0], [(2 / 3 + 0.5) / (2 / 3 + 1), 0.5 / (2 / 3 + 1)], rtol=1e-6)
    np.testing.assert_allclose(after.document_topics[:, 1], [0.75 / (11 / 12 + 1), (2 / 3 + 0.5) / (11 / 12 + 1)])
    likelihood = np.log(0.6 * 0.4 * 0.6)
    priors = np.log(0.5 * 0.5) + 0.5 * np.log(0.8 * 0.4 * 0.2 * 0.6 * 0.6 * 0.2 * 0.4 * 0.8)
    assert iterations(SMALL, 0, steps=0, word_prior=0.5, topic_prior=1)[0].objective == pytest.approx(
        likelihood + priors
    )


def test_equal_fractions_by_hand():
    """Of one word each, with P(z|a) = (2/3, 1/3) and P(z|x) = (3/4, 1/4), the posterior is their geometric mean."""
    start, after = iterations({**SMALL, "documents": counted([[1, 0]])}, 1, **EXACT)
    means = np.sqrt([2 / 3 * 3 / 4, 1 / 3 * 1 / 4])  # .70711 and .28868, which add up to .99578
    np.testing.assert_allclose(after.topics, [means / means.sum()], rtol=1e-5)
    assert start.objective == pytest.approx(np.log(0.6 * 0.4) + 2 * np.log(means.sum()))


class BilingualReference:
    """The model with an array of pairs, words and topics, and scipy to make fractions equal."""

    def __init__(self, queries, documents, query_topics, document_topics, topics):
        self.counts = [queries.toarray().astype(float), documents.toarray().astype(float)]
        self.word_topics, self.topics = (
            [query_topics.astype(float), document_topics.astype(float)],
            topics.astype(float),
        )

    def step(self, equal: bool, word_prior: float, topic_prior: float) -> float:
        joint = [self.topics[:, None, :] * word_topics for word_topics in self.word_topics]
        signs = [1 / self.counts[0].sum(1), -1 / self.counts[1].sum(1)]
        objective = topic_prior * np.log(self.topics).sum()
        objective += word_prior * sum(np.log(word_topics).sum() for word_topics in self.word_topics)
        expected = [np.zeros_like(one) for one in joint]
        for pair in range(len(self.topics)):
            # The dual, whose value at its maximum is less than the likelihood by the smallest KL divergence.
            def norms(m, pair=pair):
                tilted = [one[pair] * np.exp(-m * sign[pair]) for one, sign in zip(joint, signs, strict=True)]
                logs = [count[pair] @ np.log(one.sum(1)) for count, one in zip(self.counts, tilted, strict=True)]
                return sum(logs), tilted

            m = np.zeros(self.topics.shape[1])
            if equal:
                m = minimize(lambda m, norms=norms: norms(m)[0], m, method="BFGS", options={"gtol": 1e-9}).x
            value, tilted = norms(m)
            objective += value
            for side, one in enumerate(tilted):
                expected[side][pair] = self.counts[side][pair][:, None] * one / one.sum(1, keepdims=True)
        self.word_topics = [_normed(one.sum(0) + word_prior, 0) for one in expected]
        self.topics = _normed(sum(one.sum(1) for one in expected) + topic_prior, 1)
        return objective


def _normed(sums: np.ndarray, axis: int) -> np.ndarray:
    return sums / sums.sum(axis=axis, keepdims=True)


@pytest.mark.parametrize("equal", [False, True])
def test_bilingual_iterations_are_those_of_a_few_lines(equal):
    start, priors = made(), {"word_prior": 0.1, "topic_prior": 0.2}
    reference = BilingualReference(**start)
    for now in iterations(start, 6, **priors, **(EXACT if equal else {"steps": 0})):
        np.testing.assert_allclose(now.query_topics, reference.word_topics[0], atol=2e-4 if equal else 2e-6)
        np.testing.assert_allclose(now.document_topics, reference.word_topics[1], atol=2e-4 if equal else 2e-6)
        np.testing.assert_allclose(now.topics, reference.topics, atol=2e-4 if equal else 2e-6)
        assert now.objective == pytest.approx(reference.step(equal, **priors), rel=1e-5)


def test_posteriors_are_the_nearest_with_equal_fractions():
    """What scipy finds among all posteriors, with the constraints as they are written, and not by multipliers."""
    start = made(pairs=1, topics=3, query_words=3, document_words=4, seed=3)
    counts = np.concatenate([start["queries"].toarray()[0], start["documents"].toarray()[0]]).astype(float)
    joint = np.concatenate([start["query_topics"], start["document_topics"]]).astype(float) * start["topics"][0]
    lengths = counts[:3].sum(), counts[3:].sum()

    def distance(q):
        q = q.reshape(joint.shape)
        return counts @ (q * np.log(np.maximum(q, 1e-12) / joint)).sum(1)

    def fractions(q):
        shares = counts[:, None] * q.reshape(joint.shape)
        return shares[:3].sum(0) / lengths[0], shares[3:].sum(0) / lengths[1]

    constraints = [
        {"type": "eq", "fun": lambda q: q.reshape(joint.shape).sum(1) - 1},
        {"type": "eq", "fun": lambda q: np.subtract(*fractions(q))[:-1]},
    ]
    options = {"bounds": [(0, 1)] * joint.size, "constraints": constraints, "options": {"ftol": 1e-12, "maxiter": 500}}
    found = minimize(distance, np.full(joint.size, 1 / 3), method="SLSQP", **options)
    assert found.success
    first, second = iterations(start, 1, **EXACT)
    assert first.objective == pytest.approx(-found.fun, rel=1e-5)
    np.testing.assert_allclose(second.topics[0], fractions(found.x)[0], atol=1e-3)


def test_fractions_are_equal_after_the_projection():
    """With one pair, P(z|pair) is then the fraction of both sides, and tells how often each word has each topic."""
    for seed in range(5):
        start = made(pairs=1, topics=4, seed=seed)
        first, second = iterations(start, 1, **EXACT)
        assert first.difference < 3e-6
        for counts, word_topics in (
            (start["queries"], second.query_topics),
            (start["documents"], second.document_topics),
        ):
            by_topic = word_topics * second.topics * counts.sum()
            np.testing.assert_allclose(by_topic.sum(1), counts.toarray()[0], atol=1e-4)


@pytest.mark.parametrize("priors", [{}, {"word_prior": 0.01, "topic_prior": 0.1}])
def test_the_bilingual_log_posterior_grows(priors):
    objectives = [now.objective for now in iterations(made(60, 5, 30, 40), 25, steps=0, **priors)]
    assert (np.diff(objectives) > 0).all()


def test_the_objective_grows_with_equal_fractions():
    start, priors = made(60, 5, 30, 40), {"word_prior": 0.01, "topic_prior": 0.1}
    objectives = [now.objective for now in iterations(start, 25, **priors, **EXACT)]
    assert (np.diff(objectives) > -1e-3).all()  # 60 pairs, each equal but for 2e-6 of its words
    rough = iterations(start, 25, **priors)
    assert (np.diff([now.objective for now in rough]) > 0).all()
    assert rough[-1].objective == pytest.approx(objectives[-1], rel=1e-3)
    assert max(now.difference for now in rough) < 1e-3


def test_what_no_topic_shares_stays_finite():
    """The query's word is of the first topic only, the document's of the second: no fractions are equal."""
    start = {
        **SMALL,
        "documents": counted([[1, 0]]),
        "query_topics": np.array([[1, 0], [0, 1]], dtype=np.float32),
        "document_topics": np.array([[0, 1], [1, 0]], dtype=np.float32),
    }
    for now in iterations(start, 3):
        assert np.isfinite(now.objective)
        assert np.isfinite(now.topics).all()
    np.testing.assert_allclose(now.topics.sum(1), 1, rtol=1e-6)


def test_bilingual_results_do_not_depend_on_threads(monkeypatch):
    monkeypatch.setattr(steps, "WORTH_A_THREAD", 0)
    start, ends = made(300, 8, 40, 60), []
    for threads in (1, 3):
        monkeypatch.setattr(steps, "num_threads", lambda threads=threads: threads)
        ends.append(iterations(start, 4)[-1])
    one, many = ends
    for name in ("query_topics", "document_topics", "topics"):
        np.testing.assert_array_equal(getattr(one, name), getattr(many, name))


def test_threads_are_those_that_omp_allows(monkeypatch):
    for setting, expected in {"1": 1, " 3": 3, "4,2": 4}.items():
        monkeypatch.setenv("OMP_NUM_THREADS", setting)
        assert steps.num_threads() == expected
    for setting in ("", "0", "many"):
        monkeypatch.setenv("OMP_NUM_THREADS", setting)
        assert steps.num_threads() == len(os.sched_getaffinity(0))


def test_topics_leave_the_threads_of_torch_alone():
    """Loops that asked Numba for its threads made torch use as many, and small networks crawl on a busy machine."""
    code = """
import numpy as np, torch
from scipy.sparse import csr_array
from pt_neural.models.topics import steps
steps.WORTH_A_THREAD = 0
steps.fold_in(csr_array(np.ones((4, 3), "f4")), np.full((3, 2), 1 / 3, "f4"), np.ones(2, "f4"))
print(torch.get_num_threads())
"""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
