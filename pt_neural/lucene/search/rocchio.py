"""Rocchio's feedback: the second query is the first one moved towards the mean of the best documents."""

from dataclasses import dataclass
from typing import Any, ClassVar

from pt_neural._arguments import checked_number
from pt_neural.lucene.index.directory import CONTENTS, IndexDirectory
from pt_neural.lucene.java.jvm import in_java, java_class
from pt_neural.lucene.search.feedback import FeedbackQueries, FeedbackRetriever, FeedbackRewriter


@dataclass(frozen=True)
class RocchioQueries(FeedbackQueries):
    """Plain text, expanded by Anserini's implementation of Rocchio's feedback, without non-relevant documents."""

    alpha: float
    beta: float

    @in_java
    def reranker(self) -> Any:
        """Anserini's implementation."""
        analyzer, no_class, gamma, negative = self.index.analysis.to_java(), None, 0.0, False
        return java_class("io.anserini.rerank.lib.RocchioReranker")(
            analyzer, no_class, self.field, *self.numbers(), 1, 1, self.alpha, self.beta, gamma, False, negative
        )


class RocchioRewriter(FeedbackRewriter):
    """Expands queries by Rocchio's feedback; made by :meth:`RocchioRetriever.rewriter`."""

    schematic: ClassVar[dict[str, Any]] = {"label": "Rocchio", "help_url": None}


class RocchioRetriever(FeedbackRetriever):
    """Rocchio's feedback over BM25 or query likelihood; made by :meth:`LuceneIndex.rocchio`.

    The second query is ``alpha * q + beta * d``, both scaled to length 1: q has the counts of the query's terms; d is
    the mean of the feedback documents, of which the ``fb_terms`` largest weights are kept. A document is the counts of
    its terms of 2 to 20 letters that no more than a tenth of all documents have, scaled to length 1. It retrieves
    twice. :meth:`rewriter` gives the step between the two retrievals alone.
    """

    label = "Rocchio"
    own_parameters = ("fb_docs", "fb_terms", "alpha", "beta")
    rewrites_by = RocchioRewriter

    def __init__(
        self,
        index: IndexDirectory,
        *,
        base: str = "bm25",
        fb_docs: int = 10,
        fb_terms: int = 10,
        alpha: float = 1.0,
        beta: float = 0.75,
        k1: float = 0.9,
        b: float = 0.4,
        mu: float = 1000,
        field: str = CONTENTS,
        num_results: int = 1000,
        verbose: bool = False,
    ):
        self.alpha = checked_number("alpha", alpha, float, least=0)
        self.beta = checked_number("beta", beta, float, least=0)
        if not alpha + beta:
            raise ValueError("alpha and beta are both 0, which leaves no query")
        feedback = {"fb_docs": fb_docs, "fb_terms": fb_terms}
        retrieval = {"base": base, "k1": k1, "b": b, "mu": mu, "field": field, "num_results": num_results}
        super().__init__(index, **feedback, **retrieval, verbose=verbose)

    def builder(self, *, weighted: bool) -> RocchioQueries:
        """Expanded queries."""
        self.index.require_vectors(self.field)
        settings = self.fb_docs, self.fb_terms, self.alpha, self.beta
        return RocchioQueries(self.index, self.similarity(), self.field, *settings)
