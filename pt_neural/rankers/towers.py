"""Rankers with two trained towers: a network encodes queries and documents separately."""

from typing import ClassVar, Literal

import numpy as np
import pandas as pd
import torch
from torch import nn

from pt_neural.rankers.columns import distinct_queries
from pt_neural.rankers.options import TowerOptions
from pt_neural.rankers.readers.reader import Reader, Texts, to_device
from pt_neural.rankers.representation import RepresentationRanker
from pt_neural.rankers.trained import Scorer, Trained
from pt_neural.rankers.vectors import Vectors
from pt_neural.text import PackedSequences, Vocabulary


class TowerRanker(Trained, RepresentationRanker):
    """Base of the rankers whose network encodes queries and documents separately.

    The network has a method ``encode(side, batch)`` that gives vectors, float32 of shape ``(texts, dimensions)``.

    Args:
        **options: See :class:`~pt_neural.rankers.options.TowerOptions`.
    """

    options_type: ClassVar[type] = TowerOptions

    def represent_queries(self, texts: list[str]) -> Vectors:
        """Vectors of queries."""
        network = self._fitted()
        return Vectors(self._encode(network, "query", self.reader.read_queries(texts)))

    def represent_documents(self, sequences: PackedSequences, vocabulary: Vocabulary) -> Vectors:
        """Vectors of documents."""
        network = self._fitted()
        return Vectors(self._encode(network, "document", self.reader.read_documents(sequences, vocabulary)))

    def _scorer(self, reader: Reader, frame: pd.DataFrame) -> Scorer:
        query_rows, query_texts = distinct_queries(frame)
        queries = reader.read_queries(query_texts)
        document_rows, sequences, vocabulary = self._frame_documents(frame)
        documents = reader.read_documents(sequences, vocabulary)

        def scores(network: nn.Module) -> np.ndarray:
            query_vectors = Vectors(self._encode(network, "query", queries))
            document_vectors = Vectors(self._encode(network, "document", documents))
            return self.score_pairs(query_vectors, query_rows, document_vectors, document_rows)

        return scores

    def _encode(self, network: nn.Module, side: Literal["query", "document"], texts: Texts) -> np.ndarray:
        """Vectors of all texts by a network, float32 of shape ``(len(texts), dimensions)``."""
        device = next(network.parameters()).device
        blocks = []
        with torch.inference_mode():
            for start in range(0, max(len(texts), 1), self.batch_size):  # no texts give a matrix without rows
                batch = texts.take(np.arange(start, min(start + self.batch_size, len(texts))))
                blocks.append(network.encode(side, to_device(batch, device)).cpu().numpy())
        return np.concatenate(blocks)

    def _check_fit(self) -> None:
        super()._check_fit()
        self._require_no_vectors()
