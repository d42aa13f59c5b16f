"""Runs and the values of their queries, kept in files, so that an interrupted pipeline goes on where it was."""

import gzip
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyterrier as pt

from pipelines.settings import as_json

VALUES = "values.csv.gz"
COLUMNS = ["qid", "iteration", "docno", "rank", "score", "name"]  # of a TREC run


class KeptRuns:
    """A folder of runs that are made once.

    Args:
        folder: Where they are. It is emptied if what is in it was made with other settings.
        settings: All that the runs depend on, besides their names.
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
        """The result frame of a run, read from its file after it was made if it is not there: no ``query``."""
        path = self._path(name)
        if not path.exists():
            self.save_run(name, make())
        run = _read(path, "score", sep=" ", names=COLUMNS)
        return run.astype({"rank": int})[["qid", "docno", "rank", "score"]]

    def save_run(self, name: str, run: pd.DataFrame) -> None:
        """Write a result frame as a TREC run."""
        tag = file_name(name).replace(" ", "-")
        write_whole(self._path(name), lambda file: pt.io.write_results(run, file, run_name=tag))

    def _path(self, name: str) -> Path:
        return self.folder / f"{file_name(name)}.res.gz"

    def values(self) -> pd.DataFrame:
        """What :meth:`save_values` wrote: one row a run, query and measure."""
        path = self.folder / VALUES
        return read_values(path) if path.exists() else pd.DataFrame(columns=["name", "qid", "measure", "value"])

    def save_values(self, values: pd.DataFrame) -> None:
        """Write the values of the queries of some runs, beside those of the others."""
        others = self.values()
        values = pd.concat([others[~others["name"].isin(values["name"])], values])
        write_whole(self.folder / VALUES, lambda file: values.to_csv(file, index=False))


def read_values(path: Path) -> pd.DataFrame:
    """The values of the queries of runs: ``name, qid, measure, value``."""
    return _read(path, "value")


def _read(path: Path, numbers: str, **options: Any) -> pd.DataFrame:
    """A frame of texts and one column of numbers, to their last digit."""
    frame = pd.read_csv(path, dtype=str, keep_default_na=False, **options)
    return frame.assign(**{numbers: frame[numbers].to_numpy(dtype=object).astype(float)})


def file_name(name: str) -> str:
    """The name of a system as that of a file."""
    return re.sub(r'[\\/:*?"<>|]+', "-", name)


def write_whole(path: Path, write: Callable[[Any], None]) -> None:
    """Write a text file as a whole, or not at all; compressed if it is named ``.gz``."""
    part = path.with_name(f"part-{path.name}")
    with (gzip.open if path.suffix == ".gz" else open)(part, "wt", encoding="utf-8", newline="") as file:
        write(file)
    os.replace(part, path)
