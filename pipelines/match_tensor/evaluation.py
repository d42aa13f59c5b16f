"""The measures of the Match-Tensor paper: nDCG and ERR by query, and the area under the ROC curve over all pairs."""

import shutil
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from ir_measures import nDCG

from pipelines.common.collection import Split
from pipelines.common.comparison import Comparison, System, mean_with_deviation
from pipelines.common.runs import SavedRuns
from pt_neural.experiment import auc, auc_per_query, expected_reciprocal_rank, precision_recall

ERR = [expected_reciprocal_rank(10)] if shutil.which("perl") else []
BY_QUERY = [nDCG @ 1, nDCG @ 3, nDCG @ 10, *ERR]
RECALLS = np.arange(1, 101) / 100
AUC, AUC_BY_QUERY = "AUC", "AUC by query"
MEASURES = [AUC, AUC_BY_QUERY, *map(str, BY_QUERY)]


class Evaluation:
    """Systems on the same queries, each run once; runs and per-query values are saved.

    Args:
        split: The queries.
        runs: Where runs are saved.
    """

    def __init__(self, split: Split, runs: SavedRuns):
        self.split = split
        self.comparison = Comparison(split, BY_QUERY, runs)

    def add(self, name: str, system: System) -> None:
        """Run and measure a system if its name is new."""
        self.comparison.add({name: system})

    def runs(self, name: str) -> list[pd.DataFrame]:
        """The result frames of a system, one per seed."""
        return list(self.comparison.frames[name].values())

    def by_seed(self, name: str) -> pd.DataFrame:
        """One row per seed and one column per measure."""
        runs, qrels = self.runs(name), self.split.qrels
        values = {str(measure): self.comparison.seed_means(measure, name).to_numpy() for measure in BY_QUERY}
        values[AUC] = [auc(run, qrels) for run in runs]
        values[AUC_BY_QUERY] = [auc_per_query(run, qrels).mean() for run in runs]
        return pd.DataFrame(values, index=list(self.comparison.frames[name]))[MEASURES]

    def precisions(self, names: Sequence[str]) -> pd.DataFrame:
        """The precision of each system at each recall level, averaged over seeds: ``recall``, one column per system."""
        columns = {}
        for name in names:
            curves = [precision_recall(run, self.split.qrels) for run in self.runs(name)]
            columns[name] = np.mean([precision_at(RECALLS, curve) for curve in curves], axis=0)
        return pd.DataFrame({"recall": RECALLS, **columns})

    def table(self, names: Sequence[str]) -> pd.DataFrame:
        """One row per system and one text column per measure: the mean, with the deviation over several seeds."""
        rows = [{"system": name, **self.by_seed(name).apply(mean_with_deviation)} for name in names]
        return pd.DataFrame(rows)

    def gains(self, baselines: Mapping[str, str]) -> pd.DataFrame:
        """The gain of each system over its baseline, in percent: one row per system and one column per measure.

        Args:
            baselines: The baseline of each system.
        """
        means = {name: self.by_seed(name).mean() for name in {*baselines, *baselines.values()}}
        rows = [{"system": name, **100 * (means[name] / means[other] - 1)} for name, other in baselines.items()]
        return pd.DataFrame(rows).round(2)


def precision_at(recalls: np.ndarray, curve: pd.DataFrame) -> np.ndarray:
    """The precision at the highest cutoff of the score that reaches each recall level."""
    return curve["precision"].to_numpy()[np.searchsorted(curve["recall"].to_numpy(), recalls - 1e-12)]  # for rounding
