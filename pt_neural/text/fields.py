"""From documents and frames to the one string that a ranker reads."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

TEXT_FIELDS = ("title", "text")
FIELD_END = "\x1e"  # the record separator, which ends a word and is part of none


def join_fields(document: Mapping[str, Any], fields: Sequence[str] = TEXT_FIELDS, *, mark_ends: bool = False) -> str:
    """Join the fields that a document has with one space.

    Args:
        document: One document, as a corpus iterator yields it.
        fields: Names of the fields, in the order in which they are joined.
        mark_ends: Join all fields, also those that the document lacks, with ``FIELD_END``, so that
            :func:`~pt_neural.text.pack_fields` finds where each ends.

    Returns:
        The text. A field that is absent, empty or not a string (None, NaN) adds nothing.

    Raises:
        ValueError: If the document has none of the fields, not even an empty one.

    Example::

        >>> join_fields({"docno": "d1", "title": "Okapi", "text": "A relative of the giraffe."})
        'Okapi A relative of the giraffe.'
    """
    if not any(field in document for field in fields):
        raise ValueError(_no_fields(f"document {document.get('docno')!r}", fields, document))
    return _joiner(mark_ends)([document.get(field) for field in fields])


def frame_texts(frame: pd.DataFrame, fields: Sequence[str] = TEXT_FIELDS, *, mark_ends: bool = False) -> list[str]:
    """Join the text columns of a frame, row by row, as :func:`join_fields` does for one document.

    Args:
        frame: Any frame with at least one of the columns.
        fields: Names of the columns, in the order in which they are joined.
        mark_ends: As in :func:`join_fields`.

    Returns:
        One string a row; ``""`` where a row has no text.

    Raises:
        ValueError: If the frame has none of the columns.

    Example::

        >>> frame_texts(pd.DataFrame({"title": ["Okapi", None], "text": ["a relative", "a river"]}))
        ['Okapi a relative', 'a river']
    """
    if not any(field in frame.columns for field in fields):
        raise ValueError(_no_fields("the frame", fields, frame.columns))
    columns = [frame[field].tolist() if field in frame.columns else [None] * len(frame) for field in fields]
    return list(map(_joiner(mark_ends), zip(*columns, strict=True)))


def _joiner(mark_ends: bool) -> Callable[[Iterable[Any]], str]:
    return _join_marked if mark_ends else _join


def _join(values: Iterable[Any]) -> str:
    return " ".join([value for value in values if isinstance(value, str) and value])


def _join_marked(values: Iterable[Any]) -> str:
    return FIELD_END.join([value.replace(FIELD_END, " ") if isinstance(value, str) else "" for value in values])


def _no_fields(what: str, wanted: Sequence[str], found: Iterable[str]) -> str:
    return (
        f"{what} has none of the fields {', '.join(wanted)}; it has {', '.join(map(str, found)) or 'nothing'}. "
        "Name the fields that hold the text with fields=[...]"
    )
