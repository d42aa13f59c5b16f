"""Topic models that learn from the documents of a collection alone."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import perf_counter
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
import pyterrier as pt
from scipy.sparse import csr_array

from pt_neural.models.topic_model import TopicModel
from pt_neural.text import ForwardIndex
from pt_neural.text.counts import count_corpus


class Estimate(NamedTuple):
    """A topic model after some iterations.

    Attributes:
        iteration: How many.
        per_word: Log-likelihood of a word of the collection, for the progress bar.
        measures: More columns of the history.
        topics: Gives P(w|z), float32 of shape ``(words, topics)``, and the prior of documents, of shape ``(topics,)``.
    """

    iteration: int
    per_word: float
    measures: dict[str, float]
    topics: Callable[[], tuple[np.ndarray, np.ndarray]]


class CorpusTopicModel(TopicModel):
    """Base of PLSA and LDA.

    Attributes:
        min_count: Words that occur less often are left out.
        max_terms: Only that many of the most frequent words are kept; None for all.
        iterations: Most iterations.
    """

    fitting = "model.fit_corpus(docs.get_corpus_iter())"
    min_count: int
    max_terms: int | None
    iterations: int

    @abstractmethod
    def _estimates(self, counts: csr_array, *, verbose: bool) -> Iterator[Estimate]:
        """Learn from occurrences of words in documents, float32 of shape ``(documents, words)``."""

    def fit_corpus(
        self, corpus: Iterable[Mapping[str, Any]] | pd.DataFrame | ForwardIndex, *, verbose: bool = True
    ) -> Self:
        """Learn the topics of a collection, whose counts are held in memory.

        Args:
            corpus: Documents with ``docno`` and text, read once, or a forward index.
            verbose: Show progress bars, with the log-likelihood of a word.

        Returns:
            This ranker.

        Raises:
            TypeError: If the corpus is none of these.
            ValueError: If there are no words, or if the forward index holds other fields than the model reads.
            KeyboardInterrupt: If the user interrupts; the model then has the topics of the last iteration, and stays as
                it was if none was complete.
        """
        self._settle_fields(corpus)
        limits = {"min_count": self.min_count, "max_terms": self.max_terms}
        vocabulary, counts = count_corpus(corpus, **limits, fields=self.fields, desc=f"{self!r} words", verbose=verbose)
        if not len(vocabulary):
            raise ValueError(
                f"no word of the {vocabulary.num_documents:,} documents occurs at least {self.min_count} times; give "
                "more documents or a smaller min_count"
            )
        history: list[dict[str, Any]] = []
        last = None
        try:
            for estimate in self._timed(self._estimates(counts, verbose=verbose), history, verbose=verbose):
                last = estimate
        except KeyboardInterrupt:
            if last is not None and last.iteration > 0:
                self._set_topics(vocabulary, *last.topics(), history=history)
            raise
        self._set_topics(vocabulary, *last.topics(), history=history)
        return self

    def _timed(
        self, estimates: Iterator[Estimate], history: list[dict[str, Any]], *, verbose: bool
    ) -> Iterator[Estimate]:
        """Note each estimate in the history and on a progress bar."""
        start = perf_counter()
        with pt.tqdm(total=self.iterations, desc=repr(self), unit="iteration", disable=not verbose) as bar:
            for estimate in estimates:
                seconds = round(perf_counter() - start, 3)
                history.append({"iteration": estimate.iteration, **estimate.measures, "seconds": seconds})
                bar.set_postfix_str(f"log-likelihood {estimate.per_word:.4f} a word")
                bar.update(estimate.iteration - bar.n)
                yield estimate
