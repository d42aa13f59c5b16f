"""Latent Dirichlet allocation (Blei, Ng & Jordan, 2003) by Gibbs sampling, a baseline of the CLSM paper."""

import warnings
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Unpack

import numpy as np
import pyterrier as pt

from pt_neural._arguments import checked_choice, checked_number
from pt_neural._temporary import SparseBlocks
from pt_neural.models.topics.topic_model import TopicModel
from pt_neural.rankers.options import RepresentationOptions
from pt_neural.rankers.term_counts import fit_to_counts
from pt_neural.training.run import Iteration

if TYPE_CHECKING:
    from tomotopy import LDAModel

INTERVAL = 10  # iterations between measurements of the likelihood


class LDA(TopicModel):
    """Query likelihood with documents as mixtures of topics, learned by Gibbs sampling (Wei & Croft, SIGIR 2006).

    P_model(w|d) = sum over topics z of P(w|z) P(z|d). As in the CLSM paper, the topics are learned from the documents
    of a collection alone, by tomotopy's collapsed Gibbs sampler; P(w|z) comes from its last iteration. A document's
    P(z|d) is inferred under the learned topics when the document is read, without random numbers: see
    :func:`~pt_neural.models.topics.steps.fold_in`, whose prior is alpha. The result is close to the mean of many
    samples.

    The sampler holds all words and their topics in memory, some 800 bytes for a document of 41 words and 50 topics;
    :class:`PLSA` reads the collection in blocks, and so can learn from larger ones.

    On the dev queries of ``neural:pydocs``, a learned alpha was at least as good as a fixed one, and 100 iterations as
    good as 400. The defaults of ``unigram_weight``, ``alpha`` and ``beta`` are those of Wei & Croft, who keep alpha
    fixed.

    Args:
        num_topics: Number of topics; the CLSM paper has 100 and 500.
        alpha: Concentration of each topic in a document; None for 50 / num_topics.
        beta: Concentration of each word in a topic.
        learn_alpha: Learn an alpha for each topic while sampling, starting from ``alpha``.
        iterations: How many times a topic is drawn for each word of the collection.
        min_count: Words that occur less often are left out.
        max_terms: Number of most frequent words to keep; None keeps all.
        workers: Threads that sample. With 1, results are repeatable by seed; with more, they may not be.
        seed: Seed of the sampler.
        unigram_weight: Weight of the unigram model, from 0 to 1; may be set on a fitted model.
        mu: Weight of the collection in the unigram model, in words, above 0; may be set on a fitted model.

    Attributes:
        history: One row every ten iterations, from 0 for the start: ``iteration``, ``log_likelihood`` of the words and
            their topics, and ``seconds`` since the row before.
        prior: Alpha of each topic.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a setting is out of range.

    Example::

        lda = pn.LDA(num_topics=100).fit_corpus(docs.get_corpus_iter())
        lda.topics(words=5)
        (bm25 % 100 >> index.text_loader() >> lda).search("pairwise distance")
    """

    schematic = {"label": "LDA", "help_url": None}
    artifact_format = "lda"
    free_settings: ClassVar[tuple[str, ...]] = (*TopicModel.free_settings, "workers")
    fit_corpus = fit_to_counts

    def __init__(
        self,
        num_topics: int = 100,
        *,
        alpha: float | None = None,
        beta: float = 0.01,
        learn_alpha: bool = True,
        iterations: int = 200,
        min_count: int = 1,
        max_terms: int | None = None,
        workers: int = 1,
        seed: int = 13,
        unigram_weight: float = 0.7,
        mu: float = 100,
        **options: Unpack[RepresentationOptions],
    ):
        self.alpha = checked_number("alpha", alpha, float, above=0, optional=True)
        self.beta = checked_number("beta", beta, float, above=0)
        self.learn_alpha = checked_choice("learn_alpha", learn_alpha, (True, False))
        self.iterations = checked_number("iterations", iterations, int, least=1)
        self.min_count = checked_number("min_count", min_count, int, least=1)
        self.max_terms = checked_number("max_terms", max_terms, int, least=1, optional=True)
        self.workers = checked_number("workers", workers, int, least=1)
        self.seed = checked_number("seed", seed, int, least=0)
        super().__init__(num_topics, unigram_weight=unigram_weight, mu=mu, **options)

    def _estimates(self, counts: SparseBlocks, *, verbose: bool) -> Iterator[Iteration]:
        with warnings.catch_warnings():  # about how the library was compiled
            warnings.simplefilter("ignore", DeprecationWarning)
            import tomotopy  # only needed for fitting

        alpha = 50 / self.num_topics if self.alpha is None else self.alpha
        sampler = tomotopy.LDAModel(k=self.num_topics, alpha=alpha, eta=self.beta, seed=self.seed)
        sampler.optim_interval = INTERVAL if self.learn_alpha else 0
        for words in pt.tqdm(
            _documents(counts), desc=f"{self!r} documents", total=counts.shape[0], disable=not verbose
        ):
            sampler.add_doc(words, ignore_empty_words=True)
        for iteration in (0, *range(INTERVAL, self.iterations, INTERVAL), self.iterations):
            self._sample(sampler, iteration - sampler.global_step)
            measures = {"log_likelihood": sampler.ll_per_word * sampler.num_words}
            shown = f"log-likelihood {sampler.ll_per_word:.4f} a word"
            yield Iteration(iteration, measures, shown, partial(_topics, sampler, counts.shape[1]))

    def _sample(self, sampler: "LDAModel", iterations: int) -> None:
        with warnings.catch_warnings():  # that several workers may not be repeatable is documented above
            warnings.simplefilter("ignore", RuntimeWarning)
            sampler.train(iterations, workers=self.workers)

    def __repr__(self) -> str:
        return f"LDA(num_topics={self.num_topics})"


def _documents(counts: SparseBlocks) -> Iterator[list[str]]:
    """The words of each document as strings of their ids, since the sampler refuses lone surrogates."""
    names = np.array([str(word) for word in range(counts.shape[1])], dtype=object)
    for block in counts:
        times = block.data.astype(np.int64)
        for start, end in pairwise(block.indptr.tolist()):
            yield np.repeat(names[block.indices[start:end]], times[start:end]).tolist()


def _topics(sampler: "LDAModel", num_words: int) -> tuple[np.ndarray, np.ndarray]:
    """P(w|z) in the order of the vocabulary, and alpha."""
    word_topics = np.zeros((num_words, sampler.k), dtype=np.float32)
    words = np.array([int(word) for word in sampler.used_vocabs])
    for topic in range(sampler.k):
        word_topics[words, topic] = sampler.get_topic_word_dist(topic)
    return word_topics, np.asarray(sampler.alpha, dtype=np.float32)
