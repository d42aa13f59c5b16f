"""Which systems do well for the same queries: principal components of their values."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from pt_neural.experiment.labels import label_points, legend_above, wrapped
from pt_neural.experiment.palette import COLOURS
from pt_neural.experiment.values import checked_values

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Kind = Literal["exact", "proximity", "inexact", "ours"]
MARKERS: dict[str | None, tuple[str, str, str]] = {
    "exact": ("^", "none", "exact matches"),
    "proximity": ("o", "none", "proximity"),
    "inexact": ("v", "none", "inexact matches"),
    "ours": ("s", "full", "ours"),
    None: ("D", "none", "others"),
}
MANY = 8  # systems; more need a larger picture


class SystemComponents:
    """Systems as points in two dimensions; those that do well for the same queries stand near each other.

    Attributes:
        explained: The share of the variance of the systems that each of the two components holds.
    """

    def __init__(self, points: pd.DataFrame, explained: np.ndarray):
        self._points = points
        self.explained = explained

    def to_frame(self) -> pd.DataFrame:
        """Frame with ``system``, ``kind``, and the coordinates ``first`` and ``second``."""
        return self._points.copy()

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the systems with their names, and with marks by their kind of evidence, as the paper does.

        Args:
            ax: Axes to draw on; a new figure by default.
        """
        import matplotlib.pyplot as plt

        if ax is None:
            size = (6.4, 4.8) if len(self._points) <= MANY else (8.0, 6.0)
            _, ax = plt.subplots(figsize=size, layout="constrained")
        for number, (kind, (marker, fill, label)) in enumerate(MARKERS.items()):
            points = self._points[self._points["kind"].isna() if kind is None else self._points["kind"] == kind]
            if len(points):
                colour = "#000000" if kind == "ours" else COLOURS[number]
                style = {"marker": marker, "fillstyle": fill, "color": colour, "markersize": 8, "linestyle": ""}
                ax.plot(points["first"], points["second"], label=label, **style)
        for axis, name, share in zip("xy", ("first", "second"), self.explained, strict=True):
            ax.set(**{f"{axis}label": f"{name} principal component ({share:.0%} of the variance)"})
        ax.margins(0.15)
        if self._points["kind"].notna().any():
            legend_above(ax, columns=len(MARKERS))
        names = [wrapped(name, 26) for name in self._points["system"]]
        label_points(ax, self._points[["first", "second"]].to_numpy(), names)
        return ax

    def __repr__(self) -> str:
        return f"SystemComponents({len(self._points)} systems, {self.explained.sum():.0%} of the variance)"


def pca(values: pd.DataFrame, kinds: Mapping[str, Kind] | None = None) -> SystemComponents:
    """Project systems, each a vector of its values for the queries, onto two principal components.

    Duet paper, section 6 and Figure 6.

    Args:
        values: One row a query, one column a system, as :func:`per_query` gives.
        kinds: The evidence that a system uses, for its mark: ``"exact"`` △, ``"proximity"`` ○, ``"inexact"`` ▽,
            ``"ours"`` ■.

    Raises:
        ValueError: If there are fewer than three systems or two queries, if values are missing or occur twice, or if
            a kind is none of these.

    Example::

        pca(values, {"BM25": "exact", "SDM": "proximity", "DSSM": "inexact"}).plot()
    """
    from sklearn.decomposition import PCA

    kinds = dict(kinds or {})
    unknown = set(kinds.values()) - set(MARKERS)
    if unknown:
        known = ", ".join(repr(kind) for kind in MARKERS if kind)
        raise ValueError(f"a kind must be one of {known}, not {unknown.pop()!r}")
    values = checked_values(values)
    if values.shape[0] < 2 or values.shape[1] < 3:
        raise ValueError(
            f"two components need at least three systems and two queries, not {values.shape[1]} and {values.shape[0]}"
        )
    model = PCA(2, svd_solver="full")
    with np.errstate(invalid="ignore"):  # of systems that are all alike, which have no variance to share
        points = model.fit_transform(values.T.to_numpy())
    frame = pd.DataFrame({"system": list(values), "kind": [kinds.get(name) for name in values]}, dtype=object)
    frame[["first", "second"]] = points
    return SystemComponents(frame, np.nan_to_num(model.explained_variance_ratio_))
