"""The folders that pipelines wrote: per-query values by system, and the settings that made them."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pipelines.common.runs import VALUES, read_values
from pipelines.common.workspace import SETTINGS

Systems = dict[str, pd.DataFrame]  # a row for each query and a column for each seed
LAST = 3  # epochs
MARK = "†"
STAGES = ("nonzeros", "model")  # of the trainings of SSI that have several
MIXING = "mixing"  # the last one of correlated hashing, which only chooses a factor
UNFINISHED = f"""\
{MARK}: a training ended fewer than {LAST} epochs after its best one, for want of time or of epochs; more may help.
"""
WORD_COUNT = r"(, n = [\d,]+, N = [\d,]+), [\d,]+ words$"  # at the end of the name of a system of SSI
FIRST = ("neural:pydocs", "neural:pydocs/links", "irds:vaswani", "cpp-docs/keywords", "cpp-docs/links", "cacm")


@dataclass(frozen=True)
class ResultFolder:
    """The results of one pipeline on one collection.

    Attributes:
        path: Where they are.
        settings: How they were made.
    """

    path: Path
    settings: dict[str, Any]

    @property
    def pipeline(self) -> str:
        """The pipeline's name."""
        return self.settings["pipeline"]

    @property
    def collection(self) -> str:
        """The collection's short name."""
        return self.settings["collection"]

    @property
    def made_by(self) -> list[dict[str, Any]]:
        """The ``command``, ``seconds`` and ``packages`` of each run that made the results."""
        return self.settings.get("made_by") or [self.settings]

    def values(self, runs: str) -> dict[str, Systems]:
        """The values of each measure in a folder of runs, by system. Seeds are text, empty for what has none.

        Systems of the SSI paper's tables are also there under the number of the table and the row: ``"1: low-rank"``.
        Those with n frequent words are also there without the number of words of the collection at the end of their
        names, so that one name fits all collections.
        """
        return _values(self.path, runs)

    def unfinished(self) -> set[str]:
        """Systems and rows of SSI's tables that may not have been trained for long enough, see ``UNFINISHED``."""
        return _unfinished(self.path)


@cache
def _unfinished(folder: Path) -> set[str]:
    path, found = folder / "histories.csv", set()
    if path.exists():
        histories = pd.read_csv(path)
        stages = [column for column in STAGES if column in histories]
        histories = histories[(histories[stages] != MIXING).all(axis=1)]
        trainings = [histories[key] for key in ("system", "seed", *stages)]
        last = histories["epoch"].groupby(trainings, dropna=False).transform("max")
        for measure in histories.filter(like="dev "):  # what was trained without dev queries has none
            dev = histories[measure].dropna() * (-1 if measure.endswith("RankLoss") else 1)
            best = histories.loc[dev.groupby(trainings, dropna=False).idxmax()]
            found |= set(best.loc[last - best["epoch"] < LAST, "system"])
    rows = (row for table in folder.glob("table*.csv") for run, row in _rows_of_systems(table) if run in found)
    return found | set(rows)


@cache
def _values(folder: Path, runs: str) -> dict[str, Systems]:
    path = folder / runs / VALUES
    if not path.exists():
        return {}
    others = defaultdict(list)  # the other names of a system
    for table in sorted(folder.glob(f"table*-{runs.removeprefix('runs-')}.csv")):
        for system, row in _rows_of_systems(table):
            others[system].append(row)
    return {measure: _systems(values, others) for measure, values in read_values(path).groupby("measure", sort=False)}


def _systems(values: pd.DataFrame, others: dict[str, list[str]]) -> Systems:
    by_run = values.pivot(index="qid", columns="name", values="value")  # noqa: PD010 (pivot_table takes twice as long)
    queries, numbers = by_run.index.astype(object), by_run.to_numpy()  # indices of text take much longer
    columns = {run: column for column, run in enumerate(by_run.columns)}
    runs = defaultdict(dict)
    for run in values["name"].unique():
        system, seed = re.fullmatch(r"(.*?)(?:, seed (\d+))?", run).groups(default="")
        runs[system][seed] = run
    systems = {}
    for system, by_seed in runs.items():
        seeds = pd.Index(sorted(by_seed), dtype=object)
        found = numbers[:, [columns[by_seed[seed]] for seed in seeds]]
        known = ~np.isnan(found).all(axis=1)
        found = pd.DataFrame(found[known], queries[known], seeds)
        systems |= dict.fromkeys((system, *others[system], re.sub(WORD_COUNT, r"\1", system)), found)
    return systems


def _rows_of_systems(table: Path) -> list[tuple[str, str]]:
    """Each system of a table of the SSI paper, with the table and the row, such as ``"1: low-rank"``."""
    frame = pd.read_csv(table, keep_default_na=False)
    if not {"row", "run"} <= set(frame):
        return []
    number = re.match(r"table(.*?)-(?!k\d|mates)", table.name)[1].replace("-k", ", k = ").replace("-mates", ", mates")
    return [(run, f"{number}: {row}") for row, run in zip(frame["row"], frame["run"], strict=True)]


def read_folder(path: Path) -> ResultFolder:
    """The results in a folder."""
    return ResultFolder(path, json.loads((path / SETTINGS).read_text(encoding="utf-8")))


def mean_text(systems: Systems, name: str) -> str:
    """The mean of a system as text, with its standard deviation over seeds if there are several; a dash without values.

    Args:
        systems: The values of one measure by system.
        name: The system's name.
    """
    if name not in systems:
        return "–"
    means = systems[name].mean()
    return f"{means.mean():.3f}" + (f" ± {means.std(ddof=1):.3f}" if len(means) > 1 else "")


def mean_by_query(systems: Systems) -> pd.DataFrame:
    """The means over seeds: one row per query and one column per system."""
    return pd.DataFrame({name: values.mean(axis="columns") for name, values in systems.items()})


def query_count(systems: Systems) -> int:
    """How many queries systems were run on."""
    return len(set().union(*(values.index for values in systems.values())))


def seed_counts(systems: Systems) -> set[int]:
    """The numbers of seeds of those systems that depend on one."""
    return {values.shape[1] for values in systems.values() if list(values) != [""]}


def result_folders(out: Path) -> Iterator[ResultFolder]:
    """All results below a folder, the best-known collections first."""
    found = [read_folder(path.parent) for path in out.glob(f"*/{SETTINGS}")]
    yield from sorted(found, key=lambda result: collection_order(result.collection))


def collection_order(collection: str) -> tuple[int, str]:
    """A key that sorts the best-known collections first, and others by name."""
    return FIRST.index(collection) if collection in FIRST else len(FIRST), collection
