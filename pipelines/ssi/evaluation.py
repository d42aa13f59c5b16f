"""The measures of the SSI paper: rank loss, MAP and P@10, over linked and random documents or over all documents."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
import pyterrier as pt

from pipelines.common.collection import Split
from pipelines.common.comparison import run_name
from pipelines.common.runs import SavedRuns
from pipelines.ssi.task import LinkTask
from pt_neural._frames import with_scores
from pt_neural.experiment import per_query, with_standard_errors

Setting = Literal["candidates", "collection"]
SETTINGS: tuple[Setting, ...] = ("candidates", "collection")
DIGITS = {"Rank loss, %": 2, "MAP": 3, "P@10": 3}  # decimals shown, by measure
DEPTH = 100  # documents per query in the run files
QUERIES_PER_BLOCK = 50  # whose candidates are in memory at once


class Ranker(NamedTuple):
    """A ranker as a re-ranker, and as a retriever of a number of documents from the whole collection."""

    reranker: pt.Transformer
    retriever: Callable[[int], pt.Transformer]


class Evaluation:
    """Systems on the test queries of a task, each run once.

    Args:
        task: The queries and links.
        setting: ``"candidates"`` re-ranks the linked documents and random ones. ``"collection"`` retrieves from all
            documents except the page of the query and its links in other splits; documents that are not retrieved tie
            below all others, as in re-ranking.
        random_documents: The number of random documents.
        runs: Where per-query values are saved with runs of the top documents, or read from if they are there.
        name: What the files of tables end with; None for the setting.
    """

    def __init__(
        self, task: LinkTask, setting: Setting, random_documents: int, runs: SavedRuns, name: str | None = None
    ):
        self.task, self.setting, self.random_documents, self.runs = task, setting, random_documents, runs
        self.name = name or setting
        self._values: dict[str, pd.DataFrame] = {}

    @property
    def values(self) -> pd.DataFrame:
        """One row per system, query and measure: ``name, qid, measure, value``, the mean over seeds."""
        return pd.concat(self._values.values(), ignore_index=True)

    def add(self, name: str, rankers: Mapping[int, Ranker]) -> None:
        """Run and measure a system if its name is new."""
        if name in self._values:
            return
        frames = [self._values_of_run(run_name(name, seed), ranker) for seed, ranker in rankers.items()]
        values = pd.concat(frames).groupby(["qid", "measure"], sort=False)["value"].mean().reset_index()
        self._values[name] = values.assign(name=name)[["name", "qid", "measure", "value"]]

    def _values_of_run(self, name: str, ranker: Ranker) -> pd.DataFrame:
        saved = self.runs.values()
        saved = saved[saved["name"] == name]
        if len(saved):
            return saved
        blocks = list(self._measured(name, ranker))
        values = pd.concat([values for values, _ in blocks], ignore_index=True)
        self.runs.save_run(name, pd.concat([best for _, best in blocks], ignore_index=True))
        self.runs.save_values(values.assign(name=name)[["name", "qid", "measure", "value"]])
        return values

    def _measured(self, name: str, ranker: Ranker) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
        """The values of each block of queries, and their top documents."""
        test = self.task.collection.test
        starts = range(0, len(test.topics), QUERIES_PER_BLOCK)
        for start in pt.tqdm(starts, desc=f"{name}, {self.setting}", unit="block"):
            topics = test.topics.iloc[start : start + QUERIES_PER_BLOCK].reset_index(drop=True)
            split = Split(topics, test.qrels[test.qrels["qid"].isin(topics["qid"])])
            run = self._run(ranker, split, start)
            yield values_of(run, split), best_of(run)

    def _run(self, ranker: Ranker, split: Split, start: int) -> pd.DataFrame:
        if self.setting == "candidates":
            return ranker.reranker.transform(self.task.candidates(split, self.random_documents, shift=start))
        run = ranker.retriever(len(self.task.docnos)).transform(split.topics)
        return completed(run, split.topics, self.task.docnos, self.task.excluded(split))

    def table(self, systems: Mapping[str, str]) -> pd.DataFrame:
        """Means with standard errors as text.

        Args:
            systems: The name of each system, by its name in the table.

        Returns:
            Frame indexed by the names in the table, with one column per measure.
        """
        parts = {}
        for label, digits in DIGITS.items():
            part = with_standard_errors(self.values[self.values["measure"] == label], digits=digits)
            parts[label] = part.loc[list(systems.values()), label].to_numpy()
        return pd.DataFrame(parts, index=pd.Index(systems, name="system"))

    def by_query(self, label: str, systems: Mapping[str, str]) -> pd.DataFrame:
        """One row per query and one column per system.

        Args:
            label: The measure.
            systems: As in :meth:`table`.
        """
        values = per_query(self.values, label)
        return pd.DataFrame({name: values[system] for name, system in systems.items()})

    def describe(self) -> str:
        """What was ranked, for a caption."""
        queries = f"{len(self.task.collection.test.topics):,} test queries"
        if self.setting == "collection":
            return f"{queries}, all {len(self.task.docnos):,} documents retrieved"
        if self.random_documents >= len(self.task.docnos):
            return f"{queries}, all {len(self.task.docnos):,} documents re-ranked"
        return f"{queries}, their links and {self.random_documents:,} random documents re-ranked"


def values_of(run: pd.DataFrame, split: Split) -> pd.DataFrame:
    """The measures of each judged query: ``qid, measure, value``, from the ranks of its relevant documents alone.

    They are those of ir_measures, whose evaluators sort all documents of a run.

    Args:
        run: All candidates: ``qid, docno, score``.
        split: The queries and links.
    """
    blocks, frames = run.groupby("qid", sort=False).indices, []
    docnos, scores = run["docno"].to_numpy(dtype=object), run["score"].to_numpy()
    links = split.qrels[split.qrels["label"] > 0].groupby("qid")["docno"].agg(set)
    for qid in split.topics["qid"][split.topics["qid"].isin(split.qrels["qid"])]:
        rows, relevant = blocks.get(qid, np.empty(0, dtype=np.int64)), links.get(qid, set())
        found = measures_of(docnos[rows], scores[rows], relevant)
        frames.append(pd.DataFrame({"qid": qid, "measure": list(DIGITS), "value": found}))
    return pd.concat(frames, ignore_index=True)


def measures_of(docnos: np.ndarray, scores: np.ndarray, relevant: Collection[str]) -> tuple[float, float, float]:
    """Rank loss in percent, average precision and precision at 10 of the candidates of a query.

    As in trec_eval, the order is by scores in single precision, and ties by descending docno. In the rank loss, which
    compares scores in their own precision, a tie counts as half a wrong pair.
    """
    if not relevant:
        return 0.0, 0.0, 0.0
    is_relevant = np.isin(docnos, list(relevant))
    single, others = scores.astype(np.float32), np.sort(scores[~is_relevant])
    wrong = float(len(others) * (len(relevant) - is_relevant.sum()))  # pairs whose relevant document is no candidate
    ranks = []
    for place in np.flatnonzero(is_relevant):
        tied = np.flatnonzero(single == single[place])
        ranks.append((single > single[place]).sum() + (docnos[tied] > docnos[place]).sum())
        below, up_to = (np.searchsorted(others, scores[place], side) for side in ("left", "right"))
        wrong += len(others) - (below + up_to) / 2
    ranks = np.sort(ranks)
    loss = wrong / max(len(others) * len(relevant), 1)
    if not len(others):
        loss = 1 - len(ranks) / len(relevant)
    precision = (np.arange(1, len(ranks) + 1) / (ranks + 1)).sum() / len(relevant)
    return 100 * loss, float(precision), float((ranks < 10).sum() / 10)


def best_of(run: pd.DataFrame) -> pd.DataFrame:
    """The best ``DEPTH`` documents of each query, with their ranks."""
    scores, blocks = run["score"].to_numpy(), run.groupby("qid", sort=False).indices.values()
    least = [np.partition(scores[rows], -min(DEPTH, len(rows)))[-min(DEPTH, len(rows))] for rows in blocks]
    kept = [rows[scores[rows] >= value] for rows, value in zip(blocks, least, strict=True)]
    best = run.iloc[np.sort(np.concatenate([np.empty(0, dtype=np.int64), *kept]))]
    return with_scores(best, best["score"].to_numpy()).query(f"rank < {DEPTH}")


def completed(run: pd.DataFrame, topics: pd.DataFrame, docnos: pd.Index, excluded: pd.DataFrame) -> pd.DataFrame:
    """A run of all documents but the excluded ones; those that were not retrieved are below all others.

    Args:
        run: The retrieved documents: ``qid, docno, score``.
        topics: The queries.
        docnos: All documents.
        excluded: Documents to leave out: ``qid, docno``.
    """
    rows, unwanted = run.groupby("qid", sort=False).indices, excluded.groupby("qid")["docno"].agg(list)
    numbers, scores, parts = docnos.get_indexer(run["docno"]), run["score"].to_numpy(), []
    for qid in topics["qid"]:
        found = rows.get(qid, np.empty(0, dtype=np.int64))
        values = np.full(len(docnos), scores[found].min(initial=0) - 1)
        values[numbers[found]] = scores[found]
        kept = np.ones(len(docnos), dtype=bool)
        kept[docnos.get_indexer(unwanted.get(qid, []))] = False
        parts.append((np.full(kept.sum(), qid, dtype=object), docnos.to_numpy()[kept], values[kept]))
    qids, names, values = map(np.concatenate, zip(*parts, strict=True))
    objects = {
        "qid": pd.Series(qids, dtype=object),
        "docno": pd.Series(names, dtype=object),
    }  # fast to group and look up
    return pd.DataFrame({**objects, "score": values})
