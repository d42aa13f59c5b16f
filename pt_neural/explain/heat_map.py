"""The heat map of what pairs of words add to a score, with bars beside it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pt_neural.explain.explanation import shortened
from pt_neural.explain.marking import AGAINST_COLOUR, MATCH_COLOUR, SUPPORT_COLOUR
from pt_neural.explain.word_figure import draw_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WORD_LENGTH = 16  # characters; longer ones are cut
BAR_NAME = 2 * WORD_LENGTH + 3  # of two words
SIDE = 0.25  # inches a cell
FEWEST = 16, 4  # cells in a row and bars that there is room for at least
FEW_ROWS, HEIGHT_OF_FEW = 3, 1.5  # few rows do not fill the height: their cells are so many times as high as wide
AROUND = 2.6  # inches for words, colour bar and gaps
LEFT_OUT = "…"


@dataclass(frozen=True)
class HeatMap:
    """What a heat map shows.

    Attributes:
        rows: Words of the query, from top to bottom.
        columns: Words of the document, from left to right.
        cells: What each adds to the score, of shape (rows, columns); NaN for gaps.
        outlined: Whether it is a pair of equal words, bool of that shape.
        labels: What the rows are, and what the columns are.
        legend: What an outline means.
        boundaries: Whether each column is no word but a boundary; None where all are words.
    """

    rows: list[str]
    columns: list[str]
    cells: np.ndarray
    outlined: np.ndarray
    labels: tuple[str, str]
    legend: str
    boundaries: np.ndarray | None = None


def draw_heat_map(
    ax: "Axes | None", heat_map: HeatMap, bars: pd.DataFrame, *, title: str, width: float, nothing: str
) -> "Axes":
    """Draw cells as squares, and in a new figure bars beside them.

    Args:
        ax: Axes to draw the cells on, without the bars; a new figure by default.
        heat_map: The cells.
        bars: ``contribution`` of what else there is to show, the strongest first, indexed by its names.
        title: Of the picture.
        width: Of the bars with their names, in inches.
        nothing: What stands in place of the bars where there are none.

    Returns:
        The axes of the cells.
    """
    import matplotlib.pyplot as plt

    if ax is not None:
        _draw(ax, heat_map)
        ax.set_title(title, fontsize="medium", parse_math=False, pad=26, loc="left")
        return ax
    room = SIDE * max(FEWEST[0], len(heat_map.columns))
    height = 2.4 + max(SIDE * len(heat_map.rows), 0.25 * len(bars))
    figure, (heat, beside) = plt.subplots(
        1, 2, figsize=(AROUND + room + width, height), width_ratios=[room + 1, width], layout="constrained"
    )
    figure.suptitle(title, fontsize="medium", parse_math=False)
    _draw(heat, heat_map)
    _draw_bars(beside, bars, nothing)
    return heat


def _draw_bars(ax: "Axes", bars: pd.DataFrame, nothing: str) -> None:
    from matplotlib.ticker import MaxNLocator

    weakest_first = bars[["contribution"]].iloc[::-1]
    colours = np.where(weakest_first["contribution"] < 0, AGAINST_COLOUR, SUPPORT_COLOUR).tolist()
    draw_words(ax, weakest_first, {"contribution": colours}, {}, label="contribution", nothing=nothing, length=BAR_NAME)
    ax.xaxis.set_major_locator(MaxNLocator(3))
    ax.set_ylim(len(bars) - max(FEWEST[1], len(bars)) - 0.5, len(bars) - 0.5)


def _draw(ax: "Axes", heat_map: HeatMap) -> None:
    import matplotlib.pyplot as plt
    from matplotlib.colors import LinearSegmentedColormap

    row_label, column_label = heat_map.labels
    ax.set(xlabel=column_label, ylabel=row_label)
    if not heat_map.cells.size:
        ax.set(xticks=[], yticks=[])
        ax.text(0.5, 0.5, "no cell to show", ha="center", va="center", transform=ax.transAxes)
        return
    colours = LinearSegmentedColormap.from_list("contributions", [AGAINST_COLOUR, "white", SUPPORT_COLOUR])
    colours = colours.with_extremes(bad="0.88")  # of gaps
    most = max(np.nanmax(np.abs(heat_map.cells)), 1e-9)
    image = ax.imshow(heat_map.cells, cmap=colours, vmin=-most, vmax=most)
    ax.set_aspect("auto" if len(heat_map.rows) > FEW_ROWS else HEIGHT_OF_FEW)
    ax.figure.colorbar(image, ax=ax, label="contribution to the score", aspect=12, pad=0.02)
    for row, column in zip(*np.nonzero(heat_map.outlined), strict=True):
        outline = plt.Rectangle((column - 0.42, row - 0.42), 0.84, 0.84, fill=False, color=MATCH_COLOUR, linewidth=2)
        ax.add_patch(outline)
    rows, columns = ([shortened(word, WORD_LENGTH) for word in words] for words in (heat_map.rows, heat_map.columns))
    ax.set_xticks(np.arange(len(columns)), columns, rotation=90, fontsize="small", parse_math=False)
    ax.set_yticks(np.arange(len(rows)), rows, parse_math=False)
    if heat_map.boundaries is not None:
        for label, boundary in zip(ax.get_xticklabels(), heat_map.boundaries, strict=True):
            label.set_fontstyle("italic" if boundary else "normal")
    if heat_map.outlined.any():
        ax.legend(
            [plt.Rectangle((0, 0), 1, 1, fill=False, color=MATCH_COLOUR, linewidth=2)],
            [heat_map.legend],
            loc="lower left",
            bbox_to_anchor=(0, 1),
            borderaxespad=0.2,
            handlelength=1,
            frameon=False,
            fontsize="small",
        )
