"""Quality by the number of training queries: the curves of all collections, and the papers' orderings along them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from pipelines.common.comparison import MAIN
from pipelines.common.workspace import markdown, slug
from pipelines.learning_curves import curves_figure
from pipelines.results.folders import MARK, UNFINISHED, ResultFolder, Systems, query_count, seed_counts
from pipelines.results.orderings import BY_SIZE, Ordering, outcome_of, trend_of, with_queries

CURVES = "curves.csv"
SECTION = f"""\
## By the number of training queries

{MAIN} of rankers with the settings of their recipes, trained on the first queries of a random order of the training
queries, alone and mixed with BM25 (± is the standard deviation over seeds). An epoch has at most 2,000 groups, whatever
the number of queries, and the best epoch is chosen on 100 dev queries, drawn anew for each seed; so training on many
queries may end before it has seen them all. Below the values are the orderings of the papers, tested as above. *rises*
means that the difference is significantly larger with the most queries than with the fewest. Such an ordering may hold
with more data even if it fails here. Where an ordering compares a system with the best of several, only those that
learn from queries count here, and BM25 if it is one of them; it is tested only on collections where all that learn have
a curve.

When does a ranker start to pay? Mixed with BM25, with 1,000 queries: all mixtures have a higher mean than BM25, except
on debian/synopses those with SSI, ARC-I, ARC-II, MV-LSTM and the distributed part of the Duet. Alone, none reaches the
tuned BM25 with 1,000 queries; with all of them, KNRM, Match-Tensor, DSSM (with one network or two, see below) and the
Duet are above it on cpp-docs/keywords, and no network is on debian/synopses, where the translation models are level
with it.

On debian/synopses, SSI does not learn from queries: in 9 of 12 trainings, nDCG@10 of dev queries never exceeded that of
the untrained start, which was kept. The other three are among those with 1,000 and with 26,000 queries, whose means are
level with that of the start on test queries (.424 and .430 against .432; p = .430 and .678).

DSSM reads queries and documents with one network, as its recipes do below 50,000 training queries, and with two in its
own row.
"""


def curve_folders(folders: Sequence[ResultFolder]) -> list[ResultFolder]:
    """The results that have learning curves."""
    return [each for each in folders if each.pipeline == "learning-curves" and (each.path / CURVES).exists()]


def curve_picture(folder: ResultFolder) -> Figure:
    """The curves of a collection, with BM25 as a line."""
    frame, systems = pd.read_csv(folder.path / CURVES), folder.values("runs")[str(MAIN)]
    seeds = seed_counts(systems)
    number = " to ".join(map(str, sorted({min(seeds), max(seeds)})))
    return curves_figure(frame, _bm25(systems), f"{folder.collection}, {number} seeds")


def picture_name(folder: ResultFolder) -> str:
    """The file of its picture."""
    return f"learning-curves-{slug(folder.collection)}.png"


def curve_section(folders: Sequence[ResultFolder], pictures: Path) -> Iterator[str]:
    """The section of the page; nothing if there are no curves.

    Args:
        folders: All results.
        pictures: Where the page finds the pictures.
    """
    folders = curve_folders(folders)
    if folders:
        yield SECTION
    for folder in folders:
        systems = folder.values("runs")[str(MAIN)]
        yield f"### {folder.collection} ({query_count(systems):,} queries)\n"
        yield f"![{MAIN} by training queries]({pictures / picture_name(folder)})\n"
        frame = pd.read_csv(folder.path / CURVES)
        table = curve_table(frame, folder.unfinished(), _bm25(systems))
        yield markdown(table) + "\n"
        if table["system"].str.endswith(MARK).any():
            yield UNFINISHED
        orderings = ordering_table(folder)
        if len(orderings):
            yield markdown(orderings) + "\n"


def _bm25(systems: Systems) -> float:
    return systems["BM25"].to_numpy().mean()


def curve_table(frame: pd.DataFrame, unfinished: set[str], bm25: float) -> pd.DataFrame:
    """A row for BM25 and for each ranker, alone and mixed, and a column for each number of queries."""
    rows = [{"system": "BM25", **{f"{queries:,}": f"{bm25:.3f}" for queries in frame["queries"].unique()}}]
    for (kind, system), found in frame.groupby(["kind", "system"], sort=False):
        cells = {
            f"{queries:,}": f"{value:.3f}" + ("" if pd.isna(deviation) else f" ± {deviation:.3f}")
            for queries, value, deviation in zip(found["queries"], found[str(MAIN)], found["sd"], strict=True)
        }
        name = f"BM25 + {system}" if kind == "mixed" else system
        marked = any(f"{system}, {queries} queries" in unfinished for queries in cells)
        rows.append({"system": f"{name} {MARK}" if marked else name, **cells})
    sizes = [f"{queries:,}" for queries in sorted(frame["queries"].unique())]
    return pd.DataFrame(rows, columns=["system", *sizes]).fillna("–")


def ordering_table(folder: ResultFolder) -> pd.DataFrame:
    """A row for each ordering whose systems were run, a column for each number of queries, and the trend."""
    values, sizes, rows = folder.values("runs"), _sizes(folder), []
    for ordering, along in _orderings(folder):
        outcomes = {f"{size:,}": outcome_of(each, values).difference for size, each in along.items()}
        name = f"{ordering.says} ({ordering.paper}, {ordering.where})"
        rows.append({"ordering": name, **outcomes, "trend": _trend(along, values) or "–"})
    return pd.DataFrame(rows, columns=["ordering", *(f"{size:,}" for size in sizes), "trend"]).fillna("–")


def trends(folder: ResultFolder) -> dict[tuple[str, str, str], str]:
    """Whether the difference of an ordering grows with the number of queries, by its paper, place and words."""
    values = folder.values("runs")
    found = {(each.paper, each.where, each.says): _trend(along, values) for each, along in _orderings(folder)}
    return {key: trend for key, trend in found.items() if trend}


def _orderings(folder: ResultFolder) -> Iterator[tuple[Ordering, dict[int, Ordering]]]:
    """The orderings whose systems were run, each for the numbers of training queries that both systems learned from."""
    values = folder.values("runs")
    known = set().union(*values.values())
    for ordering in BY_SIZE:
        along = {size: with_queries(ordering, size) for size in _sizes(folder)}
        # The best of several at one size may be another one at the next, so all of them must be there.
        sets = {
            size: each for size, each in along.items() if not isinstance(each.worse, frozenset) or each.worse <= known
        }
        found = {size: each for size, each in sets.items() if outcome_of(each, values) is not None}
        if len(found) > 1:
            yield ordering, found


def _sizes(folder: ResultFolder) -> list[int]:
    """The numbers of training queries of all rankers."""
    return sorted(pd.read_csv(folder.path / CURVES)["queries"].unique())


def _trend(along: dict[int, Ordering], values: dict[str, Systems]) -> str | None:
    first, *_, last = along.values()
    return trend_of(first, last, values)
