"""The words that win CLSM's max pooling (CLSM paper, sections 3.4 and 5.4; Tables 3 and 8, Figure 4)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch

from pt_neural._pictures import settle
from pt_neural.explain.explanation import Document, Side, TextExplanation, both_texts, checked_side, score_of
from pt_neural.explain.pictures import (
    LEAST_SHADE,
    SUPPORT_COLOUR,
    Mark,
    embolden,
    shades,
    shortened,
    titled_axes,
    word_style,
)
from pt_neural.explain.words import WORD_COLUMNS, span_frame, word_occurrences
from pt_neural.models.clsm.clsm import CLSM
from pt_neural.models.clsm.layers import pool, window_rows
from pt_neural.rankers.readers.hashed_ngrams import HashedTexts
from pt_neural.rankers.readers.reader import to_device
from pt_neural.text import token_spans

if TYPE_CHECKING:
    from matplotlib.axes import Axes

REST = "[rest]"

HEIGHTS = {"query": 2.0, "neuron": 1.0, "document": 0.0}
LETTERS = 160  # in a row; the more words it has, the shorter they are cut
FONT_SIZE = 10.0  # points
GAP = 20.0  # points for a label's frame and the room beside it
MARGIN = 20.0  # points for the names of the rows
NARROWEST, WIDEST = 360.0, 1000.0  # points; narrower rows are spread out, wider ones get a smaller font


def explain_clsm(model: CLSM, query: str, text: Document, *, neurons: int = 5) -> "MaxPoolingExplanation":
    """Find the words that win at the most active neurons of the max-pooling layer.

    The activation of a neuron is v(i) of section 3.4, its largest value over the windows of the text; the winner is
    the word in the middle of the first window with that value. Shared neurons are ranked by the product of their two
    activations, as in section 5.4 (Figure 4), and must be above zero in both query and document, because two negative
    activations have a positive product too. The most active neurons of each text alone are as in Tables 3 and 8.

    Args:
        model: The model.
        query: The query's text.
        text: The document's text, or a dict of its fields.
        neurons: Number of shared neurons, and of neurons of each text alone.

    Returns:
        An explanation; it is empty if query or document has no letter n-gram that the model knows.

    Raises:
        ValueError: If ``neurons`` is below 1.
    """
    if neurons < 1:
        raise ValueError(f"neurons must be at least 1, not {neurons}")
    query, text = both_texts(model, query, text)
    score = score_of(model, query, text)
    winners = {"query": pooling_winners(model, "query", query), "document": pooling_winners(model, "document", text)}
    shared = _shared(winners["query"], winners["document"])
    note = (
        "Coloured: words that win at the neurons that are most active in query and document, with their numbers; the "
        "stronger, the larger the products of activations that they win. Dotted line: words that win at the most "
        "active neurons of their own text."
    )
    if any((frame["word"] == REST).any() for frame in winners.values()):
        note += f" {REST}: the words after the first {model.max_terms}, which the model reads as one."
    return MaxPoolingExplanation(
        model=repr(model),
        query=query,
        text=text,
        score=score,
        note=note,
        words=_words(query, text, shared),
        shared=shared.head(neurons),
        winners={side: _most_active(frame).head(neurons) for side, frame in winners.items()},
    )


def pooling_winners(model: CLSM, side: Side, text: str) -> pd.DataFrame:
    """Find the word that wins at each neuron of the max-pooling layer.

    Args:
        model: The model, fitted.
        side: Which network: ``"query"`` or ``"document"``.
        text: The text.

    Returns:
        One row per neuron: ``neuron``, ``word`` (the winner), ``activation`` (v(i)), ``start`` and ``end`` (of the
        word, in characters). The word is :data:`REST` if the winner lies beyond the first ``max_terms`` words. There
        are no rows for a text without any n-gram that the model knows.
    """
    texts = model.reader.read_queries([text]).take(np.array([0]))  # documents are read in the same way
    spans = token_spans(text)
    if model.max_terms is not None and len(spans) > model.max_terms:
        spans[model.max_terms :] = [(REST, spans[model.max_terms][1], spans[-1][2])]
    if not texts.known[0]:
        activations, places = np.zeros(0), np.zeros(0, dtype=np.int64)
    else:
        activations, places = _pooled(model, side, texts)
    winners = span_frame([spans[place] for place in places])
    winners.insert(0, "neuron", np.arange(len(winners)))
    winners.insert(2, "activation", activations.astype(float))
    return winners


@torch.inference_mode()
def _pooled(model: CLSM, side: Side, texts: HashedTexts) -> tuple[np.ndarray, np.ndarray]:
    """The activation of each neuron for one text, and the place of the word that wins it."""
    tower = model.network.tower(side)
    texts = to_device(texts, next(tower.parameters()).device)
    projections = tower.project(texts)  # (distinct words * window, filters)
    rows = window_rows(texts.words, texts.offsets, tower.window, len(texts.bags) - 2)
    largest, places = pool(projections, rows, texts.offsets, winners=True)  # (1, filters)
    return torch.tanh(largest[0]).cpu().numpy(), places[0].cpu().numpy()


def _most_active(winners: pd.DataFrame) -> pd.DataFrame:
    active = winners[winners["activation"] > 0]
    return active.sort_values("activation", ascending=False, kind="stable", ignore_index=True)


def _shared(query: pd.DataFrame, document: pd.DataFrame) -> pd.DataFrame:
    both = query.set_index("neuron").add_prefix("query_")
    both = both.join(document.set_index("neuron").add_prefix("document_"), how="inner").reset_index()
    both.insert(1, "product", both["query_activation"] * both["document_activation"])
    active = both[(both["query_activation"] > 0) & (both["document_activation"] > 0)]
    return active.sort_values("product", ascending=False, kind="stable", ignore_index=True)


def _words(query: str, text: str, shared: pd.DataFrame) -> pd.DataFrame:
    """The words of both texts with the products of all shared neurons that they win, divided among those of a rest."""
    sides = []
    for side, this_text, other in (("query", query, text), ("document", text, query)):
        words = word_occurrences(this_text, side, other)
        rest = shared[f"{side}_word"] == REST
        won = shared[~rest].groupby(f"{side}_start")["product"].sum()
        contribution = words["start"].map(won).fillna(0.0)
        if rest.any():
            after = words["start"] >= shared.loc[rest, f"{side}_start"].iloc[0]
            contribution += after * shared.loc[rest, "product"].sum() / after.sum()
        sides.append(words.assign(contribution=contribution))
    return pd.concat(sides, ignore_index=True)


@dataclass(frozen=True, repr=False)
class MaxPoolingExplanation(TextExplanation):
    """Which words win at the most active neurons of the max-pooling layer.

    Attributes:
        words: One row per occurrence; see :meth:`by_word`.
        shared: The neurons that are most active in query and document together; see :meth:`to_frame`.
        winners: The neurons that are most active in the query, and those most active in the document, by side.
    """

    words: pd.DataFrame
    shared: pd.DataFrame
    winners: dict[Side, pd.DataFrame]

    def to_frame(self, side: Side | None = None) -> pd.DataFrame:
        """One row per neuron, the most active first.

        Args:
            side: ``"query"`` or ``"document"`` for the most active neurons of that text alone; None for those that
                both share.

        Returns:
            Frame with ``neuron``, ``product`` (of both activations), and ``query_word``, ``query_activation``,
            ``query_start``, ``query_end`` (character positions) and the same for the document; for one side
            ``neuron``, ``word``, ``activation``, ``start`` and ``end``.

        Raises:
            ValueError: If the side is neither.
        """
        return (self.shared if side is None else self.winners[checked_side(side)]).copy()

    def by_word(self) -> pd.DataFrame:
        """The products of activations that each word wins, over all neurons above zero in both texts."""
        return self.words[list(WORD_COLUMNS)]

    def _body_html(self) -> str:
        if self.shared.empty:
            return super()._body_html() + "<p>No neuron is active in query and document.</p>"
        shown = self.shared[["neuron", "query_word", "query_activation", "document_word", "document_activation"]]
        table = shown.rename(columns=lambda name: name.replace("_", " "))
        return super()._body_html() + table.to_html(index=False, border=0, float_format="%.3f")

    def _marks(self, side: Side) -> list[Mark]:
        own, shared = self.winners[side], self._shared_winners(side)
        both = pd.concat([own, shared]).drop_duplicates("neuron")
        words = self.words[self.words["side"] == side]
        strengths = dict(zip(words["start"], shades(words["contribution"].to_numpy()), strict=True))
        shared_words = set(words.loc[words["match"], "start"])
        marks = {
            place[0]: _mark(place, wins, shared["neuron"], own["neuron"], place[0] in shared_words, strengths)
            for place, wins in both.groupby(["start", "end", "word"])
        }
        for row in words[words["match"]].itertuples():  # that win nothing
            written = self._text_of(side)[row.start : row.end]
            marks.setdefault(row.start, Mark(row.start, row.end, written, word_style(True, np.nan), "wins nothing"))
        return [marks[start] for start in sorted(marks)]

    def _shared_winners(self, side: Side) -> pd.DataFrame:
        columns = self.winners[side].columns
        names = {f"{side}_{name}": name for name in columns}
        return self.shared.rename(columns=names)[columns.tolist()]

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the query's words above, the shared neurons in the middle, the document's words below (Figure 4).

        Only words that win are drawn, in the order of the text; the thicker a line, the higher the activation.

        Args:
            ax: Axes to draw on; None for a new figure.
        """
        matches = set(self.words.loc[self.words["match"], "word"])
        winners = self._shared_winners("query"), self._shared_winners("document")
        return draw_winners(ax, *winners, matches=matches, title=self._title())


def _mark(
    place: tuple[int, int, str],
    wins: pd.DataFrame,
    shared: pd.Series,
    own: pd.Series,
    match: bool,
    strengths: dict[int, float],
) -> Mark:
    """A winning word: coloured and numbered if it wins shared neurons, underlined if it wins those of its own text."""
    start, end, word = place
    numbers = [str(neuron) for neuron in wins["neuron"] if neuron in shared.values]
    shade = np.nan_to_num(strengths.get(start, 1.0), nan=LEAST_SHADE)  # a rest is a word for the model, not for readers
    style = [word_style(match, shade if numbers else np.nan)]
    style += ["border-bottom: 2px dotted currentColor"] if wins["neuron"].isin(own).any() else []
    hint = ", ".join(f"neuron {row.neuron}: {row.activation:.3f}" for row in wins.itertuples())
    return Mark(start, start if word == REST else end, word, "; ".join(filter(None, style)), hint, " ".join(numbers))


def draw_winners(
    ax: "Axes | None",
    query: pd.DataFrame,
    document: pd.DataFrame,
    *,
    matches: Collection[str] = (),
    title: Sequence[str] = (),
) -> "Axes":
    """Draw neurons between the words that win them.

    Args:
        ax: Axes to draw on; None for a new figure.
        query: One row per neuron: ``neuron``, ``activation``, ``word`` and ``start``.
        document: The same neurons in the same order.
        matches: Words of both texts, to write in bold.
        title: The lines of the title.
    """
    words = {"query": _labels(query), "document": _labels(document)}
    bold = {
        (side, row.start)
        for side, winners in (("query", query), ("document", document))
        for row in winners.itertuples()
        if row.word in matches
    }
    rows = {**words, "neuron": {neuron: str(neuron) for neuron in _left_to_right(query, document, words)}}
    width = max(NARROWEST, *(sum(map(_label_width, labels.values())) for labels in rows.values()))
    ax = titled_axes(ax, list(title), min(MARGIN + width, WIDEST) / 72, 2.7)
    ax.set(xlim=(-MARGIN, width), ylim=(-0.45, 2.45))
    ax.axis("off")
    if query.empty:
        ax.text(width / 2, 1, "no neuron is active in query and document", ha="center", va="center")
        return ax
    settle(ax.figure)
    room = 72 * ax.get_window_extent().width / ax.figure.dpi
    size = FONT_SIZE * min(1.0, room / (MARGIN + width))
    places = {name: _places(labels, width) for name, labels in rows.items()}
    for side, winners in (("query", query), ("document", document)):
        for row in winners.itertuples():
            ends = [places[side][row.start], places["neuron"][row.neuron]]
            heights = [HEIGHTS[side], HEIGHTS["neuron"]]
            ax.plot(ends, heights, color=SUPPORT_COLOUR, linewidth=0.5 + 3 * row.activation, zorder=1)
    for name, labels in rows.items():
        ax.text(-MARGIN / 2, HEIGHTS[name], name, ha="center", va="center", size=8, rotation=90, color="0.4")
        shape = "circle" if name == "neuron" else "round"
        box = {"boxstyle": shape, "facecolor": "white", "edgecolor": "0.3"}
        for key, label in labels.items():
            style = {"size": size, "bbox": box, "zorder": 2, "parse_math": False}
            text = ax.text(places[name][key], HEIGHTS[name], label, ha="center", va="center", **style)
            embolden([text], [(name, key) in bold])
    return ax


def _labels(winners: pd.DataFrame) -> dict[int, str]:
    """The winning words in the order of the text, by where they start."""
    words = winners.drop_duplicates("start").sort_values("start")
    length = min(20, max(6, LETTERS // max(1, len(words))))
    return {start: shortened(word, length) for start, word in zip(words["start"], words["word"], strict=True)}


def _left_to_right(query: pd.DataFrame, document: pd.DataFrame, words: dict[str, dict[int, str]]) -> list[int]:
    """The neurons in an order that keeps each near its words, so that few lines cross."""
    ranks = 0.0
    for side, winners in (("query", query), ("document", document)):
        starts = list(words[side])
        ranks += (winners["start"].map(starts.index) + 0.5) / max(1, len(starts))
    return query["neuron"].loc[pd.Series(ranks, index=query.index).sort_values(kind="stable").index].tolist()


def _places(labels: dict[int, str], width: float) -> dict[int, float]:
    """The middle of each label in a row, with the spare room spread between labels."""
    spare = (width - sum(map(_label_width, labels.values()))) / len(labels)
    places, position = {}, 0.0
    for key, label in labels.items():
        room = _label_width(label) + spare
        places[key] = position + room / 2
        position += room
    return places


def _label_width(label: str) -> float:
    """Points that a label needs."""
    from matplotlib.textpath import TextPath

    return TextPath((0, 0), label, size=FONT_SIZE).get_extents().width + GAP
