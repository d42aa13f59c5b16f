"""Figures 2 and 3 of the CLSM paper, learning curves, and mixtures."""

from collections.abc import Iterable, Iterator

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from ir_measures import nDCG
from matplotlib.ticker import FuncFormatter

import pt_neural as pn
from pipelines.clsm.rankers import Rankers
from pipelines.common.comparison import alpha_picture
from pt_neural._pictures import COLOURS, LINES, fit_labels, legend_outside, new_axes, new_figure, plot_curve
from pt_neural.text import tokenise

DEV = f"dev {nDCG @ 10}"  # the column of a model's history
LENGTHS_SHOWN = 0.95  # of the lengths have bins of their own in Figure 2
LENGTH_BINS = 40
TITLES = {"telescoped": "BM25's candidates re-ranked", "all-documents": "all documents ranked"}


def figures(rankers: Rankers, grades: dict[str, dict[str, np.ndarray]]) -> Iterator[tuple[str, plt.Figure]]:
    """All figures that there are data for, by name.

    Args:
        rankers: The rankers, with histories and alpha curves.
        grades: For each setting, the grades of two rankers' top documents.
    """
    if grades:
        yield "figure3", top_documents(grades)
    if rankers.models:
        yield "learning", learning_curves(rankers.histories())
    if rankers.curves:
        yield "alpha", alpha_picture(rankers.mean_curves(), "Mixtures with BM25")


def length_counts(documents: pn.ForwardIndex, queries: Iterable[str]) -> pd.DataFrame:
    """How many queries and documents have each number of words.

    Args:
        documents: The documents, over the fields that are ranked.
        queries: Texts of queries.

    Returns:
        Frame with ``texts`` (``"queries"`` or ``"documents"``), ``words`` and ``number``.
    """
    lengths = {"queries": [len(tokenise(query)) for query in queries], "documents": documents.all().lengths}
    counts = {name: np.unique_counts(np.asarray(found, dtype=np.int64)) for name, found in lengths.items()}
    frames = (pd.DataFrame({"texts": name, "words": words, "number": n}) for name, (words, n) in counts.items())
    return pd.concat(frames, ignore_index=True)


def text_lengths(counts: pd.DataFrame) -> plt.Figure:
    """Figure 2: how many words queries and documents have, on a logarithmic axis; a text without words counts as one.

    Those with more than most are counted together.

    Args:
        counts: The frame of :func:`length_counts`.
    """
    ax = new_axes(7, 4)
    lengths = {name: np.repeat(found["words"], found["number"]) for name, found in counts.groupby("texts", sort=False)}
    most = max(int(np.quantile(found, LENGTHS_SHOWN)) for found in lengths.values())
    edges = np.unique(np.geomspace(1, most + 1, LENGTH_BINS + 1).round().astype(int))
    for place, (name, found) in enumerate(lengths.items()):
        shares = 100 * np.histogram(np.clip(found, 1, most), edges)[0] / len(found)
        label = f"{len(found):,} {name}, {found.mean():.1f} words on average"
        ax.stairs(shares, edges, label=label, color=COLOURS[place], linestyle=LINES[place], linewidth=1.6)
    ax.set(xscale="log", xlabel=f"words ({most:,} or more together)", ylabel="percentage of texts")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    ax.xaxis.set_minor_formatter("")
    ax.legend(fontsize="small")
    fit_labels(ax)
    return ax.figure


def top_documents(grades: dict[str, dict[str, np.ndarray]]) -> plt.Figure:
    """Figure 3: the percentage of queries whose top document has each grade, one panel per setting."""
    figure = new_figure(4.6 * len(grades), 3.8, columns=len(grades), sharey=True)
    highest = max(values.max() for rankers in grades.values() for values in rankers.values())
    for ax, (setting, rankers) in zip(figure.axes, grades.items(), strict=True):
        for place, (name, values) in enumerate(rankers.items()):
            percent = 100 * np.bincount(values, minlength=highest + 1) / len(values)
            bars = ax.bar(np.arange(highest + 1) + 0.4 * (place - 0.5), percent, 0.4, label=name, color=COLOURS[place])
            ax.bar_label(bars, fmt="%.1f", fontsize="x-small", padding=2)
        ax.set(title=TITLES[setting], xlabel="grade of the top document", xticks=range(highest + 1))
    figure.axes[0].set_ylabel("percentage of test queries")
    figure.axes[0].margins(y=0.12)
    legend_outside(figure)
    fit_labels(*figure.axes)
    return figure


def learning_curves(histories: pd.DataFrame) -> plt.Figure:
    """The dev measure after each epoch, or the loss if there are no dev queries, one line per seed."""
    measure = DEV if DEV in histories else "loss"
    ax = new_axes(7.5, 4.4)
    for number, (name, runs) in enumerate(histories.groupby("system", sort=False)):
        for place, (_, run) in enumerate(runs.groupby("seed", sort=False)):
            plot_curve(ax, run["epoch"], run[measure], number, label="" if place else name)
    ax.set(xlabel="epoch", ylabel="training loss" if measure == "loss" else f"{DEV}, candidates re-ranked")
    ax.xaxis.get_major_locator().set_params(integer=True)
    legend_outside(ax.figure)
    fit_labels(ax)
    return ax.figure
