"""What each word contributes to a score, as a frame, as shaded text, as a figure."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from pt_neural.explain.explanation import Side, TextExplanation, checked_side
from pt_neural.explain.pictures import (
    AGAINST_COLOUR,
    HIGHLIGHT,
    MATCH_COLOUR,
    SUPPORT_COLOUR,
    Mark,
    background,
    draw_words,
    strongest,
)
from pt_neural.text import token_spans, tokenise

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WORD_COLUMNS = ("word", "start", "end", "side", "match", "contribution")  # first in every frame of words
LEGEND = {
    MATCH_COLOUR: "in query and document",
    SUPPORT_COLOUR: "other word, raises the score",
    AGAINST_COLOUR: "lowers it",
}


def span_frame(spans: list[tuple[str, int, int]]) -> pd.DataFrame:
    """Tokens as a frame: ``word``, ``start`` and ``end``."""
    return pd.DataFrame(spans, columns=["word", "start", "end"]).astype(
        {"word": object, "start": "int64", "end": "int64"}
    )


def word_occurrences(text: str, side: Side, other: str) -> pd.DataFrame:
    """The words of a text: ``word``, ``start``, ``end``, ``side``, and ``match`` (whether ``other`` has the word)."""
    words = span_frame(token_spans(text))
    return words.assign(side=side, match=words["word"].isin(set(tokenise(other))))


def divided(words: pd.DataFrame) -> pd.DataFrame:
    """Divide the joint contribution of a word's occurrences among them."""
    counts = words.groupby(["side", "word"], sort=False)["word"].transform("size")
    return words[list(WORD_COLUMNS)].assign(contribution=words["contribution"] / counts.astype(float))


@dataclass(frozen=True, repr=False)
class WordExplanation(TextExplanation):
    """What each word contributes to the score.

    Attributes:
        words: One row per occurrence; see :meth:`to_frame`.
        shades: How strongly each occurrence is shaded, from -1 (it lowers the score) to 1 (it raises it); NaN for no
            shade.
        per: Whether ``contribution`` belongs to one ``"occurrence"`` or to all occurrences of a ``"term"`` together.
    """

    words: pd.DataFrame
    shades: np.ndarray
    per: Literal["occurrence", "term"]

    def to_frame(self) -> pd.DataFrame:
        """One row per occurrence of a word, in the order of the text.

        Returns:
            Frame with ``word``, ``start`` and ``end`` (character positions), ``side`` (the text it stands in,
            ``"query"`` or ``"document"``), ``match`` (whether the other text has the word too), ``contribution`` and
            any further columns of the explanation.
        """
        return self.words.copy()

    def by_word(self) -> pd.DataFrame:
        """What each word contributes to the score, or what the score loses without it."""
        return divided(self.words) if self.per == "term" else self.words[list(WORD_COLUMNS)]

    def _marks(self, side: Side) -> list[Mark]:
        text, rows = self._text_of(side), (self.words["side"] == side).to_numpy()
        value = "similarity" if "similarity" in self.words else "contribution"
        occurrences = self.words.loc[rows, ["start", "end", "match", value]].itertuples(index=False, name=None)
        return [
            Mark(start, end, text[start:end], _style(match, shade), f"{value} {number:.4f}")
            for (start, end, match, number), shade in zip(occurrences, self.shades[rows], strict=True)
            if match or not np.isnan(shade)
        ]

    def plot(self, ax: "Axes | None" = None, *, words: int = 15, side: Side = "document") -> "Axes":
        """Draw the words that raise or lower the score most.

        Args:
            ax: Axes to draw on; None for a new figure.
            words: Number of distinct words to show.
            side: Which text's words.

        Raises:
            ValueError: If the side is neither ``"query"`` nor ``"document"``.
        """
        occurrences = self.words[self.words["side"] == checked_side(side)]
        totals = strongest(occurrences, ["contribution"], "sum" if self.per == "occurrence" else "first", words)
        lost = f"score lost without the word, all its occurrences in the {side}"
        other_colours = np.where(totals["contribution"] < 0, AGAINST_COLOUR, SUPPORT_COLOUR)
        ax = draw_words(
            ax,
            totals,
            {"contribution": np.where(totals["match"], MATCH_COLOUR, other_colours).tolist()},
            LEGEND,
            label=lost if self.per == "term" else "contribution to the score, summed over occurrences",
            nothing=f"no word of the {side} to show",
        )
        self._set_title(ax, pad=26, loc="left")
        return ax


def _style(match: bool, shade: float) -> str:
    """CSS for a word: orange if both texts have it, otherwise the stronger the colour, the more it contributes."""
    underline = "; text-decoration: underline dashed" if shade < 0 else ""  # colour is not the only sign
    if match:
        return HIGHLIGHT + underline
    return background(AGAINST_COLOUR if shade < 0 else SUPPORT_COLOUR, 15 + round(35 * abs(shade))) + underline
