"""Batches of groups for W, of one task or of two in turn."""

from typing import Any

import numpy as np
from torch import Tensor

from pt_neural.models.bilinear_steps import Texts
from pt_neural.training.sampling import Batch, GroupBatches


class Tuples:
    """The queries and documents of a batch; no tuple of Python's, lest Lightning takes it apart.

    Args:
        texts: All queries and documents.
        queries: The query of each group, int64 of shape (groups,).
        documents: The documents of each group, int64 of shape (groups, 1 + negatives).

    Attributes:
        other: A batch of another task, to take in turn; None without.
    """

    def __init__(self, texts: Texts, queries: np.ndarray, documents: np.ndarray):
        self.texts, self.queries, self.documents = texts, queries, documents
        self.other: Batch | None = None

    def groups(self, valid: Tensor) -> tuple[Texts, np.ndarray, np.ndarray, np.ndarray]:
        """What :func:`~pt_neural.models.bilinear_steps.learn` takes of them."""
        documents = np.ascontiguousarray(self.documents, dtype=np.int64)
        return self.texts, np.ascontiguousarray(self.queries, dtype=np.int64), documents, valid.numpy()


class TuplesCollate:
    """Makes :class:`Tuples` of the numbers of queries and documents.

    Args:
        texts: All queries and documents.
        other: Batches of another task that shares weights; None without.
    """

    def __init__(self, texts: Texts, other: GroupBatches | None = None):
        self.texts, self.other = texts, other

    def __call__(self, queries: np.ndarray, documents: np.ndarray) -> Tuples:
        """Inputs for queries of shape (groups,) and documents of shape (groups, 1 + negatives)."""
        return Tuples(self.texts, queries, documents)


class BatchesInTurn(GroupBatches):
    """Batches of one task, each with one of another (SSI paper, section 2.4.2).

    Args:
        *task: What :class:`~pt_neural.training.sampling.GroupBatches` takes.
        other: Batches of the other task; those are taken again when they end.
    """

    def __init__(self, *task: Any, other: GroupBatches):
        super().__init__(*task)
        self.other = other

    def __getitem__(self, key: tuple[int, int]) -> Batch:
        batch, (epoch, number) = super().__getitem__(key), key
        batch.inputs.other = self.other[epoch, number % len(self.other)]
        return batch
