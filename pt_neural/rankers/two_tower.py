"""Rankers that score by the dot product of a query vector and a document vector."""

import os
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._frames import with_scores
from pt_neural.rankers.columns import accept_scoring, accept_text, distinct_queries, validated
from pt_neural.rankers.encoders import DocEncoder, QueryEncoder, TextScorer
from pt_neural.rankers.kept_vectors import KeptVectors
from pt_neural.rankers.ranker import require_same_fields
from pt_neural.rankers.retriever import VectorRetriever
from pt_neural.rankers.row_scores import row_scores
from pt_neural.rankers.vectors import VectorTable, corpus_batches, forward_index_batches, vector_records, write_vectors
from pt_neural.text import ForwardIndex, PackedSequences, Vocabulary

if TYPE_CHECKING:
    from pyterrier_dr import FlexIndex


class TwoTower(KeptVectors):
    """Base of the rankers whose score is the dot product of a query vector and a document vector.

    By the columns that a frame has, the transformer

    - re-ranks (``qid, query, docno`` and the text, or only ``docno`` when ``documents`` or ``vectors`` are given,
      or ``doc_vec``): the same rows with new ``score`` and ``rank``, ties by docno;
    - encodes queries (``query``): adds ``query_vec``, float32 arrays;
    - encodes documents (text): adds ``doc_vec``, float32 arrays.

    What the model can compute from text it computes; vector columns are used where there is no text. A document
    whose vector is zero, as one without any word that the model knows, scores -1: most cosines of unrelated texts may
    be below zero, and nothing must not win against something.

    Args:
        fields: Text columns, joined by a space; those that a frame lacks are passed over, one must be there. None for
            those of ``documents``, or ``title`` and ``text`` without a forward index.
        documents: A forward index: re-ranking then needs ``docno`` only, no text and no tokenising.
        vectors: A ``pyterrier_dr.FlexIndex`` that :meth:`index` made: re-ranking then only multiplies vectors.
        batch_size: Documents encoded at a time.
        verbose: Show a progress bar while encoding documents.

    Attributes:
        least_score: What a document without a vector scores.
    """

    least_score = -1.0

    def _open(self, vectors: "FlexIndex | str | os.PathLike") -> VectorTable:
        self._require_document_vectors("vectors=")
        return VectorTable(vectors)

    def _require_document_vectors(self, what: str) -> None:
        """Raise ValueError in the name of what needs them where documents have no vectors of their own."""

    @abstractmethod
    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of queries, float32 of shape ``(len(texts), dimensions)``."""

    @abstractmethod
    def encode_documents(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of document texts, float32 of shape ``(len(texts), dimensions)``."""

    @abstractmethod
    def encode_sequences(self, sequences: PackedSequences, vocabulary: Vocabulary) -> np.ndarray:
        """Vectors of documents given as term ids over ``vocabulary``, float32 of shape ``(len, dimensions)``."""

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Re-rank, or encode queries or documents, by the columns of ``inp``."""
        with validated(inp, self, self.fields) as v:
            accept_scoring(v, self)
            v.columns(includes=["query"], excludes=["docno"], mode="query")
            # Results that have lost their queries must not keep the first stage's scores.
            accept_text(v, self.fields, also=["docno"], excludes=["qid"], mode="document")
        if v.mode == "query":
            return self.query_encoder().transform(inp)
        if v.mode == "document":
            return self.doc_encoder().transform(inp)
        return self.score(inp)

    def score(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Score the rows of a result frame; see the class for the columns that it needs."""
        if frame.empty:
            return with_scores(frame, np.zeros(0))
        queries, query_rows = self._query_vectors(frame)
        documents, document_rows = self._document_vectors(frame)
        return with_scores(frame, row_scores(queries, query_rows, documents, document_rows, least=self.least_score))

    def _query_vectors(self, frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        if "query" not in frame:
            return np.stack(frame["query_vec"].to_list()), np.arange(len(frame))
        rows, texts = distinct_queries(frame)
        return self.encode_queries(texts), rows

    def _document_vectors(self, frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """A matrix of document vectors, and the row of it that belongs to each row of the frame."""
        if self._table is not None:
            self._table.require_made_by(self)
            return self._table.matrix, self._table.rows(frame["docno"].to_list())
        if self.documents is None and not any(field in frame for field in self.fields):
            return np.stack(frame["doc_vec"].to_list()), np.arange(len(frame))
        rows, documents = self._distinct_documents(frame)
        encode = self.encode_texts if self.documents is None else self.encode_stored
        return encode(documents), rows

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of document texts in batches of ``batch_size``, with a progress bar if the model is verbose."""
        return np.concatenate(self._in_batches(self.encode_documents, texts))

    def encode_stored(self, docnos: Sequence[str]) -> np.ndarray:
        """Vectors of documents of the forward index, in batches like :meth:`encode_texts`."""

        def encode(some: Sequence[str]) -> np.ndarray:
            return self.encode_sequences(self.documents.sequences(some), self.documents.vocabulary)

        return np.concatenate(self._in_batches(encode, docnos))

    def query_encoder(self) -> QueryEncoder:
        """Transformer that adds ``query_vec`` to frames with ``query``."""
        return QueryEncoder(self)

    def doc_encoder(self) -> DocEncoder:
        """Transformer that adds ``doc_vec`` to frames with text."""
        return DocEncoder(self)

    def text_scorer(self) -> TextScorer:
        """Transformer that only re-ranks."""
        return TextScorer(self)

    def index(
        self,
        path: str | os.PathLike,
        corpus: Iterable[Mapping[str, Any]] | ForwardIndex,
        *,
        overwrite: bool = False,
        verbose: bool = True,
    ) -> "FlexIndex":
        """Write the vectors of a collection to a new ``pyterrier_dr.FlexIndex``, atomically, in constant memory.

        Args:
            path: Directory to create.
            corpus: Iterator of documents with ``docno`` and text, or a forward index.
            overwrite: Replace an index that is there.
            verbose: Show a progress bar.

        Returns:
            The index, for :meth:`retriever` or ``vectors=``.
        """
        self._require_document_vectors("index")
        if isinstance(corpus, ForwardIndex):
            require_same_fields(self.fields, corpus)
            batches, total = forward_index_batches(corpus, self.encode_sequences, self.batch_size), len(corpus)
        else:
            batches = corpus_batches(corpus, self.document_text, self.encode_documents, self.batch_size)
            total = None
        records = vector_records(batches)
        progress = pt.tqdm(records, desc=f"{self!r} vectors", unit="doc", total=total, disable=not verbose)
        return write_vectors(path, progress, fingerprint=self.fingerprint(), overwrite=overwrite)

    def retriever(self, vectors: "FlexIndex", *, num_results: int = 1000, verbose: bool = False) -> VectorRetriever:
        """Retrieve from the whole collection, exactly: every document is scored.

        Args:
            vectors: Index made by :meth:`index`.
            num_results: Documents a query.
            verbose: Show a progress bar.

        Returns:
            Transformer from ``qid, query`` to ``qid, query, docno, score, rank``.
        """
        self._require_document_vectors("retriever")
        return VectorRetriever(self, vectors, num_results=num_results, verbose=verbose)
