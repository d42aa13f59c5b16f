"""Rankers of the form f(q, d) = q'Wd over tf-idf vectors."""

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._frames import with_scores
from pt_neural.rankers.bilinear_retriever import BilinearRetriever
from pt_neural.rankers.columns import accept_candidates, distinct_queries, validated
from pt_neural.rankers.kept_vectors import KeptVectors
from pt_neural.rankers.ranker import require_same_fields
from pt_neural.rankers.term_vectors import TermVectors
from pt_neural.rankers.vectors import corpus_batches, forward_index_batches
from pt_neural.rankers.weighed import Weighed, products, query_blocks, stacked
from pt_neural.text import ForwardIndex, PackedSequences, Vocabulary


class BilinearRanker(KeptVectors):
    """Base of the rankers whose score is q'Wd for tf-idf vectors q and d (SSI paper, section 2.2).

    Whatever W is, a query becomes a latent vector, weights of the documents' terms, or both, and so does a document,
    so that the score is the sum of two dot products. The transformer re-ranks: frames with ``qid, query, docno`` and
    the text, or only ``docno`` where ``documents`` or ``vectors`` are given, get a new ``score`` and ``rank``, ties by
    docno.

    A query without any word that the model knows scores 0 with every document that has one.

    Args:
        fields: Text columns, joined by a space; those that a frame lacks are passed over, one must be there. None for
            those of ``documents``, or ``title`` and ``text`` without a forward index.
        documents: A forward index: re-ranking then needs ``docno`` only, no text and no tokenising.
        vectors: What :meth:`index` made, or the path of it: re-ranking then only multiplies vectors.
        batch_size: Documents weighed at a time.
        verbose: Show a progress bar while weighing documents.

    Attributes:
        least_score: What a document without any known word scores.
    """

    least_score = 0.0

    @abstractmethod
    def weigh_queries(self, texts: Sequence[str]) -> Weighed:
        """Weights of queries."""

    @abstractmethod
    def weigh_documents(self, texts: Sequence[str]) -> Weighed:
        """Weights of document texts."""

    @abstractmethod
    def weigh_sequences(self, sequences: PackedSequences, vocabulary: Vocabulary) -> Weighed:
        """Weights of documents given as term ids over ``vocabulary``."""

    def _open(self, vectors: TermVectors | str | os.PathLike) -> TermVectors:
        return TermVectors.of(vectors)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Re-rank a result frame; see the class for the columns that it needs."""
        self.check_columns(inp, self)
        return self.score(inp)

    def check_columns(self, frame: pd.DataFrame, context: pt.Transformer) -> None:
        """Raise an error in the name of ``context`` where the columns of a frame are not enough to score its rows."""
        with validated(frame, context, self.fields) as v:
            accept_candidates(v, self.fields, kept=self.documents is not None or self.vectors is not None)

    def text_scorer(self) -> "BilinearRanker":
        """The ranker itself, which does nothing but re-rank."""
        return self

    def score(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Score the rows of a result frame; see the class for the columns that it needs."""
        if frame.empty:
            return with_scores(frame, np.zeros(0))
        query_rows, texts = distinct_queries(frame)
        documents, document_rows = self.frame_documents(frame)
        scores = self.row_scores(lambda some: self.weigh_queries(texts[some]), query_rows, documents, document_rows)
        return with_scores(frame, scores)

    def row_scores(
        self,
        weigh: Callable[[slice], Weighed],
        query_rows: np.ndarray,
        documents: Weighed,
        document_rows: np.ndarray,
    ) -> np.ndarray:
        """Scores of rows, whose queries are weighed some at a time.

        Args:
            weigh: Gives the weights of some of the distinct queries.
            query_rows: The query of each row.
            documents: Weights of the distinct documents.
            document_rows: The document of each row.
        """
        scores = np.empty(len(query_rows), dtype=np.float32)
        for some, pairs in _blocks(query_rows):
            scores[pairs] = products(weigh(some), query_rows[pairs] - some.start, documents, document_rows[pairs])
        return self.with_least_score(scores, documents, document_rows)

    def with_least_score(self, scores: np.ndarray, documents: Weighed, document_rows: np.ndarray) -> np.ndarray:
        """The scores, but ``least_score`` for documents without any known word."""
        unanswered = np.flatnonzero(scores == 0)
        rows, places = np.unique(document_rows[unanswered], return_inverse=True)
        known = documents.take(rows).known()
        scores[unanswered[~known[places]]] = self.least_score
        return scores

    def frame_documents(self, frame: pd.DataFrame) -> tuple[Weighed, np.ndarray]:
        """Weights of documents, and which of them each row of a frame has."""
        if self._table is not None:
            self._table.require_made_by(self)
            return self._table.weighed, self._table.rows(frame["docno"].to_list())
        rows, documents = self._distinct_documents(frame)
        weigh = self.weigh_documents if self.documents is None else self._weigh_stored
        return stacked(self._in_batches(weigh, documents)), rows

    def _weigh_stored(self, docnos: Sequence[str]) -> Weighed:
        return self.weigh_sequences(self.documents.sequences(docnos), self.documents.vocabulary)

    def index(
        self,
        path: str | os.PathLike,
        corpus: Iterable[Mapping[str, Any]] | ForwardIndex,
        *,
        overwrite: bool = False,
        verbose: bool = True,
    ) -> TermVectors:
        """Write the vectors of a collection to a new directory, atomically, in blocks.

        Args:
            path: Directory to create.
            corpus: Iterator of documents with ``docno`` and text, or a forward index.
            overwrite: Replace kept vectors that are there.
            verbose: Show a progress bar.

        Returns:
            The vectors, for :meth:`retriever` or ``vectors=``.

        Raises:
            RuntimeError: If the model is not fitted.
            FileExistsError: If something is there and ``overwrite`` is false, or if it is something else.
            ValueError: If there are no documents, or one alone for a model with latent vectors; if one lacks its docno
                or text; if a docno occurs twice; or if the forward index holds other fields than the model reads.

        Example::

            vectors = model.index("kept.vectors", docs.get_corpus_iter())
            model.vectors = vectors  # to re-rank by docno
            model.retriever(vectors).search("pairwise distance")
        """
        self._require_fitted()
        if isinstance(corpus, ForwardIndex):
            require_same_fields(self.fields, corpus)
            batches, total = forward_index_batches(corpus, self.weigh_sequences, self.batch_size), len(corpus)
        else:
            batches = corpus_batches(corpus, self.document_text, self.weigh_documents, self.batch_size)
            total = None
        with pt.tqdm(desc=f"{self!r} vectors", unit="doc", total=total, disable=not verbose) as progress:
            counted = _counted(batches, progress)
            return TermVectors.build(path, counted, fingerprint=self.fingerprint(), overwrite=overwrite)

    def retriever(
        self, vectors: TermVectors | str | os.PathLike, *, num_results: int = 1000, verbose: bool = False
    ) -> BilinearRetriever:
        """Retrieve from the whole collection, exactly.

        Args:
            vectors: What :meth:`index` made, or the path of it.
            num_results: Documents a query.
            verbose: Show a progress bar.

        Returns:
            Transformer from ``qid, query`` to ``qid, query, docno, score, rank``.

        Raises:
            TypeError: If ``num_results`` is no integer.
            ValueError: If it is below 1, or if another model made the vectors.

        Example::

            model.retriever(vectors, num_results=100).search("pairwise distance")
        """
        return BilinearRetriever(self, vectors, num_results=num_results, verbose=verbose)


def _blocks(query_rows: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Some queries at a time, and the pairs that have them."""
    order = np.argsort(query_rows, kind="stable")
    for some in query_blocks(int(query_rows.max(initial=-1)) + 1):
        yield some, order[slice(*np.searchsorted(query_rows[order], [some.start, some.stop]))]


def _counted(batches: Iterator[tuple[list[str], Weighed]], progress: Any) -> Iterator[tuple[list[str], Weighed]]:
    for docnos, weighed in batches:
        yield docnos, weighed
        progress.update(len(docnos))
