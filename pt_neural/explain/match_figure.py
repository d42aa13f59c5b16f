"""The figure of match positions (Duet paper, Figure 2)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pt_neural.explain.explanation import shortened
from pt_neural.explain.marking import SUPPORT_COLOUR

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WORD_LENGTH = 20  # longer query terms are cut
LINE = 0.2  # inches a query term
AROUND = 0.45  # inches for a panel's title and the gap to the next


def draw_matches(
    query: str, terms: list[str], panels: Sequence[tuple[str, int, pd.DataFrame]], relevant: Sequence[bool]
) -> "list[Axes]":
    """Draw one panel a document, one below the other.

    Args:
        query: The title.
        terms: The terms of the query, from top to bottom.
        panels: Of each document its title, its length in terms, and its matches: ``query_position`` and ``position``.
        relevant: Whether a document is relevant; their lines are blue and thick, and their titles bold.
    """
    import matplotlib.pyplot as plt

    height = 0.8 + len(panels) * (AROUND + LINE * max(1, len(terms)))
    figure, grid = plt.subplots(len(panels), sharex=True, squeeze=False, figsize=(7, height), layout="constrained")
    figure.suptitle(f'"{query}"', fontsize="medium", parse_math=False)
    longest = max(1, *(length for _, length, _ in panels))
    for ax, (title, length, matches), good in zip(grid[:, 0], panels, relevant, strict=True):
        for place in range(len(terms)):
            positions = matches.loc[matches["query_position"] == place, "position"]
            style = {"color": SUPPORT_COLOUR, "linewidth": 1.8} if good else {"color": "0.25", "linewidth": 0.9}
            ax.vlines(positions, place - 0.4, place + 0.4, **style)
        ax.axvspan(length - 0.5, longest, color="0.9", zorder=0)
        ax.set_yticks(np.arange(len(terms)), [shortened(term, WORD_LENGTH) for term in terms], fontsize="small")
        ax.set(xlim=(-0.5 - longest / 200, longest), ylim=(max(1, len(terms)) - 0.5, -0.5))
        ax.set_title(title, fontsize="small", loc="left", fontweight="bold" if good else "normal")
    grid[-1, 0].set_xlabel("position in the document, in terms")
    return list(grid[:, 0])
