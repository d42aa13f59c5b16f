"""The bilingual topic model of queries and documents (Gao, Toutanova & Yih 2011), a baseline of the CLSM paper."""

from collections.abc import Iterator
from typing import ClassVar, Unpack

import numpy as np
import pyterrier as pt
from scipy.sparse import csr_array

from pt_neural._arguments import checked_choice, checked_number
from pt_neural.models.topics.steps import STEPS, Bilingual, bilingual_maximisation, distributions
from pt_neural.models.topics.topic_model import TopicModel
from pt_neural.rankers.language_model import DocumentCounts
from pt_neural.rankers.options import RepresentationOptions
from pt_neural.rankers.relevant_pairs import RelevantPairs, fit_to_pairs
from pt_neural.text import PackedSequences
from pt_neural.text.counts import bag_of_words
from pt_neural.training.report import Report
from pt_neural.training.run import Iteration, Records, run_iterations

START_PAIRS = 3  # random pairs whose words a topic starts from; equal topics would stay equal


class BLTM(TopicModel, pt.Estimator):
    """Query likelihood with topics that queries and documents word differently (Gao, Toutanova & Yih, SIGIR 2011).

    A query and a document relevant to it share one distribution over topics, P(z|pair). Each topic has two
    distributions over words: words of the query come from P_Q(w|z), words of the document from P_D(w|z). All are
    learned by expectation maximisation over such pairs, with Dirichlet priors. With ``equal_fractions``, the variant in
    the CLSM paper's Table 5, query and document have equal fractions of their words in each topic; otherwise the longer
    of the two would dominate the topics of the pair.

    A document's P(z|d) is inferred with P_D(w|z), and P_model(w|d) = sum over topics z of P_Q(w|z) P(z|d) is mixed with
    the unigram model. The paper learned from queries and titles, which are of similar length; here only the first
    ``max_terms`` words of a document count for its topics, in learning and in ranking, while the unigram model uses
    all words. P_Q(w|z) is mixed with P_D(w|z) to cover words that no training query has. A word without topics on
    either side is left to the unigram model.

    Word frequencies come from ``documents``, or from the candidates of the training queries without a forward index.

    The defaults were chosen on dev queries of ``neural:pydocs``. There, equal fractions were better with 20 and 50
    words per document and made no difference with all words; nor did more iterations or the weight of P_D(w|z).

    Args:
        num_topics: Number of topics; the paper has 100.
        equal_fractions: Whether query and document of a pair have equal fractions of their words in each topic; if not,
            the model is PLSA over the words of both.
        topic_prior: Pseudo-count of each topic in a text; 0 for maximum likelihood.
        word_prior: Pseudo-count of each word in a topic, on either side; 0 for maximum likelihood.
        document_weight: Weight of P_D(w|z) in P_Q(w|z) after learning, from 0 to 1.
        iterations: Largest number of iterations.
        tolerance: Learning ends when an iteration improves the objective by less than this fraction of it.
        max_terms: Number of words, from the start of a document, that its topics come from; None for all.
        seed: Seed for drawing the pairs whose words the topics start from.
        unigram_weight: Weight of the unigram model, from 0 to 1; may be set on a fitted model.
        mu: Weight of the collection in the unigram model, in words, above 0; may be set on a fitted model.

    Attributes:
        report: What the model was fitted on, and what was left out; None if it is not fitted, or was loaded.
        history: One row per iteration, from 0 for the start: ``iteration``; ``objective``, the log posterior minus the
            KL divergence to equal fractions; ``difference``, how much fractions still differ, summed over topics and
            averaged over pairs; ``seconds`` that it took.
        word_topics: P_D(w|z), float32 of shape ``(words, topics)``.
        query_word_topics: P_Q(w|z), float32 of shape ``(words, topics)``.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a setting is out of range.

    Example::

        bltm = pn.BLTM(documents=pn.ForwardIndex("pydocs.forward"))
        (candidates >> bltm).fit(docs.get_topics("train"), docs.get_qrels("train"))
        bltm.topics(5, side="query")
    """

    schematic = {"label": "BLTM", "help_url": None}
    artifact_format = "bltm"
    fitting: ClassVar[str] = "(candidates >> model).fit(topics, qrels)"

    report: Report | None = None
    fit = fit_to_pairs

    def __init__(
        self,
        num_topics: int = 100,
        *,
        equal_fractions: bool = True,
        topic_prior: float = 0.1,
        word_prior: float = 0.01,
        document_weight: float = 0.1,
        iterations: int = 50,
        tolerance: float = 1e-5,
        max_terms: int | None = 20,
        seed: int = 13,
        unigram_weight: float = 0.7,
        mu: float = 100,
        **options: Unpack[RepresentationOptions],
    ):
        self.equal_fractions = checked_choice("equal_fractions", equal_fractions, (True, False))
        self.topic_prior = checked_number("topic_prior", topic_prior, float, least=0)
        self.word_prior = checked_number("word_prior", word_prior, float, least=0)
        self.document_weight = checked_number("document_weight", document_weight, float, least=0, most=1)
        self.iterations = checked_number("iterations", iterations, int, least=1)
        self.tolerance = checked_number("tolerance", tolerance, float, least=0)
        self.max_terms = checked_number("max_terms", max_terms, int, least=1, optional=True)
        self.seed = checked_number("seed", seed, int, least=0)
        super().__init__(num_topics, unigram_weight=unigram_weight, mu=mu, **options)

    def _learn(self, pairs: RelevantPairs, *, verbose: bool) -> Records:
        query_words, queries = _distinct_words(pairs.queries)
        document_words, documents = _distinct_words(pairs.documents)
        history: Records = []
        estimates = self._estimates(queries[pairs.query_rows], documents[pairs.document_rows])
        for last in run_iterations(estimates, history, total=self.iterations, desc=repr(self), verbose=verbose):
            learned: Bilingual = last.result
        shape, weight = (len(pairs.vocabulary), self.num_topics), np.float32(self.document_weight)
        word_topics, query_word_topics = np.zeros((2, *shape), dtype=np.float32)
        word_topics[document_words] = learned.document_topics
        query_word_topics[query_words] = (1 - weight) * learned.query_topics
        query_word_topics += weight * word_topics
        prior = np.full(self.num_topics, self.topic_prior, dtype=np.float32)
        self._set_topics(pairs.vocabulary, word_topics, prior, query_word_topics)
        return history

    def _estimates(self, queries: csr_array, documents: csr_array) -> Iterator[Iteration]:
        num_words = float(queries.sum(dtype=np.float64) + documents.sum(dtype=np.float64))
        before = -np.inf
        for iteration, now in enumerate(self._states(queries, documents)):
            measures = {"objective": now.objective, "difference": now.difference}
            yield Iteration(iteration, measures, f"objective {now.objective / num_words:.4f} a word", now)
            if iteration == self.iterations or now.objective - before < self.tolerance * abs(before):
                return
            before = now.objective

    def _states(self, queries: csr_array, documents: csr_array) -> Iterator[Bilingual]:
        random, topics = np.random.default_rng(self.seed), self.num_topics
        picked = random.integers(queries.shape[0], size=START_PAIRS * topics)
        pairs = csr_array(
            (np.ones(len(picked), dtype=np.float32), picked, np.arange(0, len(picked) + 1, START_PAIRS)),
            shape=(topics, queries.shape[0]),
        )
        word_topics = [_start(pairs @ counts, counts) for counts in (queries, documents)]
        pair_topics = np.full((queries.shape[0], topics), 1 / topics, dtype=np.float32)
        priors = {"word_prior": self.word_prior, "topic_prior": self.topic_prior}
        steps = STEPS if self.equal_fractions else 0
        return bilingual_maximisation(queries, documents, *word_topics, pair_topics, **priors, steps=steps)

    def _extra(self, sequences: PackedSequences, counts: DocumentCounts) -> np.ndarray:
        if self.max_terms is not None:
            first = sequences.take(np.arange(len(sequences)), max_terms=self.max_terms)
            counts = DocumentCounts.of(first, len(self.vocabulary))
        return super()._extra(sequences, counts)

    def __repr__(self) -> str:
        return f"BLTM(num_topics={self.num_topics})"


def _distinct_words(texts: PackedSequences) -> tuple[np.ndarray, csr_array]:
    """The distinct words of texts, and the occurrences of each in each text, ``(texts, words)``."""
    words, numbers = np.unique(texts.terms, return_inverse=True)
    return words, bag_of_words(PackedSequences(numbers.astype(np.int32), texts.offsets), len(words))


def _start(topic_counts: csr_array, counts: csr_array) -> np.ndarray:
    """P(w|z) halfway between the words of a few pairs for each topic, and the words of all pairs."""
    few = distributions(np.ascontiguousarray(topic_counts.toarray().T), 0, axis=0)
    every = distributions(counts.sum(axis=0, dtype=np.float32), 0, axis=0)
    return (few + every[:, None]) / 2
