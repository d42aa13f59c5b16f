"""Learning from the term counts of a collection: the ``fit_corpus`` of TFIDF, LSA and topic models.

Such a model has the settings ``min_count`` and ``max_terms``, and a method ``_learn_counts(vocabulary, counts,
verbose=)``, where counts are csr matrices of blocks of documents, together of shape ``(documents, terms)``.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import pandas as pd

from pt_neural.rankers.representation import RepresentationRanker
from pt_neural.text import ForwardIndex
from pt_neural.text.counts import count_corpus

Model = TypeVar("Model", bound=RepresentationRanker)


def fit_to_counts(
    self: Model, corpus: Iterable[Mapping[str, Any]] | pd.DataFrame | ForwardIndex, *, verbose: bool | None = None
) -> Model:
    """Learn from the terms of a collection, whose counts are held in a temporary file.

    Args:
        self: The ranker.
        corpus: Documents with ``docno`` and text, read once, or a forward index.
        verbose: Show progress bars; None for the ranker's own ``verbose``.

    Returns:
        This ranker.

    Raises:
        TypeError: If the corpus is something else.
        ValueError: If there are too few terms, or, for LSA, fewer independent ones than ``dim``; if ``vectors`` are set
            that a new fit would not change; or if the forward index holds other fields than the model reads.
        KeyboardInterrupt: If the user interrupts. A topic model then has the topics of the last iteration; any model
            stays as it was if no iteration was complete.
    """
    verbose = self.reports(verbose)
    self._require_no_vectors()
    self._settle_fields(corpus)
    limits = {"min_count": self.min_count, "max_terms": self.max_terms}
    vocabulary, counts = count_corpus(corpus, **limits, fields=self.fields, desc=f"{self!r} terms", verbose=verbose)
    if not len(vocabulary):
        raise ValueError(
            f"no term of the {vocabulary.num_documents:,} documents occurs at least {self.min_count} times; give "
            "more documents or a smaller min_count"
        )
    self._learn_counts(vocabulary, counts, verbose=verbose)
    return self
