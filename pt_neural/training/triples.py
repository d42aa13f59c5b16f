"""Streams of triples (a query, a relevant document, others that are less so), read in constant memory."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch.utils.data import DataLoader, IterableDataset

from pt_neural._frames import require_columns
from pt_neural.text import ForwardIndex
from pt_neural.training.sampling import Batch

Triples = pd.DataFrame | Iterable[Sequence[str] | Mapping[str, str]] | Callable[[], Iterable]
# Queries as texts, and documents as numbers of the forward index, both distinct; then the groups by place among these.
Collate = Callable[[list[str], np.ndarray, np.ndarray, np.ndarray], Any]


class TripleStream:
    """Triples as tuples, epoch after epoch.

    An epoch is the next ``per_epoch`` triples, or those that are left; with None, all. The next epoch goes on from
    there, and from the beginning after the last triple.

    Args:
        triples: A frame, an iterable, or a function that returns one.
        query: The column or key of the query: ``"qid"`` or ``"query"``.
        per_epoch: Triples in an epoch, at most; None for all.

    Raises:
        TypeError: If the triples are none of these.
        ValueError: If a frame lacks a column, or if there are no triples.

    Attributes:
        replayable: Whether the triples can be read more than once; an iterator cannot.
        finished: Whether all triples were read and cannot be read again.
    """

    def __init__(self, triples: Triples, query: str, per_epoch: int | None):
        self._keys, self._per_epoch = (query, "pos", "neg"), per_epoch
        if isinstance(triples, pd.DataFrame):
            require_columns(triples, self._keys, "the frame of triples")
            self._open = triples[list(self._keys)].itertuples
        elif callable(triples):
            self._open = triples
        elif isinstance(triples, Iterable):
            self._open = triples.__iter__
        else:
            raise TypeError(f"triples must be a frame, an iterable or a function that gives one, not {triples!r:.80}")
        self._drop = 1 if isinstance(triples, pd.DataFrame) else 0  # the index of the frame
        self.replayable, self.finished = not isinstance(triples, Iterator), False
        self._rewind()
        if self._next is None:
            raise ValueError("there are no triples to train on")

    def _rewind(self) -> None:
        self._rest = iter(self._open())
        self._next = next(self._rest, None)

    def epoch(self) -> Iterator[tuple[str, ...]]:
        """The triples of the next epoch."""
        count = 0
        while count != self._per_epoch:
            yield self._tuple(self._next)
            count += 1
            self._next = next(self._rest, None)
            if self._next is None:
                self.finished = not self.replayable
                if self.replayable:
                    self._rewind()
                return

    def _tuple(self, triple: Sequence[str] | Mapping[str, str]) -> tuple[str, ...]:
        if isinstance(triple, Mapping):
            return tuple(triple[key] for key in self._keys)
        return tuple(triple)[self._drop :]

    def first(self) -> tuple[str, ...]:
        """The triple that comes next, which stays in the stream."""
        return self._tuple(self._next)


class TripleBatches(IterableDataset):
    """Batches of triples, in the order of the stream; each iteration is an epoch.

    Triples of unknown queries or documents are left out.

    Args:
        stream: The triples.
        batch_size: Triples in a batch.
        documents: The forward index that has the documents.
        topics: Queries with ``qid`` and ``query``; None if the triples have the texts of queries.
        collate: Makes a network's inputs.

    Attributes:
        read: Triples that were trained on, those of each epoch counted.
        unknown: Triples that were left out.
        stream: The triples.
    """

    identity: tuple[np.ndarray, ...] = ()  # arrays that tell a run from others; a stream is known by its first triple

    def __init__(
        self,
        stream: TripleStream,
        batch_size: int,
        documents: ForwardIndex,
        topics: pd.DataFrame | None,
        collate: Collate,
    ):
        self.stream, self.batch_size, self.documents, self.collate = stream, batch_size, documents, collate
        self.read = self.unknown = 0
        self._queries = None
        if topics is not None:
            topics = topics[topics["query"].notna()]
            self._queries = dict(zip(topics["qid"].tolist(), map(str, topics["query"]), strict=True))

    @property
    def finished(self) -> bool:
        """Whether there is no further epoch."""
        return self.stream.finished

    def skip(self, epochs: int) -> None:
        """Pass over epochs that were trained on before."""
        for _ in range(epochs):
            for _ in self.stream.epoch():
                pass

    def loader(self, rank: int, devices: int) -> DataLoader:
        """The loader for one of several devices, which take turns; a last round that not all can take part in is lost.

        Each reads the whole stream, and makes tensors of its own batches only.
        """
        self._rank, self._devices = rank, devices
        return DataLoader(self, batch_size=None)

    def __iter__(self) -> Iterator[Batch]:
        known = self._known()
        while len(turn := list(islice(known, self._devices))) == self._devices:
            yield self._batch(*turn[self._rank])

    def _known(self) -> Iterator[tuple[list[str], np.ndarray]]:
        """Queries and numbers of documents, (triples, 1 + negatives), batch after batch, without unknown ones."""
        triples = self.stream.epoch()
        while chunk := list(islice(triples, self.batch_size)):
            queries, *columns = self._columns(chunk)
            documents = np.column_stack([self.documents.rows(column) for column in columns])
            known = (documents >= 0).all(axis=1)
            if self._queries is not None:
                queries = list(map(self._queries.get, queries))
            known &= np.fromiter((isinstance(text, str) for text in queries), dtype=bool, count=len(queries))
            self.read += int(known.sum())
            self.unknown += int((~known).sum())
            if not self.read:
                raise ValueError(
                    f"none of the first {self.unknown} triples, such as {chunk[0]}, has a known query and known "
                    f"documents: are triples, topics and {self.documents!r} of the same collection?"
                )
            if known.any():
                yield [queries[place] for place in np.flatnonzero(known)], documents[known]

    def _columns(self, chunk: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        lengths = {len(triple) for triple in chunk}
        if len(lengths) > 1 or min(lengths) < 3:
            raise ValueError(
                "a triple is a query, a relevant document and one or more others, of the same number in all triples; "
                f"there is {min(chunk, key=len)}"
            )
        return list(zip(*chunk, strict=True))

    def _batch(self, queries: list[str], documents: np.ndarray) -> Batch:
        query_rows, distinct_queries = pd.factorize(np.array(queries, dtype=object))
        distinct_documents, rows = np.unique(documents, return_inverse=True)
        inputs = self.collate(list(distinct_queries), distinct_documents, query_rows, rows.reshape(documents.shape))
        labels = torch.zeros(documents.shape)
        labels[:, 0] = 1
        return Batch(inputs, labels, torch.ones(documents.shape, dtype=torch.bool))
