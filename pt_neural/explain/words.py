"""How much each word adds to a score, as a frame, as shaded text, as a figure."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from pt_neural.explain.explanation import Side, TextExplanation, checked_side
from pt_neural.explain.marking import AGAINST_COLOUR, MATCH_COLOUR, SUPPORT_COLOUR, Mark, background
from pt_neural.explain.word_figure import draw_words, strongest
from pt_neural.text import token_spans, tokenise

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WORD_COLUMNS = ("word", "start", "end", "side", "match", "contribution")  # first, wherever words are explained
LEGEND = {
    MATCH_COLOUR: "in query and document",
    SUPPORT_COLOUR: "other word, raises the score",
    AGAINST_COLOUR: "lowers it",
}


def word_occurrences(text: str, side: Side, other: str) -> pd.DataFrame:
    """The words of a text: ``word``, ``start``, ``end``, ``side``, and ``match``, whether ``other`` has the word."""
    words = pd.DataFrame(token_spans(text), columns=["word", "start", "end"])
    words = words.astype({"word": object, "start": "int64", "end": "int64"})
    return words.assign(side=side, match=words["word"].isin(set(tokenise(other))))


def divided(words: pd.DataFrame) -> pd.DataFrame:
    """Contributions that all occurrences of a word add together, divided among them: see ``by_word``."""
    counts = words.groupby(["side", "word"], sort=False)["word"].transform("size")
    return words[list(WORD_COLUMNS)].assign(contribution=words["contribution"] / counts.astype(float))


@dataclass(frozen=True, repr=False)
class WordExplanation(TextExplanation):
    """How much each word adds to the score.

    Attributes:
        words: One row an occurrence; see :meth:`to_frame`.
        shades: How strongly each row is shaded, from -1 (it lowers the score) to 1 (it raises it); NaN is not at all.
        per: Whether ``contribution`` is that of one ``"occurrence"``, or of all occurrences of the ``"term"`` together.
    """

    words: pd.DataFrame
    shades: np.ndarray
    per: Literal["occurrence", "term"]

    def to_frame(self) -> pd.DataFrame:
        """One row a word occurrence, in the order of the text.

        Returns:
            Frame with ``word``, ``start`` and ``end`` (character positions), ``side`` (``"query"`` or ``"document"``,
            the text in which it stands), ``match`` (whether the other text has the word too) and ``contribution``;
            with what else the explanation has.
        """
        return self.words.copy()

    def by_word(self) -> pd.DataFrame:
        """What each word adds to the score, or what the score loses without it."""
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
        """Draw the words that add most to the score, and those that take most away.

        Args:
            ax: Axes to draw on; a new figure by default.
            words: How many distinct words to show.
            side: Of which text.

        Raises:
            ValueError: If the side is neither ``"query"`` nor ``"document"``.
        """
        of_side = self.words[self.words["side"] == checked_side(side)]
        totals = strongest(of_side, ["contribution"], "sum" if self.per == "occurrence" else "first", words)
        lost = f"score lost without the word, all its occurrences in the {side}"
        ax = draw_words(
            ax,
            totals,
            {"contribution": _colours(totals)},
            LEGEND,
            label=lost if self.per == "term" else "contribution to the score, summed over occurrences",
            nothing=f"no word of the {side} to show",
        )
        self._set_title(ax, pad=26, loc="left")
        return ax


def _colours(totals: pd.DataFrame) -> list[str]:
    """Of each word's bar; query words are told by colour, their direction by that of the bar."""
    others = np.where(totals["contribution"] < 0, AGAINST_COLOUR, SUPPORT_COLOUR)
    return np.where(totals["match"], MATCH_COLOUR, others).tolist()


def _style(match: bool, shade: float) -> str:
    underline = "; text-decoration: underline dashed" if shade < 0 else ""  # not by colour alone
    if match:
        return f"background: {MATCH_COLOUR}; color: black; font-weight: bold{underline}"
    colour = AGAINST_COLOUR if shade < 0 else SUPPORT_COLOUR
    return background(colour, 15 + round(35 * abs(shade))) + underline
