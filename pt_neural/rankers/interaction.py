"""Rankers whose network reads a query and a document together."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from pt_neural._arguments import checked_choice
from pt_neural._memory import freed_memory_kept
from pt_neural.cluster.building import build_by_shards, require_shards_for
from pt_neural.cluster.workers import Workers
from pt_neural.datasets.corpus_shards import CorpusShards
from pt_neural.rankers.columns import distinct_queries
from pt_neural.rankers.kept.document_representations import KINDS, DocumentRepresentations, Kind, forward_index_writer
from pt_neural.rankers.ranker import require_same_fields
from pt_neural.rankers.readers.reader import Pairs, Reader, to_device
from pt_neural.rankers.trained import Scorer, Trained
from pt_neural.text import ForwardIndex

KeptReader = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


class InteractionRanker(Trained):
    """Base of the rankers whose score needs the query and the document at once.

    The transformer re-ranks: frames with ``qid, query, docno`` and the text, or only ``docno`` where documents are
    kept, get a new ``score`` and ``rank``, ties by descending docno.

    All that a model needs is a reader and a network. The network takes a batch of groups, as the reader's pairs give
    it, and returns scores of shape ``(groups, documents per group)``. A model that can share work between pairs has its
    own :meth:`score_texts`.

    A model whose document side does not depend on the query takes
    :class:`~pt_neural.rankers.options.KeptInteractionOptions` and has :meth:`kept_columns`, :meth:`kept_lengths` and
    :meth:`encode_kept`; its documents can then be encoded beforehand, see :meth:`index`.

    Args:
        **options: See :class:`~pt_neural.rankers.options.TrainedOptions`.
    """

    _representations: DocumentRepresentations | None = None

    def score(self, frame: pd.DataFrame) -> np.ndarray:
        """Scores of the rows of a result frame, of shape (rows,)."""
        network = self._fitted()
        with freed_memory_kept():
            return self._scorer(self.reader, frame)(network)

    def _scorer(self, reader: Reader, frame: pd.DataFrame) -> Scorer:
        pairs = self._frame_pairs(reader, frame)
        return lambda network: self.score_texts(network, *pairs)

    def _frame_pairs(
        self, reader: Reader, frame: pd.DataFrame
    ) -> tuple[Pairs, np.ndarray, np.ndarray, KeptReader | None]:
        """The rows of a frame as :meth:`score_texts` takes them."""
        query_rows, query_texts = distinct_queries(frame)
        document_rows, sequences, vocabulary = self._frame_documents(frame)
        texts = reader.pair(query_texts, sequences, vocabulary)
        return texts, query_rows, document_rows, self._kept_reader(frame)

    def score_texts(
        self,
        network: nn.Module,
        texts: Pairs,
        query_rows: np.ndarray,
        document_rows: np.ndarray,
        kept: KeptReader | None,
    ) -> np.ndarray:
        """Scores of pairs by a network.

        Args:
            network: The network.
            texts: Queries and documents, as the reader pairs them.
            query_rows: The query of each pair, int64 of shape (pairs,).
            document_rows: The document of each pair, int64 of shape (pairs,).
            kept: Reads documents that were encoded beforehand; None to read their texts.

        Returns:
            Shape (pairs,).
        """
        device = next(network.parameters()).device
        scores = np.empty(len(query_rows), dtype=np.float32)
        with torch.inference_mode():
            for start in range(0, len(scores), self.batch_size):
                block = slice(start, start + self.batch_size)
                inputs = texts.batch(query_rows[block], document_rows[block][:, None])
                scores[block] = network(to_device(inputs, device))[:, 0].cpu().numpy()
        return scores

    def kept_columns(self) -> int:
        """Columns of the matrix that is kept of a document."""
        raise self._keeps_nothing()

    def kept_lengths(self, documents: ForwardIndex) -> np.ndarray:
        """Rows of the matrix of each document of a forward index, int64 of shape (documents,)."""
        raise self._keeps_nothing()

    def encode_kept(self, documents: ForwardIndex, *, verbose: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Encode all documents of a forward index, in blocks.

        Args:
            documents: The forward index.
            verbose: Show a progress bar.

        Yields:
            Numbers of documents, each once and in any order, and the rows of their matrices one after the other,
            float32 of shape (sum of their lengths, columns).
        """
        raise self._keeps_nothing()

    def _keeps_nothing(self) -> ValueError:
        return ValueError(f"{self!r} reads a document together with the query, and so cannot encode it beforehand")

    @property
    def representations(self) -> DocumentRepresentations | None:
        """Encoded documents, read instead of ``documents``; set them after training.

        ``model.representations = model.index(path, corpus)`` does that.
        """
        return self._representations

    @representations.setter
    def representations(self, representations: DocumentRepresentations | None) -> None:
        if representations is not None and not isinstance(representations, DocumentRepresentations):
            raise TypeError(
                "representations must be what model.index(path, corpus) gave, or pt.Artifact.load(path) of it, not "
                f"{representations!r:.80}"
            )
        self._representations = representations

    def kept_documents(self) -> ForwardIndex | None:
        """The forward index to read documents from by docno; None if frames must have their text."""
        return super().kept_documents() if self.representations is None else self.representations.documents

    def index(
        self,
        path: str | os.PathLike,
        corpus: Iterable[Mapping[str, Any]] | ForwardIndex,
        *,
        dtype: Kind = "float16",
        overwrite: bool = False,
        verbose: bool | None = None,
        workers: int | Workers | None = None,
    ) -> DocumentRepresentations:
        """Encode a collection once, so that re-ranking by ``docno`` skips all work that does not depend on the query.

        The class says what is kept of a document, and how large it is. Apart from rounding, scores do not change.

        Args:
            path: Directory to create.
            corpus: Iterator of documents with ``docno`` and text, or a forward index. If it is
                :class:`~pt_neural.CorpusShards`, an interrupted run is taken up by the next one.
            dtype: ``"float16"``, or ``"int8"``, which takes half the space.
            overwrite: Replace representations that are there.
            verbose: Show progress bars; None for the ranker's own ``verbose``.
            workers: Processes of Ray that encode corpus shards.

        Returns:
            The representations, for ``representations=``; they include a forward index.

        Raises:
            RuntimeError: If the model is not trained.
            ValueError: If ``dtype`` is unknown, if the forward index holds other fields than the model reads, or if the
                model can only read documents together with queries.
            FileExistsError: If the directory exists and ``overwrite`` is false.
            OSError: If the disk is too full.

        Example::

            model.representations = model.index("kept", docs.get_corpus_iter())
            model.transform(results)  # qid, query and docno are enough
        """
        verbose = self.reports(verbose)
        checked_choice("dtype", dtype, KINDS)
        self._fitted()
        columns = self.kept_columns()
        require_shards_for(workers, corpus)
        if isinstance(corpus, CorpusShards):
            return build_by_shards(
                Path(path).expanduser(),
                corpus,
                partial(self.index, dtype=dtype, verbose=False),
                partial(DocumentRepresentations.merge, path, overwrite=overwrite),
                plan=[self.fingerprint(), list(self.fields), dtype],
                kind=DocumentRepresentations.kind(),
                overwrite=overwrite,
                workers=workers,
                verbose=verbose,
            )
        if isinstance(corpus, ForwardIndex):
            require_same_fields(self.fields, corpus)
        with freed_memory_kept():
            return DocumentRepresentations.build(
                path,
                forward_index_writer(corpus, self.fields, verbose=verbose),
                lambda documents: self.encode_kept(documents, verbose=verbose),
                self.kept_lengths,
                columns,
                fingerprint=self.fingerprint(),
                dtype=dtype,
                overwrite=overwrite,
            )

    def _check_fit(self) -> None:
        super()._check_fit()
        if self.representations is not None:
            raise ValueError(
                f"{self!r} has representations=, which a new training would not change: train without them, then set "
                "model.representations = model.index(path, corpus)"
            )

    def _check_options(self) -> None:
        super()._check_options()
        if self.representations is not None:
            self.representations.require_made_by(self)

    def _kept_reader(self, frame: pd.DataFrame) -> KeptReader | None:
        """A function that reads encoded documents of a frame; None if the model has no representations.

        It takes numbers of the frame's distinct docnos, in order of first occurrence, and gives rows and offsets, see
        :meth:`~pt_neural.rankers.DocumentRepresentations.read`.
        """
        kept = self.representations
        if kept is None:
            return None
        kept.require_made_by(self)
        stored = kept.documents.known_rows(list(pd.unique(frame["docno"])))
        return lambda numbers: kept.read(stored[numbers])
