"""What cells and channels of a match tensor add to a score, as frames, as shaded text, as a heat map."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pt_neural._arguments import checked_number
from pt_neural.explain.explanation import Side, TextExplanation, shortened
from pt_neural.explain.marking import MATCH_COLOUR, Mark, shades, word_style
from pt_neural.explain.match_tensor_figure import draw_cells
from pt_neural.explain.words import WORD_COLUMNS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EXACT = "exact"  # the channel of exact matches
OUTLINE = f"outline: 2px solid {MATCH_COLOUR}"  # like that of the cells of exact matches


@dataclass(frozen=True, repr=False)
class MatchTensorExplanation(TextExplanation):
    """What each cell and each channel of the match tensor adds to the score.

    The score is the sum of all contributions, of ``wholes`` and of ``biases``.

    Attributes:
        query_words: One row a query word that the model reads: ``word``, ``start``, ``end``, ``match`` (whether the
            document has it) and ``boundary`` (false).
        document_words: One row a word or boundary of the document that the model reads, likewise; positions in
            characters are those in ``text``, where fields stand on lines of their own.
        contributions: Of each channel in each cell, float64 of shape (query words, document words, channels), the
            channel of exact matches last.
        match: Whether a cell is an exact match, bool of shape (query words, document words).
        wholes: What the comparison of query and document as wholes adds; None if the model has none.
        biases: What biases add.
    """

    query_words: pd.DataFrame
    document_words: pd.DataFrame
    contributions: np.ndarray
    match: np.ndarray
    wholes: float | None
    biases: float

    @property
    def cells(self) -> np.ndarray:
        """What each cell adds by all channels, float64 of shape (query words, document words)."""
        return self.contributions.sum(axis=2)

    def to_frame(self) -> pd.DataFrame:
        """One row a cell that adds to the score or is an exact match, by query word and position.

        Returns:
            Frame with ``query_word``, ``document_word``, ``match`` (whether both are the same word), ``contribution``,
            ``query_position`` and ``position`` (in words and boundaries, from 0), ``start`` and ``end`` (of the
            document's word, in characters). Boundaries are named in brackets, ``[title]`` where that field begins, and
            ``[end]``.
        """
        cells = self.cells
        rows, columns = np.nonzero((cells != 0) | self.match)
        document = self.document_words.iloc[columns]
        return pd.DataFrame(
            {
                "query_word": self.query_words["word"].to_numpy()[rows],
                "document_word": document["word"].to_numpy(),
                "match": self.match[rows, columns],
                "contribution": cells[rows, columns],
                "query_position": rows,
                "position": columns,
                "start": document["start"].to_numpy(),
                "end": document["end"].to_numpy(),
            }
        )

    def channels(self) -> pd.DataFrame:
        """One row a channel, the strongest first.

        Returns:
            Frame with ``channel`` (its number, from 0, or ``"exact"`` for that of exact matches) and ``contribution``
            (of all cells together).
        """
        totals = self.contributions.sum(axis=(0, 1))
        names = pd.Series([*range(len(totals) - 1), EXACT], dtype=object)
        frame = pd.DataFrame({"channel": names, "contribution": totals})
        return frame.sort_values("contribution", key=np.abs, ascending=False, kind="stable", ignore_index=True)

    def by_word(self) -> pd.DataFrame:
        """What all cells of each word add to the score, without those of boundaries."""
        sides = [
            words.assign(side=side, contribution=self.cells.sum(axis=axis))
            for side, words, axis in (("query", self.query_words, 1), ("document", self.document_words, 0))
        ]
        both = pd.concat(sides, ignore_index=True)
        return both.loc[~both["boundary"], list(WORD_COLUMNS)].reset_index(drop=True)

    def plot(self, ax: "Axes | None" = None, *, words: int = 25, channels: int = 8) -> "Axes":
        """Draw a heat map of query words by document words, and the strongest channels.

        Exact matches are outlined. Of a long document there are the words of the strongest cells with those around
        them, and gaps where others are left out.

        Args:
            ax: Axes to draw the heat map on, without the channels; a new figure with both by default.
            words: How many words of the document to show, beside boundaries of fields.
            channels: How many channels to show.

        Returns:
            The axes of the heat map; those of the channels are the next ones of its figure.

        Raises:
            ValueError: If ``words`` or ``channels`` is below 1.
        """
        strongest = self.channels().query("contribution != 0").head(checked_number("channels", channels, int, least=1))
        return draw_cells(
            ax,
            self.query_words,
            self.document_words,
            self.cells,
            self.match,
            strongest.set_index(strongest["channel"].map(_channel_name)),
            most=checked_number("words", words, int, least=1),
            title=f'"{shortened(self.query)}"\n{self.model}\n{self._sum()}',
        )

    def _sum(self) -> str:
        """The score as a sum."""
        addends = {"match tensor": self.contributions.sum(), "as wholes (SSM)": self.wholes, "biases": self.biases}
        parts = [f"{value:.3f} ({name})" for name, value in addends.items() if value is not None]
        return f"score {self.score:.3f} = {' + '.join(parts)}".replace("+ -", "− ").replace("-", "−")

    def _marks(self, side: Side) -> list[Mark]:
        text, words = self._text_of(side), self.query_words if side == "query" else self.document_words
        totals = self.cells.sum(axis=1 if side == "query" else 0)
        rows = zip(words.itertuples(index=False), totals, shades(totals), strict=True)
        return [
            Mark(
                word.start,
                word.end,
                word.word if word.boundary else text[word.start : word.end],
                word_style(word.match, shade, of_match=OUTLINE),
                f"contribution {total:.4f}",
            )
            for word, total, shade in rows
            if word.match or not np.isnan(shade)
        ]

    def _body_html(self) -> str:
        return f"<p>{self._sum()}</p>{super()._body_html()}"


def _channel_name(channel: int | str) -> str:
    return "exact matches" if channel == EXACT else f"channel {channel}"
