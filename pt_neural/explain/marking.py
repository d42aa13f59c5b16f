"""Text with marked words, as HTML."""

from collections.abc import Iterable
from html import escape
from typing import NamedTuple

import numpy as np
import pandas as pd

from pt_neural.text import token_spans

# Okabe and Ito's orange, blue and reddish purple, which all common forms of colour blindness keep apart.
MATCH_COLOUR = "#E69F00"
SUPPORT_COLOUR = "#0072B2"
AGAINST_COLOUR = "#CC79A7"
MODEL_COLOURS = (SUPPORT_COLOUR, "#D55E00", "#009E73", "#56B4E9", "#000000", "#999999")  # where models are compared
WORDS_SHOWN = 2000
LEAST_SHADE = 0.1


class Mark(NamedTuple):
    """One marked piece of a text.

    Attributes:
        start: Where it starts in the text.
        end: Where the text goes on after it.
        shown: What stands there, plain text.
        style: CSS declarations.
        hint: What the pointer over it tells.
        label: A small raised remark after it.
    """

    start: int
    end: int
    shown: str
    style: str
    hint: str
    label: str = ""

    def to_html(self) -> str:
        """The piece as an HTML element."""
        label = f"<sup>{escape(self.label)}</sup>" if self.label else ""
        style = f"{self.style}; border-radius: 3px; padding: 1px 2px"
        return f'<span title="{escape(self.hint)}" style="{style}">{escape(self.shown)}{label}</span>'


def marked(text: str, marks: Iterable[Mark]) -> str:
    """A text as HTML, escaped, with its marks; a long one is cut after :data:`WORDS_SHOWN` words.

    Args:
        text: The text.
        marks: Pieces that do not overlap, in the order of the text.
    """
    spans = token_spans(text)
    end = spans[WORDS_SHOWN - 1][2] if len(spans) > WORDS_SHOWN else len(text)
    pieces, position = [], 0
    for mark in marks:
        if mark.start >= end:
            break
        pieces += [escape(text[position : mark.start]), mark.to_html()]
        position = mark.end
    pieces.append(escape(text[position:end]))
    if len(spans) > WORDS_SHOWN:
        pieces.append(f" … ({len(spans) - WORDS_SHOWN:,} more words)")
    return "".join(pieces)


def background(colour: str, strength: int) -> str:
    """CSS for a colour behind a word, mixed with what is there: 0 shows nothing of it, 100 only it."""
    return f"background: color-mix(in srgb, {colour} {strength}%, transparent)"


def shades(contributions: np.ndarray) -> np.ndarray:
    """From -1 to 1, relative to the strongest contribution; NaN for weak ones, which would colour the whole text."""
    shares = contributions / max(np.nan_to_num(np.abs(contributions)).max(initial=0), 1e-9)
    return np.where(np.abs(shares) >= LEAST_SHADE, shares, np.nan)


def side_shades(words: pd.DataFrame, column: str) -> np.ndarray:
    """Shades of a column of contributions, each text relative to its own strongest one."""
    result = np.full(len(words), np.nan)
    for rows in words.groupby("side", sort=False).indices.values():
        result[rows] = shades(words[column].to_numpy()[rows])
    return result


def word_marks(
    text: str, words: pd.DataFrame, column: str = "contribution", *, hint: str = "contribution"
) -> list[Mark]:
    """Marks of the words of one text: bold if both texts have them, the stronger the colour, the more they add.

    Args:
        text: The text.
        words: Its words in order: ``start``, ``end``, ``match`` and the column; those without colour are left out.
        column: What they add.
        hint: What the pointer over a word says before the number.
    """
    values = words[column].to_numpy()
    rows = zip(words["start"], words["end"], words["match"], values, shades(values), strict=True)
    return [
        Mark(start, end, text[start:end], word_style(match, shade), f"{hint} {value:.4f}")
        for start, end, match, value, shade in rows
        if match or not np.isnan(shade)
    ]


def word_style(match: bool, shade: float, *, of_match: str = "font-weight: bold") -> str:
    """CSS for a word: the stronger the colour, the more it raises the score, or lowers it if underlined.

    Args:
        match: Whether both texts have the word.
        shade: From -1 (it lowers the score) to 1 (it raises it); NaN for no colour.
        of_match: CSS for words of both texts.
    """
    styles = [of_match] if match else []
    if not np.isnan(shade):
        styles.append(background(AGAINST_COLOUR if shade < 0 else SUPPORT_COLOUR, 10 + round(50 * abs(shade))))
    if shade < 0:
        styles.append("text-decoration: underline dashed")  # not by colour alone
    return "; ".join(styles)
