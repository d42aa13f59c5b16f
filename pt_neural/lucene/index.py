"""A Lucene index as a PyTerrier artifact, and the transformers that it makes."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyterrier as pt

from pt_neural.lucene.analysis import Analysis
from pt_neural.lucene.collections import index_collection
from pt_neural.lucene.indexing import LuceneIndexer
from pt_neural.lucene.reader import Reader, open_reader
from pt_neural.lucene.retrievers import BM25, CONTENTS, QL
from pt_neural.lucene.rm3 import RM3
from pt_neural.lucene.sdm import SDM
from pt_neural.lucene.text_loader import TextLoader

TYPE = "sparse_index"
FORMAT = "anserini"


class LuceneIndex(pt.Artifact, pt.Indexer):
    """A Lucene index that Anserini, Pyserini or this package has built, or that is to be built.

    Args:
        path: The directory of the index.
        stemmer: Stemmer of queries. Default: the one that the index was built with where this package has built
            it, or else Anserini's default, ``"porter"``. Also ``"krovetz"`` and ``"none"``.
        stopwords: ``"default"``, ``"none"`` or a file of words, likewise.

    Example:
        >>> import pt_neural as pn
        >>> index = pn.LuceneIndex("animals.lucene").index([{"docno": "d1", "text": "The okapi"}])
        >>> index.bm25().search("okapi")["docno"].tolist()
        ['d1']
    """

    ARTIFACT_TYPE = TYPE
    ARTIFACT_FORMAT = FORMAT

    def __init__(self, path: str | Path, *, stemmer: str | None = None, stopwords: str | None = None):
        super().__init__(Path(path).expanduser().absolute())  # Java never learns of a change of directory
        self.stemmer = stemmer
        self.stopwords = stopwords

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.name

    def built(self) -> bool:
        """Whether there is a complete Lucene index at the path."""
        return any(self.path.glob("segments_*"))

    @property
    def reader(self) -> Reader:
        """The opened index, shared by all who use the same path."""
        return open_reader(self.path)

    @property
    def analysis(self) -> Analysis:
        """How queries to this index become terms."""
        return Analysis.of_index(self.path, stemmer=self.stemmer, stopwords=self.stopwords)

    def __len__(self) -> int:
        return len(self.reader.docnos)

    def __bool__(self) -> bool:
        return True  # and not a question of its length

    def docnos(self) -> np.ndarray:
        """All docnos in Lucene's order, an object array of strings of shape ``(len(index),)``."""
        return self.reader.docnos.copy()

    def fields(self) -> list[str]:
        """Names of the fields that can be searched."""
        return sorted(self.reader.fields)

    def require_field(self, field: str) -> None:
        """Raise ValueError if the index cannot search ``field``."""
        if field not in self.reader.fields:
            raise ValueError(
                f"{self.path} has no field {field!r}; it has {', '.join(self.fields())}. Fields of their own are "
                f"made while indexing: index.indexer(separate_fields=[{field!r}])"
            )

    def require_positions(self, field: str) -> None:
        """Raise ValueError if the index has no positions of ``field``, which windows need."""
        if not self.reader.fields[field].positions:
            raise ValueError(f"{self.path} was built without positions, which SDM needs; {_rebuild('positions')}")

    def require_vectors(self, field: str) -> None:
        """Raise ValueError if the index has no term vectors of ``field``, which feedback needs."""
        if not self.reader.fields[field].vectors:
            needs = "without term vectors, which RM3 and LatentConceptExpansion need"
            raise ValueError(f"{self.path} was built {needs}; {_rebuild('vectors')}")

    def indexer(self, **options: Any) -> LuceneIndexer:
        """A transformer that builds this index; see :class:`LuceneIndexer` for the options."""
        return LuceneIndexer(self, **options)

    def index(self, iter: Iterable[Mapping[str, Any]], **options: Any) -> "LuceneIndex":
        """Build this index from documents with ``docno`` and text fields: ``indexer(**options).index(iter)``."""
        return self.indexer(**options).index(iter)

    def index_collection(self, collection: str, input: str | Path, **options: Any) -> "LuceneIndex":
        """Build this index by Anserini's IndexCollection, from files in a format that it knows.

        Args:
            collection: Anserini's collection class, such as ``"TrecCollection"`` or ``"HtmlCollection"``.
            input: The directory of the files.
            **options: ``positions``, ``vectors``, ``stemmer``, ``stopwords``, ``overwrite`` and ``verbose`` as in
                :class:`LuceneIndexer`; ``raw`` stores each document as it came (default False); ``generator``
                is Anserini's document generator, ``threads`` (4) the number of files read at a time, and
                ``options`` a list of other options of IndexCollection, such as ``["-language", "de"]``.

        Raises:
            ValueError: If Anserini refuses an option or finds no documents.
        """
        return index_collection(self, collection, input, **options)

    def index_inputs(self) -> list[list[str]]:
        """What a document needs, for PyTerrier's inspection."""
        return self.indexer().index_inputs()

    def bm25(self, k1: float = 0.9, b: float = 0.4, **options: Any) -> BM25:
        """BM25 as Lucene has it (Robertson & Zaragoza 2009, without the constant factor k1 + 1).

        Args:
            k1: How slowly further occurrences of a term stop to count, at least 0.
            b: How much the length of a document counts, between 0 and 1.
            **options: ``num_results`` (default 1000); ``field`` (``"contents"``, which holds all text, or one of
                the separate fields); ``verbose`` (False) for a progress bar.

        Returns:
            A transformer that retrieves, or scores rows with a docno; see :meth:`Retriever.transform`.

        Example::

            candidates = index.bm25(num_results=100)(topics)
            scored_by_title = index.bm25(field="title")(candidates)
        """
        return BM25(self, k1=k1, b=b, **options)

    def ql(self, mu: float = 1000, **options: Any) -> QL:
        """Query likelihood with Dirichlet smoothing (Zhai & Lafferty 2004), as Lucene and Anserini have it.

        Not quite the textbook's: terms that a document lacks add nothing, what a term adds is never negative, and
        lengths are kept in one byte.

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
            weights: Of terms, of ordered and of unordered windows.
            window: Positions that an unordered window spans, at least 2.
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
        """Relevance feedback RM3 (Abdul-Jaleel et al. 2004) by Anserini's own implementation.

        Args:
            base: ``"bm25"`` or ``"ql"``, for both retrievals.
            fb_docs: Number of documents of the first retrieval that the relevance model is made of.
            fb_terms: Number of its terms that are kept.
            original_weight: Weight of the query itself in the longer query, between 0 and 1.
            **options: ``mu`` (1000), or ``k1`` (0.9) and ``b`` (0.4), of the base; otherwise as in :meth:`bm25`.
        """
        return RM3(self, base=base, fb_docs=fb_docs, fb_terms=fb_terms, original_weight=original_weight, **options)

    def text_loader(self, fields: Sequence[str] = ("title", "text"), *, verbose: bool = False) -> TextLoader:
        """A transformer that adds text fields to rows with a docno; see :class:`TextLoader`."""
        return TextLoader(self, fields, verbose=verbose)

    def document_frequencies(self, terms: Sequence[str], field: str = CONTENTS) -> np.ndarray:
        """In how many documents each term occurs, int64; terms as :attr:`analysis` makes them."""
        return self.reader.document_frequencies(terms, field)

    def __repr__(self) -> str:
        return f"LuceneIndex({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LuceneIndex) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Any, ...]:
        return (self.path, self.stemmer, self.stopwords)


def _rebuild(option: str) -> str:
    return f"build it again with index.indexer({option}=True, overwrite=True)"
