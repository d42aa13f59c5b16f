"""What each pair of a query word and a document word adds to a score, as a frame, as shaded text, as a heat map."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pt_neural._arguments import checked_number
from pt_neural.explain.explanation import Side, TextExplanation, quoted, read_end
from pt_neural.explain.pictures import LEFT_OUT, HeatMap, Mark, draw_heat_map, shades, word_style
from pt_neural.explain.words import WORD_COLUMNS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CONTEXT = 2  # words shown on either side of a strong one


@dataclass(frozen=True, repr=False)
class CellExplanation(TextExplanation):
    """What each cell, a pair of a query word and a document word, adds to the score.

    Attributes:
        query_words: One row per query word that the model reads: ``word``, ``start``, ``end``, ``match`` (whether the
            document has it) and ``boundary`` (false).
        document_words: The same for each word or boundary of the document that the model reads; positions are
            characters of ``text``, where each field starts a new line.
        match: Whether a cell is an exact match, bool of shape (query words, document words).
    """

    query_words: pd.DataFrame
    document_words: pd.DataFrame
    match: np.ndarray

    @property
    @abstractmethod
    def cells(self) -> np.ndarray:
        """What each cell adds, float64 of shape (query words, document words)."""

    @abstractmethod
    def _sum(self) -> str:
        """The score as a sum."""

    def to_frame(self) -> pd.DataFrame:
        """One row per cell that adds to the score or is an exact match, by query word and position.

        Returns:
            Frame with ``query_word``, ``document_word``, ``match`` (whether both are the same word), ``contribution``,
            ``query_position`` and ``position`` (in words and boundaries, from 0), ``start`` and ``end`` (of the
            document's word, in characters).
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

    def by_word(self) -> pd.DataFrame:
        """What all cells of each word add to the score; cells of boundaries are left out."""
        sides = [self._words(side).assign(side=side) for side in ("query", "document")]
        both = pd.concat(sides, ignore_index=True)
        return both.loc[~both["boundary"], list(WORD_COLUMNS)].reset_index(drop=True)

    def _words(self, side: Side) -> pd.DataFrame:
        """The words and boundaries of a text with the contribution of all their cells."""
        words, axis = (self.query_words, 1) if side == "query" else (self.document_words, 0)
        return words.assign(contribution=self.cells.sum(axis=axis))

    def _draw(self, ax: "Axes | None", bars: pd.DataFrame, words: int, *, width: float, nothing: str) -> "Axes":
        """Draw a heat map of the strongest document words and, in a new figure, bars beside it."""
        boundaries = self.document_words["boundary"].to_numpy(bool)
        shown = shown_columns(np.abs(self.cells).sum(axis=0), boundaries, checked_number("words", words, int, least=1))
        gaps = shown < 0
        document, matches = self.document_words["word"], self.document_words["match"].to_numpy(bool)
        heat_map = HeatMap(
            rows=self.query_words["word"].to_list(),
            columns=[LEFT_OUT if place < 0 else document.iloc[place] for place in shown],
            cells=np.where(gaps, np.nan, self.cells[:, shown]),
            matches=(self.query_words["match"].to_numpy(bool), matches[shown] & ~gaps),
            labels=(
                "words of the query",
                "words of the document" + (", where its cells are strongest" if gaps.any() else ""),
            ),
            boundaries=boundaries[shown] & ~gaps,
        )
        title = [self.model, self._sum(), quoted(self.query)]
        return draw_heat_map(ax, heat_map, bars, title=title, width=width, nothing=nothing)

    def _read(self, side: Side) -> int | None:
        words = self.query_words if side == "query" else self.document_words
        return read_end(self._text_of(side), int((~words["boundary"].astype(bool)).sum()))

    def _marks(self, side: Side) -> list[Mark]:
        text, words = self._text_of(side), self._words(side)
        rows = zip(words.itertuples(index=False), shades(words["contribution"].to_numpy()), strict=True)
        return [
            Mark(
                word.start,
                word.end,
                word.word if word.boundary else text[word.start : word.end],
                word_style(word.match, shade),
                f"contribution {word.contribution:.4f}",
            )
            for word, shade in rows
            if word.match or not np.isnan(shade)
        ]

    def _body_html(self) -> str:
        return f"<p>{self._sum()}</p>{super()._body_html()}"


def shown_columns(strengths: np.ndarray, boundary: np.ndarray, most: int) -> np.ndarray:
    """Choose what to show of a document: boundaries, and the strongest words with those around them.

    Args:
        strengths: The strength of each word and boundary.
        boundary: Whether each is a boundary.
        most: Largest number of words.

    Returns:
        Places in order, with -1 wherever something is left out between two of them.
    """
    words = np.flatnonzero(~boundary)
    shown: dict[int, None] = {}
    for rank in np.argsort(-strengths[words], kind="stable").tolist():
        around = words[max(0, rank - CONTEXT) : rank + CONTEXT + 1].tolist()
        shown.update(dict.fromkeys([int(words[rank]), *around]))
        if len(shown) >= most:
            break
    places = np.sort(np.array([*np.flatnonzero(boundary), *list(shown)[:most]], dtype=np.int64))
    return np.insert(places, np.flatnonzero(np.diff(places) > 1) + 1, -1)
