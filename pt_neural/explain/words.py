"""What each word contributes to a score, as a frame, as shaded text, as a figure."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from pt_neural.explain.explanation import SIDES, Side, TextExplanation, checked_side
from pt_neural.explain.pictures import (
    DIRECTIONS,
    IN_BOTH,
    Mark,
    directions,
    draw_words,
    strongest,
    word_style,
)
from pt_neural.text import token_spans, tokenise

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WORD_COLUMNS = ("word", "start", "end", "side", "match", "contribution")  # first in every frame of words


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
        read: Where the part of each text ends that the model reads, in characters; empty if it reads all.
    """

    words: pd.DataFrame
    shades: np.ndarray
    per: Literal["occurrence", "term"]
    read: dict[Side, int | None] = field(default_factory=dict)

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
        words = self.words[list(WORD_COLUMNS)]
        if self.per == "occurrence":
            return words
        read = divided(pd.concat([self._read_part(words, side) for side in SIDES]))
        return words.assign(contribution=read["contribution"].reindex(words.index, fill_value=0.0))

    def _marks(self, side: Side) -> list[Mark]:
        text, rows = self._text_of(side), (self.words["side"] == side).to_numpy()
        value = "similarity" if "similarity" in self.words else "contribution"
        occurrences = self.words.loc[rows, ["start", "end", "match", value]].itertuples(index=False, name=None)
        return [
            Mark(start, end, text[start:end], word_style(match, shade), f"{value} {number:.4f}")
            for (start, end, match, number), shade in zip(occurrences, self.shades[rows], strict=True)
            if match or not np.isnan(shade)
        ]

    def _read(self, side: Side) -> int | None:
        return self.read.get(side)

    def plot(self, ax: "Axes | None" = None, *, words: int = 15, side: Side = "document") -> "Axes":
        """Draw the words that raise or lower the score most.

        Args:
            ax: Axes to draw on; None for a new figure.
            words: Number of distinct words to show.
            side: Which text's words.

        Raises:
            ValueError: If the side is neither ``"query"`` nor ``"document"``.
        """
        occurrences = self._read_part(self.words, checked_side(side))
        totals = strongest(occurrences, ["contribution"], "sum" if self.per == "occurrence" else "first", words)
        lost = f"score lost without the word, all its occurrences in the {side}"
        label = lost if self.per == "term" else "contribution to the score, summed over occurrences"
        return draw_words(
            ax,
            totals,
            {"contribution": directions(totals["contribution"])},
            DIRECTIONS,
            title=self._title(),
            label=f"{label} ({IN_BOTH})",
            nothing=f"no word of the {side} to show",
            matches=totals["match"],
        )
