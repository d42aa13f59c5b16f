"""Frames cut into parts of whole queries, and put together again as if they had never been apart."""

from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyterrier as pt

# Added to the labels of rows that go into a transformer: rows that come out with smaller labels are new ones.
_INCOMING = 2**40


class PartResult(NamedTuple):
    """What transformers made of a part."""

    frame: pd.DataFrame  # its labels are the rows of the part, or those of the new frame that it is taken from
    new_rows: int | None  # the rows of that new frame; None if the labels are those of the part


def transform_part(stages: Sequence[pt.Transformer], part: pd.DataFrame) -> PartResult:
    """Run transformers one after the other on a part whose labels are its rows, and follow the labels."""
    frame, new_rows = part.set_axis(part.index + _INCOMING), None
    for stage in stages:
        frame = stage.transform(frame)
        if len(frame) and pd.api.types.is_integer_dtype(frame.index) and frame.index.min() < _INCOMING:
            new_rows = max(len(frame), int(frame.index.max()) + 1)
            frame = frame.set_axis(frame.index + _INCOMING)
    return PartResult(frame.set_axis(frame.index - _INCOMING) if len(frame) else frame, new_rows)


def cut(frame: pd.DataFrame, count: int) -> list[np.ndarray]:
    """The rows of at most ``count`` parts of about equal size, int64: whole queries, in the order of the frame.

    In a frame of queries, without ``docno``, each row is by itself.
    """
    if "qid" not in frame or len(frame) == 0:
        return [np.arange(len(frame))]
    if "docno" in frame:
        queries, names = pd.factorize(frame["qid"], use_na_sentinel=False)
    else:
        queries, names = np.arange(len(frame)), frame["qid"]
    ends = np.cumsum(np.bincount(queries))
    part = (ends - 1) * count // len(frame)
    part -= np.cumsum(np.diff(part, prepend=0) * _is_first_inversion(np.asarray(names, dtype=object)))
    rows = (np.flatnonzero(part[queries] == number) for number in range(count))
    return [row for row in rows if len(row)]


def _is_first_inversion(names: np.ndarray) -> np.ndarray:
    """Marks the first query that is smaller than the one before it, if there is one; the two stay in one part.

    So that a part tells whether a transformer sorts its results by query or leaves queries in their order.
    """
    marks = np.zeros(len(names), dtype=bool)
    try:
        smaller = np.array([after < before for before, after in pairwise(names)], dtype=bool)
    except TypeError:  # names of several types have no order
        return marks
    marks[1 + np.flatnonzero(smaller)[:1]] = True
    return marks


def put_together(frame: pd.DataFrame, parts: Sequence[np.ndarray], results: Sequence[PartResult]) -> pd.DataFrame:
    """What transformers would have made of a whole frame, from what they made of its parts.

    Args:
        frame: The whole frame.
        parts: The rows of each part.
        results: What :func:`transform_part` gave for each part.
    """
    found = [(rows, result) for rows, result in zip(parts, results, strict=True) if len(result.frame)]
    if not found:
        return results[0].frame
    whole = pd.concat([result.frame for _, result in found]) if len(found) > 1 else found[0][1].frame
    whole.attrs = results[0].frame.attrs
    if not pd.api.types.is_integer_dtype(whole.index):
        return whole
    if all(result.new_rows is None for _, result in found):
        return _incoming_rows(frame, whole, found)
    starts = np.cumsum([0, *(result.new_rows or 0 for _, result in found[:-1])])
    labels = whole.index.to_numpy() + np.repeat(starts, [len(result.frame) for _, result in found])
    order = _query_order(frame, whole, found)
    if (labels == np.arange(len(labels))).all():
        return whole.iloc[order].set_axis(pd.RangeIndex(len(whole)))
    return whole.set_axis(labels).iloc[order]


def _incoming_rows(
    frame: pd.DataFrame, whole: pd.DataFrame, found: Sequence[tuple[np.ndarray, PartResult]]
) -> pd.DataFrame:
    rows = np.concatenate([rows[result.frame.index.to_numpy()] for rows, result in found])
    if all(result.frame.index.is_monotonic_increasing for _, result in found):
        order = np.argsort(rows, kind="stable")
    else:
        order = _query_order(frame, whole, found)
    index = frame.index.take(rows[order])
    return whole.iloc[order].set_axis(frame.index if index.equals(frame.index) else index)


def _query_order(
    frame: pd.DataFrame, whole: pd.DataFrame, found: Sequence[tuple[np.ndarray, PartResult]]
) -> np.ndarray:
    """The order of rows: as parts follow each other, or by query where parts have their queries in some order."""
    unchanged = np.arange(len(whole))
    if "qid" not in whole or len(found) == 1:
        return unchanged
    ends = np.cumsum([len(result.frame) for _, result in found])
    runs = (np.diff(np.concatenate([rows for rows, _ in found])) > 0).all()
    _, incoming = pd.factorize(frame["qid"], use_na_sentinel=False)
    orders = [incoming]
    with suppress(TypeError):  # names of several types have no order
        orders.append(sorted(incoming))
    for names in orders:
        places = {name: place for place, name in enumerate(names)}
        queries = whole["qid"].map(places).to_numpy(dtype=float)
        if all((np.diff(part) >= 0).all() for part in np.split(queries, ends[:-1])):
            return unchanged if runs and names is incoming else np.argsort(queries, kind="stable")
    return unchanged
