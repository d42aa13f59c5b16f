"""Tables 1 and 2 of the SSI paper (Bai et al., 2010), on any dataset whose judgements are links.

Pages are queries, and the pages that they link to are relevant. The paper's figures stand beside ours. Two settings are
measured: the linked documents and random ones, re-ranked, as in the paper; and all documents of the collection,
retrieved, which alone is measured where the collection has no more documents than the random ones. Baselines have
settings of their own, and mixtures an alpha, chosen by their rank loss on dev queries.
"""

import argparse
from collections.abc import Callable, Iterable

import pandas as pd

from pipelines.common import Workspace, load, parser
from pipelines.ssi_evaluation import SETTINGS, Evaluation
from pipelines.ssi_paper import COLUMNS, TABLES
from pipelines.ssi_rankers import Rankers, Row
from pipelines.ssi_task import LinkTask
from pipelines.trained import add_training, parsed

ABOUT = {
    1: "document-document ranking, limited dictionary",
    2: "document-document ranking, unlimited dictionary",
}
TABLE_NUMBERS = tuple(ABOUT)


def main() -> None:
    """Print the tables, and save them with the values of each query, settings and histories."""
    arguments = options()
    collection = load(arguments.dataset)
    if collection.train is None or collection.dev is None:
        raise SystemExit(f"{collection.name} lacks training or dev links, which SSI learns from and stops early by")
    workspace = Workspace(arguments.out, "ssi", collection)
    task = LinkTask.of(collection, [page["docno"] for page in workspace.documents()], arguments.seed)
    if arguments.query == "page":
        task = task.with_pages(workspace.documents())
    results = Results(workspace, arguments, task.sample(arguments.queries))
    for number in arguments.tables:
        getattr(results, f"save_table_{number}")()
    results.save_histories()
    workspace.save_settings(vars(arguments))
    print(f"\nTables are in {workspace.results}.")


def options() -> argparse.Namespace:
    """The pipeline's arguments."""
    arguments = parser(__doc__.split("\n\n")[0], "neural:pydocs/links")
    add_training(arguments)
    arguments.set_defaults(epochs=30, queries=1000, batch_size=None)
    add = arguments.add_argument
    tables = "; ".join(f"{number}: {about}" for number, about in ABOUT.items())
    add("--tables", type=int, nargs="*", choices=TABLE_NUMBERS, default=list(TABLE_NUMBERS), help=tables)
    add("--query", choices=["text", "page"], default="text", help="the query of the dataset, or the whole page")
    add("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS), help="linked and random documents, or all")
    add("--random-documents", type=int, default=10_000, help="random documents beside the linked ones")
    add("--dev-documents", type=int, default=100, help="random documents beside the links of a dev query")
    add("--patience", type=int, default=5, help="epochs without a better dev rank loss that end a training")
    add("--pair-epochs", type=int, default=10, help="epochs where W weighs pairs of words, or their hashes")
    add("--dim", type=int, default=100, help="N, rows of U and V (paper: 200)")
    add("--lsa-dims", type=int, nargs="+", default=[50, 100, 200], help="dimensions of LSA to choose from")
    add("--max-terms", type=int, default=30_000, help="D, words of the limited dictionary")
    add("--full-terms", type=int, default=10_000, help="words where W has a weight for each pair of them (paper: D)")
    add("--nonzeros", type=int, nargs="*", default=[1000, 100, 10], help="weights a row of sparse W")
    add("--frequent-terms", type=int, default=10_000, help="words of LSA and of CFH in Table 2 (paper: 30000)")
    add("--embedded-terms", type=int, nargs="*", default=[30_000, 10_000, 3_000], help="n of (U'V)_n in Table 2")
    add("--hash-sizes", type=int, nargs="*", default=[1_000_000, 3_000_000, 6_000_000], help="hash kernels in Table 2")
    return parsed(arguments)


class Results:
    """The paper's tables.

    Args:
        workspace: Where artifacts and results are.
        arguments: The pipeline's.
        task: The queries and links.
    """

    def __init__(self, workspace: Workspace, arguments: argparse.Namespace, task: LinkTask):
        self.workspace, self.arguments, self.task = workspace, arguments, task
        self.rankers = Rankers(workspace, arguments, task)
        self.evaluations = self._evaluations(task)
        self.histories: list[pd.DataFrame] = []

    def _evaluations(self, task: LinkTask) -> list[Evaluation]:
        """All settings, or one where so many random documents would be the whole collection."""
        settings = list(self.arguments.settings)
        if self.arguments.random_documents >= len(task.docnos) and "collection" in settings:
            settings = ["collection"]
        return [Evaluation(task, setting, self.arguments.random_documents) for setting in settings]

    def save_table_1(self) -> None:
        """All kinds of W over a limited dictionary."""
        words = f"limited dictionary of {self.rankers.words(self.arguments.max_terms):,} words"
        self._save(1, f"document-document ranking, {words}", self.rankers, self.rankers.table_1(), self.evaluations)

    def save_table_2(self) -> None:
        """What works over all words."""
        words = f"unlimited dictionary of {self.rankers.words(None):,} words"
        self._save(2, f"document-document ranking, {words}", self.rankers, self.rankers.table_2(), self.evaluations)

    def _save(
        self,
        number: int | str,
        about: str,
        rankers: Rankers,
        makers: Iterable[Callable[[], Row]],
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
        for evaluation in evaluations:
            name = f"table{str(number).replace(', k = ', '-k')}-{evaluation.setting}"
            caption = f"Table {number}, {about}. {self.workspace.collection.name}, {evaluation.describe()}"
            seeds = f", {len(self.arguments.seeds)} seeds" if len(self.arguments.seeds) > 1 else ""
            table = beside_paper(rows, evaluation, TABLES[str(number)])
            self.workspace.save_table(name, table, f"{caption}{seeds}. The paper's figures are of its Table {number}")
            evaluation.values.to_csv(self.workspace.results / f"values-{name}.csv.gz", index=False)

    def _forget(self, rankers: Rankers) -> None:
        """Keep the histories of what was trained, but not the models, which would add up."""
        if rankers.models:
            self.histories.append(rankers.histories())
            rankers.models.clear()

    def save_histories(self) -> None:
        """What happened in each epoch of each training."""
        if self.histories:
            pd.concat(self.histories).to_csv(self.workspace.results / "histories.csv", index=False)


def beside_paper(rows: Iterable[Row], evaluation: Evaluation, paper: dict[str, tuple[str, str, str, str]]):
    """A table of ours with the paper's figures for the same rows."""
    rows = list(rows)
    table = evaluation.table({row.name: row.system for row in rows}).reset_index()
    table.insert(1, "params", [row.parameters for row in rows])
    figures = [paper.get(row.key, ("",) * len(COLUMNS)) for row in rows]
    return table.join(pd.DataFrame(figures, columns=list(COLUMNS)))


if __name__ == "__main__":
    main()
