"""A Lucene index as a PyTerrier artifact, and the transformers that it makes."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyterrier as pt

from pt_neural.lucene.index.anserini import KIND, index_collection
from pt_neural.lucene.index.directory import IndexDirectory
from pt_neural.lucene.index.indexer import LuceneIndexer
from pt_neural.lucene.index.text import TextLoader
from pt_neural.lucene.search.retrievers import BM25, QL
from pt_neural.lucene.search.rm3 import RM3
from pt_neural.lucene.search.sdm import SDM


class LuceneIndex(IndexDirectory, pt.Artifact, pt.Indexer):
    """A Lucene index that Anserini, Pyserini or this package has built, or that is yet to be built.

    Args:
        path: The directory of the index.
        stemmer: The stemmer of queries: ``"porter"``, ``"krovetz"`` or ``"none"``. Default: the one that the index
            was built with, if this package has built it, or else Anserini's default, ``"porter"``.
        stopwords: The stop words of queries: ``"default"``, ``"none"`` or a file of words. Default: those of the index.

    Example:
        >>> import pt_neural as pn
        >>> index = pn.LuceneIndex("animals.lucene").index([{"docno": "d1", "text": "The okapi"}])
        >>> index.bm25().search("okapi")["docno"].tolist()
        ['d1']
    """

    ARTIFACT_TYPE = KIND["type"]
    ARTIFACT_FORMAT = KIND["format"]

    def __init__(self, path: str | Path, *, stemmer: str | None = None, stopwords: str | None = None):
        IndexDirectory.__init__(self, path, stemmer=stemmer, stopwords=stopwords)
        pt.Artifact.__init__(self, self.path)

    def indexer(self, **options: Any) -> LuceneIndexer:
        """A transformer that builds this index; see :class:`LuceneIndexer` for the options."""
        return LuceneIndexer(self, **options)

    def index(self, iter: Iterable[Mapping[str, Any]], **options: Any) -> "LuceneIndex":
        """Build this index from documents with ``docno`` and text fields: ``indexer(**options).index(iter)``."""
        return self.indexer(**options).index(iter)

    def index_collection(self, collection: str, input: str | Path, **options: Any) -> "LuceneIndex":
        """Build this index with Anserini's IndexCollection, from files in a format that it knows.

        Args:
            collection: Anserini's collection class, such as ``"TrecCollection"`` or ``"HtmlCollection"``.
            input: The directory of the files.
            **options: ``positions``, ``vectors``, ``stemmer``, ``stopwords``, ``overwrite`` and ``verbose`` as in
                :class:`LuceneIndexer`; ``raw`` (False) stores each document as it is; ``generator`` is Anserini's
                document generator, ``threads`` (4) the number of files read at a time, and ``options`` a list of
                other options of IndexCollection, such as ``["-language", "de"]``.

        Raises:
            ValueError: If Anserini refuses an option or finds no documents.
        """
        index_collection(self.path, collection, input, **options)
        return self

    def index_inputs(self) -> list[list[str]]:
        """What a document needs, for PyTerrier's inspection."""
        return self.indexer().index_inputs()

    def bm25(self, k1: float = 0.9, b: float = 0.4, **options: Any) -> BM25:
        """Lucene's BM25 (Robertson & Zaragoza 2009, without the constant factor k1 + 1).

        Args:
            k1: How slowly the effect of further occurrences of a term levels off, at least 0.
            b: How much the length of a document counts, between 0 and 1.
            **options: ``num_results`` (1000); ``field`` (``"contents"``, which holds all text, or one of the separate
                fields); ``verbose`` (False) for a progress bar.

        Returns:
            A transformer that retrieves, or scores rows with a docno; see :meth:`Retriever.transform`.

        Example::

            candidates = index.bm25(num_results=100)(topics)
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
            **options: ``mu`` (1000), or ``k1`` (0.9) and ``b`` (0.4), of the base; otherwise as in :meth:`bm25`.
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
            **options: ``mu`` (1000), or ``k1`` (0.9) and ``b`` (0.4), of the base; otherwise as in :meth:`bm25`.
        """
        return RM3(self, base=base, fb_docs=fb_docs, fb_terms=fb_terms, original_weight=original_weight, **options)

    def text_loader(self, fields: Sequence[str] = ("title", "text"), *, verbose: bool = False) -> TextLoader:
        """A transformer that adds text fields to rows with a docno; see :class:`TextLoader`."""
        return TextLoader(self, fields, verbose=verbose)


def lucene_metadata(path: str, listing: Sequence[str]) -> dict[str, str] | None:
    """Metadata of an index that Anserini or Pyserini has built, without ``pt_meta.json``; None for other directories.

    PyTerrier finds this through the entry point ``pyterrier.artifact.metadata_adapter``, and calls it with a
    directory and the files in it.
    """
    if any(name.startswith("segments_") for name in listing):
        return {**KIND, "package_hint": "pt-neural"}
    return None
