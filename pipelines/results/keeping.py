"""The small files of results that stay in the repository: values by query and seed, tables, and how they were made."""

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from pipelines.common.arguments import as_json
from pipelines.common.runs import VALUES, read_values, write_whole
from pipelines.common.workspace import markdown
from pipelines.results.folders import ResultFolder, read_folder, result_folders
from pipelines.results.shown import SHOWN

KEPT = Path(__file__).parent / "kept"
PUBLIC = ("command", "seconds", "packages")  # the other settings of a command name folders of a machine
DIGITS = 5  # of a value
SEED = r", seed \d+$"  # of the name of a run
ROW_KEYS = {  # of the tables that several runs may add rows to
    "histories.csv": ["system", "seed"],
    "curves.csv": ["system", "kind", "queries"],
    "costs.csv": ["system"],
    "reranking.csv": ["system"],
    "figure3.csv": ["system", "queries"],
    "figure4-gains.csv": ["system"],
    "figure4-values.csv": ["system"],
}
NAMED = ["row"]  # the key column of the SSI paper's tables


def keep(out: Path, kept: Path = KEPT, only: str | None = None) -> list[str]:
    """Copy what the page needs of all results below a folder, or of those in the folder of one name.

    Systems of an earlier run of the pipeline on the same test queries stay beside the new ones, so that systems can be
    run at different times; those of the same name are replaced. If the test queries are others, all earlier results go,
    and if a system has other values now, all earlier tables that show it.

    Returns:
        The names of the folders.
    """
    names = []
    for folder in result_folders(out):
        if only not in (None, folder.path.name):
            continue
        place = kept / folder.path.name
        if not _same_queries(folder.path, place):
            shutil.rmtree(place, ignore_errors=True)
        earlier = read_folder(place).made_by if place.exists() else []
        new = {name: folder.settings[name] for name in PUBLIC if name in folder.settings}
        again = [each["command"] == new["command"] for each in earlier]
        place.mkdir(parents=True, exist_ok=True)
        _drop_tables(place, _keep_values(folder.path, place))
        _keep_tables(folder, place, again=any(again))
        # A repeated command stays in its place, since later ones may have made some of its systems anew.
        made_by = [new if same else each for each, same in zip(earlier, again, strict=True)] + [new] * (not any(again))
        settings = {"pipeline": folder.pipeline, "collection": folder.collection, "made_by": made_by}
        (place / "settings.json").write_text(as_json(settings), encoding="utf-8")
        names.append(place.name)
    return names


def _same_queries(path: Path, place: Path) -> bool:
    """Whether the runs of both folders that have the same name are of the same queries."""
    for values in path.glob(f"*/{VALUES}"):
        earlier = place / values.parent.name / VALUES
        if earlier.exists() and set(read_values(earlier)["qid"]) != set(read_values(values)["qid"]):
            return False
    return True


def _keep_values(path: Path, place: Path) -> set[str]:
    """Keep values of runs; returns the systems that had others before, without their seeds."""
    changed: set[str] = set()
    for new in sorted(path.glob(f"*/{VALUES}")):
        file = place / new.parent.name / VALUES
        file.parent.mkdir(exist_ok=True)
        values = read_values(new).round({"value": DIGITS})
        if file.exists():
            earlier = read_values(file)
            both = earlier.merge(values, on=["name", "qid", "measure"])
            others = _of_other_seeds(earlier["name"], values["name"])
            names = pd.concat([both.loc[both["value_x"] != both["value_y"], "name"], earlier.loc[others, "name"]])
            changed |= set(names.str.replace(SEED, "", regex=True))
            values = with_rows(earlier[~others], values, ["name"])
        write_whole(file, lambda opened, values=values: values.to_csv(opened, index=False))
    return changed


def _drop_tables(place: Path, changed: set[str]) -> None:
    """Delete the tables that show a system whose values have changed, except those that get new rows."""
    for table in sorted(place.glob("*.csv")):
        if not _row_keys(table) and changed & _systems_of(table):
            print(f"{table.name} of {place.name} is no longer kept: it shows earlier values of a system", flush=True)
            table.unlink()
            table.with_suffix(".md").unlink(missing_ok=True)


def _systems_of(table: Path) -> set[str]:
    """The systems that a table may have as rows or as columns; a cell may name two, joined by "&" or a backslash."""
    frame = pd.read_csv(table, dtype=str, keep_default_na=False)
    return {name for cell in (*frame.columns, *frame.to_numpy().ravel()) for name in re.split(r" [&\\] ", cell)}


def _of_other_seeds(earlier: pd.Series, new: pd.Series) -> pd.Series:
    """Which names are of systems that were run without a seed and now have seeds, or the reverse."""
    system, seeded = earlier.str.replace(SEED, "", regex=True), new.str.contains(SEED)
    without = system == earlier
    return without & earlier.isin(new[seeded].str.replace(SEED, "", regex=True)) | ~without & system.isin(new[~seeded])


def _keep_tables(folder: ResultFolder, place: Path, *, again: bool) -> None:
    """Copy tables.

    Those of ``ROW_KEYS``, and those whose rows are named, get the new rows, also where they are shown; others are
    copied unless the table of another command is there.

    Args:
        folder: The new results.
        place: Where they are kept.
        again: Whether the command is one of those that made what is kept. Even then, a table that shows systems which
            the new one lacks stays, since it is of another one of them.
    """
    shown = {f"{table}.md" for table in SHOWN.get(folder.pipeline, ())}
    for table in sorted(folder.path.iterdir()):
        file, keys = place / table.name, _row_keys(table)
        if file.exists() and keys:
            # Empty cells of named rows stay empty, since they are text beside numbers of the paper.
            earlier, new = (pd.read_csv(path, keep_default_na=keys != NAMED) for path in (file, table))
            rows = with_rows(earlier, new, keys)
            rows.to_csv(file, index=False)
            if file.with_suffix(".md").name in shown:
                caption = table.with_suffix(".md").read_text(encoding="utf-8").partition("\n\n")[0]
                file.with_suffix(".md").write_text(f"{caption}\n\n{markdown(rows)}\n", encoding="utf-8")
        elif table.suffix == ".csv" or table.name in shown:
            new, earlier = (path.with_suffix(".csv") for path in (table, file))
            if not file.exists() or (again and _systems_of(earlier) & _kept_systems(place) <= _systems_of(new)):
                shutil.copyfile(table, file)


def _kept_systems(place: Path) -> set[str]:
    """All systems whose values are kept, without their seeds."""
    names = [read_values(values)["name"] for values in place.glob(f"*/{VALUES}")]
    return set(pd.concat(names).str.replace(SEED, "", regex=True)) if names else set()


def _row_keys(table: Path) -> list[str]:
    """The columns that tell the rows of a table apart, if several runs may add to it."""
    if table.suffix == ".csv" and set(NAMED) <= set(pd.read_csv(table, nrows=0)):
        return NAMED
    return ROW_KEYS.get(table.name, [])


def with_rows(earlier: pd.DataFrame, new: pd.DataFrame, keys: Iterable[str]) -> pd.DataFrame:
    """The rows of both frames, without earlier ones whose keys are among the new ones."""
    keys = list(keys)
    old = pd.MultiIndex.from_frame(earlier[keys]).isin(pd.MultiIndex.from_frame(new[keys]))
    return pd.concat([earlier[~old], new], ignore_index=True)
