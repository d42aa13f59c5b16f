"""RM3: a first retrieval, a relevance model of its best documents, a second retrieval with the expanded query."""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from pt_neural._arguments import checked_choice
from pt_neural._frames import Hits
from pt_neural.lucene.index.directory import CONTENTS, IndexDirectory
from pt_neural.lucene.java.handles import clean
from pt_neural.lucene.java.jvm import in_java, java_class
from pt_neural.lucene.search.expansion import QueryExpansion
from pt_neural.lucene.search.queries import TextQueries, WeightedQueries
from pt_neural.lucene.search.retrievers import RetrieverOverBase, query_texts
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

    def expand(self, queries: Sequence[str], feedback: Hits | None = None) -> list[dict[str, float]]:
        """Terms and weights of each query, as in the column ``query_toks``; none if no document matches.

        Args:
            queries: The texts.
            feedback: The feedback documents; None to retrieve them.
        """
        first = TextQueries(self.index.analysis, self.field).build(queries)
        reranker = self._reranker()
        given: list[Hits | None] = [None] * len(queries)
        if feedback is not None:
            ends = np.searchsorted(feedback.queries, np.arange(len(queries) + 1))
            given = [Hits(*(part[start:end] for part in feedback)) for start, end in itertools.pairwise(ends)]
        return [self._feedback(reranker, text, first, i, given[i]) for i, text in enumerate(queries)]

    @in_java
    def _feedback(self, reranker: Any, text: str, queries: Any, i: int, given: Hits | None) -> dict[str, float]:
        query = queries.get(i)
        lucene = searcher(self.index.reader, self.similarity)
        best = self._best(lucene, query) if given is None else _top_documents(given)
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

    def _best(self, lucene: Any, query: Any) -> Any:
        by_docno = java_class("io.anserini.search.SearchCollection").BREAK_SCORE_TIES_BY_DOCID
        return lucene.search(query, min(self.fb_docs, max(len(self.index.reader), 1)), by_docno, True)

    @in_java
    def _reranker(self) -> Any:
        analyzer, no_class, filter_terms = self.index.analysis.to_java(), None, True
        fb_terms, fb_docs = (min(number, 2**31 - 1) for number in (self.fb_terms, self.fb_docs))
        return java_class("io.anserini.rerank.lib.Rm3Reranker")(
            analyzer, no_class, self.field, fb_terms, fb_docs, self.original_weight, False, filter_terms
        )


def _top_documents(hits: Hits) -> Any:
    """Documents and their scores as Lucene's result of a search."""
    hit = java_class("org.apache.lucene.search.ScoreDoc")
    hits_of_query = [hit(int(number), float(score)) for number, score in zip(hits.documents, hits.scores, strict=True)]
    exact = java_class("org.apache.lucene.search.TotalHits$Relation").EQUAL_TO
    total = java_class("org.apache.lucene.search.TotalHits")(len(hits_of_query), exact)
    return java_class("org.apache.lucene.search.TopDocs")(total, hits_of_query)


def _one_hit() -> Any:
    """Arguments that keep Anserini's second retrieval short; only its query is used."""
    arguments = java_class("io.anserini.search.SearchCollection$Args")()
    arguments.hits = 1
    arguments.arbitraryScoreTieBreak = True
    return arguments


class RM3(RetrieverOverBase):
    """RM3 over BM25 or query likelihood; made by :meth:`LuceneIndex.rm3`.

    It retrieves twice. :meth:`rewriter` gives the step between the two retrievals alone.
    """

    label = "RM3"
    takes_weights = False
    expands = True
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

    def rewriter(self, *, keep_documents: bool = False) -> "RM3Rewriter":
        """What RM3 does between its two retrievals: a transformer from results, or queries, to expanded queries.

        Args:
            keep_documents: Return incoming results with all rows and columns, and ``query_toks`` beside them, so that
                the same documents can be scored anew.

        Example::

            bm25 >> index.rm3().rewriter() >> bm25  # as index.rm3(), written out
        """
        return RM3Rewriter(self, keep_documents=keep_documents)


class RM3Rewriter(QueryExpansion):
    """Expands queries by RM3; made by :meth:`RM3.rewriter`.

    The terms of the relevance model of the feedback documents, interpolated with the query, are in the column
    ``query_toks``, which BM25 and query likelihood read. A column ``query_toks`` that comes in is replaced.

    Args:
        rm3: The retriever, whose settings hold; it retrieves the feedback documents if none come in.
        keep_documents: Return incoming results with all rows and columns, and ``query_toks`` beside them.
    """

    schematic: ClassVar[dict[str, Any]] = {"label": "RM3", "help_url": None}

    def __init__(self, rm3: RM3, *, keep_documents: bool = False):
        self.rm3 = rm3
        self.keep_documents = checked_choice("keep_documents", keep_documents, (True, False))

    @property
    def index(self) -> IndexDirectory:
        """The index of the retriever."""
        return self.rm3.index

    @property
    def fb_docs(self) -> int:
        """Number of feedback documents."""
        return self.rm3.fb_docs

    def on(self, index: IndexDirectory) -> "RM3Rewriter":
        """The same rewriter of another index."""
        return RM3Rewriter(self.rm3.on(index), keep_documents=self.keep_documents)

    def expand(self, queries: pd.DataFrame, feedback: Hits | None) -> list[dict[str, float]]:
        """Terms and weights of each query; a query without feedback documents keeps its own terms."""
        self.index.require_field(self.rm3.field)
        texts, analysis = query_texts(queries), self.index.analysis
        expanded = self.rm3.builder(weighted=False).expand(texts, feedback)
        return [found or dict(Counter(analysis.terms(text))) for text, found in zip(texts, expanded, strict=True)]

    def __repr__(self) -> str:
        kept = ", keep_documents=True" if self.keep_documents else ""
        return f"RM3Rewriter({self.rm3!r}{kept})"

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, RM3Rewriter) and self.rm3 == other.rm3
        return same and self.keep_documents == other.keep_documents

    def __hash__(self) -> int:
        return hash((RM3Rewriter, self.rm3, self.keep_documents))
