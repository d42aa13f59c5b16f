"""How much each occurrence of a word adds to a score and to its parts, as a frame, as shaded panels, as a figure."""

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, ClassVar

import pandas as pd

from pt_neural.explain.explanation import Side, TextExplanation, checked_side, paragraph
from pt_neural.explain.marking import MATCH_COLOUR, SUPPORT_COLOUR, Mark, marked, word_marks
from pt_neural.explain.word_figure import draw_words, embolden, strongest
from pt_neural.explain.words import WORD_COLUMNS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BARS = ("0.6", SUPPORT_COLOUR, MATCH_COLOUR)  # of the score, and of two parts


@dataclass(frozen=True, repr=False)
class PartsExplanation(TextExplanation):
    """How much of the score, and of that of each part of the model, is lost with an occurrence of a word.

    Attributes:
        words: One row an occurrence; see :meth:`to_frame`.
        parts: The output of each part for the whole text, by name; none for a model of one piece.
    """

    words: pd.DataFrame
    parts: dict[str, float]

    lost: ClassVar[str] = "lost without an occurrence, summed over the word's occurrences"

    def to_frame(self) -> pd.DataFrame:
        """One row a word occurrence, in the order of the text.

        Returns:
            Frame with ``word``, ``start`` and ``end`` (character positions), ``side`` (``"query"`` or ``"document"``,
            the text in which it stands), ``match`` (whether the other text has the word too), ``contribution`` (what
            the score loses without it; NaN if it was not dropped) and, for a model of several parts, what each of
            them loses, in a column of its name.
        """
        return self.words.copy()

    def by_word(self) -> pd.DataFrame:
        """What the score loses without each occurrence."""
        return self.words[list(WORD_COLUMNS)]

    def _marks(self, side: Side, column: str = "contribution") -> list[Mark]:
        return word_marks(self._text_of(side), self.words[self.words["side"] == side], column, hint="loses")

    def _body_html(self) -> str:
        """One panel for each part, as in Figure 1 of the Duet paper."""
        if not self.parts:
            return super()._body_html()
        return "".join(
            f"<p><b>{escape(_sentence_case(self._part_name(name)))}</b>: {output:.4f}</p>"
            + paragraph(marked(self.text, self._marks("document", name)))
            for name, output in self.parts.items()
        )

    def _part_name(self, name: str) -> str:
        return f"{name} model"

    def plot(self, ax: "Axes | None" = None, *, words: int = 15, side: Side = "document") -> "Axes":
        """Draw the words whose loss changes the score, or that of a part, most.

        Args:
            ax: Axes to draw on; a new figure by default.
            words: How many distinct words to show.
            side: Of which text.

        Raises:
            ValueError: If the side is neither ``"query"`` nor ``"document"``.
        """
        of_side = self.words[self.words["side"] == checked_side(side)]
        columns = {"contribution": "score", **{name: self._part_name(name) for name in self.parts}}
        totals = strongest(of_side, list(columns), "sum", words)
        colours = dict(zip(columns, BARS if self.parts else [SUPPORT_COLOUR], strict=True))
        ax = draw_words(
            ax,
            totals,
            colours,
            {colours[column]: name for column, name in columns.items()} if self.parts else {},
            label=f"{self.lost}\n(bold: in query and document)",
            nothing=f"no word of the {side} to show",
        )
        embolden(ax, totals["match"])
        self._set_title(ax, pad=26 if self.parts else 6, loc="left")
        return ax


def _sentence_case(name: str) -> str:
    return name[:1].upper() + name[1:]
