"""Two-tower rankers that learn from judgements."""

from abc import abstractmethod
from typing import Any, Literal

import numpy as np
from torch import nn

from pt_neural.rankers.row_scores import row_scores
from pt_neural.rankers.trained import Scorer, Trained
from pt_neural.rankers.two_tower import TwoTower
from pt_neural.training import Training


class TrainedTwoTower(TwoTower, Trained):
    """Base of the two-tower rankers that are trained.

    Args:
        training: How to train.
        device: Where to score.
        **options: What :class:`~pt_neural.rankers.two_tower.TwoTower` takes.
    """

    def __init__(self, *, training: Training | None, device: str, **options: Any):
        Trained.__init__(self, training=training, device=device)
        TwoTower.__init__(self, **options)

    @abstractmethod
    def _encode(self, network: nn.Module, side: Literal["query", "document"], corpus: Any) -> np.ndarray:
        """Vectors of all texts of a corpus by a network, float32 of shape ``(len(corpus), dimensions)``."""

    def _tower_scorer(self, queries: Any, query_rows: np.ndarray, documents: Any, document_rows: np.ndarray) -> Scorer:
        """Gives the rows of a frame, which have these queries and documents, the scores of a network."""

        def scores(network: nn.Module) -> np.ndarray:
            query_vectors = self._encode(network, "query", queries)
            document_vectors = self._encode(network, "document", documents)
            return row_scores(query_vectors, query_rows, document_vectors, document_rows, least=self.least_score)

        return scores
