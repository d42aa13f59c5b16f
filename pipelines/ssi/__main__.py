"""Tables 1-11 and Figures 1 and 2 of the SSI paper (Bai et al., 2010), on any dataset of links.

Pages are queries, and the pages that they link to are relevant. The paper's results stand beside ours. There are two
settings: re-ranking the linked documents and random ones, as in the paper; and retrieval from all documents of the
collection. Only the second one is measured if the collection is not larger than the number of random documents. The
settings of baselines and the alpha of mixtures are chosen by their rank loss on dev queries.

Table 11 matches two kinds of text: whole pages against only the titles of the pages that they link to, in place of the
paper's web pages and advertisements.

Tables 9 and 10 are for queries in another language than the documents; --mates names the dataset whose judgements are
the translations of the queries among the documents. These stand for perfect translations; word-by-word translations
come from a dictionary that is learned from the mates of training queries. Without --mates, the task is to find the
mates.

Table 1 also has rows in which a trained full or sparse W is truncated to the nearest U'V + I, to see how many
dimensions it needs. Tables 1 and 5 have rows with only the symmetric part of a trained W, (W + W')/2, to see whether it
matters which of two words is in the query.

Tables 7 and 8 show which words stand for other words and for 2-grams in correlated hashing, for examples drawn at
random among those that occur in at least 20 documents and in at most 1% of all, and whose words have only letters, at
least four each.

To see whether more data helps, some models of Tables 1, 5 and 9 also learn from a quarter of the links or mates.
"""

import argparse
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Literal

import pandas as pd

from pipelines.common.arguments import add_training, parsed, parser
from pipelines.common.collection import Collection, load
from pipelines.common.workspace import Workspace
from pipelines.ssi import figures, paper
from pipelines.ssi.evaluation import SETTINGS, Evaluation
from pipelines.ssi.hashing import LEAST_DOCUMENTS, LETTERS, MOST_DOCUMENTS, hashing_table
from pipelines.ssi.languages import LanguageRankers, Languages
from pipelines.ssi.rankers import Rankers, Row
from pipelines.ssi.tables import ROWS, Makers
from pipelines.ssi.task import LinkTask, page_texts
from pt_neural.experiment import bootstrap

TABLES = {
    1: "document-document ranking, limited dictionary",
    2: "document-document ranking, all words",
    3: "links or documents partitioned into training and test",
    4: "dimensions of U and V",
    5: "queries of k keywords, limited dictionary",
    6: "queries of k keywords, all words",
    7: "words that stand for other words in correlated hashing",
    8: "words that stand for 2-grams in correlated hashing",
    9: "queries in another language, limited dictionaries",
    10: "queries in another language, all words",
    11: "whole pages against titles",
}
ACROSS_LANGUAGES = (9, 10)
EXAMPLES = 9  # words or 2-grams in Tables 7 and 8
HASH_SIZES = [100_000, 300_000, 1_000_000, 3_000_000, 6_000_000]
FIGURES = {
    1: "average precision of each query: SSI against TFIDF and its mixture with LSA",
    2: "training and dev error",
}


def main() -> None:
    """Print the tables, and save them with per-query values, figures, settings and histories."""
    arguments = options()
    collection = load(arguments.dataset)
    if collection.train is None or collection.dev is None:
        raise SystemExit(f"{collection.name} lacks training or dev links, which SSI needs to learn and to stop early")
    mates = [] if arguments.mates is None else [load(arguments.mates)]
    workspace = Workspace(arguments, "ssi", collection, *mates)
    results = Results(workspace, arguments, *mates)
    for number in arguments.tables:
        getattr(results, f"save_table_{number}")()
    for number in arguments.figures:
        getattr(results, f"save_figure_{number}")()
    results.save_histories()
    workspace.save_settings()
    results.check_rows()
    print(f"\nTables and figures are in {workspace.results}.")


def options() -> argparse.Namespace:
    """The arguments of the pipeline."""
    arguments = parser(__doc__, "neural:pydocs/links")
    add_training(arguments)
    arguments.set_defaults(epochs=150, queries=1000, batch_size=None)
    add = arguments.add_argument
    monolingual = [number for number in TABLES if number not in ACROSS_LANGUAGES]
    add("--tables", type=int, nargs="*", choices=TABLES, default=monolingual, help=listed(TABLES))
    add("--rows", nargs="*", help="rows of the tables, by the names that their CSV files give them; None: all")
    add("--row-note", default="", help="text to append to these names, to keep rows beside those with other settings")
    add(
        "--name-note",
        default="",
        help="text to append to the names of SSI's models, to keep apart those trained otherwise",
    )
    add("--figures", type=int, nargs="*", choices=FIGURES, default=[], help=listed(FIGURES))
    add("--query", choices=["text", "page"], default="text", help="queries: those of the dataset, or whole pages")
    add(
        "--mates",
        help="dataset with the English page of each query, for Tables 9 and 10; None: the task is to find it",
    )
    add(
        "--settings",
        nargs="+",
        choices=SETTINGS,
        default=list(SETTINGS),
        help="linked and random documents, or all",
    )
    add("--random-documents", type=int, default=10_000, help="random documents besides the linked ones")
    add("--dev-documents", type=int, default=500, help="random documents besides the links of a dev query")
    add("--dev-queries", type=int, default=500, help="dev queries evaluated after each epoch")
    add("--dev-measure", default="AP", help="measure that decides on the best epoch; RankLoss levels off earlier")
    add("--patience", type=int, default=15, help="epochs without improvement before training stops")
    add("--pair-epochs", type=int, default=50, help="epochs for a W that weighs pairs of words, or their hashes")
    add(
        "--pair-rate",
        type=float,
        help="learning rate of a W that weighs pairs of words, added to its name; None: SSI's own, 1",
    )
    add(
        "--vector-rate",
        type=float,
        help="learning rate of a W with U and V, added to its name; None: SSI's own, 0.05",
    )
    add("--dim", type=int, default=100, help="N, rows of U and V (paper: 200)")
    add("--dims", type=int, nargs="*", default=[100, 200, 500], help="N in Table 4")
    add("--correlated-dim", type=int, default=300, help="N of both models of CFH, and of (U'V)_n + I beside it")
    add("--lsa-dims", type=int, nargs="+", default=[50, 100, 200], help="dimensions of LSA to choose from")
    add("--max-terms", type=int, default=10_000, help="D, words of the limited dictionary (paper: 30000)")
    add("--nonzeros", type=int, nargs="*", default=[1000, 100, 10], help="weights per row of sparse W in Table 1")
    add(
        "--truncated-dims",
        type=int,
        nargs="*",
        default=[100],
        help="N of the truncated SVDs of trained full and sparse W in Table 1",
    )
    add("--frequent-terms", type=int, default=10_000, help="words of LSA and CFH in Tables 2 and 6 (paper: 30000)")
    add("--embedded-terms", type=int, nargs="*", default=[30_000, 10_000, 3_000], help="n of (U'V)_n in Table 2")
    add("--hash-sizes", type=int, nargs="*", default=HASH_SIZES, help="hash kernels in Table 2 (paper: 1M 3M 6M)")
    add("--keywords", type=int, nargs="*", default=[5, 10, 20], help="k in Tables 5 and 6")
    add(
        "--shares",
        type=float,
        nargs="*",
        default=[0.01, 0.04, 0.16, 1.0],
        help="shares of training links in Figure 2",
    )
    add("--figure-dims", type=int, nargs="*", default=[50, 100], help="N in Figure 2")
    add("--figure-epochs", type=int, default=20, help="epochs for all links in Figure 2; fewer links get more epochs")
    return parsed(arguments)


def listed(items: dict[int, str]) -> str:
    """What each table or figure shows."""
    return "; ".join(f"{number}: {about}" for number, about in items.items())


class Results:
    """The tables and figures of the paper.

    Args:
        workspace: Where artifacts and results are.
        arguments: The arguments of the pipeline.
        mates: The dataset whose judgements are the English page of each query, for Tables 9 and 10; None: the task's.
    """

    def __init__(self, workspace: Workspace, arguments: argparse.Namespace, mates: Collection | None = None):
        self.workspace, self.arguments, self.mates = workspace, arguments, mates
        docnos = [page["docno"] for page in workspace.documents()]
        task = LinkTask.of(workspace.collection, docnos, arguments.seed)
        self.all = task.with_texts(page_texts(workspace.documents())) if arguments.query == "page" else task
        self.task = self.all.sample(arguments.queries)
        self.rankers = Rankers(workspace, arguments, self.task)
        self.evaluations = self._evaluations(self.task)
        self.histories: list[pd.DataFrame] = []
        self.known_rows: list[str] = []  # of the tables so far

    def _evaluations(self, task: LinkTask, about: str = "") -> list[Evaluation]:
        """All settings, or only retrieval if there are not enough documents for the random ones.

        Args:
            task: The test queries.
            about: Distinguishes their runs from those of other tables with systems of the same names.
        """
        settings = list(self.arguments.settings)
        if self.arguments.random_documents >= len(task.docnos) and "collection" in settings:
            settings = ["collection"]
        number, names = self.arguments.random_documents, {setting: f"{setting}{about}" for setting in settings}
        return [
            Evaluation(task, setting, number, self.workspace.runs(f"runs-{name}"), name)
            for setting, name in names.items()
        ]

    def save_table_1(self) -> None:
        """All kinds of W with a limited dictionary."""
        self._save(1, self._limited, self.rankers, ROWS[1](self.rankers), self.evaluations)

    def save_table_2(self) -> None:
        """The kinds of W that work with all words."""
        self._save(2, self._unlimited, self.rankers, ROWS[2](self.rankers), self.evaluations)

    def save_table_3(self) -> None:
        """Training on links of all documents, or on those of other documents alone; only test documents are ranked.

        Links between other documents are fewer, so another row trains on as many links of all documents. Other kinds
        of W have rows, too. Where test documents are new, so are those of dev.
        """
        apart, between = (
            task.sample(self.arguments.queries)
            for task in (self.all.apart_from_test_documents(), self.all.between_test_documents())
        )
        numbers = [len(task.collection.train.qrels) for task in (apart, self.task)]
        fewer = self.task.with_share(min(1, numbers[0] / numbers[1]))
        without, sampled = (
            Rankers(self.workspace, self.arguments, task, about)
            for task, about in ((apart, ", documents apart"), (fewer, ", fewer links"))
        )
        # Negatives come from these, too. If test documents were only negatives, they would be ranked low.
        others = self.all.docnos.difference(between.docnos, sort=False)
        without.learning_documents = self.workspace.forward_index(self.arguments.fields, docnos=others)
        rows = {
            "links": (self.rankers, self.rankers.low_rank),
            "documents": (without, without.low_rank),
            "fewer-links": (sampled, sampled.low_rank),
            "links-full": (self.rankers, self.rankers.full),
            "documents-full": (without, without.full),
            "documents-symmetric": (without, partial(without.low_rank, kind="symmetric")),
        }
        makers = [(key, partial(self._partitioned, key, *row)) for key, row in rows.items()]
        makers.append(("tfidf", partial(self.rankers.tfidf, self.arguments.max_terms)))
        evaluation = Evaluation(between, "candidates", len(between.docnos), self.workspace.runs("runs-apart"), "apart")
        self._save(3, f"test documents, {self._limited}", without, makers, [evaluation])
        self._forget(sampled)

    def _partitioned(self, key: str, rankers: Rankers, make: Callable[[int], Row]) -> Row:
        row, number = make(self.arguments.max_terms), len(rankers.task.collection.train.qrels)
        what = "links, sampled" if key == "fewer-links" else key.partition("-")[0]
        return replace(row, key=key, name=f"{row.name}, partitioned {what}, {number:,} training links")

    def save_table_4(self) -> None:
        """The dimensions of U and V."""
        self._save(4, self._limited, self.rankers, ROWS[4](self.rankers), self.evaluations)

    def save_table_5(self) -> None:
        """Queries of k keywords with a limited dictionary."""
        self._save_keywords(5, self._limited)

    def save_table_6(self) -> None:
        """Queries of k keywords with all words."""
        self._save_keywords(6, self._unlimited)

    def _save_keywords(self, number: int, words: str) -> None:
        for k in self.arguments.keywords:
            task = self.task.with_keywords(k)
            rankers = Rankers(self.workspace, self.arguments, task, f", k = {k}")
            self._save(f"{number}, k = {k}", words, rankers, ROWS[number](rankers), self._evaluations(task))

    def save_table_7(self) -> None:
        """Words that stand for others in correlated hashing."""
        self._save_hashing(7, 1, "words")

    def save_table_8(self) -> None:
        """Words that stand for 2-grams in correlated hashing."""
        self._save_hashing(8, 2, "2-grams")

    def _save_hashing(self, number: int, ngrams: Literal[1, 2], kind: str) -> None:
        frequent = self.arguments.frequent_terms
        table = hashing_table(self.workspace.forward_index(), ngrams, frequent, EXAMPLES, self.arguments.seed)
        caption = (
            f"Table {number}, {kind} drawn at random, and for each those of the {frequent:,} most frequent words with "
            f"the highest DICE coefficients. {self.workspace.collection.label}"
        )
        if table.empty:
            caption += (
                f". No {kind} occur in at least {LEAST_DOCUMENTS} documents and in at most {MOST_DOCUMENTS:.0%} of "
                f"them, and have at least {LETTERS} letters a word"
            )
        self.workspace.save_table(f"table{number}", table, caption)

    def save_table_9(self) -> None:
        """Queries in another language with limited dictionaries."""
        self._save_languages(9, self.arguments.max_terms)

    def save_table_10(self) -> None:
        """Queries in another language with all words."""
        self._save_languages(10, None)

    def save_table_11(self) -> None:
        """Two kinds of text, with all words of titles."""
        pages = page_texts(self.workspace.documents())
        task = self.all.with_texts(pages).sample(self.arguments.queries)
        arguments = argparse.Namespace(**{**vars(self.arguments), "fields": ["title"]})
        rankers = Rankers(self.workspace, arguments, task, ", pages against titles")
        about = f"whole pages against titles, all {rankers.words(None):,} words of titles"
        self._save(11, about, rankers, ROWS[11](rankers), self._evaluations(task, "-titles"))

    def _save_languages(self, number: int | str, limit: int | None) -> None:
        languages = Languages.of(self.workspace, self.arguments, self.all, self.mates)
        rankers = LanguageRankers(self.workspace, self.arguments, languages)
        makers, evaluations = rankers.table(limit, finding=languages.finding), self._evaluations(languages.task)
        number = f"{number}, mates" if languages.finding else number
        self._save(number, self._unlimited if limit is None else self._limited, rankers, makers, evaluations)

    def save_figure_1(self) -> None:
        """Average precision of each query, with all words."""
        rankers, frequent = self.rankers, self.arguments.frequent_terms
        rows = [rankers.embedded("low-rank", frequent), rankers.tfidf(None), rankers.mixture(None, frequent)]
        for evaluation in self.evaluations:
            for row in rows:
                evaluation.add(row.system, row.rankers)
            values = evaluation.by_query("MAP", {row.name: row.system for row in rows})
            self.workspace.save_picture(f"figure1-{evaluation.setting}", figures.scatter(values))
        self._forget(rankers)

    def save_figure_2(self) -> None:
        """Training loss and dev rank loss by the number of tuples seen, for several N and shares of the links."""
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
        self.workspace.save_picture("figure2", figures.learning_curves(frame))

    @property
    def _limited(self) -> str:
        return f"limited dictionary of {self.rankers.words(self.arguments.max_terms):,} words"

    @property
    def _unlimited(self) -> str:
        frequencies = self.rankers.documents.vocabulary.collection_frequency  # in falling order
        frequent = self.arguments.frequent_terms
        others = frequencies[frequent:].sum() / frequencies.sum()
        return (
            f"all {len(frequencies):,} words; those beyond the {frequent:,} most frequent are {others:.1%} of the text"
        )

    def _save(
        self,
        number: int | str,
        about: str,
        rankers: Rankers,
        makers: Makers,
        evaluations: Iterable[Evaluation],
    ) -> None:
        """Make the rows of a table one by one, measure them, and save the table for each setting."""
        rows = []
        for key, make in makers:
            self.known_rows.append(key)
            if self.arguments.rows is not None and key not in self.arguments.rows:
                continue
            row = make()
            for evaluation in evaluations:
                evaluation.add(row.system, row.rankers)
            rows.append(row)
            self._forget(rankers)
            self._forget(self.rankers)
        if not rows:
            print(f"Table {number} has none of the rows {', '.join(self.arguments.rows)}")
            return
        for evaluation in evaluations:
            name = f"table{str(number).replace(', k = ', '-k').replace(', ', '-')}-{evaluation.name}"
            caption = f"Table {number}, {about}. {self.workspace.collection.label}, {evaluation.describe()}"
            table = beside_paper(rows, evaluation, paper.TABLES.get(str(number), {}))
            names = [f"{row.key}{self.arguments.row_note}" for row in rows]
            frame = table.assign(row=names, run=[row.system for row in rows])
            self.workspace.save_table(name, table, f"{caption}{self.workspace.seeds_note}", frame)
            values = evaluation.by_query("MAP", {row.name: row.system for row in rows})
            self.workspace.save_picture(name, bootstrap(values).plot().figure)

    def check_rows(self) -> None:
        """SystemExit if ``--rows`` names any that no table has."""
        unknown = [key for key in self.arguments.rows or () if key not in self.known_rows]
        if unknown:
            names = ", ".join(dict.fromkeys(self.known_rows))
            raise SystemExit(f"these tables have no rows {', '.join(unknown)}; they have {names}")

    def _forget(self, rankers: Rankers) -> None:
        """Keep the histories of trained models, but not the models, whose memory would add up."""
        if rankers.models:
            self.histories.append(rankers.histories())
            rankers.models.clear()

    def save_histories(self) -> None:
        """What happened in each epoch of each training."""
        if self.histories:
            pd.concat(self.histories).drop_duplicates().to_csv(self.workspace.results / "histories.csv", index=False)


def beside_paper(
    rows: list[Row], evaluation: Evaluation, reported: dict[str, tuple[str, str, str, str]]
) -> pd.DataFrame:
    """A table of ours beside the paper's results for the same rows."""
    table = evaluation.table({row.name: row.system for row in rows}).reset_index()
    table.insert(1, "params", [row.parameters for row in rows])
    cells = [reported.get(row.key, ("",) * len(paper.COLUMNS)) for row in rows]
    return table.join(pd.DataFrame(cells, columns=list(paper.COLUMNS)))


if __name__ == "__main__":
    main()
