"""Rankers that represent queries and documents separately, and score by a product of the two."""

import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np
import pandas as pd
import pyterrier as pt
from scipy.sparse import csr_array

from pt_neural._frames import validated, vectors_in, with_scores
from pt_neural.cluster.building import build_by_shards, require_shards_for
from pt_neural.cluster.workers import Workers
from pt_neural.datasets.corpus_shards import CorpusShards
from pt_neural.datasets.documents import read_documents, with_bar
from pt_neural.rankers.columns import accept_candidates, accept_text, distinct_queries
from pt_neural.rankers.kept.kept import Kept
from pt_neural.rankers.kept.vectors import VectorTable
from pt_neural.rankers.options import RepresentationOptions
from pt_neural.rankers.ranker import Ranker, require_same_fields
from pt_neural.rankers.retriever import Retriever
from pt_neural.rankers.vectors import (
    QUERIES_PER_PRODUCT,
    Vectors,
    all_products,
    products,
    require_same_dimensions,
    stacked,
)
from pt_neural.text import ForwardIndex, PackedSequences, Vocabulary

if TYPE_CHECKING:
    from pyterrier_dr import FlexIndex

    from pt_neural.rankers.kept.term_vectors import TermVectors

MERGED_AT_A_TIME = 65_536  # documents, where what was encoded shard by shard is joined
FEW = 1 / 3  # up to this share of all weights, scattered reads of postings are as fast as reading all in order


class RepresentationRanker(Ranker):
    """Base of the rankers that represent queries and documents separately.

    Four methods make a ranker: :meth:`represent_queries`, :meth:`represent_documents`, :meth:`score_pairs` and
    :meth:`score_all`. The last two have a default for :class:`~pt_neural.rankers.vectors.Vectors`: dense vectors,
    sparse weights of terms, or both, and their dot products. The rest is written here: re-ranking by text, by ``docno``
    from a forward index or from stored vectors, retrieval from the whole collection, and encoders.

    Depending on the columns of a frame, the transformer

    - re-ranks (``qid, query, docno`` and the text, or only ``docno`` when ``documents`` or ``vectors`` are given,
      or ``doc_vec``): the same rows with new ``score`` and ``rank``, ties by descending docno;
    - encodes queries (``query``): adds ``query_vec``, float32 arrays;
    - encodes documents (text): adds ``doc_vec``, float32 arrays.

    Vector columns are used only where there is no text. A document with an empty representation, because the model
    knows none of its words, scores ``least_score``: cosines of unrelated texts may be below zero, and an empty document
    must not rank above them.

    Args:
        **options: See :class:`~pt_neural.rankers.options.RepresentationOptions`.

    Attributes:
        least_score: The score of a document with an empty representation.
        queries_per_block: How many queries are represented at a time.
        has_encoders: Whether the transformer also encodes queries and documents; otherwise it only re-ranks.
        kept_as: How the documents of a collection are kept on disk.
    """

    options_type: ClassVar[type] = RepresentationOptions
    least_score: ClassVar[float] = -1.0
    queries_per_block: ClassVar[int] = 65_536
    has_encoders: ClassVar[bool] = True
    kept_as: ClassVar[type] = VectorTable

    _vectors: Any = None
    _kept: Kept | None = None

    def __init__(self, **options: Unpack[RepresentationOptions]):
        if options.get("documents") is not None and options.get("vectors") is not None:
            raise ValueError("give documents or vectors, not both: documents are read from one of them")
        super().__init__(**options)

    @abstractmethod
    def represent_queries(self, texts: Sequence[str]) -> Vectors:
        """Represent queries."""

    @abstractmethod
    def represent_documents(self, sequences: PackedSequences, vocabulary: Vocabulary) -> Vectors:
        """Represent documents, given as term ids over any vocabulary; -1 is an unknown term."""

    def score_pairs(
        self, queries: Vectors, query_rows: np.ndarray, documents: Vectors, document_rows: np.ndarray
    ) -> np.ndarray:
        """Scores of pairs of a query and a document, float32 of shape ``(pairs,)``.

        Args:
            queries: Distinct queries.
            query_rows: The query of each pair, int64 of shape ``(pairs,)``.
            documents: Distinct documents.
            document_rows: The document of each pair, int64 of shape ``(pairs,)``.
        """
        scores = products(queries, query_rows, documents, document_rows)
        unanswered = np.flatnonzero(scores == 0)
        rows, places = np.unique(document_rows[unanswered], return_inverse=True)
        known = documents.take(rows).known()
        scores[unanswered[~known[places]]] = self.least_score
        return scores

    def adapt_queries(self, queries: Vectors, kept: Kept) -> Vectors:
        """Queries to search a collection with; most models leave them as they are."""
        return queries

    def score_all(self, queries: Vectors, kept: "VectorTable | TermVectors", block: slice) -> np.ndarray:
        """Scores of some queries with all documents of a block of a collection.

        Args:
            queries: The queries.
            kept: The documents, as :meth:`index` has written them.
            block: Numbers of the documents to score, from ``block.start`` to before ``block.stop``.

        Returns:
            float32 of shape ``(queries, documents of the block)``; -inf for what must not be found: everything for a
            query without any known word, documents without any known word, and, where only single terms count,
            documents that share no term with the query.

        Raises:
            ValueError: If queries and documents cannot belong to one model.
        """
        documents = kept.vectors
        if queries.dense is not None:
            scores = all_products(queries.dense, documents.dense[block])
            if queries.sparse is not None:
                scores += sparse_scores(queries.sparse, kept, block)
        else:
            scores = sparse_scores(queries.sparse, kept, block)
        if queries.dense is None and not isinstance(queries.sparse, np.ndarray):
            np.copyto(scores, -np.inf, where=~_shared(queries.sparse, scores, kept, block))
            return scores
        # Only where a score is 0 may a text be unknown.
        unanswered = np.flatnonzero(~scores.any(axis=1))
        unknown = unanswered[~queries.take(unanswered).known()]
        known = np.delete(np.arange(len(scores)), unknown)
        if len(known):
            unanswered = np.flatnonzero(scores[known[0]] == 0)
            scores[:, unanswered[~documents.take(block.start + unanswered).known()]] = -np.inf
        scores[unknown] = -np.inf
        return scores

    def represent_texts(self, texts: Iterable[str]) -> Vectors:
        """Represent documents, given as texts."""
        sequences, terms = self._pack(texts)
        return self.represent_documents(sequences, Vocabulary(terms))

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of queries, float32 of shape ``(len(texts), dimensions)``."""
        return self._dense(self.represent_queries(texts))

    def encode_documents(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of document texts, float32 of shape ``(len(texts), dimensions)``."""
        return self._dense(self._represent_distinct(*_packed(self._pack(texts))))

    def _dense(self, vectors: Vectors) -> np.ndarray:
        if getattr(vectors, "dense", None) is None:
            raise ValueError(f"{self!r} has no dense vectors, so it only re-ranks and retrieves")
        return vectors.dense

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Re-rank, or encode queries or documents, by the columns of ``inp``."""
        if not self.has_encoders:
            return super().transform(inp)
        with validated(inp, self, self.fields) as v:
            self._accept_scoring(v)
            v.columns(includes=["query"], excludes=["docno"], mode="query")
            # Results that have lost their queries must not keep the first stage's scores.
            accept_text(v, self.fields, also=["docno"], excludes=["qid"], mode="document")
        if v.mode == "query":
            return self.query_encoder().transform(inp)
        if v.mode == "document":
            return self.doc_encoder().transform(inp)
        return self._scored(inp)

    def check_columns(self, frame: pd.DataFrame, context: pt.Transformer) -> None:
        """Raise an error in the name of ``context`` if a frame lacks columns that are needed to score its rows."""
        with validated(frame, context, self.fields) as v:
            self._accept_scoring(v)

    def _accept_scoring(self, validator: Any) -> None:
        accept_candidates(validator, self.fields, kept=self._reads_kept())
        if self.has_encoders:
            validator.result_frame(["query", "doc_vec"], mode="score")
            validator.result_frame(["query_vec", "doc_vec"], mode="score")

    def _reads_kept(self) -> bool:
        return self.vectors is not None or super()._reads_kept()

    def score(self, frame: pd.DataFrame) -> np.ndarray:
        """Scores of the rows of a result frame; see the class for the columns that it needs."""
        self._require_fitted()
        documents, document_rows = self._frame_representations(frame)
        if "query" not in frame:
            queries = Vectors(vectors_in(frame, "query_vec", self))
            return self.score_pairs(queries, np.arange(len(frame)), documents, document_rows)
        query_rows, texts = distinct_queries(frame)
        size = self.queries_per_block
        if len(texts) <= size:
            return self.score_pairs(self.represent_queries(texts), query_rows, documents, document_rows)
        scores = np.empty(len(frame))
        order = np.argsort(query_rows, kind="stable")
        for start in range(0, len(texts), size):
            pairs = order[slice(*np.searchsorted(query_rows[order], [start, start + size]))]
            queries = self.represent_queries(texts[start : start + size])
            scores[pairs] = self.score_pairs(queries, query_rows[pairs] - start, documents, document_rows[pairs])
        return scores

    def _frame_representations(self, frame: pd.DataFrame) -> tuple[Vectors, np.ndarray]:
        """The distinct documents of a frame, represented, and the document of each row."""
        if self._kept is not None:
            self._kept.require_made_by(self)
            return self._kept.vectors, self._kept.rows(frame["docno"].to_list())
        if self.documents is None and not any(field in frame for field in self.fields):
            return Vectors(vectors_in(frame, "doc_vec", self)), np.arange(len(frame))
        rows, sequences, vocabulary = self._frame_documents(frame)
        return self._represent_distinct(sequences, vocabulary), rows

    def _represent_distinct(self, sequences: PackedSequences, vocabulary: Vocabulary) -> Vectors:
        """Represent documents ``batch_size`` at a time, with a progress bar if the model is verbose."""
        starts = range(0, max(len(sequences), 1), self.batch_size)
        if len(starts) == 1:
            return self.represent_documents(sequences, vocabulary)
        progress = pt.tqdm(starts, desc=f"{self!r} documents", unit="batch", disable=not self.verbose)
        blocks = (np.arange(start, min(start + self.batch_size, len(sequences))) for start in progress)
        return stacked([self.represent_documents(sequences.take(block), vocabulary) for block in blocks])

    @property
    def vectors(self) -> Any:
        """Kept vectors to re-rank with; set them after training by ``model.vectors = model.index(..)``.

        Vectors of another model are refused, and so are vectors from before the model was trained anew.
        """
        return self._vectors

    @vectors.setter
    def vectors(self, vectors: Any) -> None:
        kept = None if vectors is None else self.open_kept(vectors)
        if kept is not None:
            self._require_document_representations("vectors=")
            kept.require_made_by(self)
        self._vectors, self._kept = vectors, kept

    def open_kept(self, vectors: Any) -> Kept:
        """The documents that :meth:`index` has written, given as its result or as its path."""
        return self.kept_as.of(vectors)

    def _require_document_representations(self, what: str) -> None:
        """Raise ValueError in the name of ``what`` if documents cannot be represented without a query."""

    def _check_options(self) -> None:
        super()._check_options()
        if self._kept is not None:
            self._kept.require_made_by(self)

    def _require_no_vectors(self) -> None:
        if self.vectors is not None:
            raise ValueError(
                f"{self!r} has vectors=, which a new training would not change: train without them, then set "
                "model.vectors = model.index(path, corpus)"
            )

    def index(
        self,
        path: str | os.PathLike,
        corpus: Iterable[Mapping[str, Any]] | ForwardIndex,
        *,
        overwrite: bool = False,
        verbose: bool | None = None,
        workers: int | Workers | None = None,
    ) -> "FlexIndex | TermVectors":
        """Write the representations of the documents of a collection to a new directory, atomically, batch by batch.

        Args:
            path: Directory to create.
            corpus: Iterator of documents with ``docno`` and text, or a forward index. If it is
                :class:`~pt_neural.CorpusShards`, an interrupted run is taken up by the next one.
            overwrite: Replace an index of the same kind that is there.
            verbose: Show a progress bar; None for the ranker's own ``verbose``.
            workers: Processes of Ray that encode corpus shards; the index is the same.

        Returns:
            The index, for :meth:`retriever` or ``vectors=``: a ``pyterrier_dr.FlexIndex`` of dense vectors, or
            :class:`~pt_neural.rankers.TermVectors` where terms have weights.

        Raises:
            RuntimeError: If the model is not fitted.
            FileExistsError: If the directory exists and ``overwrite`` is false, or if it holds something else.
            ValueError: If there are no documents, or only one and it has a dense vector; if a document has no docno or
                no text; if a docno occurs twice; or if the forward index holds other fields than the model reads.

        Example::

            vectors = model.index("kept.vectors", docs.get_corpus_iter())
            model.vectors = vectors  # to re-rank by docno
            model.retriever(vectors).search("pairwise distance")
        """
        verbose = self.reports(verbose)
        self._require_document_representations("index")
        self._require_fitted()
        require_shards_for(workers, corpus)
        if not isinstance(corpus, CorpusShards):
            self._write(path, corpus, overwrite=overwrite, verbose=verbose)
        else:
            build_by_shards(
                Path(path).expanduser(),
                corpus,
                partial(self._write, overwrite=False, verbose=False),
                partial(self._merge, path, overwrite=overwrite),
                plan=[self.fingerprint(), list(self.fields)],
                kind=self.kept_as.kind(),
                overwrite=overwrite,
                workers=workers,
                verbose=verbose,
            )
        return self.kept_as.opened(path)

    def _write(
        self,
        path: str | os.PathLike,
        corpus: Iterable[Mapping[str, Any]] | ForwardIndex,
        *,
        overwrite: bool,
        verbose: bool,
    ) -> None:
        """Write what :meth:`index` writes of a corpus that is not in shards."""
        desc = f"{self!r} vectors"
        build = partial(self.kept_as.build, path, fingerprint=self.fingerprint(), overwrite=overwrite)
        if isinstance(corpus, ForwardIndex):
            require_same_fields(self.fields, corpus)
            with pt.tqdm(desc=desc, unit="doc", total=len(corpus), disable=not verbose) as progress:
                build(_counted(self._stored_batches(corpus), progress))
        else:
            documents = with_bar(read_documents(corpus), corpus, desc=desc, verbose=verbose)
            build(self._corpus_batches(iter(documents)))

    def _merge(self, path: str | os.PathLike, parts: Sequence[Path], *, overwrite: bool) -> None:
        """Join what :meth:`_write` has written for the parts of a collection."""
        batches = chain.from_iterable(map(self._kept_batches, parts))
        self.kept_as.build(path, batches, fingerprint=self.fingerprint(), overwrite=overwrite)

    def _kept_batches(self, part: Path) -> Iterator[tuple[list[str], Vectors]]:
        kept = self.open_kept(part)
        for start in range(0, len(kept), MERGED_AT_A_TIME):
            rows = slice(start, min(start + MERGED_AT_A_TIME, len(kept)))
            yield kept.docnos[rows], kept.block(rows)

    def _corpus_batches(
        self, documents: Iterator[tuple[str, Mapping[str, Any]]]
    ) -> Iterator[tuple[list[str], Vectors]]:
        while batch := list(islice(documents, self.batch_size)):
            texts = [self.document_text(document) for _, document in batch]
            yield [docno for docno, _ in batch], self.represent_texts(texts)

    def _stored_batches(self, documents: ForwardIndex) -> Iterator[tuple[list[str], Vectors]]:
        docnos, sequences = documents.docnos, documents.all()
        for start in range(0, len(docnos), self.batch_size):
            rows = np.arange(start, min(start + self.batch_size, len(docnos)))
            block = self.represent_documents(sequences.take(rows), documents.vocabulary)
            yield docnos[start : start + self.batch_size], block

    def retriever(self, vectors: Any, *, num_results: int = 1000, verbose: bool = False) -> Retriever:
        """Retrieve from the whole collection, exactly: every document is scored.

        Args:
            vectors: What :meth:`index` returned, or its path.
            num_results: Documents to retrieve for each query.
            verbose: Show a progress bar.

        Returns:
            Transformer from ``qid, query`` to ``qid, query, docno, score, rank``.

        Raises:
            TypeError: If ``num_results`` is not an integer.
            ValueError: If it is below 1, or if another model made the vectors.

        Example::

            model.retriever(vectors, num_results=100).search("pairwise distance")
        """
        self._require_document_representations("retriever")
        return Retriever(self, vectors, num_results=num_results, verbose=verbose)

    def query_encoder(self) -> "QueryEncoder":
        """Transformer that adds ``query_vec`` to frames with ``query``."""
        return QueryEncoder(self)

    def doc_encoder(self) -> "DocEncoder":
        """Transformer that adds ``doc_vec`` to frames with text."""
        return DocEncoder(self)

    def text_scorer(self) -> "TextScorer":
        """Transformer that only re-ranks."""
        return TextScorer(self)


def _packed(packed: tuple[PackedSequences, list[str]]) -> tuple[PackedSequences, Vocabulary]:
    return packed[0], Vocabulary(packed[1])


def _counted(batches: Iterator[tuple[list[str], Vectors]], progress: Any) -> Iterator[tuple[list[str], Vectors]]:
    for docnos, vectors in batches:
        yield docnos, vectors
        progress.update(len(docnos))


def sparse_scores(weights: csr_array | np.ndarray, kept: "TermVectors", block: slice) -> np.ndarray:
    """The sparse part of the scores of a block of documents, float32 of shape ``(queries, documents)``."""
    require_same_dimensions(weights, kept.rows_of_terms)
    scores = np.empty((weights.shape[0], block.stop - block.start), dtype=np.float32)
    short = _are_short(weights, kept)
    for product, chosen in ((_by_postings, short), (_by_rows, ~short)):
        numbers = np.flatnonzero(chosen)
        if len(numbers):
            scores[numbers] = product(weights[numbers], kept, block)
    return scores


def _are_short(weights: csr_array | np.ndarray, kept: "TermVectors") -> np.ndarray:
    """Whether each query weighs terms with few postings."""
    if isinstance(weights, np.ndarray):
        return np.zeros(len(weights), dtype=bool)
    postings = np.diff(kept.rows_of_documents.offsets).astype(np.float64)
    return (weights != 0) @ postings < FEW * len(kept.rows_of_terms.weights)


def _by_postings(weights: csr_array, kept: "TermVectors", block: slice) -> np.ndarray:
    from pt_neural.rankers.kept.postings import posting_scores  # compiled

    return posting_scores(weights, kept.rows_of_documents, block)


def _by_rows(weights: csr_array | np.ndarray, kept: "TermVectors", block: slice) -> np.ndarray:
    documents, scores = kept.rows_of_terms[block], np.empty((weights.shape[0], block.stop - block.start), np.float32)
    for start in range(0, weights.shape[0], QUERIES_PER_PRODUCT):
        some = weights[start : start + QUERIES_PER_PRODUCT]
        dense = some if isinstance(some, np.ndarray) else some.toarray()
        scores[start : start + QUERIES_PER_PRODUCT] = (documents @ np.ascontiguousarray(dense.T)).T
    return scores


def _shared(weights: csr_array, scores: np.ndarray, kept: "TermVectors", block: slice) -> np.ndarray:
    """Whether each document has a term that the query weighs."""
    if (weights.data >= 0).all():
        return scores > 0
    return sparse_scores(abs(weights), kept, block) > 0  # where weights may cancel each other


class _Face(pt.Transformer):
    """One ability of a model as a transformer; two of them are equal if their model is the same object."""

    def __init__(self, model: RepresentationRanker):
        self.model = model

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.model is other.model

    def __hash__(self) -> int:
        return hash((type(self), id(self.model)))

    def subtransformers(self) -> dict:
        return {}  # the model is what this transformer is made of, not a stage before it


class QueryEncoder(_Face):
    """Adds ``query_vec`` (float32 arrays) to frames with ``query``; equal queries are encoded once."""

    schematic = {"label": "QueryEncoder", "help_url": None}

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Encode the queries of ``inp``."""
        with validated(inp, self) as v:
            v.columns(includes=["query"])
        if inp.empty:
            return inp.assign(query_vec=pd.Series(dtype=object, index=inp.index))
        rows, texts = distinct_queries(inp)
        return inp.assign(query_vec=_objects(self.model.encode_queries(texts)[rows], inp))

    def __repr__(self) -> str:
        return f"{self.model!r}.query_encoder()"


class DocEncoder(_Face):
    """Adds ``doc_vec`` (float32 arrays) to frames with the model's text columns."""

    schematic = {"label": "DocEncoder", "help_url": None}

    @property
    def batch_size(self) -> int:
        """Documents encoded at a time; pipelines that index use it as the size of their chunks."""
        return self.model.batch_size

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer:
        """Encode only the documents that a later cut-off keeps."""
        return pt.RankCutoff(k) >> self

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Encode the documents of ``inp``."""
        with validated(inp, self, self.model.fields) as v:
            accept_text(v, self.model.fields)
        if inp.empty:
            return inp.assign(doc_vec=pd.Series(dtype=object, index=inp.index))
        return inp.assign(doc_vec=_objects(self.model.encode_documents(self.model.frame_texts(inp)), inp))

    def __repr__(self) -> str:
        return f"{self.model!r}.doc_encoder()"


class TextScorer(_Face):
    """Re-ranks, and does nothing else."""

    schematic = {"label": "TextScorer", "help_url": None}

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score the rows of ``inp``."""
        self.model.check_columns(inp, self)
        return with_scores(inp, np.zeros(0) if inp.empty else self.model.finite_scores(inp))

    def __repr__(self) -> str:
        return f"{self.model!r}.text_scorer()"


def _objects(matrix: np.ndarray, frame: pd.DataFrame) -> pd.Series:
    return pd.Series(list(matrix), index=frame.index, dtype=object)
