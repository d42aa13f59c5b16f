"""What the SSI paper measures: rank loss, MAP and P@10, over linked and random documents and over all documents."""

from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
import pyterrier as pt
from ir_measures import AP, P

from pipelines.common import Split
from pipelines.comparison import run_name
from pipelines.kept import KeptRuns
from pipelines.ssi_task import LinkTask
from pt_neural._evaluation import RunEvaluator
from pt_neural._frames import with_scores
from pt_neural.experiment import RankLoss, per_query, with_standard_errors

Setting = Literal["candidates", "collection"]
SETTINGS: tuple[Setting, ...] = ("candidates", "collection")
MEASURES = {"Rank loss, %": RankLoss, "MAP": AP, "P@10": P @ 10}
DIGITS = {"Rank loss, %": 2, "MAP": 3, "P@10": 3}
DEPTH = 100  # documents a query in the run files
QUERIES_PER_BLOCK = 50  # whose candidates are in memory at a time


class Ranker(NamedTuple):
    """One ranker, as a re-ranker, and as what retrieves a number of documents from the whole collection."""

    reranker: pt.Transformer
    retriever: Callable[[int], pt.Transformer]


class Evaluation:
    """Systems on the test queries of a task, each run once.

    Args:
        task: The queries and links.
        setting: ``"candidates"`` re-ranks the linked documents and random ones; ``"collection"`` retrieves from all
            documents, of which the query's page and its links in other splits are dropped; those that a ranker does not
            retrieve tie below the others, as they do when they are re-ranked.
        random_documents: How many random ones.
        runs: Where the values of queries are kept, and read from if they are there, beside runs of the best documents.
    """

    def __init__(self, task: LinkTask, setting: Setting, random_documents: int, runs: KeptRuns):
        self.task, self.setting, self.random_documents, self.runs = task, setting, random_documents, runs
        self._values: dict[str, pd.DataFrame] = {}

    @property
    def values(self) -> pd.DataFrame:
        """One row a system, query and measure: ``name, qid, measure, value``, the mean over seeds."""
        return pd.concat(self._values.values(), ignore_index=True)

    def add(self, name: str, rankers: Mapping[int, Ranker]) -> None:
        """Run and measure a system that is not there yet."""
        if name in self._values:
            return
        frames = [self._of_seed(run_name(name, seed), ranker) for seed, ranker in rankers.items()]
        values = pd.concat(frames).groupby(["qid", "measure"], sort=False)["value"].mean().reset_index()
        self._values[name] = values.assign(name=name)[["name", "qid", "measure", "value"]]

    def _of_seed(self, name: str, ranker: Ranker) -> pd.DataFrame:
        kept = self.runs.values()
        kept = kept[kept["name"] == name]
        if len(kept):
            return kept
        blocks = list(self._measured(name, ranker))
        values = pd.concat([values for values, _ in blocks], ignore_index=True)
        self.runs.save_run(name, pd.concat([best for _, best in blocks], ignore_index=True))
        self.runs.save_values(values.assign(name=name)[["name", "qid", "measure", "value"]])
        return values

    def _measured(self, name: str, ranker: Ranker) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
        """The values of blocks of queries, and their best documents."""
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
            systems: The name of each system that was added, by the name that the table has for it.

        Returns:
            Frame with the names of the table as index and one column a measure.
        """
        parts = {}
        for label, digits in DIGITS.items():
            part = with_standard_errors(self.values[self.values["measure"] == label], digits=digits)
            parts[label] = part.loc[list(systems.values()), label].to_numpy()
        return pd.DataFrame(parts, index=pd.Index(systems, name="system"))

    def by_query(self, label: str, systems: Mapping[str, str]) -> pd.DataFrame:
        """One row a query, one column a system.

        Args:
            label: Of the measure.
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
    """A run of all documents: without those excluded, and with those that were not retrieved, below all others.

    Args:
        run: What was retrieved: ``qid, docno, score``.
        topics: The queries.
        docnos: All documents.
        excluded: What is not to be ranked: ``qid, docno``.
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
