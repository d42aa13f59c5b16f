"""Frames: checks of columns and values, and scores and hits as frames; ranks and ties are decided here only."""

import numbers
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import NoneType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural import _links  # noqa: F401 (which lets schematics of pipelines with our stages do without a network)

PLAIN_COLUMNS = ("qid", "docno", "query")
EXPANDED_BY = "pt_neural: expanded by"  # in the attributes of a frame whose scores are those of expanded queries
_MISSING = (NoneType, type(pd.NA), type(pd.NaT))
_PLAIN = (str, numbers.Number, np.bool_, *_MISSING)
_NUMBERS = (numbers.Real, np.bool_, *_MISSING)
_LONG = 64  # letters; arrays of fixed width hold no longer docnos


class ColumnsError(pt.validate.InputValidationError, ValueError):
    """PyTerrier's error, whose modes its inspection reads, with a message of one sentence."""

    def __str__(self) -> str:
        return self.args[0]


@contextmanager
def validated(frame: pd.DataFrame, transformer: pt.Transformer, fields: Sequence[str] = ()) -> Iterator[Any]:
    """Check the values of a frame, and give PyTerrier's validator of its columns.

    If no mode fits, the error says in one sentence what is missing. ``fields`` are the text columns, for the error.

    Raises:
        ColumnsError: If columns are missing.
        TypeError: As :func:`check_values` does.
        ValueError: Likewise.

    Example::

        with validated(frame, transformer) as v:
            v.query_frame(["query"], mode="retrieve")
    """
    check_values(frame, transformer)
    try:
        with pt.validate.any(frame, context=transformer) as validator:
            yield validator
    except pt.validate.InputValidationError as error:
        if fields and {"qid", "query", "docno"} <= set(frame) and not set(fields) & set(frame):
            message = (
                f"the frame has no text for {transformer!r}, none of the columns {', '.join(fields)}: add >> "
                f"index.text_loader({list(fields)}) before it, or give the ranker documents="
            )
        else:
            nearest = min(error.modes, key=_distance)
            missing = ", ".join(nearest.missing_columns) or "other columns"
            message = f"{transformer!r} needs {missing}; the frame has {', '.join(map(str, frame)) or 'no columns'}"
        raise ColumnsError(message, error.modes) from None


def _distance(mode: Any) -> tuple[int, int]:
    """How far a frame is from fitting a mode; to lack a column is nearer than to have one too many."""
    return len(mode.missing_columns) + len(mode.extra_columns), len(mode.extra_columns)


def check_values(frame: pd.DataFrame, what: object) -> None:
    """Refuse a frame that no transformer can use, and name the column and the row.

    ``qid``, ``docno`` and ``query`` hold strings and numbers, and a ``qid`` is never missing. Other columns are checked
    by those that read them.

    Args:
        frame: Any frame.
        what: The frame, or the transformer that takes it, as the message calls it.

    Raises:
        TypeError: If it is no frame, or if a value is of another type.
        ValueError: If a column occurs twice, if columns have several levels, or if a qid is missing.
    """
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"{what!s}: a frame is needed, not {frame!r:.80}")
    columns = frame.columns
    if columns.nlevels > 1:
        raise ValueError(f"{what!s}: columns have {columns.nlevels} levels, such as {columns[0]!r:.80}; flatten them")
    if not columns.is_unique:
        raise ValueError(f"{what!s}: column {columns[columns.duplicated()][0]!r} occurs twice; drop or rename one")
    for name in PLAIN_COLUMNS:
        if name in columns:
            column = frame[name]
            _require_types(column, _PLAIN, what, "strings and numbers")
            if name == "qid" and column.hasnans:
                row = int(np.argmax(column.isna()))
                raise ValueError(f"{what!s}: row {row} (from 0) of column 'qid' is missing; drop it, or name its query")


def numbers_in(frame: pd.DataFrame, name: str, what: object) -> np.ndarray:
    """A column of numbers, float64 of shape ``(rows,)``, with NaN where they are missing.

    Raises:
        TypeError: If a value is not a number; the message names column and row.
        ValueError: If one is too large.
    """
    column = frame[name]
    _require_types(column, _NUMBERS, what, "numbers")
    try:
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    except OverflowError:
        row = next(row for row, value in enumerate(column) if isinstance(value, int) and abs(value) >= 2**1023)
        raise ValueError(f"{what!s}: row {row} (from 0) of column {name!r} is too large a number") from None


def vectors_in(frame: pd.DataFrame, name: str, what: object) -> np.ndarray:
    """A column of vectors as a matrix, float32 of shape ``(rows, dimensions)``; the frame has rows.

    Raises:
        ValueError: If a row holds no vector of finite numbers, or one of another length; the message names it.
    """
    values = frame[name].tolist()
    with suppress(TypeError, ValueError), np.errstate(over="ignore"):
        matrix = np.stack(values)
        if matrix.ndim == 2 and matrix.dtype.kind in "iuf":
            matrix = matrix.astype(np.float32, copy=False)
            if np.isfinite(matrix).all():
                return matrix
    lengths = [_length(value) for value in values]
    length = next((length for length in lengths if length is not None), None)
    row = next(row for row, other in enumerate(lengths) if other is None or other != length)
    expected = "finite numbers" if length is None else f"{length} finite numbers"
    raise ValueError(
        f"{what!s}: row {row} (from 0) of column {name!r} holds {values[row]!r:.80}, not an array of {expected}"
    )


def _length(vector: Any) -> int | None:
    """The length of a vector of finite numbers; None for anything else."""
    with suppress(TypeError, ValueError), np.errstate(over="ignore"):
        array = np.asarray(vector)
        if array.ndim == 1 and array.dtype.kind in "iuf" and np.isfinite(array.astype(np.float32)).all():
            return len(array)
    return None


def _require_types(column: pd.Series, types: tuple[type, ...], what: object, expected: str) -> None:
    """Raise TypeError if a column holds values of other types; strings and numbers as such are known by their dtype."""
    dtype = column.dtype
    if (isinstance(dtype, pd.StringDtype) and str in types) or (isinstance(dtype, np.dtype) and dtype.kind in "iufb"):
        return
    values = column.to_numpy(dtype=object)
    others = tuple(kind for kind in set(map(type, values)) if not issubclass(kind, types))
    if others:
        row = next(row for row, value in enumerate(values) if type(value) in others)
        raise TypeError(
            f"{what!s}: row {row} (from 0) of column {column.name!r} holds {values[row]!r:.80} "
            f"({type(values[row]).__name__}), but it takes {expected}"
        )


def strings(values: Sequence[str]) -> pd.Series:
    """A column of strings; of objects where one has half a character, as words of files in other encodings have."""
    try:
        return pd.Series(values, dtype="str")
    except UnicodeEncodeError:
        return pd.Series(values, dtype=object)


def as_texts(values: pd.Series | np.ndarray) -> list[str]:
    """Values as texts: numbers as they are written, and missing values as empty texts."""
    return ["" if missing else str(value) for value, missing in zip(values, pd.isna(values), strict=True)]


def require_columns(frame: pd.DataFrame, columns: Sequence[str], what: str) -> None:
    """Raise TypeError if ``what``, as the message calls it, is not a frame, and ValueError if a column is missing.

    Values are checked by :func:`check_values`.
    """
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"{what} must be a frame with {', '.join(columns)}, not {frame!r:.80}")
    missing = [column for column in columns if column not in frame]
    if missing:
        raise ValueError(f"{what} lacks {', '.join(missing)}; it has {', '.join(map(str, frame)) or 'no columns'}")
    check_values(frame, what)


def with_numeric_labels(qrels: pd.DataFrame, what: str) -> pd.DataFrame:
    """Judgements with their labels as numbers; ValueError if a label is not a number or a column is missing."""
    require_columns(qrels, ("qid", "docno", "label"), what)
    _require_types(qrels["label"], _PLAIN, what, "numbers")
    labels = pd.to_numeric(qrels["label"], errors="coerce")
    if labels.isna().any():
        raise ValueError(f"{what} has {int(labels.isna().sum())} rows whose label is not a number")
    return qrels.assign(label=labels)


class Hits(NamedTuple):
    """The results of a batch of queries, best first within each query."""

    queries: np.ndarray  # the number of each hit's query in the batch, ascending, int64
    documents: np.ndarray  # document numbers, int64
    scores: np.ndarray  # float64
    ranks: np.ndarray  # from 0 within each query, int64


_NO_HITS = Hits(*(np.empty(0, dtype=kind) for kind in (np.int64, np.int64, np.float64, np.int64)))


def retrieved_frame(
    queries: pd.DataFrame, chunks: Sequence[Hits], docnos: pd.api.extensions.ExtensionArray
) -> pd.DataFrame:
    """One row per hit: the columns of its query, then ``docno``, ``score`` and ``rank``.

    Queries are numbered by row of the query frame, documents by their place in ``docnos``.
    """
    rows, documents, scores, ranks = (np.concatenate(parts) for parts in zip(_NO_HITS, *chunks, strict=True))
    frame = queries.drop(columns=["score", "rank"], errors="ignore").take(rows).reset_index(drop=True)
    return frame.assign(docno=docnos.take(documents), score=scores, rank=ranks)


def with_scores(frame: pd.DataFrame, scores: np.ndarray) -> pd.DataFrame:
    """A copy of a result frame with new ``score`` and ``rank`` columns, rows in the same order."""
    scores = np.asarray(scores, dtype=np.float64)
    return frame.assign(score=scores, rank=ranks(frame["qid"], scores, frame["docno"]))


def ranks(qids: pd.Series, scores: np.ndarray, docnos: pd.Series) -> np.ndarray:
    """Ranks from 0 within each query, int64, by falling score, ties in the order of :func:`tie_order`.

    Rows with the same score and docno keep their order. NaN scores rank last.
    """
    queries, _ = pd.factorize(qids)
    order = np.lexsort((-scores, queries))
    tied = (np.diff(queries[order]) == 0) & (np.diff(scores[order]) == 0)
    if tied.any():
        order = _settle_ties(order, tied, docnos)
    sorted_queries = queries[order]
    starts = np.flatnonzero(np.r_[True, np.diff(sorted_queries) != 0]) if len(order) else np.zeros(0, int)
    lengths = np.diff(np.r_[starts, len(order)])
    result = np.empty(len(order), dtype=np.int64)
    result[order] = np.arange(len(order)) - np.repeat(starts, lengths)
    return result


def _settle_ties(order: np.ndarray, tied: np.ndarray, docnos: pd.Series) -> np.ndarray:
    """Sort each run of equal scores; ``tied[i]`` means that sorted rows i and i+1 are in one run."""
    run = np.cumsum(np.r_[0, ~tied])
    in_run = np.r_[tied, False] | np.r_[False, tied]
    rows = order[in_run]
    order = order.copy()
    names = [str(docno) for docno in docnos.iloc[rows]]
    places = tie_order(np.array(names, dtype=str if max(map(len, names)) <= _LONG else object))
    order[in_run] = rows[np.lexsort((places, run[in_run]))]
    return order


def tie_order(docnos: np.ndarray) -> np.ndarray:
    """The place of each document among those of equal score, int64: in descending order of docno.

    It is the order of trec_eval, by which measures are computed, whatever the ``rank`` of a run; so the document of
    rank 0 is the first one for a measure too. (trec_eval takes scores that are equal in single precision for equal;
    we compare them as they are.)
    """
    _, ascending = np.unique(docnos, return_inverse=True)
    return -ascending.astype(np.int64)
