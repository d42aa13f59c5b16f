"""How sure the means of systems are: confidence intervals from queries drawn anew."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pt_neural._arguments import checked_number
from pt_neural.experiment.labels import wrapped
from pt_neural.experiment.palette import COLOURS
from pt_neural.experiment.resampling import resampled_means
from pt_neural.experiment.values import checked_values, measure_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class BootstrapIntervals:
    """The mean of each system with its confidence interval, or the difference from a baseline with its own.

    Attributes:
        level: The share of such intervals that hold the true mean.
        measure: Name of the measure.
        baseline: The system that the others are compared with; None if the intervals are those of means.
    """

    def __init__(self, frame: pd.DataFrame, level: float, measure: str, baseline: str | None = None):
        self._frame = frame
        self.level = level
        self.measure = measure
        self.baseline = baseline

    def to_frame(self) -> pd.DataFrame:
        """Frame with ``system``, ``mean``, ``low`` and ``high``.

        With a baseline ``difference`` stands before ``low`` and ``high``, which are the ends of its interval.
        """
        return self._frame.copy()

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw each system's mean, or its difference from the baseline, and the interval, one system a line.

        Args:
            ax: Axes to draw on; a new figure by default.
        """
        import matplotlib.pyplot as plt

        frame = self._frame
        names = [wrapped(name, 50) for name in frame["system"]]
        if ax is None:
            lines = [line for name in names for line in name.split("\n")]
            size = (4 + 0.08 * max(map(len, lines)), 1.2 + 0.12 * len(frame) + 0.18 * len(lines))
            _, ax = plt.subplots(figsize=size, layout="constrained")
        middle = frame["mean" if self.baseline is None else "difference"]
        reach = [middle - frame["low"], frame["high"] - middle]
        places = np.arange(len(frame))
        ax.errorbar(middle, places, xerr=reach, fmt="o", color=COLOURS[0], markersize=5, elinewidth=1.3, capsize=3)
        ax.set_yticks(places, names)
        ax.set_ylim(len(frame) - 0.5, -0.5)
        what = f"{self.measure}, {100 * self.level:.3g}% interval"
        if self.baseline is not None:
            ax.axvline(0, color="#999999", linewidth=0.8, zorder=0)
            what = f"difference from {self.baseline} in {what}"
        ax.set_xlabel(wrapped(what, 45))
        return ax

    def __repr__(self) -> str:
        against = "" if self.baseline is None else f", differences from {self.baseline}"
        return f"BootstrapIntervals({len(self._frame)} systems, {self.measure}, {100 * self.level:.3g}%{against})"


def bootstrap(
    values: pd.DataFrame,
    level: float = 0.95,
    samples: int = 10_000,
    seed: int = 13,
    *,
    baseline: str | None = None,
) -> BootstrapIntervals:
    """Confidence intervals of means over queries, by the bootstrap (Efron, 1979).

    As many queries as there are get drawn with replacement, many times; the interval leaves out equal shares of the
    smallest and the largest means (the percentile interval). All systems see the same draws. Intervals of two systems
    may overlap although one is surely better, for both do well or badly on the same queries: ``baseline`` gives the
    interval of the difference.

    Args:
        values: One row a query, one column a system, as :func:`per_query` gives.
        level: From 0 to 1, the share of such intervals that hold the true mean.
        samples: How many times queries are drawn.
        seed: Of the draws.
        baseline: One of the columns, from which the differences of the others are taken.

    Raises:
        ValueError: If queries, systems or values are missing or occur twice, or if a number is out of range.

    Example::

        bootstrap(values).to_frame()
        bootstrap(values, baseline="BM25").plot()
    """
    level = checked_number("level", level, float, above=0)
    if level >= 1:
        raise ValueError(f"level must be below 1, not {level!r}")
    samples, seed = checked_number("samples", samples, int, least=1), checked_number("seed", seed, int, least=0)
    values = checked_values(values, [] if baseline is None else [baseline])
    others = values if baseline is None else values.drop(columns=baseline)
    if baseline is not None and others.empty:
        raise ValueError(f"there is no system beside the baseline {baseline!r}")
    frame = pd.DataFrame({"system": list(others), "mean": others.mean().to_numpy()})
    if baseline is not None:
        others = others.sub(values[baseline], axis=0)
        frame["difference"] = others.mean().to_numpy()
    means = resampled_means(others.to_numpy(), samples, seed)
    frame["low"], frame["high"] = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return BootstrapIntervals(frame, level, measure_name(values), baseline)
