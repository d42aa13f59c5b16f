"""The terms of an expanded query, as a frame, as a list, as a figure."""

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pt_neural._arguments import checked_number
from pt_neural.explain.explanation import TITLE_LENGTH, Explanation, paragraph, shortened
from pt_neural.explain.marking import MATCH_COLOUR, SUPPORT_COLOUR, Mark, background
from pt_neural.explain.word_figure import draw_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEGEND = {MATCH_COLOUR: "in the query", SUPPORT_COLOUR: "came in"}
SHOWN = 50  # terms in a notebook


@dataclass(frozen=True, repr=False)
class ExpansionExplanation(Explanation):
    """Which terms an expansion brings into a query.

    Attributes:
        words: One row a term; see :meth:`to_frame`.
    """

    words: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """One row a term of the expanded query, the largest weight first.

        Returns:
            Frame with ``word``, ``match`` (whether the query has it), ``weight`` and ``original``, its weight before.
        """
        return self.words.copy()

    def plot(self, ax: "Axes | None" = None, *, words: int = 15) -> "Axes":
        """Draw the terms of the largest weights; a line shows the weight of the query's terms before.

        Args:
            ax: Axes to draw on; a new figure by default.
            words: How many terms to show.

        Raises:
            ValueError: If ``words`` is below 1.
        """
        shown = self.words.head(checked_number("words", words, int, least=1)).iloc[::-1].set_index("word")
        colours = np.where(shown["match"], MATCH_COLOUR, SUPPORT_COLOUR).tolist()
        ax = draw_words(
            ax,
            shown[["weight"]],
            {"weight": colours},
            LEGEND,
            label="weight in the expanded query (black line: in the query before)",
            nothing="no term to show",
        )
        places = np.flatnonzero(shown["match"])
        ax.vlines(shown["original"].to_numpy()[places], places - 0.4, places + 0.4, color="black", linewidth=2)
        title = f'{shortened(self.model, TITLE_LENGTH)}\n"{shortened(self.query)}"'
        ax.set_title(title, fontsize="medium", parse_math=False, pad=26, loc="left")
        return ax

    def _repr_html_(self) -> str:
        words = self.words.head(SHOWN)
        strength = 15 + (50 * words["weight"] / words["weight"].max()).round()
        marks = [
            Mark(
                0,
                0,
                row.word,
                background(MATCH_COLOUR if row.match else SUPPORT_COLOUR, int(strong)),
                f"before {row.original:.4g}",
                f"{row.weight:.3g}",
            ).to_html()
            for row, strong in zip(words.itertuples(), strength, strict=True)
        ]
        more = f" … ({len(self.words) - SHOWN:,} more terms)" if len(self.words) > SHOWN else ""
        return self._page(escape(self.query), "", paragraph(" ".join(marks) + more))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model}, {shortened(self.query)!r}, {len(self.words):,} terms)"
