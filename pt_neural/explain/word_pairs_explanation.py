"""What pairs of a query word and a document word add to a score, as a frame, as shaded text, as a heat map."""

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pt_neural._arguments import checked_number
from pt_neural.explain.explanation import Side, TextExplanation, shortened
from pt_neural.explain.heat_map import WORD_LENGTH, HeatMap, draw_heat_map
from pt_neural.explain.marking import Mark, word_marks
from pt_neural.explain.words import divided

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BARS = 4.0  # inches for pairs and their names
PAIRS_BELOW = 10  # that stand below the text


@dataclass(frozen=True, repr=False)
class WordPairsExplanation(TextExplanation):
    """What each word of the query adds to the score together with each word of the document.

    The score is the sum of all contributions; without any, it is what the model gives to texts without known words.

    Attributes:
        words: One row an occurrence of a word, of the query and then of the document, with the columns of
            :meth:`by_word`; ``contribution`` is that of all pairs of the word, in whatever place, and of half of the
            pairs of 2-grams that it is in.
        query_words: One row a distinct word, or hashed 2-gram, of the query: ``word``, and ``weight``, its tf-idf.
        document_words: Those of the document, likewise.
        contributions: float32 of shape ``(len(query_words), len(document_words))``.
        match: Whether a pair is a word with itself, bool of that shape.
        pairs: How many pairs frame and figure have at most; None for all.
    """

    words: pd.DataFrame
    query_words: pd.DataFrame
    document_words: pd.DataFrame
    contributions: np.ndarray
    match: np.ndarray
    pairs: int | None

    def to_frame(self) -> pd.DataFrame:
        """One row a pair that adds to the score or is a word with itself, the largest absolute contribution first.

        Returns:
            Frame with ``query_word``, ``document_word``, ``match`` (whether both are the same word) and
            ``contribution``, the product of ``query_weight`` (q_i), ``weight`` (W_ij) and ``document_weight`` (d_j).
        """
        return self._strongest(None)

    def _strongest(self, count: int | None) -> pd.DataFrame:
        """The first rows of the frame; None for all."""
        kept = min((limit for limit in (count, self.pairs) if limit is not None), default=None)
        rows, columns = np.nonzero((self.contributions != 0) | self.match)
        contribution = self.contributions[rows, columns]
        strongest = np.argsort(-np.abs(contribution), kind="stable")[:kept]
        rows, columns, contribution = rows[strongest], columns[strongest], contribution[strongest]
        query_weight = self.query_words["weight"].to_numpy()[rows]
        document_weight = self.document_words["weight"].to_numpy()[columns]
        return pd.DataFrame(
            {
                "query_word": self.query_words["word"].to_numpy(object)[rows],
                "document_word": self.document_words["word"].to_numpy(object)[columns],
                "match": self.match[rows, columns],
                "contribution": contribution,
                "query_weight": query_weight,
                "weight": contribution / (query_weight * document_weight),
                "document_weight": document_weight,
            }
        )

    def by_word(self) -> pd.DataFrame:
        """What all pairs of each word add to the score."""
        return divided(self.words)

    def plot(self, ax: "Axes | None" = None, *, words: int = 15, pairs: int = 12) -> "Axes":
        """Draw a heat map of query words by document words, and the strongest pairs.

        A pair of a word with itself is outlined. Words stand in the order of their strongest pairs, and of long texts
        there are only the first of them.

        Args:
            ax: Axes to draw the heat map on, without the pairs; a new figure with both by default.
            words: How many distinct words of each text to show.
            pairs: How many pairs to show beside them.

        Returns:
            The axes of the heat map; those of the pairs are the next ones of its figure.

        Raises:
            ValueError: If ``words`` or ``pairs`` is below 1.
        """
        count = checked_number("words", words, int, least=1)
        strongest = self._strongest(checked_number("pairs", pairs, int, least=1)).query("contribution != 0")
        rows, columns = (_largest(np.abs(self.contributions).max(axis=axis, initial=0), count) for axis in (1, 0))
        heat_map = HeatMap(
            rows=self.query_words["word"].iloc[rows].to_list(),
            columns=self.document_words["word"].iloc[columns].to_list(),
            cells=self.contributions[np.ix_(rows, columns)],
            outlined=self.match[np.ix_(rows, columns)],
            labels=("words of the query", "words of the document; both: strongest first"),
            legend="the same word",
        )
        bars = strongest.set_index(pd.Index(_names(strongest)))
        title = f'"{shortened(self.query)}"\n{self.model}: {self.score:.4f}'
        return draw_heat_map(ax, heat_map, bars, title=title, width=BARS, nothing="no pair to show")

    def _marks(self, side: Side) -> list[Mark]:
        return word_marks(self._text_of(side), self.words[self.words["side"] == side])

    def _body_html(self) -> str:
        """The document's text, and its strongest pairs with the query."""
        strongest = self._strongest(PAIRS_BELOW).query("contribution != 0")
        pairs = zip(_names(strongest), strongest["contribution"], strict=True)
        listed = ", ".join(f"{escape(name)} {value:.4f}".replace(" -", " −") for name, value in pairs)
        return super()._body_html() + (f"<p>Strongest pairs of query and document: {listed}</p>" if listed else "")


def _largest(strengths: np.ndarray, count: int) -> np.ndarray:
    """Places of the largest numbers above 0."""
    return np.argsort(-strengths, kind="stable")[: min(count, np.count_nonzero(strengths))]


def _names(pairs: pd.DataFrame) -> list[str]:
    words = zip(pairs["query_word"], pairs["document_word"], strict=True)
    return [f"{shortened(query, WORD_LENGTH)} – {shortened(document, WORD_LENGTH)}" for query, document in words]
