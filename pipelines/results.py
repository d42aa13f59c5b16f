"""The page RESULTS.md: the papers' tables and orderings beside what the other pipelines found on all collections.

It reads the folders that they wrote below --out, and runs nothing.
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

import pandas as pd

from pipelines import ssi_paper
from pipelines.orderings import ORDERINGS, Ordering, outcome_of
from pipelines.papers import TABLES, PaperTable
from pipelines.reasons import REASONS
from pipelines.result_folders import ResultFolder, result_folders
from pipelines.workspace import markdown

INTRODUCTION = """\
# Results

What the pipelines of this repository found, beside what the papers report. This page is written by
`python -m pipelines.results` from the files that the pipelines wrote; the last section has the commands. The papers'
collections are not public, so figures are to be compared within a column: the question is whether the same things help.
"""
ORDERED = """\
## Orderings of the papers

Each ordering is tested by a paired t-test over queries, of the values of {measures}. *yes* and *no* are differences
with p < 0.05, *level* is what is less certain; where there are several seeds, the value of a query is the mean over
them, and the differences of the seeds are given too. P-values are not corrected for the number of orderings.
"""
BESIDE = """\
## The papers' tables

Ours is the mean over test queries, ± the standard deviation over seeds where there are several. A dash stands where a
row was not run, as where a collection has no training queries.
"""
COMMANDS = """\
## How this was made

`$PT_NEURAL_COLLECTIONS` is a folder of collections in the BEIR layout; `neural:pydocs` is made from installed packages
and `irds:vaswani` comes from ir_datasets. Each folder of results has the settings, run files, tables, pictures and the
values of all queries.
"""
SSI_TABLES = {
    "1": "Table 1, limited dictionary, documents as queries",
    "2": "Table 2, all words, documents as queries",
    "9": "Table 9, queries in another language, limited dictionaries",
}
SSI_MEASURES = {"MAP": 2, "Rank loss, %": 1}  # with their places among the paper's figures


def main() -> None:
    """Write the page."""
    formatter = argparse.ArgumentDefaultsHelpFormatter
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=formatter, allow_abbrev=False)
    arguments.add_argument("--out", type=Path, default=Path("results"), help="folder that the pipelines wrote to")
    arguments.add_argument("--page", type=Path, default=Path("RESULTS.md"), help="file to write")
    arguments = arguments.parse_args()
    folders = list(result_folders(arguments.out))
    if not folders:
        raise SystemExit(f"there are no results in {arguments.out}; run pipelines first: python -m pipelines")
    arguments.page.write_text("\n".join(page(folders)), encoding="utf-8")
    print(f"Wrote {arguments.page} from {len(folders)} folders of results.")


def page(folders: Sequence[ResultFolder]) -> Iterator[str]:
    """The parts of the page."""
    yield INTRODUCTION
    yield ORDERED.format(measures=" and ".join(sorted({ordering.measure for ordering in ORDERINGS})))
    for paper, orderings in groupby(ORDERINGS, key=lambda ordering: ordering.paper):
        yield from ordering_section(paper, list(orderings), folders)
    yield BESIDE
    for table in TABLES:
        yield from table_section(table, folders)
    for number, title in SSI_TABLES.items():
        yield from ssi_section(number, title, folders)
    yield COMMANDS
    yield from commands(folders)


def ordering_section(paper: str, orderings: Sequence[Ordering], folders: Sequence[ResultFolder]) -> Iterator[str]:
    """One table of orderings, with a line on each that does not hold everywhere."""
    rows, reasons = [], []
    for ordering in orderings:
        of_pipeline = (folder for folder in folders if folder.pipeline == ordering.pipeline)
        found = {folder.collection: outcome_of(ordering, folder.values(ordering.runs)) for folder in of_pipeline}
        found = {name: outcome for name, outcome in found.items() if outcome is not None}
        if not found:
            continue
        rows.append({"ordering": f"{ordering.says} ({ordering.where})", **{n: str(o) for n, o in found.items()}})
        if ordering.says in REASONS and any(outcome.verdict != "yes" for outcome in found.values()):
            reasons.append(f"- *{ordering.says}*: {REASONS[ordering.says]}")
    if rows:
        yield f"### {paper}\n"
        yield markdown(pd.DataFrame(rows).fillna("–")) + "\n"
    if reasons:
        yield "Where it does not hold:\n"
        yield "\n".join(reasons) + "\n"


def table_section(table: PaperTable, folders: Sequence[ResultFolder]) -> Iterator[str]:
    """A table of a paper beside ours, a column a collection."""
    columns = {"paper": [_text(value, table) for value in table.rows.values()]}
    for folder in folders:
        if folder.pipeline == table.pipeline:
            values = folder.values(table.runs)
            values = values[values["measure"] == table.measure]
            cells = [_cell(values, name, table) for name in table.rows]
            if any(cell != "–" for cell in cells):
                columns[_heading(folder, values)] = cells
    if len(columns) > 1:
        yield f"### {table.paper}, {table.table}: {table.measure}\n"
        yield markdown(pd.DataFrame({"system": list(table.rows), **columns})) + "\n"


def _heading(folder: ResultFolder, values: pd.DataFrame) -> str:
    return f"{folder.collection} ({values['qid'].nunique():,} queries)"


def _text(value: float, table: PaperTable) -> str:
    return f"{value:+.2f}" if table.baselines else f"{value:.3f}"


def _cell(values: pd.DataFrame, name: str, table: PaperTable) -> str:
    means = values[values["system"] == name].groupby("seed")["value"].mean()
    if means.empty:
        return "–"
    if table.baselines:
        others = values[values["system"] == table.baselines[name]].groupby("seed")["value"].mean()
        if others.empty:
            return "–"
        means = 100 * (means / others - 1)
    deviation = f" ± {means.std(ddof=1):.3f}" if len(means) > 1 else ""
    return _text(means.mean(), table) + deviation


def ssi_section(number: str, title: str, folders: Sequence[ResultFolder]) -> Iterator[str]:
    """A table of the SSI paper beside ours; rank loss is better where it is smaller."""
    rows = ssi_paper.TABLES[number]
    for measure, place in SSI_MEASURES.items():
        columns = {"paper": [row[place].replace("±", " ± ") for row in rows.values()]}
        for folder in folders:
            if folder.pipeline == "ssi":
                values = folder.values("runs-collection")
                values = values[values["measure"] == measure]
                means = values.groupby("system")["value"].mean()
                known = [means.get(f"{number}: {row}") for row in rows]
                if any(mean is not None for mean in known):
                    columns[_heading(folder, values)] = ["–" if mean is None else f"{mean:.3f}" for mean in known]
        if len(columns) > 1:
            yield f"### SSI, {title}: {measure}\n"
            yield markdown(pd.DataFrame({"system": [ssi_paper.NAMES[row] for row in rows], **columns})) + "\n"


def commands(folders: Iterable[ResultFolder]) -> Iterator[str]:
    """The commands that made the results, and the versions of packages."""
    folders = list(folders)
    yield "```\n" + "\n".join(folder.settings["command"] for folder in folders) + "\n```\n"
    versions = {name: set() for folder in folders for name in folder.settings["packages"]}
    for folder in folders:
        for name, version in folder.settings["packages"].items():
            versions[name].add(version)
    yield "Packages: " + ", ".join(f"{name} {' or '.join(sorted(found))}" for name, found in versions.items()) + ".\n"


if __name__ == "__main__":
    main()
