"""How much each word adds to a score, as a frame, as shaded text, as a figure."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from pt_neural.explain.explanation import SIDES, Explanation, Side, shortened
from pt_neural.explain.marking import AGAINST_COLOUR, MATCH_COLOUR, SUPPORT_COLOUR, Mark, background
from pt_neural.text import token_spans, tokenise

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WORD_LENGTH = 25  # longer ones are cut in figures
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


@dataclass(frozen=True, repr=False)
class WordExplanation(Explanation):
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

    def _marks(self, side: Side) -> list[Mark]:
        text = self.query if side == "query" else self.text
        rows = (self.words["side"] == side).to_numpy()
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
        import matplotlib.pyplot as plt

        totals = self._totals(side, words)
        if ax is None:
            _, ax = plt.subplots(figsize=(6, 1.4 + 0.28 * len(totals)), layout="constrained")
        ax.barh(np.arange(len(totals)), totals["contribution"], color=_colours(totals))
        ax.set_yticks(np.arange(len(totals)), [shortened(word, WORD_LENGTH) for word in totals.index])
        if totals.empty:
            ax.set_xticks([])
            ax.text(0.5, 0.5, f"no word of the {side} to show", ha="center", va="center", transform=ax.transAxes)
        else:
            ax.axvline(0, color="0.3", linewidth=0.8)
        lost = f"score lost without the word, all its occurrences in the {side}"
        ax.set_xlabel(lost if self.per == "term" else "contribution to the score, summed over occurrences")
        self._set_title(ax, pad=26, loc="left")
        handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in LEGEND]
        above = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": len(LEGEND), "borderaxespad": 0.2}
        ax.legend(handles, LEGEND.values(), **above, frameon=False, fontsize="small", columnspacing=1, handlelength=1)
        return ax

    def _totals(self, side: Side, words: int) -> pd.DataFrame:
        if side not in SIDES:
            raise ValueError(f"side must be 'query' or 'document', not {side!r}")
        explained = self.words[(self.words["side"] == side) & self.words["contribution"].notna()]
        together = ("contribution", "sum" if self.per == "occurrence" else "first")
        totals = explained.groupby("word", sort=False).agg(contribution=together, match=("match", "any"))
        strongest = totals["contribution"].abs().sort_values(ascending=False, kind="stable").index[:words]
        return totals.loc[strongest].sort_values("contribution", kind="stable")


def _colours(totals: pd.DataFrame) -> np.ndarray:
    """Of each word's bar; query words are told by colour, their direction by that of the bar."""
    others = np.where(totals["contribution"] < 0, AGAINST_COLOUR, SUPPORT_COLOUR)
    return np.where(totals["match"], MATCH_COLOUR, others)


def _style(match: bool, shade: float) -> str:
    underline = "; text-decoration: underline dashed" if shade < 0 else ""  # not by colour alone
    if match:
        return f"background: {MATCH_COLOUR}; color: black; font-weight: bold{underline}"
    colour = AGAINST_COLOUR if shade < 0 else SUPPORT_COLOUR
    return background(colour, 15 + round(35 * abs(shade))) + underline
