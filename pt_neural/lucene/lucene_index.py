"""A Lucene index as a PyTerrier artifact."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyterrier as pt

from pt_neural.lucene.index.anserini import KIND, index_collection
from pt_neural.lucene.index.indexer import LuceneIndexer
from pt_neural.lucene.index.prebuilt import download
from pt_neural.lucene.search.impact import Impact
from pt_neural.lucene.searchable import SearchableIndex


class LuceneIndex(SearchableIndex, pt.Indexer):
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

    @classmethod
    def from_prebuilt(cls, name: str, **options: Any) -> "LuceneIndex":
        """One of the prebuilt indexes of Pyserini, downloaded by Pyserini where it is not there yet.

        Pyserini keeps them in the folder ``PYSERINI_CACHE``, or else ``~/.cache/pyserini``.

        Args:
            name: As Pyserini names it: ``"msmarco-v1-passage"``, or ``"msmarco-v1-passage.splade-pp-ed"`` for
                :meth:`impact`.
            **options: ``stemmer`` and ``stopwords`` of queries, as above.

        Raises:
            ValueError: If there is no such index, or if it is one of vectors.
            ImportError: If pyserini cannot be imported.
            OSError: If the download fails, or is not what Pyserini expects.

        Example::

            index = pn.LuceneIndex.from_prebuilt("msmarco-v1-passage")  # 2.2 GB
        """
        return cls(download(name), **options)

    def impact(self, **options: Any) -> Impact:
        """Learned sparse retrieval over the impacts of an index that Anserini has built with ``-impact -pretokenized``.

        The score of a document is the sum over the terms of the query: weight in the query times impact in the
        document. Weights come from a column ``query_toks``, as query encoders of PyTerrier make it; without, a query
        is cut at white space and each term weighs as much as it is frequent.

        Args:
            **options: ``num_results`` (1000), ``field`` and ``verbose`` as in :meth:`bm25`.

        Returns:
            A transformer that retrieves, or scores rows with a docno; see :meth:`Retriever.transform`.

        Example::

            splade = pyterrier_splade.Splade()
            pipeline = splade.query_encoder() >> index.impact(num_results=100)
        """
        return Impact(self, **options)

    def indexer(self, **options: Any) -> LuceneIndexer:
        """A transformer that builds this index; see :class:`LuceneIndexer` for the options."""
        return LuceneIndexer(self, **options)

    def index(self, iter: Iterable[Mapping[str, Any]] | pd.DataFrame, **options: Any) -> "LuceneIndex":
        """Build this index from documents with ``docno`` and text fields: ``indexer(**options).index(iter)``.

        Args:
            iter: Documents as dicts, or a frame with a row for each.
            **options: See :class:`LuceneIndexer`.
        """
        return self.indexer(**options).index(iter)

    def index_collection(self, collection: str, input: str | Path, **options: Any) -> "LuceneIndex":
        """Build this index with Anserini's IndexCollection, from files in a format that it knows.

        Args:
            collection: Anserini's collection class, such as ``"TrecCollection"`` or ``"HtmlCollection"``.
            input: The directory of the files.
            **options: ``positions``, ``vectors``, ``stemmer``, ``stopwords``, ``overwrite`` and ``verbose`` as in
                :class:`LuceneIndexer`; ``raw`` (False) stores each document as it is; ``generator`` is Anserini's
                document generator, ``threads`` (4) the number of files read at a time, and ``options`` a list of
                other options of IndexCollection, such as ``["-impact", "-pretokenized"]`` for :meth:`impact`.

        Anserini leaves out what follows in a file that it cannot read to its end; a warning then says so.

        Raises:
            ValueError: If Anserini refuses an option or finds no documents, or if one of ``options`` changes how text
                is analysed, which queries would not follow: that is what ``stemmer`` and ``stopwords`` are for.
        """
        index_collection(self.path, collection, input, **options)
        return self

    def index_inputs(self) -> list[list[str]]:
        """What a document needs, for PyTerrier's inspection."""
        return self.indexer().index_inputs()


def lucene_metadata(path: str, listing: Sequence[str]) -> dict[str, str] | None:
    """Metadata of an index that Anserini or Pyserini has built, without ``pt_meta.json``; None for other directories.

    PyTerrier finds this through the entry point ``pyterrier.artifact.metadata_adapter``, and calls it with a
    directory and the files in it.
    """
    if any(name.startswith("segments_") for name in listing):
        return {**KIND, "package_hint": "pt-neural"}
    return None
