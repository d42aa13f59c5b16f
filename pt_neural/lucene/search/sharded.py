"""Searching shards that are apart: statistics are gathered and added up, each shard is searched, hits are merged.

Each step is a method of :class:`ShardGroup`, which runs wherever its shards are: in this process, or in an actor of a
cluster. Nothing but queries, statistics and hits goes back and forth.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._files import ArtifactError
from pt_neural._frames import Hits, ranks, retrieved_frame, with_scores
from pt_neural.datasets.docnos import refuse_unknown
from pt_neural.lucene.index.directory import IndexDirectory
from pt_neural.lucene.index.opened import versions_of
from pt_neural.lucene.index.reader import ELSEWHERE, FieldOptions, Reader
from pt_neural.lucene.index.statistics import Statistics, add_statistics
from pt_neural.lucene.search.retrievers import Retriever, group_queries
from pt_neural.lucene.search.scoring import CHUNK, in_chunks

Fields = Mapping[str, FieldOptions]


class ShardView(IndexDirectory):
    """A shard as a part of its collection: it has the fields of all shards, and scores by the given statistics."""

    def __init__(self, shard: IndexDirectory, fields: Fields, statistics: Statistics | None = None):
        super().__init__(shard.path, stemmer=shard.stemmer, stopwords=shard.stopwords)
        self._shard = shard
        self._fields = fields
        self._reader = None if statistics is None else shard.reader.scoring_by(statistics)

    @property
    def parts(self) -> list[Path]:
        """The folders of the shard."""
        return self._shard.parts

    @property
    def reader(self) -> Reader:
        """The opened shard."""
        return self._reader or self._shard.reader

    @property
    def field_options(self) -> Fields:
        """What the shards store for each field."""
        return self._fields


class NamedHits(NamedTuple):
    """The results of a batch of queries by docno, so that those of several shards can be merged."""

    queries: np.ndarray  # the number of each hit's query in the batch, ascending, int64
    docnos: np.ndarray  # strings as objects
    scores: np.ndarray  # float64


class ShardGroup:
    """Some of the shards of an index, searched by one process; ArtifactError once one of them has been rebuilt.

    Args:
        paths: The directories of the shards.
        stemmer: The stemmer of queries. Default: the one that the shards were built with.
        stopwords: The stop words of queries, with the same default.
    """

    def __init__(self, paths: Sequence[Path], stemmer: str | None = None, stopwords: str | None = None):
        self._paths, self._versions = paths, versions_of(paths)
        self._shards = [IndexDirectory(path, stemmer=stemmer, stopwords=stopwords).opened() for path in paths]
        self._require_unchanged()

    def _require_unchanged(self) -> None:
        """Statistics of one version are no statistics of another one."""
        for path, version, now in zip(self._paths, self._versions, versions_of(self._paths), strict=True):
            if version != now:
                raise ArtifactError(f"{path} was rebuilt; open it again")

    def fields(self) -> dict[str, FieldOptions]:
        """What the shards store for each field."""
        return merge_fields([shard.field_options for shard in self._shards])

    def statistics(self, retriever: Retriever, queries: pd.DataFrame, fields: Fields) -> Statistics:
        """What scoring these queries needs to know of these shards."""
        self._require_unchanged()
        views = (ShardView(shard, fields) for shard in self._shards)
        return add_statistics([retriever.on(view).statistics(queries) for view in views])

    def search(self, retriever: Retriever, queries: pd.DataFrame, fields: Fields, statistics: Statistics) -> NamedHits:
        """The best documents of these shards, scored by the statistics of all shards."""
        self._require_unchanged()
        found = []
        for shard in self._shards:
            view = ShardView(shard, fields, statistics)
            for hits in retriever.on(view).hits(queries, retriever.num_results):
                docnos = np.asarray(view.reader.docnos.take(hits.documents), dtype=object)
                found.append(NamedHits(hits.queries, docnos, hits.scores))
        return merge_hits(found, retriever.num_results)

    def score(
        self, retriever: Retriever, rows: pd.DataFrame, fields: Fields, statistics: Statistics
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which rows of a result frame name documents of these shards, bool, and the scores of all rows, float64."""
        self._require_unchanged()
        found, scores = np.zeros(len(rows), dtype=bool), np.zeros(len(rows))
        for shard in self._shards:
            view = ShardView(shard, fields, statistics)
            own = view.reader.docnos.rows(rows["docno"]) >= 0
            if own.any():
                scores[own] = retriever.on(view).score(rows[own])
                found |= own
        return found, scores


def merge_fields(parts: Sequence[Fields]) -> dict[str, FieldOptions]:
    """The fields of any shard, with the options that all shards with the field have."""
    names = sorted({name for fields in parts for name in fields})
    found = {name: [fields[name] for fields in parts if name in fields] for name in names}
    return {name: FieldOptions(*map(all, zip(*options, strict=True))) for name, options in found.items()}


def merge_hits(parts: Sequence[NamedHits], num_results: int) -> NamedHits:
    """The best documents of a batch of queries from those of each shard, best first within each query."""
    if len(parts) == 1:
        return parts[0]
    queries, docnos, scores = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    places = ranks(pd.Series(queries), scores, pd.Series(docnos, dtype=object))
    order = np.lexsort((places, queries))
    order = order[places[order] < num_results]
    return NamedHits(queries[order], docnos[order], scores[order])


class ShardedRetriever(pt.Transformer):
    """A retriever of an index whose shards are searched by several processes; frames are those of the retriever.

    Args:
        retriever: BM25, QL or SDM of the index.
        call: ``call(method, *arguments)`` calls a method of each :class:`ShardGroup`, and returns their results.
        fields: What the shards store for each field.
    """

    def __init__(self, retriever: Retriever, call: Callable[..., list[Any]], fields: Fields):
        self.retriever = retriever
        self._call = call
        self._fields = fields

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Retrieve for queries, or score the rows that have a docno; see :meth:`Retriever.transform`."""
        self.retriever.validate(inp)
        if not len(inp):
            return self.retriever(inp)
        ShardView(self.retriever.index, self._fields).require_field(self.retriever.field)
        if "docno" not in inp.columns:
            return self._retrieve(inp)
        return self.retriever.cut(with_scores(inp, self._score(inp)))

    def _retrieve(self, inp: pd.DataFrame) -> pd.DataFrame:
        needed = _needed_columns(inp)
        chunks, docnos = [], [np.empty(0, dtype=object)]
        count = 0
        for chunk in in_chunks(len(inp), CHUNK, label=self._label()):
            queries = needed.iloc[chunk]
            parts = self._call("search", self.retriever, queries, self._fields, self._statistics(queries))
            found = merge_hits(parts, self.retriever.num_results)
            numbers = np.arange(count, count + len(found.docnos))
            chunks.append(Hits(found.queries + chunk.start, numbers, found.scores, _ranks(found.queries)))
            docnos.append(found.docnos)
            count += len(numbers)
        return retrieved_frame(inp, chunks, pd.array(np.concatenate(docnos), dtype="str"))

    def _score(self, inp: pd.DataFrame) -> np.ndarray:
        needed = _needed_columns(inp)
        groups, _ = group_queries(needed)
        scores = np.zeros(len(inp))
        known = np.zeros(len(inp), dtype=bool)
        for chunk in in_chunks(int(groups.max()) + 1, CHUNK, label=self._label()):
            rows = np.flatnonzero((groups >= chunk.start) & (groups < chunk.stop))
            part = needed.iloc[rows]
            statistics = self._statistics(part.iloc[group_queries(part)[1]])
            for own, found in self._call("score", self.retriever, part, self._fields, statistics):
                scores[rows[own]] = found[own]
                known[rows[own]] = True
        refuse_unknown(inp["docno"][~known], self.retriever.index.path, ELSEWHERE)
        return scores

    def _statistics(self, queries: pd.DataFrame) -> Statistics:
        return add_statistics(self._call("statistics", self.retriever, queries, self._fields))

    def _label(self) -> str | None:
        return repr(self) if self.retriever.verbose else None

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer | None:
        """Retrieve only ``k`` documents where only the first ``k`` are wanted."""
        fused = self.retriever.fuse_rank_cutoff(k)
        if fused is None:
            return None
        result = copy.copy(self)
        result.retriever = fused
        return result

    def schematic(self, *, input_columns: list[str] | None = None) -> dict[str, Any]:
        """How PyTerrier draws it."""
        return self.retriever.schematic(input_columns=input_columns)

    def subtransformers(self) -> dict:
        """None: the retriever says what to do, but does not run in this process."""
        return {}

    def __repr__(self) -> str:
        return repr(self.retriever)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShardedRetriever) and self.retriever == other.retriever

    def __hash__(self) -> int:
        return hash((ShardedRetriever, self.retriever))


def _needed_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """What retrievers read of a frame; the other columns, perhaps with texts, need not travel."""
    return frame[[name for name in ("qid", "query", "query_toks", "docno") if name in frame.columns]]


def _ranks(queries: np.ndarray) -> np.ndarray:
    """The rank of each hit, from 0 within each query, of hits that are in order."""
    starts = np.flatnonzero(np.r_[True, np.diff(queries) != 0])[: len(queries)]
    return np.arange(len(queries)) - np.repeat(starts, np.diff(np.r_[starts, len(queries)]))
