"""What the pipelines share: experiments with significance tests, mixtures that are tuned, and their curves."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyterrier as pt
from cycler import cycler
from ir_measures import Measure
from scipy.stats import ttest_rel

import pt_neural as pn
from pipelines.common import Collection, Split
from pt_neural.experiment import AlphaCurve

System = pt.Transformer | Mapping[int, pt.Transformer]


def compare(
    systems: Mapping[str, System],
    split: Split,
    measures: Sequence[Measure],
    *,
    baselines: Mapping[str, str],
    runs: Path,
) -> pd.DataFrame:
    """One ``pt.Experiment``, its runs saved; marks tell what differs from the baselines.

    Args:
        systems: Transformers by name, or several by the seed that each was trained with.
        split: The queries.
        measures: What to report.
        baselines: The mark of each baseline, by the baseline's name.
        runs: Folder for the run files and the values of each query.

    Returns:
        Frame with ``system`` and one text column a measure: the mean, with ± and the standard deviation over seeds
        where there are several, and the mark of each baseline that differs: p < 0.05 of a paired t-test over queries,
        with Holm's correction over systems. The value of a query is then its mean over seeds.
    """
    runs.mkdir(parents=True, exist_ok=True)
    members = {name: by_seed(name, system) for name, system in systems.items()}
    flat = {name: system for member in members.values() for name, system in member.items()}
    # PyTerrier advises its plan "tree", which cannot save runs.
    warnings.filterwarnings("ignore", message="There are shared pipeline components")
    result = pt.Experiment(
        list(flat.values()),
        split.topics,
        split.qrels,
        measures,
        names=list(flat),
        perquery=True,
        save_dir=str(runs),
        save_mode="overwrite",
    )
    table = pd.DataFrame({"system": list(systems)})
    for measure in map(str, measures):
        values = result[result["measure"] == measure].pivot_table("value", "qid", "name").fillna(0.0)
        means = pd.DataFrame({name: values[list(member)].mean(axis=1) for name, member in members.items()})
        marks = dict.fromkeys(systems, "")
        for baseline, mark in baselines.items():
            for name in different(means, baseline):
                marks[name] += mark
        table[measure] = [mean_over_seeds(values[list(members[name])].mean()) + marks[name] for name in systems]
    return table


def by_seed(name: str, system: System) -> dict[str, pt.Transformer]:
    """The transformers of one system, by the names of their runs."""
    if isinstance(system, pt.Transformer):
        return {name: system}
    if len(system) == 1:
        return {name: next(iter(system.values()))}
    return {f"{name}, seed {seed}": transformer for seed, transformer in system.items()}


def different(values: pd.DataFrame, baseline: str, level: float = 0.05) -> list[str]:
    """The systems that differ from a baseline by a paired t-test over queries, with Holm's correction over systems.

    Args:
        values: One row a query, one column a system.
        baseline: One of the columns.
        level: The largest p-value that counts.
    """
    others = [name for name in values if name != baseline]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of systems whose values are all alike
        p_values = np.array([ttest_rel(values[name], values[baseline]).pvalue for name in others])
    p_values = np.nan_to_num(p_values, nan=1.0)
    order = np.argsort(p_values, kind="stable")
    # By hand, because statsmodels' multipletests collects garbage in each call, which takes a third of a second.
    corrected = np.maximum.accumulate(p_values[order] * np.arange(len(others), 0, -1))
    rejected = {others[place] for place in order[corrected < level]}
    return [name for name in others if name in rejected]


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
