"""The weight of a linear mixture, chosen on held-out queries."""

from typing import TYPE_CHECKING

import ir_measures
import numpy as np
import pandas as pd
import pyterrier as pt
from ir_measures import nDCG

from pt_neural._evaluation import RunEvaluator, direction, parse_measure
from pt_neural._frames import with_scores
from pt_neural._pictures import COLOURS, LINES, fit_labels, legend_above, new_axes
from pt_neural.experiment.folds import Folds, assign_folds
from pt_neural.rankers import Mixture
from pt_neural.rankers.mixture import Sides
from pt_neural.rankers.retriever import Retriever

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class AlphaCurve:
    """A measure as a function of a mixture's alpha.

    Attributes:
        alpha: The best alpha; the smallest if several are equally good.
        measure: Name of the measure.
        ranker: Name of the ranker that alpha is the weight of; empty if it has none.
        per_query: Frame of values, with one row per alpha (the index) and one column per query.
        fold_alphas: With folds, the alpha of each fold, chosen on the queries of the other folds; otherwise empty.
        run: With folds, the result frame with each query ranked by the alpha of its fold; otherwise None.
    """

    def __init__(
        self,
        per_query: pd.DataFrame,
        measure: ir_measures.Measure | str,
        fold_alphas: dict[object, float] | None = None,
        run: pd.DataFrame | None = None,
        ranker: str = "",
    ):
        self.per_query = per_query
        self.measure = str(measure)
        self.alpha = best_alpha(per_query, parse_measure(measure))
        self.fold_alphas = fold_alphas or {}
        self.run = run
        self.ranker = ranker

    def to_frame(self) -> pd.DataFrame:
        """Frame with ``alpha``, the mean of the measure and ``ci``, half the width of its 95% interval."""
        values = self.per_query.to_numpy()
        spread = values.std(axis=1, ddof=1) if values.shape[1] > 1 else np.zeros(len(values))
        return pd.DataFrame(
            {
                "alpha": self.per_query.index.to_numpy(),
                self.measure: values.mean(axis=1),
                "ci": 1.96 * spread / np.sqrt(values.shape[1]),
            }
        )

    def plot(self, ax: "Axes | None" = None, *, label: str | None = None, interval: bool = True) -> "Axes":
        """Draw the curve and mark the best alpha.

        Args:
            ax: Axes to draw on; a new figure by default.
            label: Name of the curve, for a legend above the axes that also gives the best alpha.
            interval: Whether to shade the 95% interval of the mean; leave it out if several curves share the axes.
        """
        if ax is None:
            ax = new_axes(6, 3.6)
        frame = self.to_frame()
        mean, best = frame[self.measure], self.per_query.loc[self.alpha].mean()
        number = len(ax.lines) // 2  # each curve is a line and a mark
        colour, line, mark = (kind[number % len(kind)] for kind in (COLOURS, LINES, "osD^v"))
        name = label and f"{label} (best alpha {self.alpha:.2f})"
        ax.plot(frame["alpha"], mean, color=colour, linestyle=line, label=name)
        ax.plot(self.alpha, best, mark, color=colour)
        if interval:
            low, high = mean - frame["ci"], mean + frame["ci"]
            ax.fill_between(frame["alpha"], low, high, color=colour, alpha=0.15, linewidth=0)
        if label is None:
            ax.annotate(f"{self.alpha:.2f}", (self.alpha, best), xytext=(0, 7), textcoords="offset points", ha="center")
        else:
            legend_above(ax, columns=2)
        ax.margins(y=0.12)
        mixed = self.ranker or "the mixture's first ranker"
        if number and mixed not in ax.get_xlabel():
            mixed = "each mixture's first ranker"
        ax.set(xlabel=f"alpha (weight of {mixed})", ylabel=f"{self.measure}, {self.per_query.shape[1]} queries")
        ax.set_xlim(-0.02, 1.02)
        fit_labels(ax)
        return ax

    def __repr__(self) -> str:
        best = self.per_query.loc[self.alpha].mean()
        return f"AlphaCurve(alpha={self.alpha:g}, {self.measure}={best:.4f}, {self.per_query.shape[1]} queries)"


def tune_alpha(
    pipeline: pt.Transformer,
    topics: pd.DataFrame,
    qrels: pd.DataFrame,
    measure: ir_measures.Measure | str = nDCG @ 10,
    *,
    points: int = 101,
    folds: Folds | None = None,
    seed: int = 13,
    verbose: bool = False,
) -> AlphaCurve:
    """Choose a mixture's alpha on held-out queries, and set it.

    The DESM paper sweeps alpha from 0 to 1 in steps of 0.01 on a training set (section 2.3). Each side of the mixture
    runs once; only the sum is computed for each alpha.

    Args:
        pipeline: A :class:`~pt_neural.Mixture`, or a pipeline that ends with one. Its ``alpha`` is set to the best one.
        topics: Queries to tune on (``qid, query``), or a result frame if the pipeline begins with a re-ranker. Do not
            evaluate the mixture on these queries afterwards.
        qrels: Judgements of these queries (``qid, docno, label``).
        measure: A measure of ir_measures, or its name, such as ``"nDCG@10"`` or ``"ndcg_cut_10"``. The largest mean is
            best, or the smallest if the measure is :data:`~pt_neural.experiment.RankLoss`.
        points: Number of evenly spaced alphas from 0 to 1 to try.
        folds: For collections without a dev set: a number of random folds, a frame with ``qid`` and ``fold``, or a
            mapping from qid to fold. In ``curve.run``, the queries of each fold are ranked with the alpha that is best
            on the others. Report that run: the alpha that is set on the mixture has seen all these queries.
        seed: Seed of the random folds.
        verbose: Show a progress bar over the alphas.

    Returns:
        The curve. If several alphas are equally good, the smallest is chosen.

    Raises:
        ValueError: If the pipeline does not end with a mixture, if a query occurs twice, if no query has a judgement,
            or if there are fewer than two folds or points.

    Example::

        mixed = candidates >> pn.Mixture(desm)
        curve = pn.tune_alpha(mixed, dev, docs.get_qrels("dev"), measure=nDCG @ 10)
        curve.plot()
    """
    if points < 2:
        raise ValueError(f"points must be at least 2, for alpha 0 and 1, not {points}")
    if "docno" not in topics and topics["qid"].duplicated().any():
        raise ValueError(f"query {topics['qid'][topics['qid'].duplicated()].iloc[0]!r} occurs twice in topics")
    measure = parse_measure(measure)
    before, mixture = _split(pipeline)
    sides = mixture.sides(topics if before is None else before.transform(topics))
    evaluate = RunEvaluator(sides.rows, qrels, topics["qid"], measure)
    alphas = np.linspace(0, 1, points).round(10)
    progress = pt.tqdm(alphas, desc="alpha", disable=not verbose)
    per_query = pd.DataFrame([evaluate(sides.scores(alpha)) for alpha in progress], index=alphas, columns=evaluate.qids)
    if folds is None:
        curve = AlphaCurve(per_query, measure, ranker=_name(mixture.a))
    else:
        assignment = assign_folds(folds, evaluate.qids, seed)
        fold_alphas = {
            fold: best_alpha(per_query.loc[:, assignment != fold], measure) for fold in sorted(set(assignment.tolist()))
        }
        run = _fold_run(sides, dict(zip(evaluate.qids, assignment.tolist(), strict=True)), fold_alphas)
        curve = AlphaCurve(per_query, measure, fold_alphas, run, _name(mixture.a))
    mixture.alpha = curve.alpha
    return curve


def best_alpha(per_query: pd.DataFrame, measure: ir_measures.Measure) -> float:
    """The alpha with the best mean over queries; the smallest if several are equally good."""
    means = direction(measure) * per_query.to_numpy().mean(axis=1)
    return float(per_query.index[np.flatnonzero(means >= means.max() - 1e-12)[0]])


def _split(pipeline: pt.Transformer) -> tuple[pt.Transformer | None, Mixture]:
    """The stages before the mixture, and the mixture."""
    stages = list(pipeline) if isinstance(pipeline, pt.Compose) else [pipeline]
    if not isinstance(stages[-1], Mixture):
        raise ValueError(f"tune_alpha needs a Mixture, or a pipeline that ends with one, not {pipeline!r}")
    before = stages[:-1]
    return (pt.Compose(*before) if before else None), stages[-1]


def _name(side: pt.Transformer) -> str:
    """The name of the ranker that scores a side, such as ``"DSSM"``."""
    last = list(side)[-1] if isinstance(side, pt.Compose) else side
    return type(last.model if isinstance(last, Retriever) else last).__name__


def _fold_run(sides: Sides, fold_of: dict[str, object], fold_alphas: dict[object, float]) -> pd.DataFrame:
    """The judged queries, each ranked with the alpha that was chosen without it."""
    judged = sides.rows["qid"].isin(fold_of)
    alphas = sides.rows["qid"][judged].map(lambda qid: fold_alphas[fold_of[qid]]).to_numpy(dtype=np.float64)
    scores = alphas * sides.a[judged] + (1 - alphas) * sides.b[judged]
    return with_scores(sides.rows[judged], scores)
