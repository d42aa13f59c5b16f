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
LINE = 0.2  # inches a row
GAP = 2  # rows above a document, in which its title stands


def draw_matches(
    ax: "Axes | None",
    query: str,
    terms: list[str],
    documents: Sequence[tuple[str, int, pd.DataFrame]],
    relevant: Sequence[bool],
) -> "Axes":
    """Draw one block of rows a document, one below the other.

    Args:
        ax: Axes to draw on; a new figure by default.
        query: The title.
        terms: The terms of the query, from top to bottom.
        documents: Of each its title, its length in terms, and its matches: ``query_position`` and ``position``.
        relevant: Whether a document is relevant; their lines are blue and thick, and their titles bold.
    """
    import matplotlib.pyplot as plt

    rows = max(1, len(terms))
    height = len(documents) * (rows + GAP)
    if ax is None:
        _, ax = plt.subplots(figsize=(7, 0.9 + LINE * height), layout="constrained")
    longest = max(1, *(length for _, length, _ in documents))
    tops = np.arange(len(documents)) * (rows + GAP) + GAP  # the row of the first term
    for top, (title, length, matches), good in zip(tops, documents, relevant, strict=True):
        style = {"color": SUPPORT_COLOUR, "linewidth": 1.8} if good else {"color": "0.25", "linewidth": 0.9}
        places = top + matches["query_position"]
        ax.vlines(matches["position"], places - 0.4, places + 0.4, **style)
        ax.fill_between([length - 0.5, longest], top - 0.5, top + rows - 0.5, color="0.9", linewidth=0, zorder=0)
        ax.hlines([top - 0.5, top + rows - 0.5], -0.5 - longest / 200, longest, color="0.6", linewidth=0.6)
        ax.text(0, top - 0.8, title, fontsize="small", fontweight="bold" if good else "normal")
    labels = [shortened(term, WORD_LENGTH) for term in terms] * len(documents)
    ticks = (tops[:, None] + np.arange(len(terms))).ravel()
    ax.set_yticks(ticks, labels, fontsize="small", parse_math=False)
    ax.set(xlim=(-0.5 - longest / 200, longest), ylim=(height - 0.5, 0))
    ax.set_xlabel("position in the document, in terms")
    ax.set_title(f'"{query}"', fontsize="medium", parse_math=False)
    return ax
