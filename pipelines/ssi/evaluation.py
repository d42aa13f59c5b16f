"""The measures of the SSI paper: rank loss, MAP and P@10, over linked and random documents or over all documents."""

from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
import pyterrier as pt
from ir_measures import AP, P

from pipelines.common.collection import Split
from pipelines.common.comparison import run_name
from pipelines.common.runs import SavedRuns
from pipelines.ssi.task import LinkTask
from pt_neural._evaluation import RunEvaluator
from pt_neural._frames import with_scores
from pt_neural.experiment import RankLoss, per_query, with_standard_errors

Setting = Literal["candidates", "collection"]
SETTINGS: tuple[Setting, ...] = ("candidates", "collection")
MEASURES = {"Rank loss, %": RankLoss, "MAP": AP, "P@10": P @ 10}
DIGITS = {"Rank loss, %": 2, "MAP": 3, "P@10": 3}
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
            scores, values = run["score"].to_numpy(), []
            for label, measure in MEASURES.items():
                evaluate = RunEvaluator(run, split.qrels, topics["qid"], measure)
                factor = 100 if label.endswith("%") else 1
                values.append(
                    pd.DataFrame({"qid": evaluate.qids, "measure": label, "value": factor * evaluate(scores)})
                )
            yield pd.concat(values, ignore_index=True), with_scores(run, scores).query(f"rank < {DEPTH}")

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


def completed(run: pd.DataFrame, topics: pd.DataFrame, docnos: pd.Index, excluded: pd.DataFrame) -> pd.DataFrame:
    """A run of all documents but the excluded ones; those that were not retrieved are below all others.

    Args:
        run: The retrieved documents: ``qid, docno, score``.
        topics: The queries.
        docnos: All documents.
        excluded: Documents to leave out: ``qid, docno``.
    """
    rows, unwanted = run.groupby("qid", sort=False).indices, excluded.groupby("qid")["docno"].agg(list)
    numbers, scores, frames = docnos.get_indexer(run["docno"]), run["score"].to_numpy(), []
    for qid in topics["qid"]:
        found = rows.get(qid, np.empty(0, dtype=np.int64))
        values = np.full(len(docnos), scores[found].min(initial=0) - 1)
        values[numbers[found]] = scores[found]
        kept = np.ones(len(docnos), dtype=bool)
        kept[docnos.get_indexer(unwanted.get(qid, []))] = False
        names = np.full(kept.sum(), qid, dtype=object)
        frames.append(pd.DataFrame({"qid": names, "docno": docnos[kept], "score": values[kept]}))
    return pd.concat(frames, ignore_index=True)
