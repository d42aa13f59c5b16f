"""Figures 4, 5 and 7 of the Duet paper."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from ir_measures import nDCG

from pt_neural._pictures import COLOURS, MANY_TICKS, fit_labels, legend_outside, new_figure, plot_curve, wrapped
from pt_neural.experiment import Breakdown

WIDTH = 0.38  # of a bar


def negatives(frame: pd.DataFrame, hard: str) -> plt.Figure:
    """Figure 4: each model with hard and with random negatives, and the p-value, one panel per measure.

    Args:
        frame: ``system, measure``, a column named after the hard negatives, ``random``, ``corrected``.
        hard: Where the hard negatives come from.
    """
    measures = frame["measure"].unique()
    systems = frame["system"].nunique()
    figure = new_figure(max(4.4, 1.3 * systems) * len(measures), 3.8, columns=len(measures))
    for ax, measure in zip(figure.axes, measures, strict=True):
        rows = frame[frame["measure"] == measure]
        places = np.arange(len(rows))
        for shift, column, colour in ((-1, hard, COLOURS[0]), (1, "random", COLOURS[1])):
            heights = rows[column].to_numpy()
            bars = ax.bar(places + shift * WIDTH / 2, heights, WIDTH, color=colour, label=f"{column} negatives")
            ax.bar_label(bars, fmt="%.3f", fontsize="x-small", padding=2)
        p_values = [f"p = {p:.3f}" if p >= 0.001 else "p < 0.001" for p in rows["corrected"]]
        labels = [f"{wrapped(name, 12)}\n{p}" for name, p in zip(rows["system"], p_values, strict=True)]
        ax.set_xticks(places, labels, fontsize="small")
        ax.set(ylabel=measure)
        ax.margins(y=0.12)
    legend_outside(figure)
    fit_labels(*figure.axes)
    return figure


def breakdowns(parts: Sequence[Breakdown]) -> plt.Figure:
    """Figure 5: one panel per classification of the queries."""
    figure = new_figure(6.0 * len(parts), 4.0, columns=len(parts), sharey=True)
    for ax, part in zip(figure.axes, parts, strict=True):
        part.plot(ax).label_outer()
    legend_outside(figure)
    fit_labels(*figure.axes)
    return figure


def learning_curves(frame: pd.DataFrame) -> plt.Figure:
    """Figure 7: nDCG@10 by the number of training queries, one panel per way of training, one line per model.

    Args:
        frame: ``system, queries, training`` and the measure.
    """
    kinds, sizes = frame["training"].unique(), sorted(frame["queries"].unique())
    figure = new_figure(4.6 * len(kinds), 3.8, columns=len(kinds), sharey=True)
    for ax, kind in zip(figure.axes, kinds, strict=True):
        for number, (name, rows) in enumerate(frame[frame["training"] == kind].groupby("system", sort=False)):
            plot_curve(ax, rows["queries"], rows[str(nDCG @ 10)], number, label=name)
        ax.set_xscale("log", base=2)
        ax.set_xticks(sizes, [f"{size:,}" for size in sizes], rotation=90 if len(sizes) > MANY_TICKS else 0)
        ax.minorticks_off()
        ax.set(title=kind, xlabel="training queries")
    figure.axes[0].set_ylabel(str(nDCG @ 10))
    legend_outside(figure)
    fit_labels(*figure.axes)
    return figure
