"""Pictures of systems over queries, and labels beside points."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from pt_neural._pictures import COLOURS, fit_labels, legend_above, new_axes, settle, wrapped
from pt_neural.experiment.values import checked_values, measure_name, subtract

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINT_AREA, LARGEST_AREA = 14.0, 400.0  # of a mark for one query, and for many queries, in square points

Kind = Literal["exact", "proximity", "inexact", "ours"]
MARKERS: dict[str | None, tuple[str, str, str]] = {  # marker, fill and label of each kind of system
    "exact": ("^", "none", "exact matches"),
    "proximity": ("o", "none", "proximity"),
    "inexact": ("v", "none", "inexact matches"),
    "ours": ("s", "full", "ours"),
    None: ("D", "none", "others"),
}
MANY = 8  # systems; more need a larger picture

GAP, RADIUS = 6.0, 4.0  # points from the middle of a mark to its label, and to its edge
DISTANCES = (1, 2, 3, 4.5, 6, 8, 10, 12, 15)  # of a label from its mark, in gaps
DIRECTIONS = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))
DIRECTIONS += ((2, 1), (-2, 1), (2, -1), (-2, -1), (1, 2), (-1, 2), (1, -2), (-1, -2))


class PerQueryScatter:
    """Queries as points: the value of one system against that of another.

    Attributes:
        system: The system on the vertical axis.
        other: The system on the horizontal axis.
        measure: Name of the measure.
        above: Number of queries for which the system has the larger value.
        below: Number of queries for which the other system has the larger value.
        equal: Number of queries for which both have the same value.
    """

    def __init__(self, values: pd.DataFrame, measure: str):
        self.other, self.system = values.columns
        self.measure = measure
        self._values = values
        self._differences = subtract(values[self.system], values[self.other])
        self.above, self.below, self.equal = (
            int((self._differences.map(np.sign) == sign).sum()) for sign in (1, -1, 0)
        )

    def to_frame(self) -> pd.DataFrame:
        """Frame with ``qid``, the values of both systems and their ``difference``, largest differences first."""
        frame = self._values[[self.system, self.other]].rename_axis(index="qid", columns=None)
        frame = frame.assign(difference=self._differences)
        return frame.sort_values("difference", ascending=False, kind="stable").reset_index()

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw one point per query, larger where several queries coincide, and the line of equal values.

        Args:
            ax: Axes to draw on; a new figure by default.
        """
        if ax is None:
            ax = new_axes(4.8, 4.8)
        points, queries = np.unique(self._values.round(3).to_numpy(), axis=0, return_counts=True)
        ends = [points.min(), points.max()]
        ax.plot(ends, ends, color="#999999", linewidth=0.8, zorder=0)
        ax.scatter(*points.T, np.minimum(POINT_AREA * queries, LARGEST_AREA), color=COLOURS[0], alpha=0.4, linewidth=0)
        ax.set_aspect("equal")
        ax.set_xlabel(f"{self.measure} of {self.other}")
        ax.set_ylabel(f"{self.measure} of {self.system}")
        counts = f"{self.above:,} queries above the line, {self.below:,} below, {self.equal:,} on it"
        ax.set_title(counts, fontsize="small")
        fit_labels(ax)
        return ax

    def __repr__(self) -> str:
        return (
            f"PerQueryScatter({self.system} against {self.other}, {self.measure}: {self.above:,} queries above, "
            f"{self.below:,} below, {self.equal:,} equal)"
        )


def scatter(values: pd.DataFrame, system: str, other: str) -> PerQueryScatter:
    """Compare two systems query by query: where one gains over the other, and where it loses.

    Args:
        values: One row per query and one column per system, as :func:`per_query` returns them.
        system: The column for the vertical axis.
        other: The column for the horizontal axis.

    Raises:
        ValueError: If a system is unknown, if both are the same, or if values are missing.

    Example::

        against = scatter(values, "Duet", "BM25")
        against.plot()
        against.to_frame().merge(topics, on="qid").head()
    """
    if system == other:
        raise ValueError(f"take two different systems, not {system!r} twice")
    values = checked_values(values, [system, other])
    return PerQueryScatter(values[[other, system]], measure_name(values))


class SystemComponents:
    """Systems as points in two dimensions; systems that do well on the same queries are close to each other.

    Attributes:
        explained: The share of the variance between systems that each of the two components explains.
    """

    def __init__(self, points: pd.DataFrame, explained: np.ndarray):
        self._points = points
        self.explained = explained

    def to_frame(self) -> pd.DataFrame:
        """Frame with ``system``, ``kind``, and the coordinates ``first`` and ``second``."""
        return self._points.copy()

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the systems with their names, marked by the kind of evidence they use, as in the Duet paper.

        Args:
            ax: Axes to draw on; a new figure by default.
        """
        if ax is None:
            ax = new_axes(*((6.4, 4.8) if len(self._points) <= MANY else (8.0, 6.0)))
        for number, (kind, (marker, fill_style, label)) in enumerate(MARKERS.items()):
            points = self._points[self._points["kind"].isna() if kind is None else self._points["kind"] == kind]
            if len(points):
                colour = "#000000" if kind == "ours" else COLOURS[number]
                style = {"marker": marker, "fillstyle": fill_style, "color": colour, "markersize": 8, "linestyle": ""}
                ax.plot(points["first"], points["second"], label=label, **style)
        for axis, name, share in zip("xy", ("first", "second"), self.explained, strict=True):
            ax.set(**{f"{axis}label": f"{name} principal component ({share:.0%} of the variance)"})
        ax.margins(0.15)
        if self._points["kind"].notna().any():
            legend_above(ax, columns=len(MARKERS))
        fit_labels(ax)
        names = [wrapped(name, 26) for name in self._points["system"]]
        label_points(ax, self._points[["first", "second"]].to_numpy(), names)
        return ax

    def __repr__(self) -> str:
        return f"SystemComponents({len(self._points)} systems, {self.explained.sum():.0%} of the variance)"


def pca(values: pd.DataFrame, kinds: Mapping[str, Kind] | None = None) -> SystemComponents:
    """Project systems, each a vector of its values for the queries, onto two principal components.

    Duet paper, section 6 and Figure 6.

    Args:
        values: One row per query and one column per system, as :func:`per_query` returns them.
        kinds: The kind of evidence that each system uses, which determines its mark: ``"exact"`` △, ``"proximity"`` ○,
            ``"inexact"`` ▽, ``"ours"`` ■.

    Raises:
        ValueError: If there are fewer than three systems or two queries, if values are missing or repeated, or if a
            kind is unknown.

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
    with np.errstate(invalid="ignore"):  # if all systems are alike, there is no variance to share
        points = model.fit_transform(values.T.to_numpy())
    frame = pd.DataFrame({"system": list(values), "kind": [kinds.get(name) for name in values]}, dtype=object)
    frame[["first", "second"]] = points
    return SystemComponents(frame, np.nan_to_num(model.explained_variance_ratio_))


def label_points(ax: "Axes", points: np.ndarray, texts: Sequence[str], *, size: float = 8.0) -> None:
    """Write each text near its point, in the first place where it covers neither another text nor a point.

    If there is no such place, the text takes the place where it covers least. A line joins a text to a distant
    point, and to one that is not the nearest to it.

    Args:
        ax: Axes with their points and limits set.
        points: Coordinates, shape ``(len(texts), 2)``.
        texts: The labels.
        size: Font size in points.
    """
    figure = ax.figure
    settle(figure)  # and so the places of the points
    ax.set(xlim=ax.get_xlim(), ylim=ax.get_ylim())
    pixels = figure.dpi / 72
    middles = ax.transData.transform(points)
    taken = np.hstack([middles - RADIUS * pixels, middles + RADIUS * pixels])
    frame = np.array(ax.get_window_extent().extents)
    places = np.array([np.multiply(GAP * distance, direction) for distance in DISTANCES for direction in DIRECTIONS])
    for point, middle, text in zip(points, middles, texts, strict=True):
        boxes = _boxes(middle + places * pixels, np.sign(places), _extent(ax, text, size))
        covered = _overlaps(boxes, taken).sum(axis=1)
        outside = _overlaps(boxes, boxes).diagonal() - _overlaps(boxes, frame[np.newaxis])[:, 0]
        chosen = int(np.argmin(np.round(covered + outside, 3)))
        taken = np.vstack([taken, boxes[chosen]])
        distances = _distances(boxes[chosen], middles)
        joined = np.abs(places[chosen]).max() > 2 * GAP or distances.min() < _distances(boxes[chosen], middle)
        _annotate(ax, text, point, places[chosen], size, joined=joined)


def _extent(ax: "Axes", text: str, size: float) -> np.ndarray:
    """Width and height of a text in pixels."""
    trial = ax.text(0, 0, text, size=size)
    box = trial.get_window_extent()
    trial.remove()
    return np.array([box.width, box.height])


def _boxes(starts: np.ndarray, directions: np.ndarray, extent: np.ndarray) -> np.ndarray:
    """Left, bottom, right and top of a text that begins at each place and extends in a direction."""
    low = starts - extent * (1 - directions) / 2
    return np.hstack([low, low + extent])


def _overlaps(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The area that each box shares with each of the others, shape ``(len(boxes), len(others))``."""
    low = np.maximum(boxes[:, np.newaxis, :2], others[:, :2])
    high = np.minimum(boxes[:, np.newaxis, 2:], others[:, 2:])
    return np.maximum(high - low, 0).prod(axis=2)


def _distances(box: np.ndarray, points: np.ndarray) -> np.ndarray:
    """How far points are from a box, of shape ``points.shape[:-1]``."""
    return np.linalg.norm(np.maximum(0, np.maximum(box[:2] - points, points - box[2:])), axis=-1)


def _annotate(ax: "Axes", text: str, point: np.ndarray, place: np.ndarray, size: float, *, joined: bool) -> None:
    across, up = np.sign(place)
    sides = {"ha": {1: "left", 0: "center", -1: "right"}[across], "va": {1: "bottom", 0: "center", -1: "top"}[up]}
    line = {"arrowstyle": "-", "color": "#999999", "linewidth": 0.6, "shrinkA": 0, "shrinkB": RADIUS}
    line["relpos"] = ((1 - across) / 2, (1 - up) / 2)  # where the text begins
    options = {"textcoords": "offset points", "size": size, "arrowprops": line if joined else None}
    options["bbox"] = {"color": "white", "alpha": 0.7, "pad": 0, "linewidth": 0}  # so that it can be read over a line
    ax.annotate(text, point, tuple(place), **options, **sides)
