"""Figures 1 and 2 of the SSI paper."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from pt_neural._pictures import COLOURS, fit_labels, new_figure
from pt_neural.experiment import RankLoss

PANELS = {"loss": "training loss", f"dev {RankLoss}": "dev rank loss"}


def scatter(values: pd.DataFrame) -> plt.Figure:
    """Figure 1: the average precision of each query, of the first system against each other one.

    Args:
        values: One row per query and one column per system.
    """
    first, *others = values.columns
    figure = new_figure(4.6 * len(others), 4.8, columns=len(others))
    for ax, other in zip(figure.axes, others, strict=True):
        ax.scatter(values[other], values[first], s=12, color=COLOURS[0], alpha=0.35, linewidths=0)
        ax.plot([0, 1], [0, 1], color="black", linewidth=0.8)
        better, worse = (values[first] > values[other]).mean(), (values[first] < values[other]).mean()
        ax.set_title(f"above in {better:.0%} of queries, below in {worse:.0%}", fontsize="medium")
        ax.set(xlabel=f"AP, {other}", ylabel=f"AP, {first}", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        ax.xaxis.label.set_fontsize("small")
        ax.yaxis.label.set_fontsize("small")
    fit_labels(*figure.axes)
    return figure


def learning_curves(frame: pd.DataFrame) -> plt.Figure:
    """Figure 2: training loss and dev rank loss by tuples seen, one column per share of the training links.

    Args:
        frame: ``share, N, tuples, loss`` and the dev rank loss.
    """
    shares = sorted(frame["share"].unique())
    figure = new_figure(1 + 2.7 * len(shares), 5.4, len(PANELS), len(shares), sharex="col", sharey="row")
    axes = np.reshape(figure.axes, (len(PANELS), len(shares)))
    for column, share in enumerate(shares):
        for place, (dim, rows) in enumerate(frame[frame["share"] == share].groupby("N")):
            style = {"color": COLOURS[place % len(COLOURS)], "linestyle": ("-", "--", ":")[place % 3]}
            for ax, measure in zip(axes[:, column], PANELS, strict=True):
                ax.plot(rows["tuples"] / 1000, rows[measure], label=f"N = {dim}", **style)
        axes[0, column].set_title(f"{100 * share:g}% of the links", fontsize="medium")
        axes[-1, column].set_xlabel("thousand tuples seen")
    for ax, label in zip(axes[:, 0], PANELS.values(), strict=True):
        ax.set_ylabel(label)
    axes[0, -1].legend(fontsize="small")
    fit_labels(*figure.axes)
    return figure
