"""The protocol of readers, which turn texts into the tensors of a network."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import torch
from torch import Tensor

from pt_neural.text import PackedSequences, Vocabulary


class Texts(Protocol):
    """Queries or documents as a reader has read them, to take batches of tensors from."""

    def __len__(self) -> int: ...

    def take(self, numbers: np.ndarray) -> Any:
        """The texts with these numbers, as the input of a network."""


class Pairs(Protocol):
    """Queries and documents to take batches of pairs from."""

    def batch(self, queries: np.ndarray, documents: np.ndarray) -> Any:
        """Some groups, by numbers: int64 of shapes ``(groups,)`` and ``(groups, documents per group)``."""


class Reader(ABC):
    """Base of readers, which turn texts into tensors.

    A ranker makes an empty reader from its settings; the reader then learns from the training texts (:meth:`build`), or
    is loaded (:meth:`load`).
    """

    @abstractmethod
    def build(self, query_texts: Sequence[str], documents: PackedSequences, vocabulary: Vocabulary) -> None:
        """Learn from the training texts.

        Args:
            query_texts: The queries.
            documents: The documents as term ids.
            vocabulary: The terms of the documents.

        Raises:
            ValueError: If a network could learn nothing from these texts; the message says why.
        """

    def grow(self, start: Self) -> None:
        """Take over what the reader of a ranker to start from has learned; called after :meth:`build`.

        What that reader knows comes first, so that the first rows of a weight belong to it, and what only the training
        texts have comes after. Readers that learn nothing from texts need not grow.

        Raises:
            ValueError: If the reader cannot; the message says why.
        """
        (arrays, parts), (others, other_parts) = self.identity_parts(), start.identity_parts()
        same = arrays.keys() == others.keys() and all(np.array_equal(arrays[name], others[name]) for name in arrays)
        if not same or parts != other_parts:
            raise ValueError(
                f"{type(self).__name__} has learned something else from these texts than from those of the ranker to "
                "start from, and has no method grow that brings both together"
            )

    @abstractmethod
    def read_queries(self, texts: Sequence[str]) -> Texts:
        """Queries as the input of a network."""

    @abstractmethod
    def read_documents(self, sequences: PackedSequences, vocabulary: Vocabulary) -> Texts:
        """Documents, given as term ids over any vocabulary, as the input of a network."""

    @abstractmethod
    def pair(self, query_texts: Sequence[str], documents: PackedSequences, vocabulary: Vocabulary) -> Pairs:
        """Queries and documents to take batches of pairs from."""

    @abstractmethod
    def save(self, directory: Path) -> None:
        """Write what was learned to an existing directory."""

    @abstractmethod
    def load(self, directory: Path) -> None:
        """Read what :meth:`save` wrote; ArtifactError names a file that is missing or damaged."""

    @abstractmethod
    def identity_parts(self) -> tuple[dict[str, np.ndarray], list[bytes]]:
        """Arrays by name, and anything else as bytes, in which readers of this kind differ."""


def to_device(batch: Any, device: torch.device) -> Any:
    """Move a tensor, or a named tuple of tensors and such tuples, to a device; anything else stays as it is."""
    if isinstance(batch, Tensor):
        return batch.to(device)
    return type(batch)(*(to_device(part, device) for part in batch)) if isinstance(batch, tuple) else batch
