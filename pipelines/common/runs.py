"""Runs and per-query values kept in files, so that an interrupted pipeline continues where it stopped."""

import os
import re
from collections.abc import Callable, Mapping
from gzip import GzipFile
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import pandas as pd
import pyterrier as pt

from pipelines.common.arguments import as_json
from pt_neural._frames import with_scores
from pt_neural.experiment import AlphaCurve

VALUES = "values.csv.gz"
COLUMNS = ["qid", "iteration", "docno", "rank", "score", "name"]  # of a TREC run


class SavedRuns:
    """A folder of runs, each made only once.

    Args:
        folder: Where they are. It is emptied if its contents were made with other settings.
        settings: Everything that the runs depend on besides their names.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any]):
        self.folder = folder
        made_with, text = folder / "settings.json", as_json(settings)
        if made_with.exists() and made_with.read_text(encoding="utf-8") == text:
            return
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            path.unlink()
        made_with.write_text(text, encoding="utf-8")

    def run(self, name: str, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        """The result frame of a run, without ``query``: always read from its file, which is made first if necessary."""
        path = self._path(name)
        if not path.exists():
            self.save_run(name, make())
        run = _read(path, "score", sep=" ", names=COLUMNS)
        return run.astype({"rank": int})[["qid", "docno", "rank", "score"]]

    def save_run(self, name: str, run: pd.DataFrame) -> None:
        """Write a result frame as a TREC run, with the ranks by which measures are computed."""
        run, tag = with_scores(run, run["score"].to_numpy()), file_name(name).replace(" ", "-")
        write_whole(self._path(name), lambda file: pt.io.write_results(run, file, run_name=tag))

    def curve(self, name: str, make: Callable[[], AlphaCurve]) -> AlphaCurve:
        """The curve of a mixture over alpha, without folds; it is made first if there is no file of it."""
        path = self.folder / f"{file_name(name)}.alpha.csv.gz"
        if not path.exists():
            curve = make()
            values = curve.per_query.rename_axis(curve.measure)
            write_whole(path, lambda file: values.to_csv(file))
        values = pd.read_csv(path, index_col=0, dtype=str).astype(float)
        return AlphaCurve(values.set_axis(values.index.astype(float).rename(None)), values.index.name)

    def _path(self, name: str) -> Path:
        return self.folder / f"{file_name(name)}.res.gz"

    def values(self) -> pd.DataFrame:
        """Read the values that :meth:`save_values` wrote: one row per run, query and measure."""
        path = self.folder / VALUES
        return read_values(path) if path.exists() else pd.DataFrame(columns=["name", "qid", "measure", "value"])

    def save_values(self, values: pd.DataFrame) -> None:
        """Write the per-query values of runs, except NaN, which means no judgements; those of other runs stay."""
        others = self.values()
        values = pd.concat([others[~others["name"].isin(values["name"])], values.dropna(subset="value")])
        write_whole(self.folder / VALUES, lambda file: values.to_csv(file, index=False))


def read_values(path: Path) -> pd.DataFrame:
    """The per-query values of runs: ``name, qid, measure, value``."""
    return _read(path, "value")


def _read(path: Path, numbers: str, **options: Any) -> pd.DataFrame:
    """A frame of strings and one column of numbers at full precision."""
    frame = pd.read_csv(path, dtype=str, keep_default_na=False, **options)
    return frame.assign(**{numbers: frame[numbers].to_numpy(dtype=object).astype(float)})


def file_name(name: str) -> str:
    """The name of a system as a file name."""
    return re.sub(r'[\\/:*?"<>|]+', "-", name)


def write_whole(path: Path, write: Callable[[Any], None]) -> None:
    """Write a text file completely or not at all; compressed if its name ends with ``.gz``."""
    part = path.with_name(f"part-{path.name}")
    # Without the time, the same text gives the same bytes; level 9 would take most of the time.
    opened = GzipFile(part, "wb", compresslevel=1, mtime=0) if path.suffix == ".gz" else part.open("wb")
    with TextIOWrapper(opened, encoding="utf-8", newline="") as file:
        write(file)
    os.replace(part, path)
