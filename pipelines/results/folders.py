"""The folders that pipelines wrote: per-query values by system, and the settings that made them."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from pipelines.common.runs import VALUES, read_values
from pipelines.common.workspace import SETTINGS

LAST = 3  # epochs
MARK = "†"
STAGES = ("nonzeros", "model")  # of the trainings of SSI that have several
MIXING = "mixing"  # the last one of correlated hashing, which only chooses a factor
UNFINISHED = f"""\
{MARK}: a training ended within {LAST} epochs of its best one, for want of time or of epochs; more of them may help.
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
        """The ``command``, ``packages`` and, if known, ``seconds`` of each run that made the results."""
        return self.settings.get("made_by") or [self.settings]

    def values(self, runs: str) -> pd.DataFrame:
        """The per-query values of a folder of runs: ``system, seed, qid, measure, value``; seed as text.

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
        for (system, *_, stage), history in histories.groupby(["system", "seed", *stages], dropna=False):
            if stage == MIXING:
                continue
            measured = history.set_index("epoch").filter(like="dev ").dropna(axis=1, how="all")
            if measured.empty:  # trained without dev queries, for a fixed number of epochs
                continue
            dev = measured.iloc[:, 0]
            best = dev.idxmin() if dev.name.endswith("RankLoss") else dev.idxmax()
            if history["epoch"].max() - best < LAST:
                found.add(system)
    rows = (row for table in folder.glob("table*.csv") for run, row in _rows_of_systems(table) if run in found)
    return found | set(rows)


@cache
def _values(folder: Path, runs: str) -> pd.DataFrame:
    path = folder / runs / VALUES
    if not path.exists():
        return pd.DataFrame(columns=["system", "seed", "qid", "measure", "value"])
    values = read_values(path)
    names = pd.Series(values["name"].unique(), dtype=object)
    parts = names.str.extract(r"^(?P<system>.*?)(?:, seed (?P<seed>\d+))?$").fillna({"seed": ""}).set_index(names)
    values = values.assign(**{part: values["name"].map(parts[part]) for part in parts})
    values = values[["system", "seed", "qid", "measure", "value"]]
    rows = [_by_row(values, table) for table in sorted(folder.glob(f"table*-{runs.removeprefix('runs-')}.csv"))]
    short = {name: re.sub(WORD_COUNT, r"\1", name) for name in parts["system"]}
    renamed = values[values["system"].isin([name for name, other in short.items() if name != other])]
    whole = pd.concat([values, *rows, renamed.assign(system=renamed["system"].map(short))], ignore_index=True)
    return whole.astype(dict.fromkeys(["system", "qid", "measure"], "category"))  # looking them up as text takes longer


def _by_row(values: pd.DataFrame, table: Path) -> pd.DataFrame:
    """The values of the systems of a table, if it names its rows and their runs."""
    rows = pd.DataFrame(_rows_of_systems(table), columns=["system", "row"], dtype=object)
    return values.merge(rows, on="system").drop(columns="system").rename(columns={"row": "system"})[list(values)]


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


def mean_text(values: pd.DataFrame, system: str) -> str:
    """The mean of a system as text, with its standard deviation over seeds if there are several; a dash without values.

    Args:
        values: What :meth:`ResultFolder.values` returns, of one measure.
        system: Its name.
    """
    means = values[values["system"] == system].groupby("seed")["value"].mean()
    if means.empty:
        return "–"
    return f"{means.mean():.3f}" + (f" ± {means.std(ddof=1):.3f}" if len(means) > 1 else "")


def result_folders(out: Path) -> Iterator[ResultFolder]:
    """All results below a folder, the best-known collections first."""
    found = [read_folder(path.parent) for path in out.glob(f"*/{SETTINGS}")]
    order = {name: place for place, name in enumerate(FIRST)}
    yield from sorted(found, key=lambda result: (order.get(result.collection, len(order)), result.collection))
