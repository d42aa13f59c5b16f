"""The network of a trained two-tower ranker: two towers and the cosine of what they give."""

from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pt_neural.rankers.hashed import HashedTexts

TEXTS_PER_STEP = 1024  # what reading them takes then stays in the processor's cache


class TowerInputs(NamedTuple):
    """A batch of groups for two towers; each query and each document stands in it once.

    Attributes:
        queries: What the query tower takes.
        documents: What the document tower takes.
        query_rows: The query of each group, int64 of shape (groups,).
        document_rows: The documents of each group, int64 of shape (groups, documents a group).
    """

    queries: Any
    documents: Any
    query_rows: Tensor
    document_rows: Tensor


class TowerCollate:
    """Makes the inputs of :class:`Towers`, in which each text of a batch stands once.

    Args:
        queries: Queries, of which ``take(rows)`` gives what the query tower takes.
        documents: Documents, likewise.
    """

    def __init__(self, queries: Any, documents: Any):
        self.queries = queries
        self.documents = documents

    def __call__(self, queries: np.ndarray, documents: np.ndarray) -> TowerInputs:
        """Inputs for queries of shape (groups,) and documents of shape (groups, documents a group)."""
        distinct_queries, query_rows = np.unique(queries, return_inverse=True)
        distinct_documents, document_rows = np.unique(documents, return_inverse=True)
        return TowerInputs(
            self.queries.take(distinct_queries),
            self.documents.take(distinct_documents),
            torch.from_numpy(query_rows),
            torch.from_numpy(document_rows.reshape(documents.shape)),
        )


class Towers(nn.Module):
    """Scores documents by the cosine of query and document vectors (CLSM paper, equation 4).

    Args:
        query: Network for queries.
        document: Network for documents; None if they share that of the queries.
    """

    def __init__(self, query: nn.Module, document: nn.Module | None = None):
        super().__init__()
        self.query = query
        if document is not None:
            self.document = document

    def tower(self, side: str) -> nn.Module:
        """The network of ``"query"`` or ``"document"``."""
        return getattr(self, side, self.query)

    def vectors(self, side: str, texts: Any) -> Tensor:
        """Unit vectors of shape (texts, dimensions); zero for texts without anything known."""
        return F.normalize(self.tower(side)(texts) * texts.known[:, None], dim=1)

    def encode(self, side: str, texts: HashedTexts) -> Tensor:
        """The same vectors; each distinct word is projected once, and then a few texts are read at a time."""
        tower = self.tower(side)
        projections = tower.project(texts)
        blocks = []
        for start in range(0, max(len(texts.known), 1), TEXTS_PER_STEP):
            offsets = texts.offsets[start : start + TEXTS_PER_STEP + 1]
            blocks.append(tower.read(projections, texts.words[offsets[0] : offsets[-1]], offsets - offsets[0]))
        return F.normalize(torch.cat(blocks) * texts.known[:, None], dim=1)

    def forward(self, inputs: TowerInputs) -> Tensor:
        """Scores of shape (groups, documents a group)."""
        queries, documents = self.vectors("query", inputs.queries), self.vectors("document", inputs.documents)
        return (queries @ documents.T)[inputs.query_rows].gather(1, inputs.document_rows)
