"""Which ranker to take: quality alone and mixed with BM25, time to fit and time per query, on all collections."""

from collections.abc import Iterator, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import FuncFormatter

from pipelines.common.workspace import markdown
from pipelines.results.folders import ResultFolder

SECTION = """\
## Which ranker should I take?

nDCG@10 of BM25's top 100, re-ranked by each ranker alone and by its mixture with BM25; the means over collections of
the seconds of fitting and of the milliseconds of re-ranking the candidates of a query by docno, with one thread. The
commands at the end say which sizes the networks have and how long they may train. Rows are in the order of the mean
gain of the mixture over BM25.
"""
ALONE, MIXED, FIT, QUERY = "alone", "mixed", "fit, s", "ms a query"  # of the tables of costs


def costs_by_collection(folders: Sequence[ResultFolder]) -> dict[str, pd.DataFrame]:
    """The table of costs of each collection, by system."""
    return {
        folder.collection: pd.read_csv(folder.path / "costs.csv").set_index("system")
        for folder in folders
        if folder.pipeline == "classics" and (folder.path / "costs.csv").exists()
    }


def choice_table(costs: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """A row for each ranker, those with the largest mean gain of the mixture over BM25 first."""
    gains = pd.DataFrame({name: table[MIXED] - table.loc["BM25", ALONE] for name, table in costs.items()})
    order = gains.mean(axis=1).drop("BM25").sort_values(ascending=False).index
    columns = {}
    for name, table in costs.items():
        for column in (ALONE, MIXED):
            columns[f"{name}, {column}"] = table[column].reindex(["BM25", *order])
    for column in (FIT, QUERY):
        columns[column] = pd.DataFrame({name: table[column] for name, table in costs.items()}).mean(axis=1)
    return pd.DataFrame(columns).reindex(["BM25", *order])


def choice_text(table: pd.DataFrame) -> pd.DataFrame:
    """The table as it is printed: three digits of quality, whole seconds, milliseconds with a digit."""
    digits = {FIT: 0, QUERY: 1}
    shown = {
        column: ["–" if np.isnan(value) else f"{value:,.{digits.get(column, 3)}f}" for value in values]
        for column, values in table.items()
    }
    return pd.DataFrame({"ranker": table.index, **shown})


def choice_section(folders: Sequence[ResultFolder]) -> Iterator[str]:
    """The section of the page; nothing if no collection has costs."""
    costs = costs_by_collection(folders)
    if costs:
        yield SECTION
        yield markdown(choice_text(choice_table(costs))) + "\n"


def choice_picture(costs: dict[str, pd.DataFrame]) -> plt.Figure:
    """The mean gain over BM25, alone and mixed, against milliseconds a query; a bigger point took longer to fit."""
    gains = {
        column: pd.DataFrame({name: table[column] - table.loc["BM25", ALONE] for name, table in costs.items()})
        for column in (ALONE, MIXED)
    }
    times = {
        column: pd.DataFrame({name: table[column] for name, table in costs.items()}).mean(axis=1)
        for column in (FIT, QUERY)
    }
    figure, axes = plt.subplots(1, 2, figsize=(12, 6), layout="constrained")
    for ax, (column, title) in zip(axes, ((ALONE, "alone"), (MIXED, "mixed with BM25")), strict=True):
        means = gains[column].mean(axis=1).drop("BM25")
        ax.axhline(0, color="grey", linestyle="--")
        ax.scatter(times[QUERY][means.index], means, 15 + times[FIT][means.index], alpha=0.5)
        _name_points(ax, times[QUERY][means.index], means)
        ax.set(xscale="log", xlabel="milliseconds a query", title=title, ylabel="gain over BM25 in nDCG@10")
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    figure.suptitle(f"Mean of {', '.join(costs)}; the area of a point grows with the seconds of fitting")
    return figure


def _name_points(ax: plt.Axes, x: pd.Series, y: pd.Series) -> None:
    """Write names beside points, moved up or down where two would overlap."""
    span = y.max() - y.min() or 1.0
    placed: list[tuple[float, float]] = []
    for name in y.sort_values().index:
        left, height = np.log10(x[name]), y[name]
        while any(abs(left - other) < 0.25 and abs(height - at) < span / 32 for other, at in placed):
            height += span / 64
        placed.append((left, height))
        ax.annotate(name, (x[name], y[name]), (10**left * 1.06, height), fontsize=8, va="center")
