"""The page RESULTS.md: the papers' tables and orderings beside what the other pipelines found on all collections.

It copies the values by query and seed that the other pipelines wrote below --out to the kept results of the repository,
and writes the page from all that are kept, so that it grows from runs on any machine. It runs nothing itself; but with
--again it first repeats the commands of all kept results; pipelines go on where they stopped.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

import pt_neural
from pipelines.common.comparison import LEVEL, MAIN
from pipelines.common.paper import PaperTable
from pipelines.common.workspace import markdown
from pipelines.results.again import run_again
from pipelines.results.choice import (
    PICTURE,
    choice_picture,
    choice_section,
    choice_table,
    choice_text,
    costs_by_collection,
    unfinished_rankers,
)
from pipelines.results.curves import curve_folders, curve_picture, curve_section, picture_name
from pipelines.results.findings import Outcomes, findings_of, findings_section
from pipelines.results.folders import (
    MARK,
    UNFINISHED,
    ResultFolder,
    Systems,
    collection_order,
    mean_by_query,
    mean_text,
    query_count,
    result_folders,
    seed_counts,
)
from pipelines.results.keeping import KEPT, keep
from pipelines.results.orderings import NOT_KNOWN, ORDERINGS, WITH_RECIPES, Ordering, outcome_of
from pipelines.results.papers import SSI_MEASURES, TABLES, paper_figures, paper_text
from pipelines.results.peers import peer_section
from pipelines.results.pictures import figure_section, paper_pictures
from pipelines.results.rates import rates_section
from pipelines.results.shown import shown_section
from pipelines.ssi import paper as ssi
from pt_neural.experiment import significance

ROOT = Path(pt_neural.__file__).parents[1]
DOCS = ROOT / "pt_neural" / "pt_docs"
INTRODUCTION = """\
# Results

What the pipelines of this repository found, beside what the papers report. `python -m pipelines.results` writes this
page from values by query and seed, which are kept in `pipelines/results/kept`; the last section has the commands that
made them. The papers' collections are not public, so compare figures only within a column: the question is whether the
same things help.
"""
ORDERED = """\
## Orderings of the papers

Each ordering is tested by a t-test of the difference in one measure: nDCG@10 or, for SSI, MAP or the rank loss in
percent. Systems with a random start differ from training to training, so for each of them the variance over seeds is
added to that over queries (`variance_of` in `pipelines/results/orderings.py`). *yes*: p < 0.05, in the direction of
the paper; *no*: p < 0.05, in the opposite direction; *level*: no significant difference. There is no verdict with
fewer than three seeds. The range of the difference over seeds is given too. P-values are not corrected for the number
of orderings. "With recipes" means networks and settings of `pipelines.classics` instead of the paper's. A dash in the
paper's column means that the paper lacks a figure for at least one of the two systems. Where we ran a system with
other negatives, words or sizes, the paper's figure is that of its nearest row: with 50 negatives for in-batch ones, and
so on (`NEAREST` in `pipelines/results/papers.py`). The papers' other measures (nDCG@1 and @3, P@10, the area under the
ROC curve, expected reciprocal rank) are not tested; the pipelines print them.
"""
BESIDE = """\
## The papers' tables

Our values are means over test queries, ± the standard deviation over seeds if there are several; the SSI paper's ± is a
standard error over queries. A dash means that a row was not run, for instance because a collection has no training
queries, or that the paper does not report it.

In the tables of the CLSM paper, ULM is query likelihood (a unigram language model), MRF a Markov random field of term
dependencies, LCE latent concept expansion, and WTM and PTM are the translation of words and of phrases. "Words as
below" are those that topic models, translation models and networks read, which are not stemmed; the last row stems
them. BM25, ULM, MRF and LCE in the upper rows read Lucene's words. In the Duet paper's tables, QL is query likelihood,
SDM the sequential dependence model, and CDSSM another name of the CLSM. *Telescoped* means that BM25's candidates are
re-ranked.
"""
LEARNED = """\
## What was learned

nDCG@10 of BM25's candidates, re-ranked by rankers alone and by mixtures with BM25. Its k1 and b, and the weights of
mixtures, were chosen on dev queries. ± is the standard deviation over seeds, and * means that the mean over seeds
differs from BM25, p < 0.05 by a paired t-test over queries with Holm's correction. Those without ± have no random
start. On debian/synopses, SSI is its untrained start, which nDCG@10 of dev queries never exceeded in training; so it is
on neural:pydocs with two of three seeds. On cacm, where there are 52 queries, the mixture with the DSSM that learned
from pseudo-queries is not above that with the untrained one (.524 against .526).
"""
COMMANDS = """\
## How this was made

`make results` repeats these commands and writes this page. Interrupted pipelines go on where they stopped;
`benchmarks/quality.py` starts over, and needs `PT_NEURAL_MATCHZOO`, the Python of an environment with matchzoo-py.
`$PT_NEURAL_COLLECTIONS` is a folder of collections in the BEIR layout, and `neural:pydocs` is made from installed
packages. Minutes are wall-clock time with one thread, beside other work on two cores, and sometimes on the same one.
Word embeddings that are trained with several threads are not exactly repeatable, and networks that learn with another
number of threads come out a little different: when 79 rankers of `pipelines.classics` were fitted anew in new folders,
their means over seeds differed by up to .04 alone and .02 mixed.
"""
SSI_TABLES = {  # with what the files of their tables and runs end with
    "1": ("Table 1, limited dictionary, documents as queries", "collection"),
    "2": ("Table 2, all words, documents as queries", "collection"),
    "3": ("Table 3, links or documents partitioned", "apart"),
    "4": ("Table 4, dimensions of U and V, limited dictionary", "collection"),
    **{f"5, k = {k}": (f"Table 5, queries of {k} keywords, limited dictionary", "collection") for k in (5, 10, 20)},
    "6, k = 10": ("Table 6, queries of 10 keywords, all words", "collection"),
    "9": ("Table 9, queries in another language, limited dictionaries", "collection"),
    "9, mates": ("section 4.3, mates found across languages, limited dictionaries", "collection"),
    "10": ("Table 10, queries in another language, all words", "collection"),
    "11": ("Table 11, two kinds of text: pages against titles", "collection-titles"),
}
PIPELINES_OF_LEARNING = {
    "classics": "Rankers of `pipelines.classics`",
    "pretraining": "DSSM, pre-trained on pseudo-queries",
}


def main() -> None:
    """Write the page."""
    formatter = argparse.ArgumentDefaultsHelpFormatter
    program = "python -m pipelines.results"
    arguments = argparse.ArgumentParser(program, description=__doc__, formatter_class=formatter, allow_abbrev=False)
    arguments.add_argument("--out", type=Path, default=Path("results"), help="folder that the pipelines wrote to")
    arguments.add_argument("--kept", type=Path, default=KEPT, help="folder of kept results")
    arguments.add_argument("--page", type=Path, default=Path("RESULTS.md"), help="file to write")
    arguments.add_argument(
        "--pictures", type=Path, default=DOCS, help="folder of pictures and the table of all rankers"
    )
    arguments.add_argument("--again", action="store_true", help="first repeat the commands of all kept results")
    arguments = arguments.parse_args()
    if arguments.again:
        run_again(list(result_folders(arguments.kept)), arguments.out, arguments.kept)
    new = keep(arguments.out, arguments.kept)
    folders = list(result_folders(arguments.kept))
    if not folders:
        raise SystemExit(f"there are no results in {arguments.out}; run pipelines first: python -m pipelines")
    arguments.page.write_text("\n".join(page(folders)), encoding="utf-8")
    print(f"Kept {len(new)} folders of results. Wrote {arguments.page} from {len(folders)}.")
    if costs := costs_by_collection(folders):
        path = arguments.pictures / Path(PICTURE).with_suffix(".csv")
        choice_text(choice_table(costs), unfinished_rankers(folders)).to_csv(path, index=False)
        save_picture(choice_picture(costs), path.with_suffix(".png"))
    for folder in curve_folders(folders):
        save_picture(curve_picture(folder), arguments.pictures / picture_name(folder))
    for name, _, draw in paper_pictures(folders):
        save_picture(draw(), arguments.pictures / name, dpi=110)


def save_picture(figure: Figure, path: Path, dpi: int = 200) -> None:
    """Write a picture, and say so."""
    figure.savefig(path, dpi=dpi)
    print(f"Wrote {path}.")


def page(folders: Sequence[ResultFolder]) -> Iterator[str]:
    """The parts of the page."""
    yield INTRODUCTION
    outcomes = outcomes_of((*ORDERINGS, *WITH_RECIPES), folders)
    if outcomes:
        yield ORDERED
        yield from findings_section(findings_of(outcomes, folders))
        for paper in dict.fromkeys(ordering.paper for ordering in outcomes):
            yield from ordering_section(paper, outcomes)
    yield from curve_section(folders, DOCS.relative_to(ROOT))
    yield from choice_section(folders, DOCS.relative_to(ROOT))
    yield from peer_section(folders)
    tables = [part for table in TABLES for part in table_section(table, folders)]
    tables += [part for number, about in SSI_TABLES.items() for part in ssi_section(number, *about, folders)]
    tables += rates_section(folders)
    if tables:
        yield BESIDE
        if any(MARK in part for part in tables):
            yield UNFINISHED
        yield from tables
    yield from figure_section(folders, DOCS.relative_to(ROOT))
    yield from shown_section(folders)
    yield from learned(folders)
    yield COMMANDS
    yield from commands(folders)


def outcomes_of(orderings: Sequence[Ordering], folders: Sequence[ResultFolder]) -> Outcomes:
    """The outcomes of each ordering by collection, those of a paper one after the other; without those not tested."""
    papers = list(dict.fromkeys(ordering.paper for ordering in orderings))
    outcomes = {}
    for ordering in sorted(orderings, key=lambda ordering: papers.index(ordering.paper)):
        found = {
            folder.collection: outcome_of(ordering, folder.values(ordering.runs))
            for folder in folders
            if folder.pipeline == ordering.pipeline
        }
        found = {name: outcome for name, outcome in found.items() if outcome is not None}
        if found:
            outcomes[ordering] = found
    return outcomes


def ordering_section(paper: str, outcomes: Outcomes) -> Iterator[str]:
    """A table of a paper's orderings, and the reasons why some do not hold everywhere."""
    rows, reasons = [], defaultdict(list)
    for ordering, found in outcomes.items():
        if ordering.paper != paper:
            continue
        cells = {name: str(outcome) for name, outcome in found.items()}
        kind = "" if ordering.reported else "our check: "
        name = f"{kind}{ordering.full} ({ordering.where})"
        rows.append({"ordering": name, "paper": paper_figures(ordering), **cells})
        fails = any(outcome.verdict in ("no", "level") for outcome in found.values())
        if fails and (ordering.reason != NOT_KNOWN or ordering.reported):
            reasons[ordering.reason].append(f"*{ordering.full}*")
    yield f"### {paper}\n"
    table = pd.DataFrame(rows).set_index(["ordering", "paper"]).fillna("–")
    yield markdown(table[sorted(table, key=collection_order)].reset_index()) + "\n"
    unknown = reasons.pop(NOT_KNOWN, [])
    lines = [f"- {'; '.join(names)}: {reason}" for reason, names in reasons.items()]
    lines += [f"- {NOT_KNOWN}: {'; '.join(unknown)}."] * bool(unknown)
    if lines:
        yield "Why some do not hold on every collection:\n"
        yield "\n".join(lines) + "\n"


def table_section(table: PaperTable, folders: Sequence[ResultFolder]) -> Iterator[str]:
    """A table of a paper beside ours, with one column per collection."""
    columns = {"paper": [paper_text(value, table) for value in table.rows.values()]}
    for folder in folders:
        if folder.pipeline == table.pipeline:
            systems = folder.values(table.runs).get(table.measure, {})
            compared = table.baselines or {}
            cells = [
                _marked(_cell(systems, name, table), folder, name, compared.get(name, name)) for name in table.rows
            ]
            if any(cell != "–" for cell in cells):
                columns[_heading(folder, systems)] = cells
    if len(columns) > 1:
        yield f"### {table.paper}, {table.table}: {table.measure}\n"
        yield markdown(pd.DataFrame({"system": list(table.rows), **columns})) + "\n"


def _heading(folder: ResultFolder, systems: Systems) -> str:
    return f"{folder.collection} ({query_count(systems):,} queries)"


def _cell(systems: Systems, name: str, table: PaperTable) -> str:
    baseline = table.baselines[name] if table.baselines else name
    if name not in systems or baseline not in systems:
        return "–"
    means = systems[name].mean()
    if table.baselines:
        means = 100 * (means / systems[baseline].mean() - 1)
    deviation = f" ± {means.std(ddof=1):.3f}" if len(means) > 1 else ""
    return paper_text(means.mean(), table) + deviation


def _marked(cell: str, folder: ResultFolder, *names: str) -> str:
    return f"{cell} {MARK}" if cell != "–" and folder.unfinished() & set(names) else cell


def ssi_section(number: str, title: str, ending: str, folders: Sequence[ResultFolder]) -> Iterator[str]:
    """A table of the SSI paper beside ours, once for each measure."""
    rows = ssi.TABLES[number]
    for measure, place in SSI_MEASURES.items():
        columns = {"paper": [row[place].replace("±", " ± ") or "–" for row in rows.values()]}
        for folder in folders:
            if folder.pipeline == "ssi":
                systems = folder.values(f"runs-{ending}").get(measure, {})
                names = [f"{number}: {row}" for row in rows]
                cells = [_marked(mean_text(systems, name), folder, name) for name in names]
                if any(cell != "–" for cell in cells):
                    columns[_heading(folder, systems)] = cells
        if len(columns) > 1:
            yield f"### SSI, {title}: {measure}\n"
            frame = pd.DataFrame(columns, index=pd.Index([ssi.NAMES[row] for row in rows], name="system"))
            yield markdown(frame[(frame != "–").any(axis=1)].reset_index()) + "\n"


def learned(folders: Sequence[ResultFolder]) -> Iterator[str]:
    """What trained rankers gain over BM25, and what pre-training gains; nothing if neither was run."""
    parts = []
    for pipeline, title in PIPELINES_OF_LEARNING.items():
        ran = (each for each in folders if each.pipeline == pipeline and each.values("runs"))  # not only costs
        columns = dict(map(_beside_bm25, ran))
        if columns:
            rows = sorted({name for cells in columns.values() for name in cells}, key=_by_ranker)
            frame = pd.DataFrame({"system": rows, **{key: map(cells.get, rows) for key, cells in columns.items()}})
            parts += [f"### {title}\n", markdown(frame.fillna("–")) + "\n"]
            parts += [UNFINISHED] * any(MARK in cell for cells in columns.values() for cell in cells.values())
    if parts:
        yield LEARNED
        yield from parts


def _by_ranker(name: str) -> tuple[bool, str, bool]:
    """What to sort systems by: BM25 is the first one, and a ranker stands before its mixture."""
    return name != "BM25", name.rpartition(" + ")[2], " + " in name


def _beside_bm25(folder: ResultFolder) -> tuple[str, dict[str, str]]:
    """The heading of a collection, and its mean of each system, marked if it differs from BM25."""
    systems = folder.values("runs")[str(MAIN)]
    differs = significance(mean_by_query(systems), "BM25").set_index("system")["corrected"] < LEVEL
    cells = {}
    for name in systems:
        cell = f"{mean_text(systems, name)}{'*' * bool(differs.get(name, False))}"
        cells[name] = f"{cell} {MARK}" if name.rpartition(" + ")[2] in folder.unfinished() else cell
    seeds = " or ".join(map(str, sorted(seed_counts(systems) or {1})))
    return f"{_heading(folder, systems)[:-1]}, {seeds} seed{'s' * (seeds != '1')})", cells


def commands(folders: Sequence[ResultFolder]) -> Iterator[str]:
    """The commands that made the results, and the versions of packages."""
    made_by = [each for folder in folders for each in folder.made_by]
    yield "```\n" + "\n".join(map(command_with_time, made_by)) + "\n```\n"
    histories = [path for folder in folders if (path := folder.path / "histories.csv").exists()]
    training = sum(pd.read_csv(path)["seconds"].sum() for path in histories)
    yield (
        f"These {len(made_by)} runs took {sum(each['seconds'] for each in made_by) / 3600:.1f} hours together. The "
        f"trainings of networks that are kept took {training / 3600:.1f} hours of them.\n"
    )
    versions = defaultdict(set)
    for name, version in chain.from_iterable(each["packages"].items() for each in made_by):
        versions[name].add(version)
    yield "Packages: " + ", ".join(f"{name} {' or '.join(sorted(found))}" for name, found in versions.items()) + ".\n"


def command_with_time(settings: Mapping[str, Any]) -> str:
    """A command, and the time that it took."""
    seconds = settings["seconds"]
    return f"{settings['command']}  # {f'{seconds:.0f} s' if seconds < 60 else f'{seconds / 60:.0f} min'}"


if __name__ == "__main__":
    main()
