"""What the pipelines share: experiments with significance tests, mixtures that are tuned, and their curves."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import pyterrier as pt
from cycler import cycler
from ir_measures import Measure

import pt_neural as pn
from pipelines.common import Collection, Split
from pt_neural.experiment import AlphaCurve, per_query, significance
from pt_neural.experiment.differences import Correction

System = pt.Transformer | Mapping[int, pt.Transformer]


class Comparison:
    """Systems on the same queries, each run once; runs and the values of each query are saved.

    Args:
        split: The queries.
        measures: What to measure.
        runs: Folder for the run files and the values of each query.
    """

    def __init__(self, split: Split, measures: Sequence[Measure], runs: Path):
        self.split, self.measures, self.runs = split, measures, runs
        self._members: dict[str, list[str]] = {}  # the names of each system's runs, one a seed
        self._result = pd.DataFrame()

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def add(self, systems: Mapping[str, System]) -> None:
        """Run and measure the systems whose names are not there yet: transformers, or several by their seeds."""
        members = {name: by_seed(name, system) for name, system in systems.items() if name not in self}
        flat = {name: system for member in members.values() for name, system in member.items()}
        if not flat:
            return
        self.runs.mkdir(parents=True, exist_ok=True)
        # PyTerrier advises its plan "tree", which cannot save runs.
        warnings.filterwarnings("ignore", message="There are shared pipeline components")
        result = pt.Experiment(
            list(flat.values()),
            self.split.topics,
            self.split.qrels,
            self.measures,
            names=list(flat),
            perquery=True,
            save_dir=str(self.runs),
            save_mode="overwrite",
        )
        self._result = pd.concat([self._result, result], ignore_index=True)
        self._members |= {name: list(member) for name, member in members.items()}

    def values(self, measure: Measure, names: Iterable[str]) -> pd.DataFrame:
        """One row a query, one column a system: the mean over its seeds."""
        values = per_query(self._result, measure)
        means = {name: values[self._members[name]].mean(axis=1) for name in names}
        return pd.DataFrame(means).rename_axis(columns=str(measure))

    def seed_means(self, measure: Measure, name: str) -> pd.Series:
        """The mean over queries of each run of a system."""
        return per_query(self._result, measure)[self._members[name]].mean()

    def table(
        self, names: Sequence[str], baselines: Mapping[str, str], correction: Correction = "holm"
    ) -> pd.DataFrame:
        """The means as text; marks tell what differs from the baselines.

        Args:
            names: The systems.
            baselines: The mark of each baseline, by the baseline's name.
            correction: Of the p-values.

        Returns:
            Frame with ``system`` and one text column a measure: the mean, with ± and the standard deviation over
            seeds where there are several, and the mark of each baseline that differs: p < 0.05 of a paired t-test over
            queries, corrected for the number of systems. The value of a query is then its mean over seeds.
        """
        table = pd.DataFrame({"system": list(names)})
        for measure in self.measures:
            values = self.values(measure, names)
            marks = dict.fromkeys(names, "")
            for baseline, mark in baselines.items():
                for name in different(values, baseline, correction):
                    marks[name] += mark
            means = {name: mean_over_seeds(self.seed_means(measure, name)) for name in names}
            table[str(measure)] = [means[name] + marks[name] for name in names]
        return table


def compare(
    systems: Mapping[str, System],
    split: Split,
    measures: Sequence[Measure],
    *,
    baselines: Mapping[str, str],
    runs: Path,
) -> pd.DataFrame:
    """One table of systems, as :meth:`Comparison.table` makes it."""
    comparison = Comparison(split, measures, runs)
    comparison.add(systems)
    return comparison.table(list(systems), baselines)


def by_seed(name: str, system: System) -> dict[str, pt.Transformer]:
    """The transformers of one system, by the names of their runs."""
    if isinstance(system, pt.Transformer):
        return {name: system}
    if len(system) == 1:
        return {name: next(iter(system.values()))}
    return {f"{name}, seed {seed}": transformer for seed, transformer in system.items()}


def different(values: pd.DataFrame, baseline: str, correction: Correction = "holm", level: float = 0.05) -> list[str]:
    """The systems that differ from a baseline, which is one of the columns, by a paired t-test over queries."""
    frame = significance(values, baseline, correction=correction)
    return frame.loc[frame["corrected"] < level, "system"].tolist()


def mean_over_seeds(means: pd.Series) -> str:
    """A mean as text, with the standard deviation where there are several seeds."""
    spread = f" ± {means.std(ddof=1):.4f}" if len(means) > 1 else ""
    return f"{means.mean():.4f}{spread}"


def tuned(
    mixture: pt.Transformer, collection: Collection, measure: Measure, seed: int
) -> tuple[pt.Transformer, AlphaCurve]:
    """Choose a mixture's alpha on the dev queries; without dev queries, by five folds of the test queries.

    Returns:
        The mixture, or the run of its folds, in which each query was ranked with an alpha chosen without it; and the
        curve.
    """
    if collection.dev is not None:
        curve = pn.tune_alpha(mixture, collection.dev.topics, collection.dev.qrels, measure)
        return mixture, curve
    curve = pn.tune_alpha(mixture, collection.test.topics, collection.test.qrels, measure, folds=5, seed=seed)
    return pt.Transformer.from_df(curve.run), curve


def alpha_picture(curves: dict[str, AlphaCurve], title: str) -> plt.Figure:
    """How mixtures depend on alpha, one curve each."""
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    axes.set_prop_cycle(cycler(color=["#0072B2", "#E69F00", "#009E73", "#CC79A7"]) * cycler(linestyle=["-", "--"]))
    for name, curve in curves.items():
        curve.plot(axes, label=name, interval=False)
    axes.legend(fontsize="small")
    axes.set_title(title)
    return figure
