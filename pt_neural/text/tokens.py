"""From documents and frames to the single string that a ranker reads, to its tokens, and to packed term ids."""

import re
import unicodedata
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from pt_neural.text.packed import PackedSequences
from pt_neural.text.vocabulary import Vocabulary

TEXT_FIELDS = ("title", "text")
FIELD_END = "\x1e"  # the ASCII record separator, which is never part of a token

_ASCII = "".join(character.lower() if character.isalnum() else " " for character in map(chr, range(128)))


def tokenise(text: Any) -> list[str]:
    """Lower-case a text and cut it into runs of letters and digits; anything but a string has no tokens.

    For ASCII this is the papers' "down-case and remove non-alphanumerics" (Duet section 3). Elsewhere a letter keeps
    the combining marks after it, composed and decomposed spellings give the same token (NFC), and a lone surrogate
    separates tokens, as an underscore does. Scripts written without spaces are not segmented.

    Example::

        >>> tokenise("pairwise_distances(X, metric='cosine')")
        ['pairwise', 'distances', 'x', 'metric', 'cosine']
    """
    if not isinstance(text, str):
        return []
    if text.isascii():
        return text.translate(_ASCII).split()
    return _unicode_token().findall(unicodedata.normalize("NFC", text.lower()))


def token_spans(text: Any) -> list[tuple[str, int, int]]:
    """The tokens of a text with start and end: ``text[start:end]`` is the token as it was written.

    Example::

        >>> token_spans("The Okapi")
        [('the', 0, 3), ('okapi', 4, 9)]
    """
    written = _unicode_token().finditer(text) if isinstance(text, str) else ()
    # Lower-casing and NFC never create, split or join tokens, so tokenise() finds the same number.
    return [(token, *match.span()) for token, match in zip(tokenise(text), written, strict=True)]


@cache
def _unicode_token() -> re.Pattern[str]:
    r"""Runs of letters and digits with their combining marks, which ``\w`` leaves out."""
    codes = (*range(0x20000), *range(0xE0000, 0xE1000))  # where the marks are; searching all of Unicode takes 0.3 s
    marks = [code for code in codes if unicodedata.category(chr(code)).startswith("M")]
    runs = np.split(marks, np.flatnonzero(np.diff(marks) > 1) + 1)
    ranges = "".join(f"{chr(run[0])}-{chr(run[-1])}" for run in runs)  # searched several times faster than characters
    # Most words end before a space: looking for an ASCII character first avoids the search there.
    return re.compile(rf"[^\W_]+(?:(?=[^\x00-\x7f])[{ranges}]+[^\W_]*)*")


def join_fields(document: Mapping[str, Any], fields: Sequence[str] = TEXT_FIELDS, *, mark_ends: bool = False) -> str:
    """Join the text fields of a document with single spaces; a field that is missing or not a string adds nothing.

    With ``mark_ends``, all the fields, missing ones as empty strings, are joined with ``FIELD_END`` instead, so that
    :func:`~pt_neural.text.pack_fields` can tell where each one ends. A document that has none of the fields raises
    ValueError.

    Example::

        >>> join_fields({"docno": "d1", "title": "Okapi", "text": "A relative of the giraffe."})
        'Okapi A relative of the giraffe.'
    """
    if not any(field in document for field in fields):
        raise ValueError(_no_fields(f"document {document.get('docno')!r}", fields, document))
    return _joiner(mark_ends)([document.get(field) for field in fields])


def frame_texts(frame: pd.DataFrame, fields: Sequence[str] = TEXT_FIELDS, *, mark_ends: bool = False) -> list[str]:
    """Join the text columns of a frame, row by row, as :func:`join_fields` does for one document.

    Returns one string per row, ``""`` where a row has no text. A frame that has none of the columns raises ValueError.

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


def pack_texts(texts: Iterable[Any]) -> tuple[PackedSequences, list[str]]:
    """Tokenise texts into term ids; also returns the distinct terms, numbered in order of first appearance.

    Example::

        >>> sequences, terms = pack_texts(["a river", "a city"])
        >>> sequences[1], terms
        (array([0, 2], dtype=int32), ['a', 'river', 'city'])
    """
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    terms, ends = array("i"), array("q", [0])
    for text in texts:
        terms.extend(map(numbers.__getitem__, tokenise(text)))
        ends.append(len(terms))
    return PackedSequences(np.array(terms, dtype=np.int32), np.array(ends, dtype=np.int64)), list(numbers)


def pack_fields(texts: Iterable[str], fields: int) -> tuple[PackedSequences, list[str]]:
    r"""Tokenise texts with marked field ends into sequences with ``field_ends``; see :func:`pack_texts`.

    A text with fewer than ``fields`` fields has the last ones only, so a plain text is the last field.

    Example::

        >>> sequences, terms = pack_fields(["river\x1ethe river", "\x1ea city"], 2)
        >>> sequences.field_ends
        array([[1, 3],
               [0, 2]])
    """
    parts = (text.split(FIELD_END, fields - 1) for text in texts)
    sequences, terms = pack_texts(chain.from_iterable([*[""] * (fields - len(part)), *part] for part in parts))
    offsets = sequences.offsets[::fields]
    ends = sequences.offsets[1:].reshape(-1, fields) - offsets[:-1, None]
    return PackedSequences(sequences.terms, offsets, ends), terms


def tokenise_packed(texts: Iterable[Any], vocabulary: Vocabulary, *, drop_unknown: bool = False) -> PackedSequences:
    """Tokenise texts into term ids of a vocabulary; anything but a string (None, NaN) gives an empty sequence.

    Unknown terms are -1, or left out with ``drop_unknown``.

    Example::

        >>> tokenise_packed(["City on the river"], Vocabulary(["river", "city"]))[0]
        array([ 1, -1, -1,  0], dtype=int32)
    """
    terms, ends = array("i"), array("q", [0])
    for text in texts:
        ids = vocabulary.lookup(tokenise(text))
        terms.extend((term for term in ids if term >= 0) if drop_unknown else ids)
        ends.append(len(terms))
    return PackedSequences(np.array(terms, dtype=np.int32), np.array(ends, dtype=np.int64))
