"""RM3: the second query is the first one interpolated with a relevance model of the best documents."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pt_neural._frames import Hits
from pt_neural.lucene.index.directory import CONTENTS, IndexDirectory
from pt_neural.lucene.java.jvm import in_java, java_class
from pt_neural.lucene.search.feedback import FeedbackQueries, FeedbackRetriever, FeedbackRewriter


@dataclass(frozen=True)
class RM3Queries(FeedbackQueries):
    """Plain text, expanded by Anserini's implementation of RM3."""

    original_weight: float

    def expand(self, queries: Sequence[str], feedback: Hits | None = None) -> list[dict[str, float]]:
        """See :meth:`FeedbackQueries.expand`; ValueError if a feedback document has a negative score."""
        if feedback is not None and (feedback.scores < 0).any():
            raise ValueError(
                f"a feedback document has the score {feedback.scores.min():g}, but RM3 weighs documents by their "
                "scores, which must not be negative; re-score them with index.bm25() or index.ql() first, or take "
                "index.rocchio().rewriter() or pn.LatentConceptExpansion(index)"
            )
        if feedback is not None:
            # A score of 0 means that a document does not match; Anserini fails if it gets no others.
            feedback = Hits(*(part[feedback.scores > 0] for part in feedback))
        return super().expand(queries, feedback)

    @in_java
    def reranker(self) -> Any:
        """Anserini's implementation."""
        analyzer, no_class, filter_terms = self.index.analysis.to_java(), None, True
        return java_class("io.anserini.rerank.lib.Rm3Reranker")(
            analyzer, no_class, self.field, *self.numbers(), self.original_weight, False, filter_terms
        )


class RM3Rewriter(FeedbackRewriter):
    """Expands queries by RM3; made by :meth:`RM3.rewriter`.

    RM3 weighs the feedback documents by their scores. If one that comes in has a negative score, as neural rankers may
    give, a ValueError says so; those that score 0 are left out.
    """

    schematic: ClassVar[dict[str, Any]] = {"label": "RM3", "help_url": None}


class RM3(FeedbackRetriever):
    """RM3 over BM25 or query likelihood; made by :meth:`LuceneIndex.rm3`.

    It retrieves twice. :meth:`rewriter` gives the step between the two retrievals alone.
    """

    label = "RM3"
    own_parameters = ("fb_docs", "fb_terms", "original_weight")
    rewrites_by = RM3Rewriter

    def __init__(
        self,
        index: IndexDirectory,
        *,
        base: str = "bm25",
        fb_docs: int = 10,
        fb_terms: int = 10,
        original_weight: float = 0.5,
        k1: float = 0.9,
        b: float = 0.4,
        mu: float = 1000,
        field: str = CONTENTS,
        num_results: int = 1000,
        verbose: bool = False,
    ):
        if not 0 <= original_weight <= 1:
            raise ValueError(f"original_weight={original_weight}, but it must be between 0 and 1")
        self.original_weight = original_weight
        feedback = {"fb_docs": fb_docs, "fb_terms": fb_terms}
        retrieval = {"base": base, "k1": k1, "b": b, "mu": mu, "field": field, "num_results": num_results}
        super().__init__(index, **feedback, **retrieval, verbose=verbose)

    def builder(self, *, weighted: bool) -> RM3Queries:
        """Expanded queries."""
        self.index.require_vectors(self.field)
        return RM3Queries(self.index, self.similarity(), self.field, self.fb_docs, self.fb_terms, self.original_weight)
