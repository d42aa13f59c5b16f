"""Winners of a max-pooling layer, as a frame, as marked text, as a figure (CLSM paper, Tables 3 and 8, Figure 4)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from pt_neural.explain.explanation import Side, TextExplanation, checked_side
from pt_neural.explain.marking import Mark, background
from pt_neural.explain.pooling_figure import COLOURS, draw_winners
from pt_neural.explain.words import WORD_COLUMNS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

REST = "[rest]"


@dataclass(frozen=True, repr=False)
class MaxPoolingExplanation(TextExplanation):
    """Which words win at the most active neurons of the max-pooling layer.

    Attributes:
        words: One row an occurrence; see :meth:`by_word`.
        shared: The neurons that are most active in query and document together; see :meth:`to_frame`.
        winners: Those that are most active in the query, and those in the document, by side.
    """

    words: pd.DataFrame
    shared: pd.DataFrame
    winners: dict[Side, pd.DataFrame]

    def to_frame(self, side: Side | None = None) -> pd.DataFrame:
        """One row a neuron, the most active first.

        Args:
            side: ``"query"`` or ``"document"`` for the most active neurons of that text alone; None for those that
                both share.

        Returns:
            Frame with ``neuron``, ``product`` (of both activations), and ``query_word``, ``query_activation``,
            ``query_start``, ``query_end`` (character positions) and the same of the document; for one side
            ``neuron``, ``word``, ``activation``, ``start`` and ``end``.

        Raises:
            ValueError: If the side is neither.
        """
        if side is None:
            return self.shared.copy()
        return self.winners[checked_side(side)].copy()

    def by_word(self) -> pd.DataFrame:
        """The products of activations at all neurons above zero in both texts that each word wins."""
        return self.words[list(WORD_COLUMNS)]

    def _body_html(self) -> str:
        return super()._body_html() + self._table_html()

    def _table_html(self) -> str:
        if self.shared.empty:
            return "<p>No neuron is active in query and document.</p>"
        shown = self.shared[["neuron", "query_word", "query_activation", "document_word", "document_activation"]]
        table = shown.rename(columns=lambda name: name.replace("_", " "))
        return table.to_html(index=False, border=0, float_format="%.3f")

    def _marks(self, side: Side) -> list[Mark]:
        own, shared = self.winners[side], self._shared_winners(side)
        both = pd.concat([own, shared]).drop_duplicates("neuron")
        return [
            _mark(side, place, wins, shared=shared["neuron"], own=own["neuron"])
            for place, wins in both.groupby(["start", "end", "word"])
        ]

    def _shared_winners(self, side: Side) -> pd.DataFrame:
        columns = self.winners[side].columns
        names = {f"{side}_{name}": name for name in columns}
        return self.shared.rename(columns=names)[columns.tolist()]

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the query's words above, the shared neurons in the middle, the document's words below (Figure 4).

        Only words that win are drawn, in the order of the text; the thicker a line, the higher the activation.

        Args:
            ax: Axes to draw on; a new figure by default.
        """
        ax = draw_winners(ax, self._shared_winners("query"), self._shared_winners("document"))
        self._set_title(ax)
        return ax


def _mark(side: Side, place: tuple[int, int, str], wins: pd.DataFrame, *, shared: pd.Series, own: pd.Series) -> Mark:
    """One winning word: coloured and numbered where it wins shared neurons, bold where it wins its own text's."""
    start, end, word = place
    numbers = [str(neuron) for neuron in wins["neuron"] if neuron in shared.values]
    style = [background(COLOURS[side], 40)] if numbers else []
    style += ["font-weight: bold"] if wins["neuron"].isin(own).any() else []
    hint = ", ".join(f"neuron {row.neuron}: {row.activation:.3f}" for row in wins.itertuples())
    return Mark(start, start if word == REST else end, word, "; ".join(style), hint, " ".join(numbers))
