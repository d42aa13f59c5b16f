"""Names in pictures: beside points and above axes, none over another."""

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARK, RADIUS = 6.0, 4.0  # points from a mark's middle to where its name may begin, and to the mark's rim
DISTANCES = (1, 2, 3, 4.5, 6, 8, 10, 12, 15)
DIRECTIONS = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))
BETWEEN = ((2, 1), (-2, 1), (2, -1), (-2, -1), (1, 2), (-1, 2), (1, -2), (-1, -2))
LETTERS, HANDLE, LINE = 16.0, 6, 0.17  # small letters in an inch, in place of a handle, and inches from line to line
WIDER = 1.12  # a legend may be than its axes, which grow once they are laid out


def wrapped(text: object, width: int) -> str:
    """A name in lines of so many letters at most, not broken at hyphens."""
    return fill(str(text), width, break_on_hyphens=False)


def legend_above(ax: "Axes", columns: int = 4) -> float:
    """Write the legend above the axes, in as many columns as fit.

    Args:
        ax: Axes with labelled lines.
        columns: How many at most.

    Returns:
        The height of its lines after the first one, in inches.
    """
    handles, names = ax.get_legend_handles_labels()
    room = ax.get_window_extent().width
    names = [wrapped(name, max(20, int(LETTERS * room / ax.figure.dpi) - HANDLE)) for name in names]
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    for number in range(min(columns, len(names)), 0, -1):
        legend = ax.legend(handles, names, fontsize="small", ncols=number, frameon=False, **place)
        if legend.get_window_extent().width <= WIDER * room:
            break
    rows = -(-len(names) // number)
    return LINE * (rows * max(name.count("\n") + 1 for name in names) - 1)


def label_points(ax: "Axes", points: np.ndarray, texts: Sequence[str], *, size: float = 8.0) -> None:
    """Write each text near its point, in the first place where it covers no other text and no point.

    Where there is no such place, the one where it covers least. A line joins a text to its point if it stands away.

    Args:
        ax: Axes with their points and limits set.
        points: Coordinates in the data, shape ``(len(texts), 2)``.
        texts: What to write.
        size: Of the letters, in points.
    """
    figure = ax.figure
    figure.draw_without_rendering()  # lays the axes out, which settles where data stand
    ax.set(xlim=ax.get_xlim(), ylim=ax.get_ylim())
    pixels = figure.dpi / 72
    middles = ax.transData.transform(points)
    taken = np.hstack([middles - RADIUS * pixels, middles + RADIUS * pixels])
    frame = np.array(ax.get_window_extent().extents)
    places = np.array([np.multiply(MARK * far, direction) for far in DISTANCES for direction in DIRECTIONS + BETWEEN])
    for point, middle, text in zip(points, middles, texts, strict=True):
        boxes = _boxes(middle + places * pixels, np.sign(places), _extent(ax, text, size))
        covered = _shared(boxes, taken).sum(axis=1)
        outside = _shared(boxes, boxes).diagonal() - _shared(boxes, frame[np.newaxis])[:, 0]
        chosen = int(np.argmin(np.round(covered + outside, 3)))
        taken = np.vstack([taken, boxes[chosen]])
        _annotate(ax, text, point, places[chosen], size)


def _extent(ax: "Axes", text: str, size: float) -> np.ndarray:
    """Width and height of a text in pixels."""
    trial = ax.text(0, 0, text, size=size)
    box = trial.get_window_extent()
    trial.remove()
    return np.array([box.width, box.height])


def _boxes(starts: np.ndarray, directions: np.ndarray, extent: np.ndarray) -> np.ndarray:
    """Left, bottom, right, top of a text that begins at each place, going in a direction from there."""
    low = starts - extent * (1 - directions) / 2
    return np.hstack([low, low + extent])


def _shared(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The area that each box shares with each of the others, shape ``(len(boxes), len(others))``."""
    low = np.maximum(boxes[:, np.newaxis, :2], others[:, :2])
    high = np.minimum(boxes[:, np.newaxis, 2:], others[:, 2:])
    return np.maximum(high - low, 0).prod(axis=2)


def _annotate(ax: "Axes", text: str, point: np.ndarray, place: np.ndarray, size: float) -> None:
    across, up = np.sign(place)
    sides = {"ha": {1: "left", 0: "center", -1: "right"}[across], "va": {1: "bottom", 0: "center", -1: "top"}[up]}
    away = np.abs(place).max() > 2 * MARK
    line = {"arrowstyle": "-", "color": "#999999", "linewidth": 0.6, "shrinkA": 0, "shrinkB": RADIUS}
    line["relpos"] = ((1 - across) / 2, (1 - up) / 2)  # where the text begins
    options = {"textcoords": "offset points", "size": size, "arrowprops": line if away else None}
    ax.annotate(text, point, tuple(place), **options, **sides)
