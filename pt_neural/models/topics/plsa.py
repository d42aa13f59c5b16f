"""Probabilistic latent semantic analysis (Hofmann, SIGIR 1999), a baseline of the CLSM paper."""

from collections.abc import Iterator
from typing import Unpack

import numpy as np

from pt_neural._arguments import checked_number
from pt_neural._temporary import SparseBlocks
from pt_neural.models.topics.steps import Mixtures, expectation_maximisation
from pt_neural.models.topics.topic_model import TopicModel
from pt_neural.rankers.options import RepresentationOptions
from pt_neural.rankers.term_counts import fit_to_counts
from pt_neural.training.run import Iteration


class PLSA(TopicModel):
    """Query likelihood with documents as mixtures of topics, learned by expectation maximisation.

    P_model(w|d) = sum over topics z of P(w|z) P(z|d) (Hofmann 1999). The topics are learned from the documents of a
    collection alone. The CLSM paper learns them by MAP estimation; here, pseudo-counts act as Dirichlet priors on the
    words of topics and on the topics of documents. Without pseudo-counts this is Hofmann's maximum likelihood, which
    non-negative matrix factorisation by Kullback-Leibler divergence maximises as well. A document's P(z|d) is inferred
    under the learned topics when the document is read, so any text can be ranked.

    The collection is read in blocks: beside them, only P(w|z) is in memory, while a temporary file holds the counts and
    P(z|d).

    On the dev queries of ``neural:pydocs``, varying ``topic_prior`` from 0 to 0.5, ``word_prior`` from 0 to 0.1 and the
    iterations from 50 to 200 made no more difference than another seed. With its 200 words a document, a ``mu`` of 100
    was better than 1000, the default of ``index.ql()``. The default of ``unigram_weight`` is that of Wei & Croft
    (2006). Choose both on dev queries.

    Args:
        num_topics: Number of topics; the CLSM paper has 100 and 500.
        topic_prior: Pseudo-count of each topic in a document; 0 for maximum likelihood.
        word_prior: Pseudo-count of each word in a topic; 0 for maximum likelihood.
        iterations: Largest number of iterations.
        tolerance: Learning ends when an iteration improves the log posterior by less than this fraction of it; with 0,
            when rounding errors make it fall.
        min_count: Words that occur less often are left out.
        max_terms: Number of most frequent words to keep; None keeps all.
        seed: Seed of the initial topics; results do not depend on the number of threads.
        unigram_weight: Weight of the unigram model, from 0 to 1; may be set on a fitted model.
        mu: Weight of the collection in the unigram model, in words, above 0; may be set on a fitted model.

    Attributes:
        history: One row per iteration, from 0 for the start: ``iteration``, ``log_likelihood`` of the collection,
            ``log_posterior``, which never falls, and ``seconds`` that it took.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a setting is out of range.

    Example::

        plsa = pn.PLSA(num_topics=100).fit_corpus(docs.get_corpus_iter())
        plsa.topics(words=5)
        (bm25 % 100 >> index.text_loader() >> plsa).search("pairwise distance")
    """

    schematic = {"label": "PLSA", "help_url": None}
    artifact_format = "plsa"
    fit_corpus = fit_to_counts

    def __init__(
        self,
        num_topics: int = 100,
        *,
        topic_prior: float = 0.1,
        word_prior: float = 0.1,
        iterations: int = 100,
        tolerance: float = 1e-4,
        min_count: int = 1,
        max_terms: int | None = None,
        seed: int = 13,
        unigram_weight: float = 0.7,
        mu: float = 100,
        **options: Unpack[RepresentationOptions],
    ):
        self.topic_prior = checked_number("topic_prior", topic_prior, float, least=0)
        self.word_prior = checked_number("word_prior", word_prior, float, least=0)
        self.iterations = checked_number("iterations", iterations, int, least=1)
        self.tolerance = checked_number("tolerance", tolerance, float, least=0)
        self.min_count = checked_number("min_count", min_count, int, least=1)
        self.max_terms = checked_number("max_terms", max_terms, int, least=1, optional=True)
        self.seed = checked_number("seed", seed, int, least=0)
        super().__init__(num_topics, unigram_weight=unigram_weight, mu=mu, **options)

    def _estimates(self, counts: SparseBlocks, *, verbose: bool) -> Iterator[Iteration]:
        prior = np.full(self.num_topics, self.topic_prior, dtype=np.float32)
        words = max(sum(float(block.sum(dtype=np.float64)) for block in counts), 1.0)
        before = -np.inf
        for iteration, now in enumerate(self._mixtures(counts)):
            measures = {"log_likelihood": now.log_likelihood, "log_posterior": now.log_posterior}
            shown = f"log-likelihood {now.log_likelihood / words:.4f} a word"
            yield Iteration(iteration, measures, shown, lambda topics=now.word_topics: (topics, prior))
            if iteration == self.iterations or now.log_posterior - before < self.tolerance * abs(before):
                return
            before = now.log_posterior

    def _mixtures(self, counts: SparseBlocks) -> Iterator[Mixtures]:
        word_topics, document_topics = _start(*counts.shape, self.num_topics, self.seed)
        priors = {"word_prior": self.word_prior, "topic_prior": self.topic_prior}
        return expectation_maximisation(counts, word_topics, document_topics, **priors)

    def __repr__(self) -> str:
        return f"PLSA(num_topics={self.num_topics})"


def _start(documents: int, words: int, topics: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Random P(w|z), uniform over all distributions of words, and equal P(z|d) for all documents."""
    word_topics = np.random.default_rng(seed).standard_exponential((words, topics), dtype=np.float32)
    word_topics /= word_topics.sum(axis=0, dtype=np.float64).astype(np.float32)
    return word_topics, np.broadcast_to(np.float32(1 / topics), (documents, topics))
