"""Where the probability of each query word comes from, as a frame, as text, as a figure."""

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pt_neural.explain.explanation import Side, TextExplanation, shortened
from pt_neural.explain.marking import MATCH_COLOUR, SUPPORT_COLOUR, Mark, word_marks
from pt_neural.explain.word_figure import WORD_LENGTH
from pt_neural.explain.words import WORD_COLUMNS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = ("same word", "collection", "translation", "topic")
KIND_COLOURS = dict(zip(KINDS, (MATCH_COLOUR, "#999999", SUPPORT_COLOUR, SUPPORT_COLOUR), strict=True))
LINE = 0.42  # inches a word of the query
LETTERS = 0.85  # that one percent has room for


@dataclass(frozen=True, repr=False)
class LikelihoodExplanation(TextExplanation):
    """How probable a document makes each word of a query, and why.

    Attributes:
        words: One row an occurrence of a word; see :meth:`by_word`.
        query_words: One row a distinct known word of the query: ``word``, ``count`` (in the query), ``probability``,
            P(w|d), and ``collection``, P(w|C).
        all_sources: One row for each source of a word's probability: ``word``, ``kind``, ``source``, ``probability``.
        sources: How many sources of a word are told one by one.
    """

    words: pd.DataFrame
    query_words: pd.DataFrame
    all_sources: pd.DataFrame
    sources: int

    def to_frame(self) -> pd.DataFrame:
        """One row for each source of the probability of a query word, in the order of the query, the largest first.

        Returns:
            Frame with ``word`` (of the query), ``kind`` (``"same word"``, ``"collection"``, ``"translation"`` or
            ``"topic"``), ``source`` (a word of the document, or a topic by its number and first words; empty for the
            collection), ``probability`` (the part of P(w|d) that is the source's) and ``share`` (of P(w|d)). Of
            translations and topics there are the strongest, and the others' sum as ``"others"``.
        """
        frames = [self._of_word(row.word, row.probability) for row in self.query_words.itertuples()]
        empty = self.all_sources[:0].assign(share=0.0)
        return pd.concat(frames, ignore_index=True) if frames else empty

    def _of_word(self, word: str, probability: float) -> pd.DataFrame:
        found = self.all_sources[self.all_sources["word"] == word]
        found = found.sort_values("probability", ascending=False, kind="stable")
        several = found["kind"].isin(KINDS[2:])
        first, rest = found[several][: self.sources], found[several][self.sources :]
        if len(rest):
            others = rest[:1].assign(source=f"{len(rest):,} others", probability=rest["probability"].sum())
            first = pd.concat([first, others])
        kept = pd.concat([found[~several], first]).sort_values("probability", ascending=False, kind="stable")
        return kept.assign(share=kept["probability"] / probability)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw for each word of the query which share of its probability is whose.

        The factor after each bar is P(w|d) / P(w|C); the strongest source besides the word itself stands in it.

        Args:
            ax: Axes to draw on; a new figure by default.
        """
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots(figsize=(8.5, 1.7 + LINE * max(1, len(self.query_words))), layout="constrained")
        words = self.query_words
        places = np.arange(len(words))[::-1]
        ax.set_yticks(places, [shortened(word, WORD_LENGTH) for word in words["word"]], parse_math=False)
        ax.set(
            xlim=(0, 100),
            ylim=(-0.6, max(1, len(words)) - 0.4),
            xlabel="share of P(word | document) by where it comes from, in percent; at the right: "
            "times as probable as in the collection",
        )
        if words.empty:
            ax.set_xticks([])
            ax.text(0.5, 0.5, "no word of the query is known", ha="center", va="center", transform=ax.transAxes)
        for place, word in zip(places, words.itertuples(), strict=True):
            self._draw_word(ax, place, word.word, word.probability)
            factor = word.probability / word.collection
            ax.text(101, place, f"{factor:,.1f}×" if factor < 100 else f"{factor:,.0f}×", va="center", size="small")
        self._draw_legend(ax)
        self._set_title(ax, pad=26, loc="left")
        return ax

    def _draw_word(self, ax: "Axes", place: int, word: str, probability: float) -> None:
        found, left = self._of_word(word, probability), 0.0
        for kind in KINDS:
            of_kind = found[found["kind"] == kind]
            for share, source in zip(100 * of_kind["share"], of_kind["source"], strict=True):
                ax.barh(place, share, left=left, height=0.7, color=KIND_COLOURS[kind], edgecolor="white", linewidth=0.6)
                if kind in KINDS[2:]:
                    label = _fitting(source, int(share * LETTERS))
                    ax.text(left + share / 2, place, label, ha="center", va="center", color="white", size="x-small")
                left += share

    def _draw_legend(self, ax: "Axes") -> None:
        import matplotlib.pyplot as plt

        there = [kind for kind in KINDS if kind in set(self.all_sources["kind"])]
        handles = [plt.Rectangle((0, 0), 1, 1, color=KIND_COLOURS[kind]) for kind in there]
        above = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": max(1, len(there)), "borderaxespad": 0.2}
        if there:
            ax.legend(handles, there, **above, frameon=False, fontsize="small", columnspacing=1, handlelength=1)

    def by_word(self) -> pd.DataFrame:
        """What each word adds to the likelihood.

        Of the query the logarithm of P(w|d) / P(w|C), of the document its share of P(w|d), over all w.
        """
        return self.words[list(WORD_COLUMNS)]

    def _marks(self, side: Side) -> list[Mark]:
        return word_marks(self._text_of(side), self.words[self.words["side"] == side])

    def _body_html(self) -> str:
        """The document's text, and for each word of the query where its probability comes from."""
        lines = []
        for word in self.query_words.itertuples():
            found = self._of_word(word.word, word.probability).query("share > 0.005")
            parts = (f"{100 * row.share:.0f}% {escape(row.source or row.kind)}" for row in found.itertuples())
            factor = word.probability / word.collection
            lines.append(f"<li><b>{escape(word.word)}</b>, {factor:,.1f} times as probable: {', '.join(parts)}</li>")
        return super()._body_html() + (f"<ul>{''.join(lines)}</ul>" if lines else "")


def _fitting(source: str, room: int) -> str:
    """As much of a source's name as fits: a topic's number and words, its number, or nothing."""
    for label in (source, source.split(":")[0]):
        if len(label) <= room:
            return label
    return ""
