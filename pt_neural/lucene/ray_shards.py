"""The shards of an index, searched by actors of a Ray cluster."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import numpy as np

from pt_neural.cluster.connection import connected_ray
from pt_neural.cluster.workers import Workers
from pt_neural.lucene.search.retrievers import Retriever
from pt_neural.lucene.search.sharded import ShardedRetriever, ShardGroup, merge_fields
from pt_neural.lucene.searchable import SearchableIndex

_CRASHES = 3  # of an actor, after each of which it starts again


class RayShards:
    """Actors that each hold some shards of an index; made by :meth:`LuceneShards.on_ray`.

    Its retrievers return the frames of those of the index, to the bit. The actors live until :meth:`release`, or the
    end of a ``with`` block.
    """

    def __init__(self, index: SearchableIndex, *, actors: int | None, cpus: float, heap: str | None):
        ray, parts = connected_ray(), index.parts
        workers = Workers(actors, cpus, heap=heap)
        wanted = min(workers.count(ray), len(parts)) if actors is None else actors
        if wanted > len(parts):
            raise ValueError(f"actors={actors}, but there are {len(parts)} shards: an actor has at least one")
        self.index = index
        actor = ray.remote(max_restarts=_CRASHES, max_task_retries=_CRASHES, **workers.options())(ShardGroup)
        groups = np.array_split(np.arange(len(parts)), wanted)
        self._actors = [actor.remote([parts[i] for i in group], index.stemmer, index.stopwords) for group in groups]
        self._fields = merge_fields(self.call("fields"))

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of each actor's :class:`ShardGroup` at the same time, and wait for all results."""
        ray = connected_ray()
        if not self._actors:
            raise RuntimeError(f"the actors of {self!r} have ended; start others with on_ray()")
        shared = [ray.put(argument) for argument in arguments]  # sent to each machine once
        try:
            return ray.get([getattr(actor, method).remote(*shared) for actor in self._actors])
        except ray.exceptions.RayTaskError as error:
            raise error.cause or error from None

    def bm25(self, k1: float = 0.9, b: float = 0.4, **options: Any) -> ShardedRetriever:
        """BM25; see :meth:`LuceneIndex.bm25`."""
        return self._search(self.index.bm25(k1, b, **options))

    def ql(self, mu: float = 1000, **options: Any) -> ShardedRetriever:
        """Query likelihood; see :meth:`LuceneIndex.ql`."""
        return self._search(self.index.ql(mu, **options))

    def sdm(self, base: str = "ql", **options: Any) -> ShardedRetriever:
        """The sequential dependence model; see :meth:`LuceneIndex.sdm`."""
        return self._search(self.index.sdm(base, **options))

    def _search(self, retriever: Retriever) -> ShardedRetriever:
        return ShardedRetriever(retriever, self.call, self._fields)

    def release(self) -> None:
        """End the actors."""
        for actor in self._actors:
            connected_ray().kill(actor)
        self._actors = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"{self.index!r}.on_ray()"
