"""Tables 2 and 4 to 7 and Figures 2 and 3 of the CLSM paper (Shen et al., 2014), on any dataset with training queries.

Each table of rankings is made twice: telescoped, with the top k documents of the first stage re-ranked, and with all
documents ranked. Tables 6 and 7 compare the CLSM with the DSSM as trained with J = 50 if both are among the rows, else
with in-batch negatives, else with J = 4. Table 2 has the words with most contexts in the test queries, read by the CLSM
of the first seed. Table 4 compares BM25 over single fields, which --single-fields names, the worst of the paper first.
"""

import argparse
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pandas as pd
from ir_measures import nDCG

from pipelines.clsm.contexts import context_table
from pipelines.clsm.figures import figures, length_counts, text_lengths
from pipelines.clsm.rankers import DEPTH, LEARNED, MIXED, SETTINGS, SPLIT, Rankers
from pipelines.common import statistical
from pipelines.common.arguments import parsed, training_parser
from pipelines.common.collection import Split
from pipelines.common.comparison import Comparison
from pipelines.common.first_stage import tuned_bm25
from pipelines.common.trained import training_collection
from pipelines.common.workspace import Workspace

MEASURES = [nDCG @ 1, nDCG @ 3, nDCG @ 10]
UNTRAINED = [*SPLIT, *(key for key in statistical.PAPER if key not in statistical.LEARNED), "lsa"]
ROWS = [*SPLIT, *statistical.PAPER, *LEARNED, "lsa", *MIXED]
# The paper has two networks, and max pooling.
DEFAULT = [row for row in ROWS if "shared" not in row and "sum" not in row]
PAIRS = [("dssm-50", "clsm-50"), ("dssm", "clsm"), ("dssm-4", "clsm-4"), ("dssm-shared", "clsm-shared")]
PHRASES = statistical.STATISTICAL["ptm"].name
WINDOW = 3  # of the CLSM in Tables 5 and 7


def main() -> None:
    """Print the tables, and save them with runs, settings, histories and figures."""
    arguments = options()
    collection = training_collection(arguments, [row for row in ROWS if row not in UNTRAINED], UNTRAINED)
    workspace = Workspace(arguments, "clsm", collection)
    if arguments.single_fields:
        save_table_4(workspace, arguments.single_fields)
    rankers = Rankers(workspace, arguments)
    rows = ["BM25", *(rankers.add(key) for key in ROWS if key in arguments.models)]
    tables, grades = Tables(rankers), {}
    pair = next((pair for pair in PAIRS if set(pair) <= set(arguments.models)), None)
    tables.save(5, rows, {"BM25": "α", PHRASES: "β", **({LEARNED[pair[0]].name: "γ"} if pair else {})})
    if pair:
        dssm, clsm = (LEARNED[key] for key in pair)
        windows = [
            replace(clsm, name=window_name(clsm.name, window), options={**clsm.options, "window": window})
            for window in arguments.windows
        ]
        if windows:
            rows = [dssm.name, *map(rankers.learned, windows)]
            tables.save(6, rows, {dssm.name: "α", window_name(clsm.name, 1): "β"})
        contexts = context_table(rankers.models[clsm.name][arguments.seeds[0]], collection.test.judged["query"])
        contexts = contexts.astype({"similarity": float}).round(3)  # a float32 would be written with all its digits
        contexts = contexts.rename(columns={"similarity": clsm.name})  # which tells it from that of another CLSM
        about = f"Table 2. {workspace.collection.label}, cosines of words in context, the first seed"
        workspace.save_table("table2", contexts, about)
        grades = {setting: tables.save_top_grades(setting, clsm.name, dssm.name) for setting in SETTINGS}
    rankers.save_histories()
    workspace.save_settings(bm25=repr(rankers.bm25), alpha=rankers.alphas(), rows=rankers.statistical.settings)
    counts = length_counts(rankers.documents, collection.test.judged["query"])
    counts.to_csv(workspace.results / "figure2.csv", index=False)
    workspace.save_picture("figure2", text_lengths(counts))
    for name, figure in figures(rankers, grades):
        workspace.save_picture(name, figure)
    print(f"\nTables, runs and figures are in {workspace.results}.")


def options() -> argparse.Namespace:
    """The arguments of the pipeline."""
    arguments = training_parser(__doc__, ROWS, DEFAULT)
    arguments.add_argument("--windows", type=int, nargs="*", default=[1, 3, 5], help="rows of Table 6; none: no table")
    arguments.add_argument("--single-fields", nargs="*", default=[], help="rows of Table 4, such as text title")
    return parsed(arguments)


def save_table_4(workspace: Workspace, fields: list[str]) -> None:
    """Table 4: a tuned BM25 over each field by itself; marked if it differs from the first."""
    comparison = Comparison(workspace.collection.test, MEASURES, workspace.runs("runs-single-fields"))
    systems = {field: tuned_bm25(workspace, (field,)) % DEPTH for field in fields}
    comparison.add(systems)
    caption = (
        f"Table 4. {workspace.collection.label}, BM25 over single fields; α differs from {fields[0]} with p < 0.05"
    )
    comparison.save(workspace, "table4", fields, {fields[0]: "α"}, caption)


def window_name(name: str, window: int) -> str:
    """The name of a row of Table 6; the CLSM of Table 5 keeps its name."""
    return name if window == WINDOW else f"{name}, window {window}"


class Tables:
    """The tables of the paper, in both settings.

    Args:
        rankers: What to compare.
    """

    def __init__(self, rankers: Rankers):
        self.rankers = rankers
        self.workspace, self.arguments, self.test = rankers.workspace, rankers.arguments, rankers.collection.test
        self.comparisons = {
            setting: Comparison(self.test, MEASURES, self.workspace.runs(f"runs-{setting}")) for setting in SETTINGS
        }

    def save(self, number: int, rows: list[str], marks: dict[str, str]) -> None:
        """Table 5 or 6: nDCG of each row, marked if it differs from a baseline."""
        marks = {name: mark for name, mark in marks.items() if name in rows}
        legend = ", ".join(f"{mark} differs from {name}" for name, mark in marks.items())
        for setting in SETTINGS:
            comparison = self.comparisons[setting]
            comparison.add({name: self.rankers.systems[setting][name] for name in rows})
            caption = f"{self._caption(number, setting)}; {legend} with p < 0.05"
            comparison.save(self.workspace, f"table{number}-{setting}", rows, marks, caption)

    def save_top_grades(self, setting: str, clsm: str, dssm: str) -> dict[str, np.ndarray]:
        """Table 7: test queries by the grades of the two top documents; the grades are returned, for Figure 3."""
        runs = self.comparisons[setting].frames
        grades = {name: top_grades(runs[name].values(), self.test) for name in (dssm, clsm)}
        table = grade_table(grades[clsm], grades[dssm])
        number = len(self.arguments.seeds)
        seeds = f", each query once for each of {number} seeds" if number > 1 else ""
        self.workspace.save_table(
            f"table7-{setting}",
            table.rename_axis(f"{clsm} \\ {dssm}").reset_index(),
            f"{self._caption(7, setting)}{seeds}; queries by the grade of the top document of {clsm} (rows) and of "
            f"{dssm} (columns), with unjudged documents counted as 0",
        )
        return grades

    def _caption(self, number: int, setting: str) -> str:
        reranked = f"the top {self.arguments.depth} of BM25 re-ranked"
        how = reranked if setting == "telescoped" else "all documents ranked"
        fields = " and ".join(self.arguments.fields)
        queries = f"{len(self.test.judged):,} test queries"
        return f"Table {number}, {how}. {self.workspace.collection.label}, {fields}, {queries}"


def top_grades(runs: Iterable[pd.DataFrame], split: Split) -> np.ndarray:
    """The grade of the top document for each judged query, once for each run; 0 if it is not judged.

    Returns:
        int64 array of shape (runs * queries,).
    """
    qids = split.judged["qid"]
    judged = split.qrels.drop_duplicates(["qid", "docno"]).set_index(["qid", "docno"])["label"]
    grades = []
    for run in runs:
        top = run.sort_values("rank", kind="stable").drop_duplicates("qid").set_index("qid")["docno"].reindex(qids)
        found = judged.reindex(pd.MultiIndex.from_arrays([qids, top])).fillna(0).clip(lower=0)
        grades.append(found.to_numpy(dtype=np.int64))
    return np.concatenate(grades)


def grade_table(rows: np.ndarray, columns: np.ndarray) -> pd.DataFrame:
    """How often each grade of one ranker coincides with each of another, for all grades up to the highest."""
    grades = range(max(rows.max(), columns.max()) + 1)
    return pd.crosstab(rows, columns).reindex(index=grades, columns=grades, fill_value=0)


if __name__ == "__main__":
    main()
