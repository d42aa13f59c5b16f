"""The loops of topic models: expectation maximisation over the words of documents."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numba
import numpy as np
from scipy.sparse import csr_array

from pt_neural.text.compiled import compiled, loop_arrays

WORTH_A_THREAD = 10_000  # words of documents
LEAST = 1e-30  # a probability that a loop may divide by; smaller ones are zero


class Mixtures(NamedTuple):
    """Documents as mixtures of topics, after some iterations.

    Attributes:
        word_topics: P(w|z), float32 of shape ``(words, topics)``; columns add up to 1.
        document_topics: P(z|d), float32 of shape ``(documents, topics)``; rows add up to 1.
        log_likelihood: The sum of n(d, w) log P(w|d), with P(w|d) = sum over z of P(w|z) P(z|d).
        log_posterior: That, and the logarithms of the priors; it never falls from one iteration to the next.
    """

    word_topics: np.ndarray
    document_topics: np.ndarray
    log_likelihood: float
    log_posterior: float


def expectation_maximisation(
    counts: csr_array,
    word_topics: np.ndarray,
    document_topics: np.ndarray,
    *,
    word_prior: float = 0.0,
    topic_prior: float = 0.0,
) -> Iterator[Mixtures]:
    """The iterations of PLSA (Hofmann 1999), with pseudo-counts as Dirichlet priors.

    P(z|d, w) is in proportion to P(w|z) P(z|d). An iteration takes P(w|z) to what is in proportion to word_prior + sum
    over d of n(d, w) P(z|d, w), and P(z|d) to topic_prior + sum over w of n(d, w) P(z|d, w). P(z|d, w) is not stored:
    documents and words are read one after the other, each sum by one thread, so that results are the same with any
    number of threads.

    Args:
        counts: Occurrences n(d, w), float32 of shape ``(documents, words)``.
        word_topics: P(w|z) to start from, float32 of shape ``(words, topics)``.
        document_topics: P(z|d) to start from, float32 of shape ``(documents, topics)``.
        word_prior: Occurrences of each word that a topic is thought to have besides; 0 for maximum likelihood.
        topic_prior: Occurrences of each topic that a document is thought to have besides; likewise.

    Yields:
        The start, and what each iteration makes of it, without end.
    """
    expected_counts = _ExpectedCounts(counts)
    while True:
        of_words, of_documents, log_likelihood = expected_counts(word_topics, document_topics)
        priors = log_prior(word_topics, word_prior) + log_prior(document_topics, topic_prior)
        yield Mixtures(word_topics, document_topics, log_likelihood, log_likelihood + priors)
        word_topics = distributions(of_words, word_prior, axis=0)
        document_topics = distributions(of_documents, topic_prior, axis=1)


def distributions(sums: np.ndarray, prior: float, *, axis: int) -> np.ndarray:
    """What is in proportion to ``sums + prior`` and adds up to 1 along an axis; zero where there is nothing to divide.

    Args:
        sums: float32 array, which is changed.
        prior: A number, not below 0.
        axis: Along which the result adds up to 1.
    """
    sums += np.float32(prior)
    totals = sums.sum(axis=axis, keepdims=True, dtype=np.float64).astype(np.float32)
    sums /= np.maximum(totals, np.float32(LEAST))
    sums[sums < LEAST] = 0  # processors are slow with what is nearly nothing
    return sums


def log_prior(probabilities: np.ndarray, prior: float) -> float:
    """The logarithm of the density of Dirichlet(1 + prior), but for what does not depend on the probabilities.

    Args:
        probabilities: float32 array, of distributions along one axis.
        prior: A number, not below 0.
    """
    if prior == 0:
        return 0.0
    return prior * float(np.log(np.maximum(probabilities, np.float32(LEAST))).sum(dtype=np.float64))


class _ExpectedCounts:
    """How often each topic has each word, and each document each topic, as P(z|d, w) tells."""

    def __init__(self, counts: csr_array):
        self.shape = counts.shape
        self.starts, self.words, self.weights = loop_arrays(counts)
        self.places = np.argsort(self.words, kind="stable")  # in the order of words
        documents = np.repeat(np.arange(self.shape[0], dtype=np.int32), np.diff(self.starts))
        self.documents = documents[self.places]
        self.word_starts = np.searchsorted(self.words[self.places], np.arange(self.shape[1] + 1))

    def __call__(self, word_topics: np.ndarray, document_topics: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Sums of shapes ``(words, topics)`` and ``(documents, topics)``, and the log-likelihood."""
        ratios = np.empty(len(self.weights), dtype=np.float32)  # n(d, w) / P(w|d)
        of_words, of_documents = np.empty_like(word_topics), np.empty_like(document_topics)
        log_likelihoods = np.empty(self.shape[0])

        def read_documents(first: int, last: int) -> None:
            given = self.starts, self.words, self.weights, word_topics, document_topics
            _sums_of_documents(*given, ratios, of_documents, log_likelihoods, first, last)

        def read_words(first: int, last: int) -> None:
            given = self.word_starts, self.documents, self.places, ratios, word_topics, document_topics
            _sums_of_words(*given, of_words, first, last)

        in_threads(read_documents, self.starts)
        in_threads(read_words, self.word_starts)
        return of_words, of_documents, float(log_likelihoods.sum())


def fold_in(
    counts: csr_array, word_topics: np.ndarray, prior: np.ndarray, *, iterations: int = 100, tolerance: float = 1e-4
) -> np.ndarray:
    """The topic distributions of documents, with the topics as they are: P(z|d) of largest posterior probability.

    Each iteration takes P(z|d) to (prior_z + sum over w of n(d, w) P(z|d, w)) / its sum over z, with P(z|d, w) in
    proportion to P(w|z) P(z|d), from equal P(z|d) on (Hofmann 1999). A document's iterations end when no
    P(z|d) changes by more than the tolerance. Documents do not depend on each other.

    Args:
        counts: Occurrences n(d, w), float32 of shape ``(documents, words)``.
        word_topics: P(w|z), float32 of shape ``(words, topics)``.
        prior: Occurrences of each topic that a document is thought to have besides, float32 of shape ``(topics,)``;
            zeros for the maximum of the likelihood.
        iterations: Most iterations of a document.
        tolerance: See above.

    Returns:
        float32 of shape ``(documents, topics)``; rows add up to 1, and are zero for documents without words.
    """
    topics = np.zeros((counts.shape[0], word_topics.shape[1]), dtype=np.float32)
    arrays, prior = loop_arrays(counts), prior.astype(np.float32)

    def some(first: int, last: int) -> None:
        _fold_in(*arrays, word_topics, prior, iterations, tolerance, topics, first, last)

    in_threads(some, arrays[0])
    return topics


def in_threads(task: Callable[[int, int], object], starts: np.ndarray) -> None:
    """Call a function with bounds of rows that together are all, each time of about as many elements."""
    threads = numba.get_num_threads()
    if threads == 1 or starts[-1] < WORTH_A_THREAD:
        task(0, len(starts) - 1)
        return
    bounds = np.searchsorted(starts, np.linspace(0, starts[-1], 8 * threads + 1)[1:-1])
    bounds = np.unique([0, *bounds, len(starts) - 1]).tolist()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(task, bounds[:-1], bounds[1:]))


@compiled
def _sums_of_documents(
    starts, words, weights, word_topics, document_topics, ratios, sums, log_likelihoods, first, last
):
    num_topics = word_topics.shape[1]
    share = np.empty(num_topics, dtype=np.float32)
    for document in range(first, last):
        topics = document_topics[document]
        share[:] = np.float32(0.0)
        log_likelihood = 0.0
        for place in range(starts[document], starts[document + 1]):
            of_word = word_topics[words[place]]
            likelihood = np.float32(0.0)
            for topic in range(num_topics):
                likelihood += topics[topic] * of_word[topic]
            likelihood = max(likelihood, np.float32(LEAST))
            log_likelihood += weights[place] * np.log(np.float64(likelihood))
            ratio = weights[place] / likelihood
            ratios[place] = ratio
            for topic in range(num_topics):
                share[topic] += ratio * of_word[topic]
        for topic in range(num_topics):
            sums[document, topic] = share[topic] * topics[topic]
        log_likelihoods[document] = log_likelihood


@compiled
def _sums_of_words(starts, documents, places, ratios, word_topics, document_topics, sums, first, last):
    num_topics = word_topics.shape[1]
    share = np.empty(num_topics, dtype=np.float32)
    for word in range(first, last):
        share[:] = np.float32(0.0)
        for place in range(starts[word], starts[word + 1]):
            topics = document_topics[documents[place]]
            ratio = ratios[places[place]]
            for topic in range(num_topics):
                share[topic] += ratio * topics[topic]
        for topic in range(num_topics):
            sums[word, topic] = share[topic] * word_topics[word, topic]


@compiled
def _fold_in(starts, words, weights, word_topics, prior, iterations, tolerance, topics, first, last):
    num_topics = word_topics.shape[1]
    share = np.empty(num_topics, dtype=np.float32)
    for document in range(first, last):
        begin, end = starts[document], starts[document + 1]
        if begin == end:
            continue
        current = topics[document]
        current[:] = np.float32(1.0 / num_topics)
        for _ in range(iterations):
            share[:] = np.float32(0.0)
            for place in range(begin, end):
                of_word = word_topics[words[place]]
                likelihood = np.float32(0.0)
                for topic in range(num_topics):
                    likelihood += current[topic] * of_word[topic]
                ratio = weights[place] / max(likelihood, np.float32(LEAST))
                for topic in range(num_topics):
                    share[topic] += ratio * of_word[topic]
            total = np.float32(0.0)
            for topic in range(num_topics):
                share[topic] = prior[topic] + share[topic] * current[topic]
                total += share[topic]
            if total <= np.float32(0.0):
                break
            change = np.float32(0.0)
            for topic in range(num_topics):
                new = share[topic] / total
                if new < np.float32(LEAST):
                    new = np.float32(0.0)
                change = max(change, abs(new - current[topic]))
                current[topic] = new
            if change <= tolerance:
                break
