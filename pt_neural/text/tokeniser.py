"""The tokeniser that all rankers share."""

import re
import sys
import unicodedata
from functools import cache
from typing import Any

_ASCII = "".join(character.lower() if character.isalnum() else " " for character in map(chr, range(128)))


def tokenise(text: Any) -> list[str]:
    """Lower-case a text and cut it into runs of letters and digits.

    For ASCII this is the papers' "down-case and remove non-alphanumerics" (Duet section 3). Elsewhere a letter
    keeps the combining marks that follow it, composed and decomposed spellings give the same token (NFC), and
    lone surrogates separate. An underscore separates. Scripts written without spaces are not segmented.

    Args:
        text: The text; anything but a string, such as None or NaN, has no tokens.

    Returns:
        The tokens, in order.

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
    """The tokens of a text with the places where they stand in it.

    Args:
        text: The text; anything but a string has no tokens.

    Returns:
        Triples of token, start and end: ``text[start:end]`` is the token as it was written.

    Example::

        >>> token_spans("The Okapi")
        [('the', 0, 3), ('okapi', 4, 9)]
    """
    written = _unicode_token().finditer(text) if isinstance(text, str) else ()
    # Neither lower-casing nor NFC makes, ends or joins tokens, so both readings agree in number.
    return [(token, *match.span()) for token, match in zip(tokenise(text), written, strict=True)]


@cache
def _unicode_token() -> re.Pattern[str]:
    """Runs of letters and digits, and of the marks after them, which the regular expression for words lacks."""
    marks = "".join(filter(_is_mark, map(chr, range(sys.maxunicode + 1))))
    return re.compile(rf"[^\W_]+(?:[{marks}]+[^\W_]*)*")


def _is_mark(character: str) -> bool:
    return unicodedata.category(character).startswith("M")
