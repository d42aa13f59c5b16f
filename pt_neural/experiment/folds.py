"""Queries in folds: which query is in which fold, and runs in which each fold was ranked by itself."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._arguments import checked_number
from pt_neural._frames import validated

Folds = int | pd.DataFrame | Mapping[str, object]


class RunOfFolds(pt.Transformer):
    """A system for ``pt.Experiment``: the results of all queries, each ranked by what was not fitted on it.

    Attributes:
        run: The result frame.
        folds: Frame with the ``fold`` of each ``qid``.
    """

    def __init__(self, run: pd.DataFrame, folds: pd.DataFrame):
        self.run = run
        self.folds = folds

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """The results of those incoming queries that were in a fold."""
        with validated(inp, self) as v:
            v.columns(includes=["qid"])
        if len(inp) and not inp["qid"].isin(self.folds["qid"]).any():
            raise ValueError(f"{self!r} ranks only the queries that it was made with")
        return inp[["qid"]].drop_duplicates().merge(self.run, on="qid")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.folds['fold'].nunique()} folds, {len(self.folds):,} queries)"


def assign_folds(folds: Folds, qids: list[str], seed: int) -> np.ndarray:
    """The fold of each query.

    Args:
        folds: A number of random folds, a frame with ``qid`` and ``fold``, or a mapping from qid to fold.
        qids: The queries.
        seed: Seed of random folds.

    Raises:
        ValueError: If a query has no fold, or if there are fewer than two folds, or more folds than queries.
        TypeError: If a number of folds is no integer.
    """
    if isinstance(folds, pd.DataFrame | Mapping):
        assignment = np.array(named_folds(folds, qids))
    else:
        count = checked_number("folds", folds, int, least=2)
        if count > len(qids):
            raise ValueError(f"folds={count}, but there are only {len(qids)} queries")
        assignment = np.random.default_rng(seed).permutation(len(qids)) % count
    if len(set(assignment.tolist())) < 2:
        raise ValueError("there must be at least two folds")
    return assignment


def named_folds(folds: pd.DataFrame | Mapping[str, object], qids: list[str]) -> list[object]:
    """The folds that a frame or a mapping names for these queries."""
    if isinstance(folds, Mapping):
        folds = pd.DataFrame({"qid": list(folds), "fold": list(folds.values())})
    if not {"qid", "fold"} <= set(folds):
        raise ValueError(f"folds must have the columns qid and fold; it has {', '.join(map(str, folds))}")
    folds = folds[folds["fold"].notna()]  # as after a left merge
    known = dict(zip(folds["qid"].astype(str), folds["fold"], strict=True))
    missing = [qid for qid in qids if qid not in known]
    if missing:
        raise ValueError(f"folds names no fold for query {missing[0]!r} ({len(missing)} queries lack one)")
    return [known[qid] for qid in qids]
