"""Topic models that learn from the documents of a collection alone."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

import pandas as pd
from scipy.sparse import csr_array

from pt_neural.models.iterations import Iteration, noted
from pt_neural.models.topic_model import TopicModel
from pt_neural.text import ForwardIndex
from pt_neural.text.counts import count_corpus


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
    def _estimates(self, counts: csr_array, *, verbose: bool) -> Iterator[Iteration]:
        """Learn from occurrences of words in documents, float32 of shape ``(documents, words)``.

        Yields:
            Iterations, whose results are functions that give P(w|z), float32 of shape ``(words, topics)``, and the
            prior of documents, of shape ``(topics,)``.
        """

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
        options = {"total": self.iterations, "desc": repr(self), "verbose": verbose}
        try:
            for iteration in noted(self._estimates(counts, verbose=verbose), history, **options):
                last = iteration
        except KeyboardInterrupt:
            if last is not None and last.number > 0:
                self._set_topics(vocabulary, *last.result(), history=history)
            raise
        self._set_topics(vocabulary, *last.result(), history=history)
        return self
