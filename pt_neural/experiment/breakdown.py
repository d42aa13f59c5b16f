"""A measure by class of query: by length, or by the rarity of the query's terms."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pt_neural._pictures import COLOURS, LINES, fit_labels, legend_above, new_axes
from pt_neural.experiment.values import checked_values, measure_name
from pt_neural.text import tokenise
from pt_neural.training.examples import require_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STEP, SPREAD = 0.14, 0.7  # distance between two systems' marks, and largest distance of any two, in widths of a class
DISTINGUISHABLE = 4  # most systems whose intervals can be told apart
ENOUGH = 10  # fewest queries for an interval by the normal distribution


class Breakdown:
    """The mean of each system for each class of queries.

    Attributes:
        values: One row per query and one column per system.
        classes: The class of each query, an ordered categorical with the same index.
    """

    def __init__(self, values: pd.DataFrame, classes: pd.Series):
        self.values = values
        self.classes = classes.cat.remove_unused_categories()

    def to_frame(self) -> pd.DataFrame:
        """Frame with the class (named after the breakdown), its number of ``queries``, and the mean of each system."""
        groups = self.values.groupby(self.classes, observed=True)
        frame = groups.mean().rename_axis(columns=None)
        frame.insert(0, "queries", groups.size())
        return frame.rename_axis(self.classes.name).reset_index()

    def plot(self, ax: "Axes | None" = None, *, interval: bool | None = None) -> "Axes":
        """Draw one line per system over the classes, with the number of queries under each class.

        Args:
            ax: Axes to draw on; a new figure by default.
            interval: Whether to draw the 95% interval of the mean for classes of at least ten queries; by default only
                for up to four systems, whose intervals can still be told apart.
        """
        figure = None
        if ax is None:
            ax = new_axes(6.4, 3.8)
            figure = ax.figure
        if interval is None:
            interval = self.values.shape[1] <= DISTINGUISHABLE
        frame, groups = self.to_frame(), self.values.groupby(self.classes, observed=True)
        error = (1.96 * groups.std(ddof=1) / np.sqrt(groups.count())).where(groups.count() >= ENOUGH)
        places = np.arange(len(frame))
        for number, (name, shift) in enumerate(zip(self.values, _shifts(self.values.shape[1]), strict=True)):
            ax.errorbar(
                places + shift,
                frame[name].to_numpy(),
                yerr=error[name].to_numpy() if interval else None,
                color=COLOURS[number % len(COLOURS)],
                marker="osD^v"[number % 5],
                linestyle=LINES[(number + number // len(COLOURS)) % len(LINES)],
                markersize=5,
                linewidth=1.3,
                elinewidth=0.8,
                label=name,
            )
        labels = [f"{label}\n({count:,})" for label, count in zip(frame.iloc[:, 0], frame["queries"], strict=True)]
        ax.set_xticks(places, labels)
        ax.set(xlabel=f"{self.classes.name} (number of queries)", ylabel=measure_name(self.values))
        ax.set_xlim(-0.5, len(frame) - 0.5)
        lines = legend_above(ax)
        if figure is not None:
            figure.set_figheight(figure.get_figheight() + lines)
        fit_labels(ax)
        return ax

    def __repr__(self) -> str:
        classes = len(self.classes.cat.categories)
        return f"Breakdown({self.values.shape[1]} systems, {len(self.values):,} queries in {classes} classes)"


def by_length(
    values: pd.DataFrame, topics: pd.DataFrame, *, longest: int | None = None, min_queries: int = 20
) -> Breakdown:
    """Break a measure down by the number of terms of the query (Duet paper, Figure 5a).

    Args:
        values: One row per query and one column per system, as :func:`per_query` returns them.
        topics: The queries: ``qid, query``.
        longest: Queries of this length or longer form one class; None for no limit.
        min_queries: A class with fewer queries is merged with its neighbours.

    Raises:
        ValueError: If a query of the values is not among the topics, or if values are missing or repeated.

    Example::

        by_length(values, topics).plot()
    """
    values = checked_values(values)
    lengths = _queries(values, topics).map(lambda query: len(tokenise(query)))
    starts = _large_enough(lengths if longest is None else lengths.clip(upper=longest), min_queries)
    return Breakdown(values, _classes(lengths, starts, "terms of the query"))


def by_rarity(
    values: pd.DataFrame,
    topics: pd.DataFrame,
    training: Mapping[str, int] | Iterable[str],
    *,
    classes: int | Sequence[int] = 5,
) -> Breakdown:
    """Break a measure down by how often the rarest term of the query occurs in training data (Duet paper, Figure 5b).

    Queries with a term that never occurs form a class of their own, 0.

    Args:
        values: One row per query and one column per system, as :func:`per_query` returns them.
        topics: The queries: ``qid, query``.
        training: The texts that a model was trained on, or the number of occurrences of each term in them.
        classes: The number of classes of about equal size for the other queries; or the smallest count of each class,
            in ascending order from 1.

    Raises:
        ValueError: If a query of the values is not among the topics, if values are missing or repeated, or if the
            counts are not in ascending order from 1.
        TypeError: If ``training`` is a single string.

    Example::

        by_rarity(values, topics, training["query"]).to_frame()
    """
    occurrences = training if isinstance(training, Mapping) else count_terms(training)
    values = checked_values(values)
    rarest = _queries(values, topics).map(lambda query: min(map(_count(occurrences), tokenise(query)), default=0))
    starts = _quantiles(rarest[rarest > 0], classes) if isinstance(classes, int) else list(classes)
    if starts[0] != 1 or any(low >= high for low, high in pairwise(starts)):
        raise ValueError(f"classes must be counts in ascending order from 1, or a number of classes, not {classes!r}")
    return Breakdown(values, _classes(rarest, [0, *starts], "occurrences of the rarest query term"))


def count_terms(texts: Iterable[str]) -> Counter[str]:
    """Count the occurrences of each term in texts.

    Example::

        >>> count_terms(["a river", "A city"])["a"]
        2
    """
    if isinstance(texts, str):
        raise TypeError("training texts must be an iterable of strings, not a single string")
    return Counter(chain.from_iterable(map(tokenise, texts)))


def _count(occurrences: Mapping[str, int]) -> Callable[[str], int]:
    return lambda term: occurrences.get(term, 0)


def _queries(values: pd.DataFrame, topics: pd.DataFrame) -> pd.Series:
    """The text of each query of the values."""
    require_columns(topics, ("qid", "query"), "topics")
    queries = topics.drop_duplicates("qid").set_index("qid")["query"]
    missing = values.index.difference(queries.index)
    if len(missing):
        raise ValueError(f"topics lack query {missing[0]!r} ({len(missing)} queries in all), which has values")
    return queries.reindex(values.index)


def _large_enough(numbers: pd.Series, least: int) -> list[int]:
    """Where classes of neighbouring numbers start, so that each has at least ``least`` queries."""
    starts, size, last = [], 0, None
    for number, count in numbers.value_counts().sort_index().items():
        if size == 0:
            starts.append(number if last is None else last + 1)
        size, last = size + count, number
        if size >= least:
            size = 0
    if size and len(starts) > 1:
        starts.pop()
    return starts


def _quantiles(numbers: pd.Series, classes: int) -> list[int]:
    """Where classes of about equal size start; if many numbers are equal, there are fewer classes."""
    if numbers.empty or classes < 2:
        return [1]
    inner = np.quantile(numbers, np.arange(1, classes) / classes, method="higher")
    return sorted({1, *inner.astype(int).tolist()})


def _classes(numbers: pd.Series, starts: Sequence[int], name: str) -> pd.Series:
    """The class of each number, labelled with its range."""
    labels = [str(low) if high == low + 1 else f"{low}–{high - 1}" for low, high in pairwise(starts)]
    codes = np.searchsorted(starts, numbers, side="right") - 1
    classes = pd.Categorical.from_codes(codes, [*labels, f"{starts[-1]}+"], ordered=True)
    return pd.Series(classes, index=numbers.index, name=name)


def _shifts(count: int) -> np.ndarray:
    """Offsets of the marks of systems, side by side, from the middle of a class."""
    width = min(SPREAD, STEP * (count - 1))
    return np.linspace(-width / 2, width / 2, count)
