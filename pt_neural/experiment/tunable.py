"""Rankers whose settings a grid search may change, because a copy is fitted for each."""

import copy
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural.experiment._copies import all_arguments
from pt_neural.experiment.folds import Folds, named_folds
from pt_neural.rankers import Ranker

COPIES = 16  # fitted copies in memory


class Tunable(pt.Estimator):
    """A ranker in a pipeline whose settings ``pt.GridScan``, ``GridSearch`` and ``KFoldGridSearch`` can change.

    ``fit`` only remembers the training data. To score, a copy of the ranker with the settings of the moment is fitted
    on them; the ranker itself stays as it is. Settings are those of the ranker, and of its
    :class:`~pt_neural.Training`.

    It never ranks a query by a copy that was fitted on it. Without folds, queries to be ranked must not be among those
    to fit on. With folds, ``fit`` takes all queries: those of one fold are ranked by a copy fitted on the other folds;
    queries of several folds, each by a copy fitted on the others of these, as ``KFoldGridSearch`` needs it. The last of
    the folds to fit on then holds the dev queries, if there are two at least.

    :func:`~pt_neural.experiment.cross_fit` fits fewer copies, chooses settings on dev queries, and can be resumed.

    Args:
        ranker: The ranker, fitted or not.
        folds: None, a frame with ``qid`` and ``fold``, or a mapping from qid to fold.

    Raises:
        TypeError: If ``ranker`` is no ranker of this package.

    Example::

        tunable = pn.experiment.Tunable(pn.DSSM(documents=documents))
        pipeline = bm25 % 100 >> tunable
        pipeline.fit(train, train_qrels, dev, dev_qrels)
        pt.GridScan(pipeline, {tunable: {"layers": [(300, 128), (100, 50)]}}, dev, dev_qrels, [nDCG @ 10])
    """

    schematic = {"label": "Tunable", "help_url": None}

    def __init__(self, ranker: Ranker, folds: Folds | None = None):
        if not isinstance(ranker, Ranker):
            raise TypeError(f"Tunable takes a ranker of this package, not {ranker!r:.80}")
        if isinstance(folds, int):
            raise TypeError("folds must name the fold of each query: a frame with qid and fold, or a mapping")
        self.ranker = ranker
        self.folds = folds
        self._changes: dict[str, Any] = {}
        self._data: tuple[pd.DataFrame | None, ...] | None = None
        self._copies: list[tuple[list[Any], Ranker]] = []  # the one used last is at the end

    def get_parameter(self, name: str) -> Any:
        """A setting of the ranker, or of its training."""
        return self._changes[name] if name in self._changes else self.ranker.get_parameter(name)

    def set_parameter(self, name: str, value: Any) -> None:
        """Change a setting; the ranker stays as it is."""
        self.ranker.get_parameter(name)
        self._changes[name] = value

    def fit(
        self,
        topics_or_res_tr: pd.DataFrame,
        qrels_tr: pd.DataFrame,
        topics_or_res_va: pd.DataFrame | None = None,
        qrels_va: pd.DataFrame | None = None,
    ) -> "Tunable":
        """Remember what to fit copies on; the arguments are those of the ranker's own ``fit``."""
        if not hasattr(self.ranker, "fit"):
            raise TypeError(f"{self.ranker!r} does not learn from judgements")
        self._data = topics_or_res_tr, qrels_tr, topics_or_res_va, qrels_va
        self._copies.clear()
        return self

    def fitted(self) -> Ranker:
        """A copy of the ranker with the settings of the moment, fitted on all queries that ``fit`` was given.

        Raises:
            RuntimeError: If there is nothing to fit it on.
        """
        if self.ranker.is_fitted and not any(map(self.ranker.counts_in_fitting, self._changes)):
            changed = copy.copy(self.ranker)
            for name, value in self._changes.items():
                changed.set_parameter(name, value)
            return changed
        return self._fitted(None)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Re-rank a result frame by a fitted copy.

        Raises:
            RuntimeError: If there is nothing to fit it on.
            ValueError: If a query to be ranked was among those to fit on, or if it has no fold.
        """
        if inp.empty or self._data is None:
            return (self.ranker if inp.empty else self.fitted()).transform(inp)
        if self.folds is None:
            if (known := inp["qid"].isin(self._data[0]["qid"])).any():
                raise ValueError(
                    f"query {inp['qid'][known].iloc[0]!r} is one that {self!r} is fitted on: search on other queries, "
                    "or give Tunable folds"
                )
            return self.fitted().transform(inp)
        fold_of = self._folds_of(inp["qid"])
        names = sorted(set(fold_of))
        others = names if len(names) > 1 else sorted(set(self._folds_of(self._data[0]["qid"])))
        parts = []
        for name in names:
            rows = np.flatnonzero(fold_of == name)
            ranker = self._fitted([other for other in others if other != name])
            parts.append(ranker.transform(inp.iloc[rows]).set_axis(rows))
        return pd.concat(parts).sort_index().set_axis(inp.index)

    def _folds_of(self, qids: pd.Series) -> np.ndarray:
        distinct = qids.astype(str).drop_duplicates().tolist()
        return qids.astype(str).map(dict(zip(distinct, named_folds(self.folds, distinct), strict=True))).to_numpy()

    def _fitted(self, folds: list[Any] | None) -> Ranker:
        """A copy fitted on the queries of these folds; None for all of them."""
        if self._data is None:
            raise RuntimeError(f"{self!r} has nothing to fit on: call (candidates >> tunable).fit(topics, qrels)")
        ranker = self.ranker.anew(**self._changes)
        key = [all_arguments(ranker), folds]
        for place, (known, fitted) in enumerate(self._copies):
            if known == key:
                self._copies.append(self._copies.pop(place))
                return fitted
        frame, qrels, dev, dev_qrels = self._data
        if folds is not None:
            fold_of = self._folds_of(frame["qid"])
            last = len(folds) - (len(folds) > 1)
            dev, dev_qrels = (frame[fold_of == folds[-1]], qrels) if len(folds) > 1 else (None, None)
            frame = frame[np.isin(fold_of, folds[:last])]
            qrels = qrels[qrels["qid"].astype(str).isin(frame["qid"].astype(str))]
        ranker.fit(frame, qrels, dev, dev_qrels)
        self._copies = [*self._copies, (key, ranker)][-COPIES:]
        return ranker

    def subtransformers(self) -> dict:
        """None: the ranker is what this transformer copies, not a stage before it."""
        return {}

    def __repr__(self) -> str:
        changes = "".join(f", {name}={value!r}" for name, value in self._changes.items())
        return f"Tunable({self.ranker!r}{changes})"
