"""The heat map of a match tensor: query words by document words, and its strongest channels."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pt_neural.explain.heat_map import LEFT_OUT, HeatMap, draw_heat_map

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BARS = 2.3  # inches for the channels
CONTEXT = 2  # words shown on either side of a strong one


def draw_cells(
    ax: "Axes | None",
    query: pd.DataFrame,
    document: pd.DataFrame,
    cells: np.ndarray,
    exact: np.ndarray,
    channels: pd.DataFrame,
    *,
    most: int,
    title: str,
) -> "Axes":
    """Draw cells as squares, and in a new figure channels as bars beside them.

    Args:
        ax: Axes to draw the cells on, without the channels; a new figure by default.
        query: The query, from top to bottom: ``word``.
        document: The document, from left to right: ``word`` and ``boundary``.
        cells: What each adds to the score, of shape (query words, document words).
        exact: Whether it is an exact match.
        channels: ``contribution`` of the strongest channels, the strongest first, indexed by their names.
        most: How many words of the document to show, beside boundaries.
        title: Of the picture.

    Returns:
        The axes of the cells.
    """
    boundary = document["boundary"].to_numpy(bool)
    columns = shown_columns(np.abs(cells).sum(axis=0), boundary, most)
    gaps = columns < 0
    strongest_only = "words of the document, where its cells are strongest"
    heat_map = HeatMap(
        rows=query["word"].to_list(),
        columns=[LEFT_OUT if place < 0 else document["word"].iloc[place] for place in columns],
        cells=np.where(gaps, np.nan, cells[:, columns]),
        outlined=exact[:, columns] & ~gaps,
        labels=("words of the query", strongest_only if gaps.any() else "words of the document"),
        legend="exact match",
        boundaries=boundary[columns] & ~gaps,
    )
    return draw_heat_map(ax, heat_map, channels, title=title, width=BARS, nothing="no channel to show")


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
