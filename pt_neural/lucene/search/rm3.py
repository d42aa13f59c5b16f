"""RM3: a first retrieval, a relevance model of its best documents, a second retrieval with the expanded query."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pt_neural.lucene.index.directory import CONTENTS, IndexDirectory
from pt_neural.lucene.java.handles import clean
from pt_neural.lucene.java.jvm import in_java, java_class
from pt_neural.lucene.search.queries import TextQueries, WeightedQueries
from pt_neural.lucene.search.retrievers import RetrieverOverBase
from pt_neural.lucene.search.scoring import Similarity, searcher


@dataclass(frozen=True)
class RM3Queries:
    """Plain text, expanded by Anserini's implementation of RM3."""

    index: IndexDirectory
    similarity: Similarity
    field: str
    fb_docs: int
    fb_terms: int
    original_weight: float
    slow: ClassVar[bool] = True

    def build(self, queries: Sequence[str]) -> Any:
        """Lucene queries from texts and the terms that feedback adds."""
        return WeightedQueries(self.field).build(self.expand(queries))

    def expand(self, queries: Sequence[str]) -> list[dict[str, float]]:
        """Terms and weights of each query, as in the column ``query_toks``."""
        first = TextQueries(self.index.analysis, self.field).build(queries)
        reranker = self._reranker()
        return [self._feedback(reranker, text, first, i) for i, text in enumerate(queries)]

    @in_java
    def _feedback(self, reranker: Any, text: str, queries: Any, i: int) -> dict[str, float]:
        query = queries.get(i)
        lucene = searcher(self.index.reader, self.similarity)
        by_docno = java_class("io.anserini.search.SearchCollection").BREAK_SCORE_TIES_BY_DOCID
        best = lucene.search(query, min(self.fb_docs, max(len(self.index.reader), 1)), by_docno, True)
        if not best.scoreDocs:
            return {}
        documents = java_class("io.anserini.search.ScoredDocs").fromTopDocs(best, lucene)
        terms = java_class("java.util.Arrays").asList(*self.index.analysis.terms(text))
        context = java_class("io.anserini.rerank.RerankerContext")(
            lucene, None, query, None, clean(text), terms, None, _one_hit()
        )
        reranker.rerank(documents, context)
        weights = context.feedbackTerms
        return {str(entry.getKey()): float(entry.getValue()) for entry in weights.entrySet().toArray()}

    @in_java
    def _reranker(self) -> Any:
        analyzer, no_class, filter_terms = self.index.analysis.to_java(), None, True
        fb_terms, fb_docs = (min(number, 2**31 - 1) for number in (self.fb_terms, self.fb_docs))
        return java_class("io.anserini.rerank.lib.Rm3Reranker")(
            analyzer, no_class, self.field, fb_terms, fb_docs, self.original_weight, False, filter_terms
        )


def _one_hit() -> Any:
    """Arguments that keep Anserini's second retrieval short; only its query is used."""
    arguments = java_class("io.anserini.search.SearchCollection$Args")()
    arguments.hits = 1
    arguments.arbitraryScoreTieBreak = True
    return arguments


class RM3(RetrieverOverBase):
    """RM3 over BM25 or query likelihood; made by :meth:`LuceneIndex.rm3`."""

    label = "RM3"
    takes_weights = False
    own_parameters = ("fb_docs", "fb_terms", "original_weight")

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
        if min(fb_docs, fb_terms) < 1:
            raise ValueError(f"fb_docs={fb_docs}, fb_terms={fb_terms}, but feedback needs at least one of each")
        if not 0 <= original_weight <= 1:
            raise ValueError(f"original_weight={original_weight}, but it must be between 0 and 1")
        self.fb_docs = fb_docs
        self.fb_terms = fb_terms
        self.original_weight = original_weight
        super().__init__(index, base=base, k1=k1, b=b, mu=mu, field=field, num_results=num_results, verbose=verbose)

    def builder(self, *, weighted: bool) -> RM3Queries:
        """Expanded queries."""
        self.index.require_vectors(self.field)
        return RM3Queries(self.index, self.similarity(), self.field, self.fb_docs, self.fb_terms, self.original_weight)
