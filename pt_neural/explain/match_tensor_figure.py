"""The heat map of a match tensor: query words by document words, and its strongest channels."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pt_neural.explain.explanation import shortened
from pt_neural.explain.marking import AGAINST_COLOUR, MATCH_COLOUR, SUPPORT_COLOUR
from pt_neural.explain.word_figure import draw_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WORD_LENGTH = 16  # longer ones are cut
SIDE = 0.25  # inches a cell
FEWEST = 16, 4  # cells in a row and bars that there is room for at least
FEW_ROWS, HEIGHT_OF_FEW = 3, 1.5  # few rows do not fill the height: their cells are so many times as high as wide
BARS = 2.3  # inches for the channels
AROUND = 2.6  # inches for words, colour bar and gaps
CONTEXT = 2  # words shown on either side of a strong one
LEFT_OUT = "…"


def draw_cells(
    query: pd.DataFrame, document: pd.DataFrame, cells: np.ndarray, exact: np.ndarray, channels: pd.DataFrame, most: int
) -> "tuple[Axes, Axes]":
    """Draw cells as squares, and channels as bars beside them.

    Args:
        query: The query, from top to bottom: ``word``.
        document: The document, from left to right: ``word`` and ``boundary``.
        cells: What each adds to the score, of shape (query words, document words).
        exact: Whether it is an exact match.
        channels: ``contribution`` of the strongest channels, the strongest first, indexed by their names.
        most: How many words of the document to show, beside boundaries.

    Returns:
        The axes of both.
    """
    import matplotlib.pyplot as plt
    from matplotlib.ticker import MaxNLocator

    columns = shown_columns(np.abs(cells).sum(axis=0), document["boundary"].to_numpy(bool), most)
    room = SIDE * max(FEWEST[0], len(columns))
    height = 2.4 + max(SIDE * len(query), 0.25 * len(channels))
    _, (heat, bars) = plt.subplots(
        1, 2, figsize=(AROUND + room + BARS, height), width_ratios=[room + 1, BARS], layout="constrained"
    )
    _draw_heat(heat, query, document, cells, exact, columns)
    weakest_first = channels.iloc[::-1]
    colours = np.where(weakest_first["contribution"] < 0, AGAINST_COLOUR, SUPPORT_COLOUR).tolist()
    draw_words(
        bars,
        weakest_first[["contribution"]],
        {"contribution": colours},
        {},
        label="contribution",
        nothing="no channel to show",
    )
    bars.xaxis.set_major_locator(MaxNLocator(3))
    bars.set_ylim(len(channels) - max(FEWEST[1], len(channels)) - 0.5, len(channels) - 0.5)
    return heat, bars


def shown_columns(strengths: np.ndarray, boundary: np.ndarray, most: int) -> np.ndarray:
    """What to show of a document, in its order: boundaries, and the strongest words with those around them.

    Args:
        strengths: Of each word and boundary.
        boundary: Whether it is a boundary.
        most: How many words at most.

    Returns:
        Places of what is shown, and -1 where something is left out between two.
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


def _draw_heat(
    ax: "Axes", query: pd.DataFrame, document: pd.DataFrame, cells: np.ndarray, exact: np.ndarray, columns: np.ndarray
) -> None:
    import matplotlib.pyplot as plt
    from matplotlib.colors import LinearSegmentedColormap

    ax.set_xlabel("words of the document, where its cells are strongest" if -1 in columns else "words of the document")
    ax.set_ylabel("words of the query")
    if not cells.size:
        ax.set(xticks=[], yticks=[])
        ax.text(0.5, 0.5, "no cell to show", ha="center", va="center", transform=ax.transAxes)
        return
    colours = LinearSegmentedColormap.from_list("contributions", [AGAINST_COLOUR, "white", SUPPORT_COLOUR])
    colours = colours.with_extremes(bad="0.88")  # of gaps
    shown = np.where(columns < 0, np.nan, cells[:, columns])
    most = max(np.nanmax(np.abs(shown)), 1e-9)
    image = ax.imshow(shown, cmap=colours, vmin=-most, vmax=most)
    ax.set_aspect("auto" if len(query) > FEW_ROWS else HEIGHT_OF_FEW)
    ax.figure.colorbar(image, ax=ax, label="contribution to the score", aspect=12, pad=0.02)
    for row, column in zip(*np.nonzero(exact[:, columns] & (columns >= 0)), strict=True):
        outline = plt.Rectangle((column - 0.42, row - 0.42), 0.84, 0.84, fill=False, color=MATCH_COLOUR, linewidth=2)
        ax.add_patch(outline)
    words = [LEFT_OUT if place < 0 else shortened(document["word"].iloc[place], WORD_LENGTH) for place in columns]
    ax.set_xticks(np.arange(len(words)), words, rotation=90, fontsize="small", parse_math=False)
    ax.set_yticks(np.arange(len(query)), [shortened(word, WORD_LENGTH) for word in query["word"]], parse_math=False)
    for label, place in zip(ax.get_xticklabels(), columns, strict=True):
        label.set_fontstyle("italic" if place >= 0 and document["boundary"].iloc[place] else "normal")
    if (exact[:, columns] & (columns >= 0)).any():
        ax.legend(
            [plt.Rectangle((0, 0), 1, 1, fill=False, color=MATCH_COLOUR, linewidth=2)],
            ["exact match"],
            loc="lower left",
            bbox_to_anchor=(0, 1),
            borderaxespad=0.2,
            handlelength=1,
            frameon=False,
            fontsize="small",
        )
