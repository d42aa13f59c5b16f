"""What an index in one part and one in shards have in common: the transformers that they make."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyterrier as pt

from pt_neural.lucene.index.directory import IndexDirectory
from pt_neural.lucene.index.text import TextLoader
from pt_neural.lucene.search.retrievers import BM25, QL
from pt_neural.lucene.search.rm3 import RM3
from pt_neural.lucene.search.rocchio import RocchioRetriever
from pt_neural.lucene.search.sdm import SDM


class SearchableIndex(IndexDirectory, pt.Artifact):
    """An artifact that retrieves; the arguments are those of :class:`IndexDirectory`."""

    def __init__(self, path: str | Path, *, stemmer: str | None = None, stopwords: str | None = None):
        IndexDirectory.__init__(self, path, stemmer=stemmer, stopwords=stopwords)
        pt.Artifact.__init__(self, self.path)

    def bm25(self, k1: float = 0.9, b: float = 0.4, **options: Any) -> BM25:
        """Lucene's BM25 (Robertson & Zaragoza 2009, without the constant factor k1 + 1).

        Args:
            k1: How slowly the effect of further occurrences of a term levels off, at least 0.
            b: How much the length of a document counts, between 0 and 1.
            **options: ``num_results`` (1000); ``phrases`` (False), whether words between double quotes are phrases that
                match only where they follow each other; ``field`` (``"contents"``, which holds all text, or one of the
                separate fields); ``verbose`` (False) for a progress bar.

        Returns:
            A transformer that retrieves, or scores rows with a docno; see :meth:`Retriever.transform`.

        Example::

            candidates = index.bm25(num_results=100)(topics)
            index.bm25(phrases=True).search('"sparse matrix" product')
            scored_by_title = index.bm25(field="title")(candidates)
        """
        return BM25(self, k1=k1, b=b, **options)

    def ql(self, mu: float = 1000, **options: Any) -> QL:
        """Query likelihood with Dirichlet smoothing (Zhai & Lafferty 2004) as implemented in Lucene.

        Unlike in the textbook formula, query terms that are not in a document add nothing, no term adds less than 0,
        and document lengths are stored in one byte.

        Args:
            mu: Weight of the collection against the document, above 0.
            **options: As in :meth:`bm25`.
        """
        return QL(self, mu=mu, **options)

    def sdm(
        self,
        base: str = "ql",
        weights: tuple[float, float, float] = (0.85, 0.10, 0.05),
        window: int = 8,
        **options: Any,
    ) -> SDM:
        """The sequential dependence model of Metzler & Croft (2005); :class:`SDM` says how windows are scored.

        Args:
            base: ``"ql"`` or ``"bm25"``.
            weights: The weights of terms, of ordered and of unordered windows.
            window: Number of positions that an unordered window spans, at least 2.
            **options: ``mu`` (1000), or ``k1`` (0.9) and ``b`` (0.4), of the base; otherwise as in :meth:`bm25`,
                without ``phrases``.
        """
        return SDM(self, base=base, weights=weights, window=window, **options)

    def rm3(
        self,
        base: str = "bm25",
        fb_docs: int = 10,
        fb_terms: int = 10,
        original_weight: float = 0.5,
        **options: Any,
    ) -> RM3:
        """Pseudo-relevance feedback by RM3 (Abdul-Jaleel et al. 2004), in Anserini's own implementation.

        Args:
            base: ``"bm25"`` or ``"ql"``, for both retrievals.
            fb_docs: Number of documents from the first retrieval that the relevance model is estimated from.
            fb_terms: Number of its terms to keep.
            original_weight: Weight of the query itself in the expanded query, between 0 and 1.
            **options: ``mu`` (1000), or ``k1`` (0.9) and ``b`` (0.4), of the base; otherwise as in :meth:`bm25`,
                without ``phrases``.

        Returns:
            A transformer that retrieves twice. ``index.rm3().rewriter()`` is the step between the two retrievals alone:
            ``bm25 >> index.rm3().rewriter() >> bm25``.
        """
        return RM3(self, base=base, fb_docs=fb_docs, fb_terms=fb_terms, original_weight=original_weight, **options)

    def rocchio(
        self,
        base: str = "bm25",
        fb_docs: int = 10,
        fb_terms: int = 10,
        alpha: float = 1.0,
        beta: float = 0.75,
        **options: Any,
    ) -> RocchioRetriever:
        """Pseudo-relevance feedback by Rocchio's formula (1971), in Anserini's own implementation.

        Documents are not taken as non-relevant. :class:`pn.Rocchio <pt_neural.Rocchio>` is the baseline of the SSI
        paper, over unstemmed words, which re-ranks.

        Args:
            base: ``"bm25"`` or ``"ql"``, for both retrievals.
            fb_docs: Number of documents from the first retrieval whose mean expands the query.
            fb_terms: Number of terms of the mean to keep.
            alpha: Weight of the query itself, at least 0.
            beta: Weight of the mean, at least 0.
            **options: As in :meth:`rm3`.

        Returns:
            A transformer that retrieves twice; its ``rewriter()`` is the step between the two retrievals alone:
            ``bm25 >> index.rocchio().rewriter() >> bm25``.
        """
        return RocchioRetriever(self, base=base, fb_docs=fb_docs, fb_terms=fb_terms, alpha=alpha, beta=beta, **options)

    def text_loader(self, fields: Sequence[str] | None = None, *, verbose: bool = False) -> TextLoader:
        """A transformer that adds text fields to rows with a docno; see :class:`TextLoader`.

        Args:
            fields: Names of the fields; None for all that the index holds.
            verbose: Show a progress bar.
        """
        return TextLoader(self, fields, verbose=verbose)
