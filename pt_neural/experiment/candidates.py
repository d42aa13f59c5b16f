"""Candidates for re-rankers: how good a re-ranker they allow, and the candidates and queries of the SSI paper."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import ir_measures
import numpy as np
import pandas as pd
from ir_measures import R, Success, nDCG

from pt_neural._arguments import checked_integers, checked_number
from pt_neural._evaluation import parse_measure
from pt_neural._frames import with_scores
from pt_neural._pictures import COLOURS, LINES, fit_labels, legend_above, new_axes
from pt_neural.text import tokenise
from pt_neural.training.examples import require_columns, with_numeric_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DEPTHS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
TICK_DISTANCE = 0.07  # between the numbers under an axis, relative to its length
NO_DOCUMENTS = np.empty(0, dtype=np.int64)


class CandidateRecall:
    """What the first candidates of each query contain, by the number of candidates.

    Attributes:
        measure: Name of the measure of the ceiling.
        queries: Number of judged queries.
    """

    def __init__(self, frame: pd.DataFrame, measure: str, queries: int):
        self._frame = frame
        self.measure = measure
        self.queries = queries

    def to_frame(self) -> pd.DataFrame:
        """Frame with ``depth``, ``recall``, ``success`` and ``ceiling``, means over the judged queries.

        Recall is the share of the relevant documents that are among the candidates, success is the share of queries
        with at least one of them, and the ceiling is the measure of a re-ranking of the candidates by their labels.
        """
        return self._frame.copy()

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the three as curves over the depth, on a logarithmic axis.

        Args:
            ax: Axes to draw on; a new figure by default.
        """
        if ax is None:
            ax = new_axes(6.4, 3.8)
        labels = {
            "success": "queries with a relevant candidate",
            "ceiling": f"{self.measure} of the best re-ranking",
            "recall": "recall",
        }
        depths = self._frame["depth"]
        for number, (column, label) in enumerate(labels.items()):
            style = {"color": COLOURS[number], "linestyle": LINES[number], "linewidth": 1.3}
            ax.plot(depths, self._frame[column], label=label, marker="osD"[number], markersize=5, **style)
        ax.set_xscale("log")
        ticks = _ticks(depths.tolist())
        ax.set_xticks(ticks, [f"{depth:,}" for depth in ticks])
        ax.minorticks_off()
        ax.set(xlabel="candidates per query", ylabel=f"mean over {self.queries:,} queries", ylim=(0, 1.02))
        legend_above(ax)
        fit_labels(ax)
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
    """Recall of a first stage's candidates, and the best value that any re-ranking of them can reach.

    Args:
        run: Result frame of the first stage: ``qid, docno`` and ``rank``, or ``score`` if there is no rank.
        qrels: Judgements of the queries: ``qid, docno, label``. Queries without candidates and queries without relevant
            documents count as 0, as in ``pt.Experiment``.
        depths: One or several numbers of candidates; by default 1, 2, 5, 10, 20 and so on, and all candidates.
        measure: The measure whose ceiling to compute: a measure of ir_measures, or its name.
        rel: The smallest label of a relevant document, for recall and success.

    Returns:
        Recall, success and ceiling at each depth, in ascending order.

    Raises:
        TypeError: If an argument is not a frame.
        ValueError: If columns are missing, if a depth is below 1, or if no query of the run is judged.

    Example::

        candidate_recall((bm25 % 1000)(test), docs.get_qrels("test")).plot()
    """
    rel, measure = checked_number("rel", rel, int, least=1), parse_measure(measure)
    qrels = with_numeric_labels(qrels, "qrels").drop_duplicates(["qid", "docno"])
    places = _places_in_run(run)
    if not places["qid"].isin(qrels["qid"]).any():
        raise ValueError("no query of the run has a judgement; are run and qrels of the same split?")
    deepest = int(places["place"].max())
    depths = [*(depth for depth in DEPTHS if depth < 0.7 * deepest), deepest] if depths is None else depths
    depths = sorted(set(checked_integers("depths", [depths] if isinstance(depths, int) else depths, least=1)))
    relevant = places.merge(qrels.loc[qrels["label"] > 0, ["qid", "docno", "label"]], on=["qid", "docno"])
    best = relevant.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "score"})
    judged = qrels.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"})
    # The run is cut to each depth below, so one cut-off serves all depths.
    columns = {"recall": R(rel=rel) @ depths[-1], "success": Success(rel=rel) @ depths[-1], "ceiling": measure}
    evaluator = ir_measures.evaluator(list(columns.values()), judged[["query_id", "doc_id", "relevance"]])
    rows = []
    for depth in depths:
        within = best.loc[best["place"] <= depth, ["query_id", "doc_id", "score"]]
        means = evaluator.calc_aggregate(within)
        rows.append({"depth": depth, **{column: means[each] for column, each in columns.items()}})
    return CandidateRecall(pd.DataFrame(rows), str(measure), judged["query_id"].nunique())


def with_random_documents(
    topics: pd.DataFrame,
    qrels: pd.DataFrame,
    docnos: Iterable[str],
    num_random: int = 10_000,
    *,
    seed: int = 13,
    exclude: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """The relevant documents of each query, and random documents of the collection.

    SSI paper, section 4: MAP and P@10 are measured on "the linked test set documents plus random subsets of 10,000
    documents" for each query. The candidates of a query are in the order of the collection, so that their order does
    not tell which are relevant.

    Args:
        topics: Queries: ``qid, query``, and any other columns.
        qrels: Judgements: ``qid, docno, label``; documents with a label above 0 are relevant.
        docnos: The collection. Relevant documents outside it are left out.
        num_random: Number of random documents per query, all distinct and none of them relevant; a smaller collection
            gives all its documents.
        seed: Seed of the random documents.
        exclude: Frame with ``qid`` and ``docno``: documents that must not be candidates of a query, such as the page
            that the query is made from, and links used in training.

    Returns:
        The columns of the topics and ``docno``, with one row per candidate; queries keep their order.

    Raises:
        TypeError: If an argument is not a frame, or ``docnos`` does not hold docnos.
        ValueError: If columns are missing, if a query occurs twice, or if the collection is empty.

    Example::

        candidates = with_random_documents(test, docs.get_qrels("test"), docnos, 1000)
        pt.Experiment([pt.Transformer.from_df(candidates) >> ssi], test, docs.get_qrels("test"), [RankLoss, AP])
    """
    num_random = checked_number("num_random", num_random, int, least=0)
    seed = checked_number("seed", seed, int, least=0)
    require_columns(topics, ("qid", "query"), "topics")
    require_columns(qrels, ("qid", "docno", "label"), "qrels")
    if topics["qid"].duplicated().any():
        raise ValueError(f"query {topics['qid'][topics['qid'].duplicated()].iloc[0]!r} occurs twice in topics")
    collection = _collection(docnos)
    relevant = _documents_by_query(qrels[qrels["label"] > 0], collection)
    excluded = {}
    if exclude is not None:
        require_columns(exclude, ("qid", "docno"), "exclude")
        excluded = _documents_by_query(exclude, collection)
    rng, marked = np.random.default_rng(seed), np.zeros(len(collection), dtype=bool)
    chosen = [
        _choose(relevant.get(qid, NO_DOCUMENTS), excluded.get(qid, NO_DOCUMENTS), num_random, rng, marked)
        for qid in topics["qid"]
    ]
    rows = np.repeat(np.arange(len(topics)), [len(documents) for documents in chosen])
    frame = topics.drop(columns=["docno", "score", "rank"], errors="ignore").take(rows).reset_index(drop=True)
    return frame.assign(docno=collection.take(np.concatenate([NO_DOCUMENTS, *chosen])))


def keyword_queries(topics: pd.DataFrame, k: int, *, seed: int = 13) -> pd.DataFrame:
    """Queries of k random words from the text of each query, as in keyword search.

    SSI paper, section 4.2: keyword queries are made from documents "by keeping only k random words". The paper does not
    say whether a word that occurs twice may be kept twice. Here the words of a query are distinct, and equally likely
    however often they occur, because keyword queries seldom repeat a word.

    Args:
        topics: Queries: ``qid, query``, and any other columns.
        k: Number of words to keep. A text with fewer distinct words keeps them all.
        seed: Seed of the random words.

    Returns:
        The topics with these words, in lower case and in the order of their first occurrence, as ``query``.

    Raises:
        TypeError: If ``topics`` is not a frame.
        ValueError: If columns are missing, or if ``k`` is below 1.

    Example::

        >>> keyword_queries(pd.DataFrame({"qid": ["q1"], "query": ["A river, a city"]}), 3)["query"].tolist()
        ['a river city']
    """
    k, seed = checked_number("k", k, int, least=1), checked_number("seed", seed, int, least=0)
    require_columns(topics, ("qid", "query"), "topics")
    rng = np.random.default_rng(seed)
    queries = []
    for text in topics["query"]:
        words = list(dict.fromkeys(tokenise(text)))
        kept = sorted(rng.choice(len(words), min(k, len(words)), replace=False)) if words else []
        queries.append(" ".join(words[place] for place in kept))
    return topics.assign(query=queries)


def _ticks(depths: list[int]) -> list[int]:
    """The depths whose numbers fit under a logarithmic axis, including the last depth."""
    distance, kept = TICK_DISTANCE * np.log(depths[-1] / depths[0]), [depths[-1]]
    for depth in reversed(depths):
        if np.log(kept[-1] / depth) > distance:
            kept.append(depth)
    return kept[::-1]


def _places_in_run(run: pd.DataFrame) -> pd.DataFrame:
    """The candidates with their places within their query, from 1; each document once."""
    order = "rank" if isinstance(run, pd.DataFrame) and "rank" in run else "score"
    require_columns(run, ("qid", "docno", order), "run")
    if run.empty:
        raise ValueError("the run is empty: there are no candidates")
    ranked = run if order == "rank" else with_scores(run, run["score"].to_numpy())
    ordered = ranked[["qid", "docno", "rank"]].sort_values("rank", kind="stable").drop_duplicates(["qid", "docno"])
    return ordered.assign(place=ordered.groupby("qid").cumcount().to_numpy() + 1)[["qid", "docno", "place"]]


def _collection(docnos: Iterable[str]) -> pd.Index:
    """The documents of the collection, each once."""
    listed = list(docnos)
    if isinstance(docnos, str) or (listed and isinstance(listed[0], dict)):
        raise TypeError("docnos must be the docnos of the collection, such as documents.docnos of a forward index")
    if not listed:
        raise ValueError("docnos is empty; it must name the documents of the collection")
    return pd.Index(listed).unique()


def _documents_by_query(pairs: pd.DataFrame, collection: pd.Index) -> dict[str, np.ndarray]:
    """The document numbers of each query; documents outside the collection are left out."""
    numbers = pd.Series(collection.get_indexer(pairs["docno"]), index=pairs["qid"].to_numpy())
    return {qid: group.unique() for qid, group in numbers[numbers >= 0].groupby(level=0, sort=False)}


def _choose(
    relevant: np.ndarray, excluded: np.ndarray, num_random: int, rng: np.random.Generator, marked: np.ndarray
) -> np.ndarray:
    """The document numbers of one query's candidates, ascending; ``marked`` is False before and after."""
    marked[relevant] = marked[excluded] = True
    enough = min(len(marked), num_random + len(relevant) + len(excluded))
    drawn = rng.choice(len(marked), enough, replace=False)
    drawn = drawn[~marked[drawn]][:num_random]
    marked[excluded] = False
    linked = relevant[marked[relevant]]
    marked[relevant] = False
    return np.sort(np.concatenate([linked, drawn]))
