"""The figure of words and what each adds to a score: bars, one or several a word."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pt_neural.explain.explanation import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WORD_LENGTH = 25  # characters
LINE = 0.28  # inches a word


def draw_words(
    ax: "Axes | None",
    values: pd.DataFrame,
    colours: dict[str, list[str] | str],
    legend: dict[str, str],
    *,
    label: str,
    nothing: str,
    length: int = WORD_LENGTH,
) -> "Axes":
    """Draw horizontal bars, the last row at the top.

    Args:
        ax: Axes to draw on; a new figure by default.
        values: One row a word, indexed by it, and one column for each of its bars, the first one uppermost.
        colours: Of the bars, for each column.
        legend: What colours mean.
        label: What the bars measure.
        nothing: What stands there without any word.
        length: Characters of a word; longer ones are cut.
    """
    import matplotlib.pyplot as plt

    if ax is None:
        line = LINE * max(1.0, 0.6 * len(colours))
        _, ax = plt.subplots(figsize=(6, 1.4 + line * len(values)), layout="constrained")
    places, height = np.arange(len(values)), 0.8 / len(colours)
    for number, (column, colour) in enumerate(colours.items()):
        shift = ((len(colours) - 1) / 2 - number) * height
        ax.barh(places + shift, values[column], height=height, color=colour)
    ax.set_yticks(places, [shortened(word, length) for word in values.index], parse_math=False)
    if values.empty:
        ax.set_xticks([])
        ax.text(0.5, 0.5, nothing, ha="center", va="center", transform=ax.transAxes)
    else:
        ax.axvline(0, color="0.3", linewidth=0.8)
    ax.set_xlabel(label)
    if legend:
        handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in legend]
        above = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": min(3, len(legend)), "borderaxespad": 0.2}
        ax.legend(handles, legend.values(), **above, frameon=False, fontsize="small", columnspacing=1, handlelength=1)
    return ax


def embolden(ax: "Axes", matches: pd.Series) -> None:
    """Tell the words that both texts have: one boolean for each label, from the lowest."""
    for word, match in zip(ax.get_yticklabels(), matches, strict=True):
        word.set_fontweight("bold" if match else "normal")


def strongest(words: pd.DataFrame, columns: list[str], together: str, count: int) -> pd.DataFrame:
    """The words whose contributions are strongest, one row each, those of the first column ascending.

    Args:
        words: Occurrences: ``word``, ``match`` and the columns; NaN in the first one for what was not tried.
        columns: Columns of contributions.
        together: How those of one word's occurrences become one, such as ``"sum"``.
        count: How many words at most.
    """
    tried = words[words[columns[0]].notna()].groupby("word", sort=False)
    totals = tried[columns].agg(together).assign(match=tried["match"].any())
    order = totals[columns].abs().max(axis=1).sort_values(ascending=False, kind="stable").index[:count]
    return totals.loc[order].sort_values(columns[0], kind="stable")
