"""Two systems, query by query."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pt_neural.experiment.labels import wrapped
from pt_neural.experiment.palette import COLOURS
from pt_neural.experiment.values import checked_values, measure_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARK, LARGEST = 14.0, 400.0  # areas of the marks of one query and of many, in square points


class PerQueryScatter:
    """Queries as points: the value of one system against that of another.

    Attributes:
        system: The system on the vertical axis.
        other: The system on the horizontal axis.
        measure: Name of the measure.
        above: Number of queries where the system has the larger value.
        below: Number of queries where the other has it.
        equal: Number of queries where both have the same.
    """

    def __init__(self, values: pd.DataFrame, measure: str):
        self.other, self.system = values.columns
        self.measure = measure
        self._values = values
        differences = values[self.system] - values[self.other]
        self._differences = differences.where(differences.abs() > 1e-12, 0.0)
        self.above, self.below, self.equal = (
            int((self._differences.map(np.sign) == sign).sum()) for sign in (1, -1, 0)
        )

    def to_frame(self) -> pd.DataFrame:
        """Frame with ``qid``, the two systems' values and the ``difference``, largest differences first."""
        frame = self._values[[self.system, self.other]].rename_axis(index="qid", columns=None)
        frame = frame.assign(difference=self._differences)
        return frame.sort_values("difference", ascending=False, kind="stable").reset_index()

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw a point a query, larger where several queries have the same values, and the line of equal values.

        Args:
            ax: Axes to draw on; a new figure by default.
        """
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots(figsize=(4.8, 4.8), layout="constrained")
        points, queries = np.unique(self._values.round(3).to_numpy(), axis=0, return_counts=True)
        ends = [points.min(), points.max()]
        ax.plot(ends, ends, color="#999999", linewidth=0.8, zorder=0)
        ax.scatter(*points.T, np.minimum(MARK * queries, LARGEST), color=COLOURS[0], alpha=0.4, linewidth=0)
        ax.set_aspect("equal")
        ax.set_xlabel(wrapped(f"{self.measure} of {self.other}", 45))
        ax.set_ylabel(wrapped(f"{self.measure} of {self.system}", 45))
        counts = f"{self.above:,} queries above the line, {self.below:,} below, {self.equal:,} on it"
        ax.set_title(counts, fontsize="small")
        return ax

    def __repr__(self) -> str:
        return (
            f"PerQueryScatter({self.system} against {self.other}, {self.measure}: {self.above:,} queries above, "
            f"{self.below:,} below, {self.equal:,} equal)"
        )


def scatter(values: pd.DataFrame, system: str, other: str) -> PerQueryScatter:
    """Compare two systems query by query: on which one gains, and on which it loses.

    Args:
        values: One row a query, one column a system, as :func:`per_query` gives.
        system: One of the columns, for the vertical axis.
        other: Another, for the horizontal axis.

    Raises:
        ValueError: If there is no such system, if both are the same, or if values are missing.

    Example::

        against = scatter(values, "Duet", "BM25")
        against.plot()
        against.to_frame().merge(topics, on="qid").head()
    """
    if system == other:
        raise ValueError(f"take two different systems, not {system!r} twice")
    values = checked_values(values, [system, other])
    return PerQueryScatter(values[[other, system]], measure_name(values))
