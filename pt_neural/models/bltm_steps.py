"""Expectation maximisation of bilingual topics: a query and its relevant document have one topic distribution."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from pt_neural.models.topic_steps import distributions, in_threads, log_prior
from pt_neural.text.compiled import Rows, compiled, loop_arrays

LEAST = 1e-30  # a fraction that a loop may divide by; kept loops would not see it change in another file
TOLERANCE = 1e-3  # sum over topics of the difference of fractions at which those of a pair count as equal
STEPS = 5  # most steps of a pair towards equal fractions in one iteration; the next iteration goes on from there
STEEPEST = 30.0  # largest exponent that a posterior changes by, far from the ends of what float32 can hold


class Bilingual(NamedTuple):
    """Pairs of a query and a document as mixtures of topics, after some iterations.

    Attributes:
        query_topics: P(w|z) of words of queries, float32 of shape ``(words, topics)``; columns add up to 1.
        document_topics: P(w|z) of words of documents, likewise.
        topics: P(z|pair), float32 of shape ``(pairs, topics)``; rows add up to 1.
        objective: The log-likelihood of all words and the logarithms of the priors, less the KL divergence of the
            posteriors to those of equal fractions. It does not fall from one iteration to the next, as far as the
            fractions are equal.
        difference: Sum over topics of the differences of fractions that remain, mean over pairs.
    """

    query_topics: np.ndarray
    document_topics: np.ndarray
    topics: np.ndarray
    objective: float
    difference: float


def bilingual_maximisation(
    queries: csr_array,
    documents: csr_array,
    query_topics: np.ndarray,
    document_topics: np.ndarray,
    topics: np.ndarray,
    *,
    word_prior: float = 0.0,
    topic_prior: float = 0.0,
    tolerance: float = TOLERANCE,
    steps: int = STEPS,
) -> Iterator[Bilingual]:
    """The iterations of the bilingual topic model (Gao, Toutanova & Yih, SIGIR 2011), with Dirichlet priors.

    The posteriors of a pair's words are the nearest ones to what is in proportion to P(w|z) P(z|pair), by the sum of
    KL(q||p), of which query and document have equal fractions of their words in each topic: posterior regularisation
    (Ganchev et al., JMLR 2010). They are in proportion to P(w|z) P(z|pair) exp(-m_z c), where c is 1/|Q| for words of
    the query and -1/|D| for those of the document. The multipliers m maximise a concave function; as in generalised
    iterative scaling (Darroch & Ratcliff 1972), a step adds log(F_Q(z) / F_D(z)) / (1/|Q| + 1/|D|) to m_z, with the
    fractions F as they are, which never makes that function smaller. They start from those of the last iteration.

    An iteration then takes P(w|z) of each side to what is in proportion to word_prior + sum over the pairs of
    n(w, pair) times the posterior, and P(z|pair) to topic_prior + that sum over the words of query and document.

    Args:
        queries: Occurrences of words in the query of each pair, float32 of shape ``(pairs, words)``; none is empty.
        documents: Those in its document, likewise.
        query_topics: P(w|z) of words of queries to start from, float32 of shape ``(words, topics)``.
        document_topics: P(w|z) of words of documents, likewise.
        topics: P(z|pair) to start from, float32 of shape ``(pairs, topics)``.
        word_prior: Occurrences of each word that a topic is thought to have besides; 0 for maximum likelihood.
        topic_prior: Occurrences of each topic that a pair is thought to have besides; likewise.
        tolerance: Sum over topics of the difference of fractions at which those of a pair count as equal.
        steps: Most steps of a pair in one iteration; 0 leaves the posteriors as they are, without the constraint.

    Yields:
        The start, and what each iteration makes of it, without end.
    """
    sides = _Texts(queries, topics.shape), _Texts(documents, topics.shape)
    multipliers = np.zeros_like(topics)
    while True:
        given = query_topics, document_topics
        expected = _expect(sides, given, topics, multipliers, tolerance, steps)
        priors = log_prior(topics, topic_prior) + sum(log_prior(array, word_prior) for array in given)
        objective = float(expected.objectives.sum()) + priors
        yield Bilingual(*given, topics, objective, float(expected.differences.mean()))
        query_topics, document_topics = (distributions(sums, word_prior, axis=0) for sums in expected.of_words)
        topics = distributions(expected.of_pairs, topic_prior, axis=1)


class Side(NamedTuple):
    """All queries, or all documents, as the loop reads them and writes of them; text i is that of pair i.

    Attributes:
        texts: Words of the texts and how often they occur.
        word_topics: P(w|z), float32 of shape ``(words, topics)``.
        mixtures: What P(w|z) is multiplied by for posteriors up to their norms, float32 of shape ``(texts, topics)``.
        ratios: Occurrences over these norms, float32, one for each word of each text.
    """

    texts: Rows
    word_topics: np.ndarray
    mixtures: np.ndarray
    ratios: np.ndarray


class _Texts:
    """One side, with the arrays that its iterations share."""

    def __init__(self, counts: csr_array, shape: tuple[int, int]):
        self.rows = loop_arrays(counts)
        self.mixtures = np.empty(shape, dtype=np.float32)
        # What the loop writes here is the matrix of ratios.
        self.ratios = csr_array((np.empty_like(counts.data), counts.indices, counts.indptr), shape=counts.shape)

    def side(self, word_topics: np.ndarray) -> Side:
        return Side(self.rows, word_topics, self.mixtures, self.ratios.data)

    def sums(self, word_topics: np.ndarray) -> np.ndarray:
        """How often each word has each topic, by the last reading."""
        return word_topics * (self.ratios.T @ self.mixtures)


class _Expected(NamedTuple):
    """What the posteriors add up to: words by topics of each side, pairs by topics, and two numbers for each pair."""

    of_words: list[np.ndarray]
    of_pairs: np.ndarray
    objectives: np.ndarray
    differences: np.ndarray


def _expect(
    sides: tuple[_Texts, _Texts],
    given: tuple[np.ndarray, np.ndarray],
    topics: np.ndarray,
    multipliers: np.ndarray,
    tolerance: float,
    steps: int,
) -> _Expected:
    of_pairs, (objectives, differences) = np.empty_like(topics), np.empty((2, len(topics)))
    arguments = *map(_Texts.side, sides, given), topics, multipliers, tolerance, steps
    results = of_pairs, objectives, differences
    starts = sum(side.rows.starts for side in sides)
    in_threads(lambda first, last: _read_pairs(*arguments, *results, first, last), starts)
    return _Expected(list(map(_Texts.sums, sides, given)), *results)


@compiled
def _read_pairs(queries, documents, topics, multipliers, tolerance, steps, sums, objectives, differences, first, last):
    of_query, of_document = np.empty((2, topics.shape[1]), dtype=np.float32)
    for pair in range(first, last):
        objectives[pair], differences[pair] = _equalise(
            queries, documents, pair, topics[pair], multipliers[pair], tolerance, steps, of_query, of_document
        )
        for topic in range(topics.shape[1]):
            sums[pair, topic] = of_query[topic] + of_document[topic]


@compiled
def _equalise(queries, documents, pair, topics, multipliers, tolerance, steps, of_query, of_document):
    """Spread the words of a pair over topics: the log-likelihood less the KL divergence, and the difference left."""
    query_length, document_length = _length(queries, pair), _length(documents, pair)
    pace = query_length * document_length / (query_length + document_length)
    most = np.float32(STEEPEST) * min(query_length, document_length)
    done = 0
    while True:
        _tilt(queries.mixtures[pair], topics, multipliers, -1 / query_length)
        _tilt(documents.mixtures[pair], topics, multipliers, 1 / document_length)
        objective = _share_out(queries, pair, of_query) + _share_out(documents, pair, of_document)
        difference = np.float32(0.0)
        for topic in range(len(topics)):
            difference += abs(of_query[topic] / query_length - of_document[topic] / document_length)
        if done >= steps or difference <= tolerance:
            return objective, difference
        for topic in range(len(topics)):
            one = max(of_query[topic] / query_length, np.float32(LEAST))
            other = max(of_document[topic] / document_length, np.float32(LEAST))
            multipliers[topic] = min(max(multipliers[topic] + pace * np.log(one / other), -most), most)
        done += 1


@compiled
def _length(side, text):
    texts, length = side.texts, np.float32(0.0)
    for place in range(texts.starts[text], texts.starts[text + 1]):
        length += texts.weights[place]
    return length


@compiled
def _tilt(mixture, topics, multipliers, factor):
    for topic in range(len(topics)):
        exponent = np.float32(factor) * multipliers[topic]
        mixture[topic] = topics[topic] if exponent == 0 else topics[topic] * np.exp(exponent)


@compiled
def _share_out(side, text, shares):
    """Spread the words of a text over topics, each in proportion to P(w|z) mixture_z; the logarithm of all norms."""
    mixture, texts = side.mixtures[text], side.texts
    shares[:] = np.float32(0.0)
    total = 0.0
    for place in range(texts.starts[text], texts.starts[text + 1]):
        of_word = side.word_topics[texts.terms[place]]
        norm = np.float32(0.0)
        for topic in range(len(mixture)):
            norm += mixture[topic] * of_word[topic]
        norm = max(norm, np.float32(LEAST))
        ratio = texts.weights[place] / norm
        for topic in range(len(mixture)):
            shares[topic] += ratio * of_word[topic]
        side.ratios[place] = ratio
        total += texts.weights[place] * np.log(np.float64(norm))
    for topic in range(len(mixture)):
        shares[topic] *= mixture[topic]
    return total
