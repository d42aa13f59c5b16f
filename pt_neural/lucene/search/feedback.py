"""Feedback by Anserini: retrieve, expand the query by terms of the best documents, and retrieve again."""

import itertools
import operator
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from pt_neural._arguments import checked_choice, checked_number
from pt_neural._frames import Hits
from pt_neural.lucene.index.directory import IndexDirectory
from pt_neural.lucene.java.handles import clean
from pt_neural.lucene.java.jvm import in_java, java_class
from pt_neural.lucene.search.expansion import QueryExpansion
from pt_neural.lucene.search.queries import TextQueries, WeightedQueries
from pt_neural.lucene.search.retrievers import RetrieverOverBase, query_texts
from pt_neural.lucene.search.scoring import Similarity, searcher

MOST = 2**31 - 1  # of Java's integers


@dataclass(frozen=True)
class FeedbackQueries:
    """Plain text, expanded by one of Anserini's implementations of feedback."""

    index: IndexDirectory
    similarity: Similarity
    field: str
    fb_docs: int
    fb_terms: int
    slow: ClassVar[bool] = True

    @abstractmethod
    def reranker(self) -> Any:
        """Anserini's implementation."""

    def numbers(self) -> list[int]:
        """``fb_terms`` and ``fb_docs`` as Java's integers; pt.GridSearch may set NumPy's."""
        return [min(operator.index(number), MOST) for number in (self.fb_terms, self.fb_docs)]

    def build(self, queries: Sequence[str]) -> Any:
        """Lucene queries from texts and the terms that feedback adds."""
        return WeightedQueries(self.field).build(self.expand(queries))

    def expand(self, queries: Sequence[str], feedback: Hits | None = None) -> list[dict[str, float]]:
        """Terms and weights of each query, as in the column ``query_toks``; none if no document matches.

        Equal scores of documents that are retrieved here are ordered by ascending docno, as in Anserini's published
        figures; in results they are ordered by descending docno, so that other documents may be given as the best.

        Args:
            queries: The texts.
            feedback: The feedback documents, of which those without terms are left out; None to retrieve them.
        """
        first = TextQueries(self.index.analysis, self.field).build(queries)
        reranker = self.reranker()
        given: list[Hits | None] = [None] * len(queries)
        if feedback is not None:
            ends = np.searchsorted(feedback.queries, np.arange(len(queries) + 1))
            given = [Hits(*(part[start:end] for part in feedback)) for start, end in itertools.pairwise(ends)]
        return [self._feedback(reranker, text, first, i, given[i]) for i, text in enumerate(queries)]

    @in_java
    def _feedback(self, reranker: Any, text: str, queries: Any, i: int, given: Hits | None) -> dict[str, float]:
        query = queries.get(i)
        lucene = searcher(self.index.reader, self.similarity)
        best = self._best(lucene, query) if given is None else _top_documents(self._with_terms(given))
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

    def _with_terms(self, given: Hits) -> Hits:
        """The documents that have terms in the field; Anserini would miss the term vectors of the others."""
        vectors = self.index.reader.java.termVectors()
        found = [vectors.get(int(document), self.field) is not None for document in given.documents]
        return Hits(*(part[np.array(found, dtype=bool)] for part in given))

    def _best(self, lucene: Any, query: Any) -> Any:
        by_docno = java_class("io.anserini.search.SearchCollection").BREAK_SCORE_TIES_BY_DOCID
        return lucene.search(query, min(operator.index(self.fb_docs), max(len(self.index.reader), 1)), by_docno, True)


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


class FeedbackRetriever(RetrieverOverBase):
    """Base of retrievers that retrieve twice; :meth:`rewriter` gives the step between the two retrievals alone."""

    takes_weights = False
    expands = True
    rewrites_by: ClassVar[type["FeedbackRewriter"]]

    def __init__(self, index: IndexDirectory, *, fb_docs: int, fb_terms: int, **options: Any):
        self.fb_docs = checked_number("fb_docs", fb_docs, int, least=1)
        self.fb_terms = checked_number("fb_terms", fb_terms, int, least=1)
        super().__init__(index, **options)

    def rewriter(self, *, keep_documents: bool = False) -> "FeedbackRewriter":
        """The step between the two retrievals: a transformer from results, or queries, to expanded queries.

        Args:
            keep_documents: Return incoming results with all rows and columns, and ``query_toks`` beside them, so that
                the same documents can be scored anew.

        Example::

            bm25 >> index.rm3().rewriter() >> bm25  # index.rm3(), written out

        Where scores tie at the last of ``fb_docs``, the two may take different documents: ``index.rm3()`` takes equal
        ones by ascending docno, as for Anserini's published figures, and results are ordered by descending docno.
        """
        return self.rewrites_by(self, keep_documents=keep_documents)


class FeedbackRewriter(QueryExpansion):
    """Base of rewriters that expand queries by feedback; made by :meth:`FeedbackRetriever.rewriter`.

    The terms that feedback finds, and those of the query, are with their weights in the column ``query_toks``, which
    BM25 and query likelihood read. A column ``query_toks`` that comes in is replaced.

    Args:
        retriever: The retriever, whose settings hold; it retrieves the feedback documents if none come in.
        keep_documents: Return incoming results with all rows and columns, and ``query_toks`` beside them.
    """

    def __init__(self, retriever: FeedbackRetriever, *, keep_documents: bool = False):
        self.retriever = retriever
        self.keep_documents = checked_choice("keep_documents", keep_documents, (True, False))

    @property
    def index(self) -> IndexDirectory:
        """The index of the retriever."""
        return self.retriever.index

    @property
    def fb_docs(self) -> int:
        """Number of feedback documents."""
        return self.retriever.fb_docs

    def on(self, index: IndexDirectory) -> Self:
        """The same rewriter of another index."""
        return type(self)(self.retriever.on(index), keep_documents=self.keep_documents)

    def expand(self, queries: pd.DataFrame, feedback: Hits | None) -> list[dict[str, float]]:
        """Terms and weights of each query; a query without feedback documents keeps its own terms."""
        self.index.require_field(self.retriever.field)
        texts, analysis = query_texts(queries), self.index.analysis
        expanded = self.retriever.builder(weighted=False).expand(texts, feedback)
        return [found or dict(Counter(analysis.terms(text))) for text, found in zip(texts, expanded, strict=True)]

    def __repr__(self) -> str:
        kept = ", keep_documents=True" if self.keep_documents else ""
        return f"{type(self).__name__}({self.retriever!r}{kept})"

    def __eq__(self, other: object) -> bool:
        same = type(self) is type(other) and self.retriever == other.retriever
        return same and self.keep_documents == other.keep_documents

    def __hash__(self) -> int:
        return hash((type(self), self.retriever, self.keep_documents))
