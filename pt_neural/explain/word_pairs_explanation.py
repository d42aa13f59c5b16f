"""What pairs of a query word and a document word add to a score, as a frame, as shaded text, as a heat map."""

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pt_neural._arguments import checked_number
from pt_neural.explain.dropping import shades
from pt_neural.explain.explanation import Side, TextExplanation, shortened
from pt_neural.explain.heat_map import WORD_LENGTH, HeatMap, draw_with_bars
from pt_neural.explain.marking import Mark, word_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BARS = 4.0  # inches for pairs and their names
PAIRS_BELOW = 10  # that stand below the text


@dataclass(frozen=True, repr=False)
class WordPairsExplanation(TextExplanation):
    """What each word of the query adds to the score together with each word of the document.

    The score is the sum of all contributions; without any, it is what the model gives to texts without known words.

    Attributes:
        words: One row an occurrence of a word, of the query and then of the document: ``word``, ``start``, ``end``,
            ``side``, ``match`` (whether the other text has the word) and ``contribution``, that of all pairs of the
            word, in whatever place, and of half of the pairs of 2-grams that it is in.
        query_words: One row a distinct word, or hashed 2-gram, of the query: ``word``, and ``weight``, its tf-idf.
        document_words: Those of the document, likewise.
        contributions: float32 of shape ``(len(query_words), len(document_words))``.
        same: Whether a pair is a word with itself, bool of that shape.
        pairs: How many pairs frame and figure have at most; None for all.
    """

    words: pd.DataFrame
    query_words: pd.DataFrame
    document_words: pd.DataFrame
    contributions: np.ndarray
    same: np.ndarray
    pairs: int | None

    def to_frame(self) -> pd.DataFrame:
        """One row a pair that adds to the score or is a word with itself, the largest absolute contribution first.

        Returns:
            Frame with ``query_word`` and ``document_word``, ``query_weight`` (q_i), ``weight`` (W_ij),
            ``document_weight`` (d_j), ``contribution`` (the product of the three) and ``same`` (whether both are the
            same word).
        """
        return self._strongest(None)

    def _strongest(self, count: int | None) -> pd.DataFrame:
        """The first rows of the frame; None for all."""
        kept = min((limit for limit in (count, self.pairs) if limit is not None), default=None)
        rows, columns = np.nonzero((self.contributions != 0) | self.same)
        contribution = self.contributions[rows, columns]
        strongest = np.argsort(-np.abs(contribution), kind="stable")[:kept]
        rows, columns, contribution = rows[strongest], columns[strongest], contribution[strongest]
        query_weight = self.query_words["weight"].to_numpy()[rows]
        document_weight = self.document_words["weight"].to_numpy()[columns]
        return pd.DataFrame(
            {
                "query_word": self.query_words["word"].to_numpy(object)[rows],
                "document_word": self.document_words["word"].to_numpy(object)[columns],
                "query_weight": query_weight,
                "weight": contribution / (query_weight * document_weight),
                "document_weight": document_weight,
                "contribution": contribution,
                "same": self.same[rows, columns],
            }
        )

    def plot(self, *, words: int = 15, pairs: int = 12) -> "list[Axes]":
        """Draw a heat map of query words by document words, and the strongest pairs.

        A pair of a word with itself is outlined. Words stand in the order of their strongest pairs, and of long texts
        there are only the first of them.

        Args:
            words: How many distinct words of each text to show.
            pairs: How many pairs to show beside them.

        Returns:
            The axes of the heat map and of the pairs.

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
            outlined=self.same[np.ix_(rows, columns)],
            labels=("words of the query", "words of the document; both: strongest first"),
            legend="the same word",
        )
        bars = strongest.set_index(pd.Index(_names(strongest)))
        axes = draw_with_bars(heat_map, bars, width=BARS, nothing="no pair to show")
        title = f'"{shortened(self.query)}"\n{self.title}: {self.score:.4f}'
        axes[0].figure.suptitle(title, fontsize="medium", parse_math=False)
        return list(axes)

    def _marks(self, side: Side) -> list[Mark]:
        text = self.query if side == "query" else self.text
        words = self.words[self.words["side"] == side]
        rows = zip(words.itertuples(index=False), shades(words["contribution"].to_numpy()), strict=True)
        return [
            Mark(
                word.start,
                word.end,
                text[word.start : word.end],
                word_style(word.match, shade),
                f"contribution {word.contribution:.4f}",
            )
            for word, shade in rows
            if word.match or not np.isnan(shade)
        ]

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
