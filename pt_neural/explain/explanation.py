"""An explanation of one score, as a frame, as shaded text, as a figure."""

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's orange and blue, which all common forms of colour blindness keep apart.
MATCH_COLOUR = "#E69F00"
SUPPORT_COLOUR = "#0072B2"
WORDS_SHOWN = 2000


@dataclass(frozen=True)
class Explanation:
    """How much each word of a document adds to its score.

    Attributes:
        title: What was explained.
        query: The query.
        text: The document's text.
        score: The model's score.
        words: One row an occurrence, in the order of the text; see :meth:`to_frame`.
        threshold: Words whose ``similarity`` is at least this are shaded.
        note: What the shading means, in a sentence.
    """

    title: str
    query: str
    text: str
    score: float
    words: pd.DataFrame
    threshold: float
    note: str

    def to_frame(self) -> pd.DataFrame:
        """One row a word occurrence.

        Returns:
            Frame with ``word``, ``start`` and ``end`` (character positions), ``match`` (whether the query has the
            word), ``similarity`` (NaN for words unknown to the model) and ``contribution``; contributions add up
            to the score.
        """
        return self.words.copy()

    def _repr_html_(self) -> str:
        shown = self.words.head(WORDS_SHOWN)
        pieces, position = [], 0
        strongest = max(shown["similarity"].max() - self.threshold, 1e-9)
        for row in shown.itertuples():
            pieces.append(escape(self.text[position : row.start]))
            pieces.append(self._shaded(row, strongest))
            position = row.end
        if len(shown) < len(self.words):
            pieces.append(f" … ({len(self.words) - len(shown):,} more words)")
        else:
            pieces.append(escape(self.text[position:]))
        return (
            f'<div style="max-width: 60em; line-height: 1.7"><p><b>{escape(self.title)}</b> for '
            f'"{escape(self.query)}": {self.score:.4f}<br><small>{escape(self.note)}</small></p>'
            f'<p style="white-space: pre-wrap">{"".join(pieces)}</p></div>'
        )

    def _shaded(self, row: tuple, strongest: float) -> str:
        word = escape(self.text[row.start : row.end])
        if row.match:
            style = f"background: {MATCH_COLOUR}; color: black; font-weight: bold"
        elif row.similarity >= self.threshold:
            strength = 15 + round(35 * (row.similarity - self.threshold) / strongest)
            style = f"background: color-mix(in srgb, {SUPPORT_COLOUR} {strength}%, transparent)"
        else:
            return word
        return f'<span title="{row.similarity:.3f}" style="{style}; border-radius: 3px; padding: 1px 2px">{word}</span>'

    def plot(self, ax: "Axes | None" = None, *, words: int = 15) -> "Axes":
        """Draw the words that add most to the score, and those that take most away.

        Args:
            ax: Axes to draw on; a new figure by default.
            words: How many distinct words to show.
        """
        import matplotlib.pyplot as plt

        totals = self.words.groupby("word").agg(contribution=("contribution", "sum"), match=("match", "any"))
        strongest = totals["contribution"].abs().sort_values(ascending=False).index[:words]
        totals = totals.loc[strongest].sort_values("contribution")
        if ax is None:
            _, ax = plt.subplots(figsize=(6, 0.8 + 0.28 * len(totals)), layout="constrained")
        colours = [MATCH_COLOUR if match else SUPPORT_COLOUR for match in totals["match"]]
        ax.barh(totals.index, totals["contribution"], color=colours)
        ax.axvline(0, color="0.3", linewidth=0.8)
        ax.set_xlabel("contribution to the score, summed over occurrences")
        ax.set_title(f'{self.title}: {self.score:.4f} for "{self.query}"', fontsize="medium")
        handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in (MATCH_COLOUR, SUPPORT_COLOUR)]
        ax.legend(handles, ["query word", "other word"], loc="lower right")
        return ax

    def __repr__(self) -> str:
        return f"Explanation({self.title}, {self.query!r}, score={self.score:.4f}, {len(self.words)} words)"
