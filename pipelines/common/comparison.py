"""Systems compared on the same queries, with significance tests; mixtures with tuned weights, and their curves."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
import pyterrier as pt
from ir_measures import Measure, nDCG

import pt_neural as pn
from pipelines.common.collection import Collection, Split
from pipelines.common.runs import SavedRuns
from pipelines.common.workspace import Workspace
from pt_neural._pictures import new_axes
from pt_neural.experiment import AlphaCurve, bootstrap, mean_over_seeds, per_query, significance
from pt_neural.experiment.statistics import Correction

System = pt.Transformer | Mapping[int, pt.Transformer]  # or one transformer per seed
Tuned = tuple[pt.Transformer, AlphaCurve]
LEVEL = 0.05  # of significance
MAIN = nDCG @ 10  # measured by every pipeline


class Comparison:
    """Systems on the same queries, each run once; runs and per-query values are saved.

    Args:
        split: The queries.
        measures: What to measure.
        runs: Where runs are saved, and read from if they are there.
    """

    def __init__(self, split: Split, measures: Sequence[Measure], runs: SavedRuns):
        self.split, self.measures, self.runs = split, measures, runs
        self.frames: dict[str, dict[int | None, pd.DataFrame]] = {}  # the runs of each system, by seed
        self._result = pd.DataFrame()
        self._by_query: dict[str, pd.DataFrame] = {}  # by measure: one row per query and one column per run

    def __contains__(self, name: str) -> bool:
        return name in self.frames

    def add(self, systems: Mapping[str, System]) -> None:
        """Run and measure the systems whose names are new."""
        added = {name: by_seed(system) for name, system in systems.items() if name not in self}
        if not added:
            return
        total = sum(map(len, added.values()))
        with pt.tqdm(total=total, desc="runs", unit="run", disable=total == 1) as progress:
            for name, seeds in added.items():
                self.frames[name] = {}
                for seed, system in seeds.items():
                    progress.set_postfix_str(name)
                    frame = self.runs.run(run_name(name, seed), partial(system.transform, self.split.topics))
                    self.frames[name][seed] = frame.merge(self.split.topics[["qid", "query"]], on="qid")
                    progress.update()
        runs = [(name, seed, frame) for name in added for seed, frame in self.frames[name].items()]
        result = pt.Experiment(
            [frame for _, _, frame in runs],
            self.split.topics,
            self.split.qrels,
            self.measures,
            names=[run_name(name, seed) for name, seed, _ in runs],
            perquery=True,
        )
        self._result = pd.concat([self._result, result], ignore_index=True)
        self._by_query = {str(measure): per_query(self._result, measure) for measure in self.measures}
        self.runs.save_values(self._result)

    def values(self, measure: Measure, names: Iterable[str]) -> pd.DataFrame:
        """One row per query and one column per system: the mean over its seeds."""
        return mean_over_seeds(self._by_query[str(measure)], {name: self._run_names(name) for name in names})

    def seed_means(self, measure: Measure, name: str) -> pd.Series:
        """The mean over queries of each run of a system."""
        return self._by_query[str(measure)][self._run_names(name)].mean()

    def _run_names(self, name: str) -> list[str]:
        return [run_name(name, seed) for seed in self.frames[name]]

    def frame(self, names: Sequence[str], baselines: Iterable[str], correction: Correction = "holm") -> pd.DataFrame:
        """The means as numbers.

        Args:
            names: The systems.
            baselines: The systems to test the others against, by a paired t-test over queries; the value of a query is
                its mean over seeds.
            correction: Correction of the p-values for the number of systems.

        Returns:
            Frame with ``system``; and for each measure its mean under its name, ``deviation`` (over seeds) if there are
            several, and ``p`` against each baseline.
        """
        table = pd.DataFrame({"system": list(names)})
        for measure in self.measures:
            means = [self.seed_means(measure, name) for name in names]
            table[str(measure)] = [seeds.mean() for seeds in means]
            if any(len(seeds) > 1 for seeds in means):
                table[f"{measure}, deviation"] = [seeds.std(ddof=1) for seeds in means]
            for baseline in baselines:
                test = significance(self.values(measure, names), baseline, correction=correction)
                p_values = test.set_index("system")["corrected"]
                table[f"{measure}, p against {baseline}"] = table["system"].map(p_values)
        return table

    def table(
        self, names: Sequence[str], baselines: Mapping[str, str], correction: Correction = "holm"
    ) -> pd.DataFrame:
        """The means as text, with marks for what differs from the baselines.

        Args:
            names: The systems.
            baselines: The mark of each baseline, by its name.
            correction: Correction of the p-values.

        Returns:
            Frame with ``system`` and one text column per measure: the mean, with ± and the standard deviation over
            seeds if there are several, and the mark of each baseline that differs, p < 0.05 as in :meth:`frame`.
        """
        frame = self.frame(names, baselines, correction)
        table = frame[["system"]].copy()
        for measure in map(str, self.measures):
            texts = [mean_with_deviation(self.seed_means(measure, name)) for name in names]
            for baseline, mark in baselines.items():
                differs = frame[f"{measure}, p against {baseline}"] < LEVEL
                texts = [text + mark * bool(marked) for text, marked in zip(texts, differs, strict=True)]
            table[measure] = texts
        return table

    def save(
        self,
        workspace: Workspace,
        name: str,
        names: Sequence[str],
        baselines: Mapping[str, str],
        caption: str,
        correction: Correction = "holm",
    ) -> None:
        """Save the table of some systems as CSV and Markdown, and its main measure with intervals as a picture."""
        table, frame = self.table(names, baselines, correction), self.frame(names, baselines, correction)
        workspace.save_table(name, table, caption, frame)
        workspace.save_picture(name, bootstrap(self.values(MAIN, names)).plot().figure)


def by_seed(system: System) -> dict[int | None, pt.Transformer]:
    """The transformers of a system by seed; the key is None if it has no seeds."""
    return {None: system} if isinstance(system, pt.Transformer) else dict(system)


def run_name(name: str, seed: int | None) -> str:
    """The name of a run of a system."""
    return name if seed is None else f"{name}, seed {seed}"


def mean_with_deviation(means: pd.Series) -> str:
    """A mean as text, with the standard deviation if there are several seeds."""
    deviation = f" ± {means.std(ddof=1):.4f}" if len(means) > 1 else ""
    return f"{means.mean():.4f}{deviation}"


def tuned(
    mixture: pt.Transformer,
    collection: Collection,
    measure: Measure,
    seed: int,
    kept: tuple[SavedRuns, str] | None = None,
) -> Tuned:
    """Choose a mixture's alpha on the dev queries or, if there are none, by five folds of the test queries.

    Args:
        mixture: A pipeline that ends with a mixture.
        collection: The dataset.
        measure: What to choose by.
        seed: Seed of the folds.
        kept: Where a curve over dev queries is kept, and the name of the mixture; None to make it anew.

    Returns:
        The mixture, or the run of its folds, in which each query was ranked with an alpha chosen without it; and the
        curve.
    """
    if collection.dev is not None:
        tune = partial(pn.tune_alpha, mixture, collection.dev.topics, collection.dev.qrels, measure)
        if kept is None:
            return mixture, tune()
        runs, name = kept
        curve = runs.curve(name, tune)
        mixture[-1].alpha = curve.alpha
        return mixture, curve
    curve = pn.tune_alpha(mixture, collection.test.topics, collection.test.qrels, measure, folds=5, seed=seed)
    return pt.Transformer.from_df(curve.run), curve


def tuned_by_seed(
    mixtures: Mapping[int, pt.Transformer],
    collection: Collection,
    measure: Measure,
    seed: int,
    kept: tuple[SavedRuns, str] | None = None,
) -> tuple[dict[int, pt.Transformer], dict[int, AlphaCurve]]:
    """Choose an alpha for the mixture of each seed; see :func:`tuned`."""
    both = {
        key: tuned(mixture, collection, measure, seed, kept and (kept[0], run_name(kept[1], key)))
        for key, mixture in mixtures.items()
    }
    return {key: system for key, (system, _) in both.items()}, {key: curve for key, (_, curve) in both.items()}


def mixed_over_all(
    reranker: pt.Transformer, retriever: pt.Transformer, bm25: pt.Transformer, **options: Any
) -> pt.Transformer:
    """A mixture over all documents: what either side retrieves is scored by both (DESM paper, equation 9).

    Args:
        reranker: Scores documents by docno.
        retriever: The same ranker over all documents.
        bm25: The other side.
        **options: Arguments of the mixture.
    """
    return (bm25 | retriever) >> pn.Mixture(reranker, bm25, **options)


def mean_curve(curves: Mapping[int, AlphaCurve]) -> AlphaCurve:
    """The mean of the curves of all seeds."""
    first = next(iter(curves.values()))
    return AlphaCurve(sum(curve.per_query for curve in curves.values()) / len(curves), first.measure)


def alpha_picture(curves: dict[str, AlphaCurve], title: str) -> plt.Figure:
    """Mixtures as functions of alpha, one curve each."""
    ax = new_axes(7.5, 4.8)
    for name, curve in curves.items():
        curve.plot(ax, label=name, interval=False)
    ax.set_xlabel("alpha (weight of the ranker that is mixed with BM25)")
    ax.figure.suptitle(title)
    return ax.figure
