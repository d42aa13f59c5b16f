"""From documents and frames to the one string that a ranker reads."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

TEXT_FIELDS = ("title", "text")


def join_fields(document: Mapping[str, Any], fields: Sequence[str] = TEXT_FIELDS) -> str:
    """Join the fields that a document has with one space.

    Args:
        document: One document, as a corpus iterator yields it.
        fields: Names of the fields, in the order in which they are joined.

    Returns:
        The text. A field that is absent, empty or not a string (None, NaN) adds nothing.

    Raises:
        ValueError: If the document has none of the fields, not even an empty one.

    Example::

        >>> join_fields({"docno": "d1", "title": "Okapi", "text": "A relative of the giraffe."})
        'Okapi A relative of the giraffe.'
    """
    present = [document[field] for field in fields if field in document]
    if not present:
        raise ValueError(_no_fields(f"document {document.get('docno')!r}", fields, document))
    return _join(present)


def frame_texts(frame: pd.DataFrame, fields: Sequence[str] = TEXT_FIELDS) -> list[str]:
    """Join the text columns of a frame, row by row, as :func:`join_fields` does for one document.

    Args:
        frame: Any frame with at least one of the columns.
        fields: Names of the columns, in the order in which they are joined.

    Returns:
        One string a row; ``""`` where a row has no text.

    Raises:
        ValueError: If the frame has none of the columns.

    Example::

        >>> frame_texts(pd.DataFrame({"title": ["Okapi", None], "text": ["a relative", "a river"]}))
        ['Okapi a relative', 'a river']
    """
    columns = [frame[field].tolist() for field in fields if field in frame.columns]
    if not columns:
        raise ValueError(_no_fields("the frame", fields, frame.columns))
    return [_join(row) for row in zip(*columns, strict=True)]


def _join(values: Iterable[Any]) -> str:
    return " ".join([value for value in values if isinstance(value, str) and value])


def _no_fields(what: str, wanted: Sequence[str], found: Iterable[str]) -> str:
    return (
        f"{what} has none of the fields {', '.join(wanted)}; it has {', '.join(map(str, found)) or 'nothing'}. "
        "Name the fields that hold the text with fields=[...]"
    )
