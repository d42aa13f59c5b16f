"""The picture of what rankers cost: quality against milliseconds a query."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from pt_neural._pictures import fit_labels, new_figure
from pt_neural.experiment.pictures import label_points

SMALLEST, LARGEST = 15, 200  # areas of points, in square points: of no time, and of the longest one


def costs_figure(costs: pd.DataFrame, bm25: float, *, ylabel: str, title: str) -> Figure:
    """Quality alone and mixed with BM25 against milliseconds a query; a bigger point took longer to fit.

    Args:
        costs: A row for each ranker, by name: ``alone``, ``mixed``, ``fit, s`` and ``ms a query``.
        bm25: The quality of BM25, drawn as a line.
        ylabel: What the quality is.
        title: Of the figure.
    """
    figure = new_figure(12, 6, columns=2)
    # No legend, since it would cover points or labels.
    figure.suptitle(f"{title}\nThe dashed line is BM25; the area of a point grows with the seconds of fitting")
    panels = figure.axes
    panels[0].set_ylabel(ylabel)
    shares = costs["fit, s"] / max(1, costs["fit, s"].max())
    for ax, column, panel in zip(panels, ("alone", "mixed"), ("alone", "mixed with BM25"), strict=True):
        ax.axhline(bm25, color="grey", linestyle="--")
        ax.scatter(costs["ms a query"], costs[column], SMALLEST + (LARGEST - SMALLEST) * shares, alpha=0.5)
        ax.set(xscale="log", xlabel="milliseconds a query", title=panel)
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.xaxis.set_minor_formatter("")
    fit_labels(*panels)
    for ax, column in zip(panels, ("alone", "mixed"), strict=True):
        label_points(ax, costs[["ms a query", column]].to_numpy(dtype=np.float64), list(costs.index))
    return figure
