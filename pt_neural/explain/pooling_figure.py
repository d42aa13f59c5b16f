"""The figure of matching neurons (CLSM paper, Figure 4)."""

from typing import TYPE_CHECKING

import pandas as pd

from pt_neural.explain.explanation import shortened
from pt_neural.explain.marking import MATCH_COLOUR, SUPPORT_COLOUR

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"query": MATCH_COLOUR, "document": SUPPORT_COLOUR}
HEIGHTS = {"query": 2.0, "neuron": 1.0, "document": 0.0}
LETTERS = 160  # a row; the more words it has, the shorter long ones are cut
POINTS = 10.0  # of the letters
GAP = 20.0  # points for a label's frame and the room beside it
MARGIN = 20.0  # points for the names of the rows
NARROWEST, WIDEST = 360.0, 1000.0  # points; what is narrower is drawn apart, what is wider smaller


def draw_winners(ax: "Axes | None", query: pd.DataFrame, document: pd.DataFrame) -> "Axes":
    """Draw neurons between the words that win them.

    Args:
        ax: Axes to draw on; a new figure by default.
        query: One row a neuron: ``neuron``, ``activation``, ``word`` and ``start``.
        document: The same neurons in the same order.
    """
    import matplotlib.pyplot as plt

    words = {"query": _labels(query), "document": _labels(document)}
    order = _between(query, document, words)
    rows = {**words, "neuron": {neuron: str(neuron) for neuron in order}}
    width = max(NARROWEST, *(sum(map(_slot, labels.values())) for labels in rows.values()))
    if ax is None:
        ax = plt.figure(figsize=(min(MARGIN + width, WIDEST) / 72, 3.2)).add_axes((0.02, 0.02, 0.96, 0.8))
    ax.set(xlim=(-MARGIN, width), ylim=(-0.45, 2.45))
    ax.axis("off")
    if query.empty:
        ax.text(width / 2, 1, "no neuron is active in query and document", ha="center", va="center")
        return ax
    room = 72 * ax.get_position().width * ax.figure.get_figwidth()
    size = POINTS * min(1.0, room / (MARGIN + width))
    places = {name: _places(labels, width) for name, labels in rows.items()}
    for side, winners in (("query", query), ("document", document)):
        _draw_lines(ax, side, winners, places)
    for name, labels in rows.items():
        ax.text(-MARGIN / 2, HEIGHTS[name], name, ha="center", va="center", size=8, rotation=90, color="0.4")
        _draw_labels(ax, name, labels, places[name], size)
    return ax


def _labels(winners: pd.DataFrame) -> dict[int, str]:
    """The winning words in the order of the text, by where they start."""
    words = winners.drop_duplicates("start").sort_values("start")
    length = min(20, max(6, LETTERS // max(1, len(words))))
    return {start: shortened(word, length) for start, word in zip(words["start"], words["word"], strict=True)}


def _between(query: pd.DataFrame, document: pd.DataFrame, words: dict[str, dict[int, str]]) -> list[int]:
    """The neurons from left to right, each near its words, so that few lines cross."""
    ranks = 0.0
    for side, winners in (("query", query), ("document", document)):
        starts = list(words[side])
        ranks += (winners["start"].map(starts.index) + 0.5) / max(1, len(starts))
    return query["neuron"].loc[pd.Series(ranks, index=query.index).sort_values(kind="stable").index].tolist()


def _places(labels: dict[int, str], width: float) -> dict[int, float]:
    """The middle of each label where all stand in a row, the spare room spread between them."""
    spare = (width - sum(map(_slot, labels.values()))) / len(labels)
    places, position = {}, 0.0
    for key, label in labels.items():
        slot = _slot(label) + spare
        places[key] = position + slot / 2
        position += slot
    return places


def _draw_lines(ax: "Axes", side: str, winners: pd.DataFrame, places: dict[str, dict[int, float]]) -> None:
    heights = [HEIGHTS[side], HEIGHTS["neuron"]]
    for row in winners.itertuples():
        ends = [places[side][row.start], places["neuron"][row.neuron]]
        ax.plot(ends, heights, color=COLOURS[side], linewidth=0.5 + 3 * row.activation, zorder=1)


def _draw_labels(ax: "Axes", name: str, labels: dict[int, str], places: dict[int, float], size: float) -> None:
    box = {"boxstyle": "circle" if name == "neuron" else "round", "facecolor": "white", "edgecolor": "0.3"}
    if name in COLOURS:
        box["edgecolor"] = COLOURS[name]
    for key, label in labels.items():
        ax.text(places[key], HEIGHTS[name], label, ha="center", va="center", size=size, bbox=box, zorder=2)


def _slot(label: str) -> float:
    """Points that a label needs."""
    from matplotlib.textpath import TextPath

    return TextPath((0, 0), label, size=POINTS).get_extents().width + GAP
