"""The bilingual topic model of queries and documents (Gao, Toutanova & Yih 2011), a baseline of the CLSM paper."""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from pt_neural._arguments import checked_choice, checked_number
from pt_neural.models.bltm_steps import STEPS, Bilingual, bilingual_maximisation
from pt_neural.models.iterations import Iteration, noted
from pt_neural.models.topic_model import TopicModel
from pt_neural.models.topic_steps import distributions
from pt_neural.rankers.document_counts import DocumentCounts
from pt_neural.rankers.relevant_pairs import LearnedFromPairs, RelevantPairs
from pt_neural.text import ForwardIndex, PackedSequences
from pt_neural.text.counts import bag_of_words

START_PAIRS = 3  # random pairs whose words a topic starts from; with topics alike, learning would stop before it began


class BLTM(LearnedFromPairs, TopicModel):
    """Query likelihood with topics that queries and documents word differently (Gao, Toutanova & Yih, SIGIR 2011).

    A query and a document that is relevant to it have one distribution over topics, P(z|pair). Each topic has two
    distributions over words: words of the query come from P_Q(w|z), words of the document from P_D(w|z). All are
    learned by expectation maximisation over such pairs, with Dirichlet priors. With ``equal_fractions``, the variant of
    the CLSM paper's Table 5, query and document have the same fractions of their words in each topic, or else the
    longer one alone would decide on the topics of the pair.

    A document's P(z|d) is inferred with P_D(w|z), and P_model(w|d) = sum over topics z of P_Q(w|z) P(z|d) is mixed with
    the unigram model. The paper learned from queries and titles, of similar length; here a document has ``max_terms``
    words for its topics, in learning and in ranking, while the unigram model has them all. P_Q(w|z) takes a part of
    P_D(w|z), for words that no training query has. A word without topics on either side is left to the unigram model.

    The defaults were chosen on dev queries of ``neural:pydocs``. Equal fractions were better there with 20 and 50 words
    of a document, and made no difference with all of them; nor did more iterations, or the weight of P_D(w|z).

    Args:
        num_topics: Number of topics; the paper has 100.
        equal_fractions: Whether query and document of a pair have equal fractions of their words in each topic; without
            it the model is PLSA over the words of both.
        topic_prior: Occurrences of each topic that a text is thought to have besides; 0 for maximum likelihood.
        word_prior: Occurrences of each word that a topic is thought to have besides, on either side; likewise.
        document_weight: Weight of P_D(w|z) in P_Q(w|z) after learning, from 0 to 1.
        iterations: Most iterations.
        tolerance: Learning ends when the objective grows by less than this part of itself.
        max_terms: So many of the first words of a document tell its topics, in learning and in ranking; None for all.
        seed: Seed of the pairs whose words the topics start from.
        unigram_weight: Weight of the unigram model, from 0 to 1; may be set on a fitted model.
        mu: Weight of the collection against the document in the unigram model, in words, above 0; likewise.
        fields: Text columns, joined by a space; those that a frame lacks are passed over, one must be there. None for
            those of ``documents``, or ``title`` and ``text`` without a forward index.
        documents: A forward index: re-ranking then needs ``docno`` only, no text and no tokenising. Its words then
            have their frequency in the whole collection; otherwise, that in the candidates of the training queries.
        batch_size: Documents read at a time.
        verbose: Show a progress bar while scoring.

    Attributes:
        history: One row an iteration, 0 being the start: ``iteration``; ``objective``, the logarithm of the posterior
            probability, less the KL divergence to equal fractions; ``difference``, the sum over topics of the
            differences of fractions that remain, mean over pairs; ``seconds`` since the one before.
        word_topics: P_D(w|z), float32 of shape ``(words, topics)``.
        query_word_topics: P_Q(w|z), likewise.

    Raises:
        TypeError: If an argument is of another kind than said here.
        ValueError: If a setting is out of range.

    Example::

        bltm = pn.BLTM(documents=pn.ForwardIndex("pydocs.forward"))
        (candidates >> bltm).fit(docs.get_topics("train"), docs.get_qrels("train"))
        bltm.topics(5, side="query")
    """

    schematic = {"label": "BLTM", "help_url": None}
    artifact_format = "bltm"
    fitting = "(candidates >> model).fit(topics, qrels)"
    fitted_with: ClassVar[tuple[str, ...]] = (
        "num_topics",
        "equal_fractions",
        "topic_prior",
        "word_prior",
        "document_weight",
        "iterations",
        "tolerance",
        "max_terms",
        "seed",
    )

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
        fields: str | Sequence[str] | None = None,
        documents: ForwardIndex | None = None,
        batch_size: int = 1024,
        verbose: bool = False,
    ):
        self.equal_fractions = checked_choice("equal_fractions", equal_fractions, (True, False))
        self.topic_prior = checked_number("topic_prior", topic_prior, float, least=0)
        self.word_prior = checked_number("word_prior", word_prior, float, least=0)
        self.document_weight = checked_number("document_weight", document_weight, float, least=0, most=1)
        self.iterations = checked_number("iterations", iterations, int, least=1)
        self.tolerance = checked_number("tolerance", tolerance, float, least=0)
        self.max_terms = checked_number("max_terms", max_terms, int, least=1, optional=True)
        self.seed = checked_number("seed", seed, int, least=0)
        super().__init__(
            num_topics,
            unigram_weight=unigram_weight,
            mu=mu,
            fields=fields,
            documents=documents,
            batch_size=batch_size,
            verbose=verbose,
        )

    def _learn(self, pairs: RelevantPairs, *, verbose: bool) -> None:
        words, queries = _words_and_counts(pairs.queries)
        document_words, documents = _words_and_counts(pairs.documents)
        history: list[dict[str, Any]] = []
        learned = self._maximise(queries[pairs.query_rows], documents[pairs.document_rows], history, verbose=verbose)
        shape, weight = (len(pairs.vocabulary), self.num_topics), np.float32(self.document_weight)
        word_topics, query_word_topics = np.zeros((2, *shape), dtype=np.float32)
        word_topics[document_words] = learned.document_topics
        query_word_topics[words] = (1 - weight) * learned.query_topics
        query_word_topics += weight * word_topics
        prior = np.full(self.num_topics, self.topic_prior, dtype=np.float32)
        self._set_topics(pairs.vocabulary, word_topics, prior, query_word_topics, history=history)

    def _maximise(
        self, queries: csr_array, documents: csr_array, history: list[dict[str, Any]], *, verbose: bool
    ) -> Bilingual:
        """The topics of pairs, with a record of each iteration."""
        options = {"total": self.iterations, "desc": repr(self), "verbose": verbose}
        return deque(noted(self._estimates(queries, documents), history, **options), maxlen=1).pop().result

    def _estimates(self, queries: csr_array, documents: csr_array) -> Iterator[Iteration]:
        words = float(queries.sum(dtype=np.float64) + documents.sum(dtype=np.float64))
        before = -np.inf
        for iteration, now in enumerate(self._states(queries, documents)):
            measures = {"objective": now.objective, "difference": now.difference}
            yield Iteration(iteration, measures, f"objective {now.objective / words:.4f} a word", now)
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
        of_words = [_start(pairs @ counts, counts) for counts in (queries, documents)]
        of_pairs = np.full((queries.shape[0], topics), 1 / topics, dtype=np.float32)
        priors = {"word_prior": self.word_prior, "topic_prior": self.topic_prior}
        steps = STEPS if self.equal_fractions else 0
        return bilingual_maximisation(queries, documents, *of_words, of_pairs, **priors, steps=steps)

    def _represent(self, sequences: PackedSequences, counts: DocumentCounts) -> np.ndarray:
        if self.max_terms is not None:
            first = sequences.take(np.arange(len(sequences)), max_terms=self.max_terms)
            counts = DocumentCounts.of(first, len(self.vocabulary))
        return super()._represent(sequences, counts)

    def __repr__(self) -> str:
        return f"BLTM(num_topics={self.num_topics})"


def _words_and_counts(texts: PackedSequences) -> tuple[np.ndarray, csr_array]:
    """The distinct words of texts, and how often each text has each of them."""
    words, numbers = np.unique(texts.terms, return_inverse=True)
    return words, bag_of_words(PackedSequences(numbers.astype(np.int32), texts.offsets), len(words))


def _start(of_topics: csr_array, counts: csr_array) -> np.ndarray:
    """P(w|z) in the middle between the words of some pairs, a row for each topic, and those of all."""
    some = distributions(np.ascontiguousarray(of_topics.toarray().T), 0, axis=0)
    of_all = distributions(counts.sum(axis=0, dtype=np.float32), 0, axis=0)
    return (some + of_all[:, None]) / 2
