"""Batches of groups with their negatives, drawn anew in each epoch, repeatable by seed."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from pt_neural.training.groups import Groups
from pt_neural.training.settings import DEFAULT_NEGATIVES, Training

Collate = Callable[[np.ndarray, np.ndarray], Any]
REDRAWS = 10


class Batch(NamedTuple):
    """The data of one training step."""

    inputs: Any  # of the network
    labels: torch.Tensor  # (groups, 1 + negatives), float32: grades of the documents, the positive first
    valid: torch.Tensor  # (groups, 1 + negatives), bool: whether there is a document


class GroupBatches(Dataset):
    """The batches of every epoch; ``batches[epoch, number]`` makes one.

    A batch depends only on seed, epoch and number, so that a resumed training is the same as an uninterrupted one.
    ``collate`` makes a network's inputs from the numbers of queries (groups,) and documents (groups, 1 + negatives).
    """

    def __init__(self, groups: Groups, training: Training, collate: Collate):
        self.groups = groups
        self.training = training
        self.collate = collate
        self.groups_per_epoch = min(len(groups), training.max_groups or len(groups))
        self._epoch: int | None = None  # whose order is cached: shuffling a million groups takes 10 ms

    @property
    def identity(self) -> tuple[np.ndarray, ...]:
        """Arrays that tell a run from others."""
        pools = () if self.groups.pools is None else (self.groups.pools, self.groups.pool_documents.terms)
        return self.groups.queries, self.groups.positives, self.groups.relevant, *pools

    finished = False  # every epoch has another one after it

    def skip(self, epochs: int) -> None:
        """Do nothing: a batch is known by its epoch."""

    def loader(self, rank: int, devices: int) -> DataLoader:
        """The loader for one of several devices."""
        return DataLoader(self, batch_size=None, sampler=EpochSampler(self, rank, devices))

    def __len__(self) -> int:
        whole, rest = divmod(self.groups_per_epoch, self.training.batch_size)
        without_negatives = rest == 1 and self.training.negatives == "in-batch" and whole > 0
        return whole + (rest > 0 and not without_negatives)

    def __getitem__(self, key: tuple[int, int]) -> Batch:
        epoch, number = key
        chosen = self._shuffled(epoch)[number * self.training.batch_size :][: self.training.batch_size]
        rng = np.random.default_rng([self.training.seed, epoch, number])
        negatives, labels, valid = self._negatives(chosen, rng)
        documents = np.column_stack([self.groups.positives[chosen], negatives]).astype(np.int64, copy=False)
        labels = np.column_stack([self.groups.labels[chosen], labels]).astype(np.float32)
        valid = np.column_stack([np.ones(len(chosen), dtype=bool), valid])
        if self.training.shared_groups:
            documents, labels, valid = self._with_shared(chosen, documents, labels, valid)
        inputs = self.collate(self.groups.queries[chosen].astype(np.int64, copy=False), documents)
        return Batch(inputs, torch.from_numpy(labels), torch.from_numpy(valid))

    def _shuffled(self, epoch: int) -> np.ndarray:
        """The groups of an epoch, in random order."""
        if self._epoch != epoch:
            order = np.random.default_rng([self.training.seed, epoch]).permutation(len(self.groups))
            self._order, self._epoch = order[: self.groups_per_epoch], epoch
        return self._order

    def _negatives(self, chosen: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Documents, grades and validity, each of shape (groups, negatives)."""
        if self.groups.pools is not None:
            return self._from_pools(chosen, rng)
        if self.training.negatives == "in-batch":
            documents = self._in_batch(chosen, rng)
            valid = ~self._relevant(chosen, documents)
        else:
            documents, valid = self._random(chosen, rng)
        return documents, np.zeros(documents.shape, dtype=np.float32), valid

    def _from_pools(self, chosen: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A random stretch of each pool; a pool is in random order and read as a ring."""
        count = self.training.num_negatives or DEFAULT_NEGATIVES
        offsets, pools = self.groups.pool_documents.offsets, self.groups.pools[chosen]
        lengths = offsets[pools + 1] - offsets[pools]
        starts = (rng.random(len(chosen)) * lengths).astype(np.int64)
        steps = np.arange(count)
        places = offsets[pools][:, None] + (starts[:, None] + steps) % lengths[:, None]
        return self.groups.pool_documents.terms[places], self.groups.pool_labels[places], steps < lengths[:, None]

    def _in_batch(self, chosen: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The positives of other groups of the batch, which is read as a ring."""
        size = len(chosen)
        count = min(self.training.num_negatives or size - 1, size - 1)
        steps = rng.permutation(np.arange(1, size))[:count]
        return self.groups.positives[chosen[(np.arange(size)[:, None] + steps) % size]]

    def _random(self, chosen: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        shape = len(chosen), self.training.num_negatives or DEFAULT_NEGATIVES
        documents = rng.integers(self.groups.num_documents, size=shape)
        for _ in range(REDRAWS):
            relevant = self._relevant(chosen, documents)
            if not relevant.any():
                break
            documents[relevant] = rng.integers(self.groups.num_documents, size=int(relevant.sum()))
        return documents, ~self._relevant(chosen, documents)

    def _with_shared(
        self, chosen: np.ndarray, documents: np.ndarray, labels: np.ndarray, valid: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Add the documents of the next groups of the batch, which is read as a ring, to each group's negatives."""
        size = len(chosen)
        count = min(self.training.shared_groups, size - 1)
        others = (np.arange(size)[:, None] + np.arange(1, count + 1)) % size
        shared = documents[others].reshape(size, -1)
        is_negative = valid[others].reshape(size, -1) & ~self._relevant(chosen, shared)
        labels = np.column_stack([labels, np.zeros(shared.shape, dtype=np.float32)])
        return np.column_stack([documents, shared]), labels, np.column_stack([valid, is_negative])

    def _relevant(self, chosen: np.ndarray, documents: np.ndarray) -> np.ndarray:
        return self.groups.is_relevant(self.groups.queries[chosen][:, None], documents)


class EpochSampler(Sampler):
    """Yields ``(epoch, number)`` for each batch of the current epoch, which Lightning sets.

    Several devices share the batches. All get the same number, so a few batches may occur twice.
    """

    def __init__(self, batches: GroupBatches, rank: int = 0, devices: int = 1):
        self.batches = batches
        self.rank = rank
        self.devices = devices
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch; Lightning calls this before each."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return ((self.epoch, (self.rank + step * self.devices) % len(self.batches)) for step in range(len(self)))

    def __len__(self) -> int:
        return -(-len(self.batches) // self.devices)
