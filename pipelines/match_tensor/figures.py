"""Figures 3 and 4 of the Match-Tensor paper."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from pt_neural._pictures import COLOURS, MANY_TICKS, fit_labels, legend_outside, new_axes, new_figure, plot_curve

GROUP = 0.8  # width of all bars of a measure


def relative_bars(frame: pd.DataFrame, panels: Sequence[Sequence[str]], baseline: str) -> plt.Figure:
    """Figure 4: the gain of each system over a baseline, one bar per system and measure.

    Args:
        frame: ``system`` and one column per measure, in percent.
        panels: The measures of each panel; each panel has its own scale.
        baseline: The baseline's name.
    """
    widths = [len(measures) for measures in panels]
    figure = new_figure(1 + 1.9 * sum(widths), 4.0, columns=len(panels), width_ratios=widths)
    width = GROUP / len(frame)
    for ax, measures in zip(figure.axes, panels, strict=True):
        places = np.arange(len(measures))
        for number, row in enumerate(frame.to_dict("records")):
            shift = (number - (len(frame) - 1) / 2) * width
            heights = [row[measure] for measure in measures]
            ax.bar(places + shift, heights, width, color=COLOURS[number % len(COLOURS)], label=row["system"])
        ax.axhline(0, color="black", linewidth=0.8)
        ax.set_xticks(places, measures)
        ax.grid(axis="y", alpha=0.3)
        ax.set_axisbelow(True)
    figure.axes[0].set_ylabel(f"difference from {baseline}, %")
    legend_outside(figure)
    fit_labels(*figure.axes)
    return figure


def learning_curves(frame: pd.DataFrame, measure: str) -> plt.Figure:
    """Figure 3: a measure by the number of training queries, relative to all of them, one line per system.

    Args:
        frame: ``system, queries`` and a column named after the measure and ``", %"``: the percentage of its value with
            all queries.
        measure: The measure's name.
    """
    ax = new_axes(6.4, 4.0)
    for number, (name, rows) in enumerate(frame.groupby("system", sort=False)):
        plot_curve(ax, rows["queries"], rows[f"{measure}, %"], number, label=name)
    sizes = sorted(frame["queries"].unique())
    ax.set_xscale("log", base=2)
    ax.set_xticks(sizes, [f"{size:,}" for size in sizes], rotation=90 if len(sizes) > MANY_TICKS else 0)
    ax.minorticks_off()
    ax.set(xlabel="training queries", ylabel=f"{measure}, % of that with all training queries")
    legend_outside(ax.figure)
    fit_labels(ax)
    return ax.figure


def precision_recall(frame: pd.DataFrame) -> plt.Figure:
    """Precision-recall curves over the candidates of all queries, one line per system (section 6.3).

    Args:
        frame: ``recall`` and one column per system.
    """
    ax = new_axes(6.4, 4.0)
    for number, name in enumerate(frame.columns.drop("recall")):
        ax.plot(frame["recall"], frame[name], color=COLOURS[number % len(COLOURS)], label=name)
    ax.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, None))
    ax.grid(alpha=0.3)
    legend_outside(ax.figure)
    fit_labels(ax)
    return ax.figure
