"""Names beside points, none over another."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARK = 6.0  # points from a mark's middle to where its name may begin
DISTANCES = (1, 2, 3, 4.5, 6)
DIRECTIONS = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))


def label_points(ax: "Axes", points: np.ndarray, texts: Sequence[str], *, size: float = 8.0) -> None:
    """Write each text near its point, in the first place where it covers no other text and no point.

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
    taken = [np.concatenate([middle - MARK * pixels / 2, middle + MARK * pixels / 2]) for middle in middles]
    frame = np.array(ax.get_window_extent().extents)
    for point, text in zip(points, texts, strict=True):
        chosen = None
        for place in _places():
            chosen = _annotate(ax, text, point, place, size, previous=chosen)
            box = np.array(chosen.get_window_extent().extents)
            if _within(box, frame) and not any(_overlap(box, other) for other in taken):
                break
        taken.append(box)


def _places() -> list[tuple[float, float]]:
    return [(MARK * far * right, MARK * far * up) for far in DISTANCES for right, up in DIRECTIONS]


def _annotate(ax: "Axes", text: str, point: np.ndarray, place: tuple[float, float], size: float, previous):
    """The text at a place; the one tried before goes."""
    if previous is not None:
        previous.remove()
    sides = {"ha": _align(place[0], "left", "right"), "va": _align(place[1], "bottom", "top")}
    return ax.annotate(text, point, place, textcoords="offset points", size=size, **sides)


def _align(offset: float, beyond: str, before: str) -> str:
    return "center" if offset == 0 else beyond if offset > 0 else before


def _overlap(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two boxes, each left, bottom, right, top, share an area."""
    return bool((one[:2] < other[2:]).all() and (other[:2] < one[2:]).all())


def _within(box: np.ndarray, frame: np.ndarray) -> bool:
    return bool((box[:2] >= frame[:2]).all() and (box[2:] <= frame[2:]).all())
