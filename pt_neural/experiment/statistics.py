"""How certain a mean or a difference is: bootstrap intervals, and paired tests with corrections."""

import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from pt_neural._arguments import checked_choice, checked_number
from pt_neural._pictures import COLOURS, fit_labels, new_axes, wrapped
from pt_neural.experiment.values import checked_values, measure_name, subtract

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Correction = Literal["holm", "bonferroni", "benjamini-hochberg"]
Test = Literal["t-test", "randomisation"]
BLOCK = 1 << 20  # samples times queries in memory at once


class BootstrapIntervals:
    """The confidence interval of each system's mean, or of its difference from a baseline.

    Attributes:
        level: The confidence level, such as 0.95.
        measure: Name of the measure.
        baseline: The system that the others are compared with; None for intervals of means.
    """

    def __init__(self, frame: pd.DataFrame, level: float, measure: str, baseline: str | None = None):
        self._frame = frame
        self.level = level
        self.measure = measure
        self.baseline = baseline

    def to_frame(self) -> pd.DataFrame:
        """Frame with ``system``, ``mean``, ``low`` and ``high``.

        With a baseline there is also ``difference``; ``low`` and ``high`` are then its interval.
        """
        return self._frame.copy()

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw each system's mean, or its difference from the baseline, with its interval, one line per system.

        Args:
            ax: Axes to draw on; a new figure by default.
        """
        from matplotlib.ticker import MaxNLocator

        frame = self._frame
        names = [wrapped(name, 50) for name in frame["system"]]
        if ax is None:
            lines = [line for name in names for line in name.split("\n")]
            size = (4 + 0.08 * max(map(len, lines)), 1.2 + 0.12 * len(frame) + 0.18 * len(lines))
            ax = new_axes(*size)
        middle = frame["mean" if self.baseline is None else "difference"]
        reach = [middle - frame["low"], frame["high"] - middle]
        places = np.arange(len(frame))
        ax.errorbar(middle, places, xerr=reach, fmt="o", color=COLOURS[0], markersize=5, elinewidth=1.3, capsize=3)
        ax.set_yticks(places, names)
        ax.set_ylim(len(frame) - 0.5, -0.5)
        label = f"{self.measure}, {100 * self.level:.3g}% interval"
        if self.baseline is not None:
            ax.axvline(0, color="#999999", linewidth=0.8, zorder=0)
            label = f"difference from {self.baseline} in {label}"
        ax.set_xlabel(label)
        ax.xaxis.set_major_locator(MaxNLocator(4))
        fit_labels(ax)
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

    The queries are resampled with replacement many times; the interval leaves out equal shares of the smallest and the
    largest means (the percentile interval). All systems see the same samples. The intervals of two systems may overlap
    although one is clearly better, because both do well or badly on the same queries. Give a ``baseline`` to get the
    interval of the difference.

    Args:
        values: One row per query and one column per system, as :func:`per_query` returns them.
        level: Confidence level, between 0 and 1.
        samples: Number of samples.
        seed: Seed of the sampling.
        baseline: A column; intervals are then of the other systems' differences from it.

    Raises:
        ValueError: If queries, systems or values are missing or repeated, or if a number is out of range.

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
        others = others.apply(subtract, others=values[baseline])
        frame["difference"] = others.mean().to_numpy()
    means = _resampled_means(others.to_numpy(), samples, seed)
    frame["low"], frame["high"] = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return BootstrapIntervals(frame, level, measure_name(values), baseline)


def significance(
    values: pd.DataFrame,
    baseline: str | Sequence[str],
    *,
    correction: Correction | None = "holm",
    test: Test = "t-test",
    samples: int = 10_000,
    seed: int = 13,
) -> pd.DataFrame:
    """Compare every system with one or several baselines by a paired test over queries.

    Args:
        values: One row per query and one column per system, as :func:`per_query` returns them; for systems with several
            seeds, the means that :func:`mean_over_seeds` returns.
        baseline: One or several of the columns. Two baselines are compared with each other too, once.
        correction: Correction for the number of comparisons with all baselines: ``"holm"``; ``"bonferroni"``, as in the
            Duet paper (section 4.4); ``"benjamini-hochberg"``, which bounds the false discovery rate; or None.
        test: The paired ``"t-test"``, or the ``"randomisation"`` test, which does not assume a normal distribution: how
            often the mean is as far from 0 if the signs of the differences are random. If ``samples`` is enough to try
            all combinations of signs, each is tried once.
        samples: Number of combinations of signs that the randomisation test tries.
        seed: Seed of the random signs.

    Returns:
        Frame with ``system``, ``baseline``, the ``mean`` of the system, its ``difference`` from the baseline's mean,
        ``p``, and ``corrected``, the p-value to judge by; one row per comparison, baseline by baseline. Systems with
        identical values have p = 1, as does every t-test of a single query.

    Raises:
        ValueError: If a system, correction or test is unknown, or if queries or values are missing or repeated.

    Example::

        frame = significance(values, ["BM25", "SDM"])
        frame[frame["corrected"] < 0.05]
    """
    baselines = [baseline] if isinstance(baseline, str) else list(dict.fromkeys(baseline))
    if not baselines:
        raise ValueError("name at least one baseline")
    values = checked_values(values, baselines)
    pairs = _pairs(list(values), baselines)
    systems, others = [system for system, _ in pairs], [other for _, other in pairs]
    differences = subtract(values[systems].to_numpy(), values[others].to_numpy())
    p_values = _paired_test(differences, test, samples, seed)
    means = values.mean()
    return pd.DataFrame(
        {
            "system": systems,
            "baseline": others,
            "mean": means[systems].to_numpy(),
            "difference": subtract(means[systems].to_numpy(), means[others].to_numpy()),
            "p": p_values,
            "corrected": corrected(p_values, correction),
        }
    )


def telescoped_against_full(
    telescoped: pd.DataFrame,
    full: pd.DataFrame,
    *,
    correction: Correction | None = "holm",
    test: Test = "t-test",
) -> pd.DataFrame:
    """Compare each system as a re-ranker of candidates with the same system over all documents.

    DESM paper, sections 3.2 and 4, tables 3 and 4: word embeddings rank the candidates of a first stage well, but fail
    if they have to find the documents themselves.

    Args:
        telescoped: One row per query and one column per system, as :func:`per_query` returns them: the candidates of a
            first stage, re-ranked.
        full: The same systems, queries and measure with all documents ranked; rows and columns in any order.
        correction: Correction for the number of systems, as in :func:`significance`.
        test: The test, as in :func:`significance`.

    Returns:
        Frame with ``system``, the means ``telescoped`` and ``full``, their ``difference`` (full minus telescoped),
        ``p`` and ``corrected``; one row per system, in the order of ``telescoped``.

    Raises:
        ValueError: If the frames differ in systems, queries or measure, or if values are missing.

    Example::

        reranked = pt.Experiment([bm25, bm25 >> desm], topics, qrels, [AP], names=["BM25", "DESM"], perquery=True)
        ranked = pt.Experiment([bm25, retriever], topics, qrels, [AP], names=["BM25", "DESM"], perquery=True)
        telescoped_against_full(per_query(reranked), per_query(ranked))
    """
    telescoped, full = checked_values(telescoped, called="telescoped"), checked_values(full, called="full")
    measures = telescoped.columns.name, full.columns.name
    if None not in measures and measures[0] != measures[1]:
        raise ValueError(f"telescoped holds values of {measures[0]}, but full of {measures[1]}")
    _require_same("system", telescoped.columns, full.columns)
    _require_same("query", telescoped.index, full.index)
    full = full.loc[telescoped.index, telescoped.columns]
    p_values = _paired_test(subtract(full, telescoped).to_numpy(), test)
    frame = pd.DataFrame({"telescoped": telescoped.mean(), "full": full.mean()})
    frame["difference"] = frame["full"] - frame["telescoped"]
    frame = frame.assign(p=p_values, corrected=corrected(p_values, correction))
    return frame.rename_axis("system").reset_index()


def corrected(p_values: np.ndarray, correction: Correction | None = "holm") -> np.ndarray:
    """P-values corrected for their number, none above 1."""
    checked_choice("correction", correction, ("holm", "bonferroni", "benjamini-hochberg", None))
    count = len(p_values)
    if correction is None:
        return p_values
    if correction == "bonferroni":
        return np.minimum(1.0, p_values * count)
    if correction == "benjamini-hochberg":
        from scipy.stats import false_discovery_control

        return false_discovery_control(p_values) if count else p_values
    # Not by statsmodels' multipletests, because it collects garbage in each call, which takes a third of a second.
    order = np.argsort(p_values, kind="stable")
    result = np.empty(count)
    result[order] = np.minimum(1.0, np.maximum.accumulate(p_values[order] * np.arange(count, 0, -1)))
    return result


def _pairs(systems: Sequence[str], baselines: Sequence[str]) -> list[tuple[str, str]]:
    """Every system with every baseline, but no pair of systems twice."""
    pairs = {}
    for baseline in baselines:
        for system in systems:
            if system != baseline and (baseline, system) not in pairs:
                pairs[system, baseline] = None
    return list(pairs)


def _require_same(what: str, telescoped: pd.Index, full: pd.Index) -> None:
    """Raise ValueError unless both frames have the same systems, or the same queries."""
    for name, missing in (("full", telescoped.difference(full)), ("telescoped", full.difference(telescoped))):
        if len(missing):
            others = f" (and {len(missing) - 1:,} more)" if len(missing) > 1 else ""
            raise ValueError(f"{name} lacks {what} {missing[0]!r}{others}, which the other frame has")


def _paired_test(differences: np.ndarray, test: Test = "t-test", samples: int = 10_000, seed: int = 13) -> np.ndarray:
    """The p-values, (comparisons,), of the hypothesis that differences, (queries, comparisons), have a mean of 0."""
    checked_choice("test", test, ("t-test", "randomisation"))
    samples, seed = checked_number("samples", samples, int, least=1), checked_number("seed", seed, int, least=0)
    return _t_test(differences) if test == "t-test" else _randomisation_test(differences, samples, seed)


def experiment_test(values: Sequence[float], others: Sequence[float]) -> tuple[None, float]:
    """The t-test of :func:`significance` for the argument ``test`` of ``pt.Experiment``, which reads p alone."""
    return None, float(_t_test(subtract(np.asarray(values), np.asarray(others))[:, np.newaxis])[0])


def _t_test(differences: np.ndarray) -> np.ndarray:
    from scipy.stats import ttest_1samp

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # if all values are the same
        p_values = np.array(ttest_1samp(differences, 0.0).pvalue, dtype=np.float64)
    return np.nan_to_num(p_values, nan=1.0)


def _randomisation_test(differences: np.ndarray, samples: int, seed: int) -> np.ndarray:
    """How often random signs, the same for all columns, give a mean as far from 0 as the observed one.

    Unless all combinations of signs are tried, the observed signs count as one more sample, so that no p-value is 0.
    """
    rng, count = np.random.default_rng(seed), len(differences)
    exhaustive = count < 63 and 2**count <= samples
    total = 2**count if exhaustive else samples
    tolerance = 1e-12 * np.abs(differences).sum(axis=0)  # the same numbers, added in another order
    least = np.abs(differences.sum(axis=0)) - tolerance
    extreme = np.zeros(differences.shape[1])
    for block in _blocks(total, count):
        if exhaustive:
            bits = np.arange(block.start, block.stop)[:, np.newaxis] >> np.arange(count) & 1
        else:
            bits = rng.integers(2, size=(block.stop - block.start, count), dtype=np.int8)
        extreme += (np.abs((2.0 * bits - 1) @ differences) >= least).sum(axis=0)
    return extreme / total if exhaustive else (extreme + 1) / (total + 1)


def _resampled_means(values: np.ndarray, samples: int, seed: int) -> np.ndarray:
    """Means of values, shape (queries, systems), over rows drawn with replacement; shape (samples, systems)."""
    rng, count = np.random.default_rng(seed), len(values)
    means = np.empty((samples, values.shape[1]))
    for block in _blocks(samples, count):
        size = block.stop - block.start
        drawn = rng.integers(count, size=(size, count)) + count * np.arange(size)[:, np.newaxis]
        times = np.bincount(drawn.ravel(), minlength=size * count).reshape(size, count)
        means[block] = times.astype(np.float64) @ values / count
    return means


def _blocks(samples: int, count: int) -> Iterator[slice]:
    """Slices of the samples that fit into memory."""
    size = max(1, BLOCK // max(1, count))
    for start in range(0, samples, size):
        yield slice(start, min(start + size, samples))
