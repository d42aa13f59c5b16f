"""What turns texts into the tensors of a network: the protocol that all readers share."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from pt_neural.text import PackedSequences, Vocabulary


class Texts(Protocol):
    """Queries or documents as a reader has read them; any of them can be taken as a batch of tensors."""

    def __len__(self) -> int: ...

    def take(self, numbers: np.ndarray) -> Any:
        """The texts with these numbers, as what a network takes."""


class Pairs(Protocol):
    """Queries and documents of which any pairs can be taken."""

    def batch(self, queries: np.ndarray, documents: np.ndarray) -> Any:
        """Some pairs, as what a network takes.

        Args:
            queries: Numbers of queries, int64 of shape (groups,).
            documents: Numbers of documents, int64 of shape (groups, documents a group).
        """


class Reader(ABC):
    """Base of what turns texts into tensors.

    A ranker makes an empty reader from its settings; the reader then learns from the texts to train on
    (:meth:`build`), or is loaded (:meth:`load`).
    """

    @abstractmethod
    def build(self, query_texts: Sequence[str], documents: PackedSequences, vocabulary: Vocabulary) -> None:
        """Learn from the texts to train on.

        Args:
            query_texts: The queries.
            documents: The documents as term ids.
            vocabulary: Their terms.

        Raises:
            ValueError: If the network could learn nothing from these texts; the message says why.
        """

    @abstractmethod
    def read_queries(self, texts: Sequence[str]) -> Texts:
        """Queries as they are fed to a network."""

    @abstractmethod
    def read_documents(self, sequences: PackedSequences, vocabulary: Vocabulary) -> Texts:
        """Documents, given as term ids over any vocabulary, as they are fed to a network."""

    @abstractmethod
    def pair(self, query_texts: Sequence[str], documents: PackedSequences, vocabulary: Vocabulary) -> Pairs:
        """Queries and documents of which any pairs can be taken."""

    @abstractmethod
    def save(self, directory: Path) -> None:
        """Write what was learned to an existing directory."""

    @abstractmethod
    def load(self, directory: Path) -> None:
        """Read what :meth:`save` wrote.

        Raises:
            ArtifactError: If a file is missing or damaged; it is named.
        """

    @abstractmethod
    def identity_parts(self) -> tuple[dict[str, np.ndarray], list[bytes]]:
        """Arrays by name, and anything else as bytes, that tell this reader from others of its kind."""


def to_device(batch: Any, device: torch.device) -> Any:
    """A tensor, or a named tuple of tensors and such tuples, on a device; anything else stays as it is."""
    if isinstance(batch, Tensor):
        return batch.to(device)
    return type(batch)(*(to_device(part, device) for part in batch)) if isinstance(batch, tuple) else batch
