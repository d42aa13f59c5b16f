"""Repeats the commands that made the kept results."""

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pipelines.results.folders import ResultFolder
from pipelines.results.keeping import KEPT, keep

COLLECTIONS = "$PT_NEURAL_COLLECTIONS"


def run_again(folders: Sequence[ResultFolder], out: Path, kept: Path = KEPT) -> None:
    """Run the commands one after another; interrupted pipelines go on where they stopped.

    What a command wrote is kept before the next one runs, which may write tables of the same names with other rows.
    A command whose collection lies in a folder is left out if the environment does not name the folder, and one that
    fails does not keep the others from running.
    """
    commands = [(folder.path.name, each["command"]) for folder in folders for each in folder.made_by]
    for name, command in commands:
        print(f"\n{command}", flush=True)
        if COLLECTIONS in command and COLLECTIONS[1:] not in os.environ:
            print(f"left out: set {COLLECTIONS[1:]} to a folder of collections in the BEIR layout", flush=True)
            continue
        # Split before the folder is filled in, whose name may have spaces.
        _, *words = map(os.path.expandvars, shlex.split(command))
        if subprocess.run([sys.executable, *words, "--out", str(out)], check=False).returncode:
            print("failed: run it again, since what it wrote may be incomplete", flush=True)
        else:
            keep(out, kept, only=name)
