"""Tables 1-6, 9 and 10 and figures 1 and 2 of the SSI paper (Bai et al., 2010), on any dataset of links.

Pages are queries, and the pages that they link to are relevant. The paper's figures stand beside ours. Two settings are
measured: the linked documents and random ones, re-ranked, as in the paper; and all documents of the collection,
retrieved, which alone is measured where the collection has no more documents than the random ones. Baselines have
settings of their own, and mixtures an alpha, chosen by their rank loss on dev queries.

Tables 9 and 10 are for queries in another language than the documents; --mates names the dataset whose judgements are
the translations of the queries among the documents.
"""

import argparse
from collections.abc import Iterable
from dataclasses import replace

import pandas as pd

from pipelines import ssi_figures
from pipelines.common import load
from pipelines.ssi_evaluation import Evaluation
from pipelines.ssi_languages import LanguageRankers, Languages
from pipelines.ssi_options import options
from pipelines.ssi_paper import COLUMNS, TABLES
from pipelines.ssi_rankers import Rankers, Row
from pipelines.ssi_tables import ROWS, Makers
from pipelines.ssi_task import LinkTask, page_texts
from pipelines.workspace import Workspace
from pt_neural.experiment import bootstrap


def main() -> None:
    """Print the tables, and save them with the values of each query, figures, settings and histories."""
    arguments = options(__doc__)
    collection = load(arguments.dataset)
    if collection.train is None or collection.dev is None:
        raise SystemExit(f"{collection.name} lacks training or dev links, which SSI learns from and stops early by")
    workspace = Workspace(arguments, "ssi", collection)
    results = Results(workspace, arguments)
    for number in arguments.tables:
        getattr(results, f"save_table_{number}")()
    for number in arguments.figures:
        getattr(results, f"save_figure_{number}")()
    results.save_histories()
    workspace.save_settings()
    print(f"\nTables and figures are in {workspace.results}.")


class Results:
    """The paper's tables.

    Args:
        workspace: Where artifacts and results are.
        arguments: The pipeline's.
    """

    def __init__(self, workspace: Workspace, arguments: argparse.Namespace):
        self.workspace, self.arguments = workspace, arguments
        docnos = [page["docno"] for page in workspace.documents()]
        task = LinkTask.of(workspace.collection, docnos, arguments.seed)
        self.all = task.with_texts(page_texts(workspace.documents())) if arguments.query == "page" else task
        self.task = self.all.sample(arguments.queries)
        self.rankers = Rankers(workspace, arguments, self.task)
        self.evaluations = self._evaluations(self.task)
        self.histories: list[pd.DataFrame] = []

    def _evaluations(self, task: LinkTask, about: str = "") -> list[Evaluation]:
        """All settings, or one where so many random documents would be the whole collection.

        Args:
            task: Its test queries.
            about: Tells them from those of other tables whose systems have the same names.
        """
        settings = list(self.arguments.settings)
        if self.arguments.random_documents >= len(task.docnos) and "collection" in settings:
            settings = ["collection"]
        number, runs = self.arguments.random_documents, self.workspace.runs
        return [Evaluation(task, setting, number, runs(f"runs-{setting}{about}")) for setting in settings]

    def save_table_1(self) -> None:
        """All kinds of W over a limited dictionary."""
        self._save(1, self._limited, self.rankers, ROWS[1](self.rankers), self.evaluations)

    def save_table_2(self) -> None:
        """What works over all words."""
        self._save(2, self._unlimited, self.rankers, ROWS[2](self.rankers), self.evaluations)

    def save_table_3(self) -> None:
        """Training on links of all documents, or of others than the test documents; the test links are the same."""
        apart = self.all.apart_from_test_documents().sample(self.arguments.queries)
        rankers = Rankers(self.workspace, self.arguments, apart, ", documents apart")
        makers = [lambda: self._parted(self.rankers, "links"), lambda: self._parted(rankers, "documents")]
        evaluations = self._evaluations(apart, "-apart")
        self._save(3, f"test links between test documents, {self._limited}", rankers, makers, evaluations)

    def _parted(self, rankers: Rankers, what: str) -> Row:
        number = len(rankers.task.collection.train.qrels)
        row = rankers.low_rank(self.arguments.max_terms)
        return replace(row, key=what, name=f"{row.name}, partitioned {what}, {number:,} training links")

    def save_table_4(self) -> None:
        """The dimensions of U and V."""
        self._save(4, self._limited, self.rankers, ROWS[4](self.rankers), self.evaluations)

    def save_table_5(self) -> None:
        """Queries of k keywords over a limited dictionary."""
        self._save_keywords(5, self._limited)

    def save_table_6(self) -> None:
        """Queries of k keywords over all words."""
        self._save_keywords(6, self._unlimited)

    def _save_keywords(self, number: int, words: str) -> None:
        for k in self.arguments.keywords:
            task = self.task.with_keywords(k)
            rankers = Rankers(self.workspace, self.arguments, task, f", k = {k}")
            self._save(f"{number}, k = {k}", words, rankers, ROWS[number](rankers), self._evaluations(task))

    def save_table_9(self) -> None:
        """Queries in another language over limited dictionaries."""
        self._save_languages(9, self.arguments.max_terms)

    def save_table_10(self) -> None:
        """Queries in another language over all words."""
        self._save_languages(10, None)

    def _save_languages(self, number: int, limit: int | None) -> None:
        languages = Languages.of(self.workspace, self.arguments, self.all)
        rankers = LanguageRankers(self.workspace, self.arguments, languages)
        makers, evaluations = rankers.table(limit, finding=languages.finding), self._evaluations(languages.task)
        self._save(number, self._unlimited if limit is None else self._limited, rankers, makers, evaluations)

    def save_figure_1(self) -> None:
        """Average precision of each query, over all words."""
        rankers, frequent = self.rankers, self.arguments.frequent_terms
        rows = [rankers.embedded("low-rank", frequent), rankers.tfidf(None), rankers.mixture(None, frequent)]
        for evaluation in self.evaluations:
            for row in rows:
                evaluation.add(row.system, row.rankers)
            values = evaluation.by_query("MAP", {row.name: row.system for row in rows})
            self.workspace.save_picture(f"figure1-{evaluation.setting}", ssi_figures.scatter(values))
        self._forget(rankers)

    def save_figure_2(self) -> None:
        """Training loss and dev rank loss by the tuples seen, for N and shares of the training links."""
        frames = []
        for share in self.arguments.shares:
            task, about = self.task.with_share(share), f", {100 * share:g}% of the links"
            rankers = Rankers(self.workspace, self.arguments, task, about)
            curves = {dim: rankers.learning_curve(dim, share) for dim in self.arguments.figure_dims}
            frames += [curve.assign(N=dim, share=share) for dim, curve in curves.items()]
            self._forget(rankers)
        frame = pd.concat(frames, ignore_index=True)
        caption = f"Figure 2, mean training loss and dev rank loss. {self.workspace.collection.label}"
        self.workspace.save_table("figure2", frame.round(5), caption)
        self.workspace.save_picture("figure2", ssi_figures.learning_curves(frame))

    @property
    def _limited(self) -> str:
        return f"limited dictionary of {self.rankers.words(self.arguments.max_terms):,} words"

    @property
    def _unlimited(self) -> str:
        return f"all {self.rankers.words(None):,} words"

    def _save(
        self,
        number: int | str,
        about: str,
        rankers: Rankers,
        makers: Makers,
        evaluations: Iterable[Evaluation],
    ) -> None:
        """Make the rows of a table one after the other, measure them, and save the table in each setting."""
        rows = []
        for make in makers:
            row = make()
            for evaluation in evaluations:
                evaluation.add(row.system, row.rankers)
            rows.append(row)
            self._forget(rankers)
            self._forget(self.rankers)
        for evaluation in evaluations:
            name = f"table{str(number).replace(', k = ', '-k')}-{evaluation.setting}"
            caption = f"Table {number}, {about}. {self.workspace.collection.label}, {evaluation.describe()}"
            seeds = f", {len(self.arguments.seeds)} seeds" if len(self.arguments.seeds) > 1 else ""
            table = beside_paper(rows, evaluation, TABLES.get(str(number), {}))
            frame = table.assign(row=[row.key for row in rows], run=[row.system for row in rows])
            self.workspace.save_table(name, table, f"{caption}{seeds}", frame)
            values = evaluation.by_query("MAP", {row.name: row.system for row in rows})
            self.workspace.save_picture(name, bootstrap(values).plot().figure)

    def _forget(self, rankers: Rankers) -> None:
        """Keep the histories of what was trained, but not the models, which would add up."""
        if rankers.models:
            self.histories.append(rankers.histories())
            rankers.models.clear()

    def save_histories(self) -> None:
        """What happened in each epoch of each training."""
        if self.histories:
            pd.concat(self.histories).drop_duplicates().to_csv(self.workspace.results / "histories.csv", index=False)


def beside_paper(rows: list[Row], evaluation: Evaluation, paper: dict[str, tuple[str, str, str, str]]) -> pd.DataFrame:
    """A table of ours with the paper's figures for the same rows."""
    table = evaluation.table({row.name: row.system for row in rows}).reset_index()
    table.insert(1, "params", [row.parameters for row in rows])
    figures = [paper.get(row.key, ("",) * len(COLUMNS)) for row in rows]
    return table.join(pd.DataFrame(figures, columns=list(COLUMNS)))


if __name__ == "__main__":
    main()
