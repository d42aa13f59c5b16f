"""How good a re-ranker can be at most: the relevant documents among a first stage's candidates."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import ir_measures
import numpy as np
import pandas as pd
from ir_measures import R, Success, nDCG

from pt_neural._arguments import checked_integers, checked_number
from pt_neural._evaluation import parse_measure
from pt_neural.experiment.labels import legend_above
from pt_neural.experiment.palette import COLOURS
from pt_neural.training.examples import require_columns, with_numeric_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DEPTHS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
APART = 0.07  # of the axis' length, between the numbers under it


class CandidateRecall:
    """What the first candidates of each query hold, by their number.

    Attributes:
        measure: Name of the measure whose ceiling is given.
        queries: Number of judged queries.
    """

    def __init__(self, frame: pd.DataFrame, measure: str, queries: int):
        self._frame = frame
        self.measure = measure
        self.queries = queries

    def to_frame(self) -> pd.DataFrame:
        """Frame with ``depth``, ``recall``, ``success`` and ``ceiling``, means over the judged queries.

        Recall is the share of the relevant documents that are among so many candidates, success the share of queries
        with at least one of them, and the ceiling the measure of a re-ranking of the candidates by their labels.
        """
        return self._frame.copy()

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the three as curves over the depth, on a logarithmic axis.

        Args:
            ax: Axes to draw on; a new figure by default.
        """
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
        labels = {
            "success": "queries with a relevant candidate",
            "ceiling": f"{self.measure} of the best re-ranking",
            "recall": "recall",
        }
        depths = self._frame["depth"]
        for number, (column, label) in enumerate(labels.items()):
            style = {"color": COLOURS[number], "marker": "osD"[number], "markersize": 5, "linewidth": 1.3}
            ax.plot(depths, self._frame[column], label=label, **style)
        ax.set_xscale("log")
        ticks = _apart(depths.tolist())
        ax.set_xticks(ticks, [f"{depth:,}" for depth in ticks])
        ax.minorticks_off()
        ax.set(xlabel="candidates per query", ylabel=f"mean over {self.queries:,} queries", ylim=(0, 1.02))
        legend_above(ax)
        return ax

    def __repr__(self) -> str:
        last = self._frame.iloc[-1]
        return (
            f"CandidateRecall(recall={last['recall']:.3f}, ceiling of {self.measure}={last['ceiling']:.3f} "
            f"at {int(last['depth']):,} candidates, {self.queries:,} queries)"
        )


def candidate_recall(
    run: pd.DataFrame,
    qrels: pd.DataFrame,
    depths: int | Sequence[int] | None = None,
    measure: ir_measures.Measure | str = nDCG @ 10,
    *,
    rel: int = 1,
) -> CandidateRecall:
    """Recall of a first stage's candidates, and the ceiling that it puts on any re-ranker.

    Args:
        run: Result frame of the first stage: ``qid, docno, rank``, or ``score`` where there is no rank.
        qrels: Judgements of these queries: ``qid, docno, label``. A query without candidates has found nothing; one
            without relevant documents counts 0, as in ``pt.Experiment``.
        depths: How many first candidates to look at, one number or several; by default 1, 2, 5, 10, 20 and so on, and
            as many as there are.
        measure: Whose ceiling to find, a measure of ir_measures or its name.
        rel: The least label of a relevant document, of recall and success.

    Returns:
        Recall, success and ceiling at each depth, by depth.

    Raises:
        TypeError: If a frame is none.
        ValueError: If columns are missing, if a depth is below 1, or if no query of the run is judged.

    Example::

        candidate_recall((bm25 % 1000)(test), docs.get_qrels("test")).plot()
    """
    rel, measure = checked_number("rel", rel, int, least=1), parse_measure(measure)
    qrels = with_numeric_labels(qrels, "qrels").drop_duplicates(["qid", "docno"])
    places = _places(run)
    if not places["qid"].isin(qrels["qid"]).any():
        raise ValueError("no query of the run has a judgement; are run and qrels of the same split?")
    deepest = int(places["place"].max())
    depths = [*(depth for depth in DEPTHS if depth < 0.7 * deepest), deepest] if depths is None else depths
    depths = sorted(set(checked_integers("depths", [depths] if isinstance(depths, int) else depths, least=1)))
    relevant = places.merge(qrels.loc[qrels["label"] > 0, ["qid", "docno", "label"]], on=["qid", "docno"])
    best = relevant.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "score"})
    judged = qrels.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"})
    # Of so few candidates all are within the cut-off.
    columns = {"recall": R(rel=rel) @ depths[-1], "success": Success(rel=rel) @ depths[-1], "ceiling": measure}
    evaluator = ir_measures.evaluator(list(columns.values()), judged[["query_id", "doc_id", "relevance"]])
    rows = []
    for depth in depths:
        within = best.loc[best["place"] <= depth, ["query_id", "doc_id", "score"]]
        means = evaluator.calc_aggregate(within)
        rows.append({"depth": depth, **{column: means[each] for column, each in columns.items()}})
    return CandidateRecall(pd.DataFrame(rows), str(measure), judged["query_id"].nunique())


def _apart(depths: list[int]) -> list[int]:
    """The depths whose numbers fit under a logarithmic axis, the last among them."""
    least, kept = APART * np.log(depths[-1] / depths[0]), [depths[-1]]
    for depth in reversed(depths):
        if np.log(kept[-1] / depth) > least:
            kept.append(depth)
    return kept[::-1]


def _places(run: pd.DataFrame) -> pd.DataFrame:
    """The candidates with their places within their queries, from 1; each document once."""
    order = "rank" if isinstance(run, pd.DataFrame) and "rank" in run else "score"
    require_columns(run, ("qid", "docno", order), "run")
    if run.empty:
        raise ValueError("the run is empty, so that there are no candidates")
    ordered = run[["qid", "docno", order]].sort_values(order, ascending=order == "rank", kind="stable")
    ordered = ordered.drop_duplicates(["qid", "docno"])
    return ordered.assign(place=ordered.groupby("qid").cumcount().to_numpy() + 1)[["qid", "docno", "place"]]
