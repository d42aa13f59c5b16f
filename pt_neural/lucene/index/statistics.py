"""The statistics that scores depend on: of one shard, or added up over all of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple


class Statistics(NamedTuple):
    """What scoring a batch of queries needs to know of a field of a collection. All numbers are whole, so that those
    of shards add up to those of the collection in any order.
    """

    field: str
    collection: tuple[int, ...]  # documents, those with the field, term occurrences, pairs of document and term
    terms: dict[str, tuple[int, int]]  # documents with the term, occurrences of the term
    windows: dict[Hashable, tuple[int, int]]  # documents with the window, and its frequency in units


def add_statistics(parts: Sequence[Statistics]) -> Statistics:
    """The statistics of a collection from those of its shards, for the same queries."""
    first = parts[0]
    return Statistics(
        first.field,
        _add([part.collection for part in parts]),
        {term: _add([part.terms[term] for part in parts]) for term in first.terms},
        {window: _add([part.windows[window] for part in parts]) for window in first.windows},
    )


def _add(counts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*counts, strict=True)))
