"""The iterations of topic models: expectation maximisation of PLSA and of bilingual topics, and folding in."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from pt_neural._temporary import SparseBlocks, Spool, temporary_array
from pt_neural.text.compiled import compiled, loop_arrays

WORTH_A_THREAD = 10_000  # words
LEAST = 1e-30  # a probability that a loop may divide by; smaller ones count as zero

TOLERANCE = 1e-3  # the fractions of a pair count as equal if their differences, summed over topics, are at most this
STEPS = 5  # most steps towards equal fractions of a pair in one iteration; the next one continues from there
STEEPEST = 30.0  # largest exponent by which a posterior is tilted, well within the range of float32


class Mixtures(NamedTuple):
    """Documents as mixtures of topics, after some iterations; ``log_posterior`` never falls from one to the next."""

    word_topics: np.ndarray
    document_topics: np.ndarray
    log_likelihood: float
    log_posterior: float


def expectation_maximisation(
    counts: SparseBlocks,
    word_topics: np.ndarray,
    document_topics: np.ndarray,
    *,
    word_prior: float = 0.0,
    topic_prior: float = 0.0,
) -> Iterator[Mixtures]:
    """Yield the start, then the result of each iteration of PLSA (Hofmann 1999), without end.

    P(z|d, w) is proportional to P(w|z) P(z|d). An iteration makes P(w|z) proportional to word_prior + sum over d of
    n(d, w) P(z|d, w), and P(z|d) to topic_prior + sum over w of n(d, w) P(z|d, w). P(z|d, w) is never stored: in each
    block of documents, documents, then words, are read one after another, and each sum is taken by one thread in the
    order of the documents, so that results depend neither on the number of threads nor on the blocks. The counts and
    P(z|d) are in temporary files, so that only P(w|z) and a block are in memory. Priors are Dirichlet pseudo-counts; 0
    for maximum likelihood.

    The P(z|d) of a result are overwritten two iterations later.
    """
    expected_counts = _ExpectedCounts(counts)
    current, next_topics = (temporary_array(document_topics.shape, np.float32) for _ in range(2))
    current[:] = document_topics
    while True:
        word_sums, log_likelihood, document_prior = np.zeros_like(word_topics), 0.0, 0.0
        for rows, block in expected_counts:
            log_likelihood += block.add(word_topics, current[rows], word_sums, next_topics[rows])
            document_prior += log_prior(current[rows], topic_prior)
        log_posterior = log_likelihood + log_prior(word_topics, word_prior) + document_prior
        yield Mixtures(word_topics, current, log_likelihood, log_posterior)
        word_sums *= word_topics
        word_topics = distributions(word_sums, word_prior, axis=0)
        for rows, _ in expected_counts:
            distributions(next_topics[rows], topic_prior, axis=1)
        current, next_topics = next_topics, current


def distributions(sums: np.ndarray, prior: float, *, axis: int) -> np.ndarray:
    """Normalise ``sums + prior`` in place to add up to 1 along an axis; zeros alone stay zeros."""
    sums += np.float32(prior)
    totals = sums.sum(axis=axis, keepdims=True, dtype=np.float64).astype(np.float32)
    sums /= np.maximum(totals, np.float32(LEAST))
    sums[sums < LEAST] = 0  # processors are slow with denormal numbers
    return sums


def log_prior(probabilities: np.ndarray, prior: float) -> float:
    """The log density of Dirichlet(1 + prior), up to a constant."""
    if prior == 0:
        return 0.0
    return prior * float(np.log(np.maximum(probabilities, np.float32(LEAST))).sum(dtype=np.float64))


class _ExpectedCounts:
    """The counts of a collection in blocks of documents, each also sorted by word, in a temporary file."""

    def __init__(self, counts: SparseBlocks):
        self._spool, self._places, start = Spool(), [], 0
        for block in counts:
            rows = slice(start, start + block.shape[0])
            self._places.append((rows, [self._spool.write(part) for part in _Block.of(block)]))
            start = rows.stop

    def __iter__(self) -> Iterator[tuple[slice, "_Block"]]:
        """The numbers of the documents of each block, and the block."""
        return ((rows, _Block(*map(self._spool.read, parts))) for rows, parts in self._places)


class _Block(NamedTuple):
    """The counts of some documents, by document and by word."""

    starts: np.ndarray  # where each document starts
    words: np.ndarray
    weights: np.ndarray
    distinct: np.ndarray  # the words that occur, ascending
    word_starts: np.ndarray  # where each of them starts
    documents: np.ndarray  # the documents of each word, ascending
    places: np.ndarray  # and the places of its counts

    @classmethod
    def of(cls, counts: csr_array) -> "_Block":
        starts, words, weights = loop_arrays(counts)
        places = np.argsort(words, kind="stable")
        documents = np.repeat(np.arange(counts.shape[0], dtype=np.int32), np.diff(starts))[places]
        distinct, word_starts = np.unique(words[places], return_index=True)
        return cls(starts, words, weights, distinct, np.append(word_starts, len(words)), documents, places)

    def add(
        self, word_topics: np.ndarray, document_topics: np.ndarray, word_shares: np.ndarray, document_sums: np.ndarray
    ) -> float:
        """Set the expected occurrences of topics by document, given the current P(z|d, w), and give the log-likelihood.

        Those by word, divided by P(w|z), are added to ``word_shares``, of shape ``(words, topics)``.
        """
        ratios = np.empty(len(self.weights), dtype=np.float32)  # n(d, w) / P(w|d)
        log_likelihoods = np.empty(len(document_topics))

        def read_documents(first: int, last: int) -> None:
            given = self.starts, self.words, self.weights, word_topics, document_topics
            _document_sums(*given, ratios, document_sums, log_likelihoods, first, last)

        def read_words(first: int, last: int) -> None:
            given = self.distinct, self.word_starts, self.documents, self.places, ratios, document_topics
            _add_word_shares(*given, word_shares, first, last)

        in_threads(read_documents, self.starts)
        in_threads(read_words, self.word_starts)
        return float(log_likelihoods.sum())


def fold_in(
    counts: csr_array, word_topics: np.ndarray, prior: np.ndarray, *, iterations: int = 100, tolerance: float = 1e-4
) -> np.ndarray:
    """P(z|d) of documents under fixed topics, by maximum posterior probability; zeros for documents without words.

    Starting from the uniform distribution, each iteration sets P(z|d) to prior_z + sum over w of n(d, w) P(z|d, w),
    normalised over z, where P(z|d, w) is proportional to P(w|z) P(z|d) (Hofmann 1999). A document is done when no
    P(z|d) changes by more than ``tolerance``. Documents do not depend on one another.
    """
    topics = np.zeros((counts.shape[0], word_topics.shape[1]), dtype=np.float32)
    arrays, prior = loop_arrays(counts), prior.astype(np.float32)

    def fold_in_block(first: int, last: int) -> None:
        _fold_in(*arrays, word_topics, prior, iterations, tolerance, topics, first, last)

    in_threads(fold_in_block, arrays[0])
    return topics


def num_threads() -> int:
    """As many as processors, or as OMP_NUM_THREADS says.

    Numba is not asked: to answer, it starts threads, and makes those of torch as many, whatever OMP_NUM_THREADS says.
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(first) if first.isdecimal() and int(first) else usable


def in_threads(task: Callable[[int, int], object], starts: np.ndarray) -> None:
    """Call ``task(first, last)`` on consecutive blocks of rows that hold about equally many elements."""
    threads = num_threads()
    if threads == 1 or starts[-1] < WORTH_A_THREAD:
        task(0, len(starts) - 1)
        return
    bounds = np.searchsorted(starts, np.linspace(0, starts[-1], 8 * threads + 1)[1:-1])
    bounds = np.unique([0, *bounds, len(starts) - 1]).tolist()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(task, bounds[:-1], bounds[1:]))


@compiled
def _document_sums(starts, words, weights, word_topics, document_topics, ratios, sums, log_likelihoods, first, last):
    num_topics = word_topics.shape[1]
    share = np.empty(num_topics, dtype=np.float32)
    for document in range(first, last):
        topics = document_topics[document]
        share[:] = np.float32(0.0)
        log_likelihood = 0.0
        for place in range(starts[document], starts[document + 1]):
            word = word_topics[words[place]]
            likelihood = np.float32(0.0)
            for topic in range(num_topics):
                likelihood += topics[topic] * word[topic]
            likelihood = max(likelihood, np.float32(LEAST))
            log_likelihood += weights[place] * np.log(np.float64(likelihood))
            ratio = weights[place] / likelihood
            ratios[place] = ratio
            for topic in range(num_topics):
                share[topic] += ratio * word[topic]
        for topic in range(num_topics):
            sums[document, topic] = share[topic] * topics[topic]
        log_likelihoods[document] = log_likelihood


@compiled
def _add_word_shares(distinct, starts, documents, places, ratios, document_topics, shares, first, last):
    num_topics = document_topics.shape[1]
    for number in range(first, last):
        share = shares[distinct[number]]
        for place in range(starts[number], starts[number + 1]):
            topics = document_topics[documents[place]]
            ratio = ratios[places[place]]
            for topic in range(num_topics):
                share[topic] += ratio * topics[topic]


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
                word = word_topics[words[place]]
                likelihood = np.float32(0.0)
                for topic in range(num_topics):
                    likelihood += current[topic] * word[topic]
                ratio = weights[place] / max(likelihood, np.float32(LEAST))
                for topic in range(num_topics):
                    share[topic] += ratio * word[topic]
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


class Bilingual(NamedTuple):
    """Pairs of a query and a document as mixtures of topics, after some iterations.

    The objective is the log-likelihood of all words plus the logarithms of the priors, minus the KL divergence between
    the posteriors with and without equal fractions. As far as the fractions are equal, it never falls. The difference
    is how much the fractions still differ: the sum over topics, averaged over pairs.
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
    """Yield the start, then the result of each iteration of BLTM (Gao, Toutanova & Yih, SIGIR 2011), without end.

    The posteriors of a pair's words are those nearest to the unconstrained ones, proportional to P(w|z) P(z|pair), by
    the sum of KL(q||p), among all under which query and document have equal fractions of their words in each topic:
    posterior regularisation (Ganchev et al., JMLR 2010). They are proportional to P(w|z) P(z|pair) exp(-m_z c), where c
    is 1/|Q| for words of the query and -1/|D| for words of the document. The multipliers m maximise a concave function.
    As in generalised iterative scaling (Darroch & Ratcliff 1972), a step adds log(F_Q(z) / F_D(z)) / (1/|Q| + 1/|D|) to
    m_z, where F are the current fractions, which never makes that function smaller. The multipliers start from the
    values of the last iteration. ``steps`` is the most steps for a pair in one iteration; 0 drops the constraint.

    An iteration then makes P(w|z) of each side proportional to word_prior + sum over the pairs of n(w, pair) times the
    posterior, and P(z|pair) to topic_prior + that sum over the words of query and document.
    """
    sides = _Texts(queries, topics.shape), _Texts(documents, topics.shape)
    multipliers = np.zeros_like(topics)
    while True:
        word_topics = query_topics, document_topics
        expected = _expect(sides, word_topics, topics, multipliers, tolerance, steps)
        priors = log_prior(topics, topic_prior) + sum(log_prior(array, word_prior) for array in word_topics)
        objective = float(expected.objectives.sum()) + priors
        yield Bilingual(*word_topics, topics, objective, float(expected.differences.mean()))
        query_topics, document_topics = (distributions(sums, word_prior, axis=0) for sums in expected.word_sums)
        topics = distributions(expected.pair_sums, topic_prior, axis=1)


class Side(NamedTuple):
    """All queries, or all documents, as the loop reads and writes them; text i belongs to pair i."""

    starts: np.ndarray
    words: np.ndarray
    weights: np.ndarray
    word_topics: np.ndarray
    mixtures: np.ndarray
    ratios: np.ndarray


class _Texts:
    """One side of the pairs, with the arrays that its iterations share."""

    def __init__(self, counts: csr_array, shape: tuple[int, int]):
        self.arrays = loop_arrays(counts)
        self.mixtures = np.empty(shape, dtype=np.float32)
        # The loop writes the ratios into the data of this matrix.
        self.ratios = csr_array((np.empty_like(counts.data), counts.indices, counts.indptr), shape=counts.shape)

    def side(self, word_topics: np.ndarray) -> Side:
        return Side(*self.arrays, word_topics, self.mixtures, self.ratios.data)

    def sums(self, word_topics: np.ndarray) -> np.ndarray:
        """Expected occurrences of words in topics, after the loop."""
        return word_topics * (self.ratios.T @ self.mixtures)  # (words, topics)


class _Expected(NamedTuple):
    """Sums of the posteriors, ``(words, topics)`` of each side and ``(pairs, topics)``, and two numbers a pair."""

    word_sums: list[np.ndarray]
    pair_sums: np.ndarray
    objectives: np.ndarray
    differences: np.ndarray


def _expect(
    sides: tuple[_Texts, _Texts],
    word_topics: tuple[np.ndarray, np.ndarray],
    topics: np.ndarray,
    multipliers: np.ndarray,
    tolerance: float,
    steps: int,
) -> _Expected:
    pair_sums, (objectives, differences) = np.empty_like(topics), np.empty((2, len(topics)))
    arguments = *map(_Texts.side, sides, word_topics), topics, multipliers, tolerance, steps
    results = pair_sums, objectives, differences
    starts = sum(texts.arrays[0] for texts in sides)
    in_threads(lambda first, last: _read_pairs(*arguments, *results, first, last), starts)
    return _Expected(list(map(_Texts.sums, sides, word_topics)), *results)


@compiled
def _read_pairs(queries, documents, topics, multipliers, tolerance, steps, sums, objectives, differences, first, last):
    query_share, document_share = np.empty((2, topics.shape[1]), dtype=np.float32)
    for pair in range(first, last):
        objectives[pair], differences[pair] = _equalise(
            queries, documents, pair, topics[pair], multipliers[pair], tolerance, steps, query_share, document_share
        )
        for topic in range(topics.shape[1]):
            sums[pair, topic] = query_share[topic] + document_share[topic]


@compiled
def _equalise(queries, documents, pair, topics, multipliers, tolerance, steps, query_share, document_share):
    """Spread the words of a pair over topics; gives the log-likelihood minus the divergence, and the difference."""
    query_length, document_length = _length(queries, pair), _length(documents, pair)
    pace = query_length * document_length / (query_length + document_length)
    most = np.float32(STEEPEST) * min(query_length, document_length)
    done = 0
    while True:
        _tilt(queries.mixtures[pair], topics, multipliers, -1 / query_length)
        _tilt(documents.mixtures[pair], topics, multipliers, 1 / document_length)
        objective = _share_out(queries, pair, query_share) + _share_out(documents, pair, document_share)
        difference = np.float32(0.0)
        for topic in range(len(topics)):
            difference += abs(query_share[topic] / query_length - document_share[topic] / document_length)
        if done >= steps or difference <= tolerance:
            return objective, difference
        for topic in range(len(topics)):
            query_fraction = max(query_share[topic] / query_length, np.float32(LEAST))
            document_fraction = max(document_share[topic] / document_length, np.float32(LEAST))
            step = pace * np.log(query_fraction / document_fraction)
            multipliers[topic] = min(max(multipliers[topic] + step, -most), most)
        done += 1


@compiled
def _length(side, text):
    length = np.float32(0.0)
    for place in range(side.starts[text], side.starts[text + 1]):
        length += side.weights[place]
    return length


@compiled
def _tilt(mixture, topics, multipliers, factor):
    for topic in range(len(topics)):
        exponent = np.float32(factor) * multipliers[topic]
        mixture[topic] = topics[topic] if exponent == 0 else topics[topic] * np.exp(exponent)


@compiled
def _share_out(side, text, shares):
    """Spread the words of a text over topics, in proportion to P(w|z) mixture_z; gives the log of the norms."""
    mixture = side.mixtures[text]
    shares[:] = np.float32(0.0)
    total = 0.0
    for place in range(side.starts[text], side.starts[text + 1]):
        word = side.word_topics[side.words[place]]
        norm = np.float32(0.0)
        for topic in range(len(mixture)):
            norm += mixture[topic] * word[topic]
        norm = max(norm, np.float32(LEAST))
        ratio = side.weights[place] / norm
        for topic in range(len(mixture)):
            shares[topic] += ratio * word[topic]
        side.ratios[place] = ratio
        total += side.weights[place] * np.log(np.float64(norm))
    for topic in range(len(mixture)):
        shares[topic] *= mixture[topic]
    return total
