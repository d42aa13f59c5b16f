"""How a benchmark runs matchzoo-py in an interpreter of its own.

matchzoo-py needs an environment of its own, made once (Python 3.11), with the torch that pt_neural runs on:

    python3.11 -m venv matchzoo
    matchzoo/bin/pip install torch==2.13.0 numpy==1.23.5 pandas==1.5.3 nltk dill h5py tqdm future \
        hyperopt==0.1.2 pytorch-transformers
    matchzoo/bin/pip install --no-deps matchzoo-py==1.1.1
"""

import argparse
import json
import os
import shutil
import subprocess
from pathlib import Path

PEERS = Path(__file__).parents[1] / "peers"


def add_argument(parser: argparse.ArgumentParser) -> None:
    """The option that names the interpreter."""
    parser.add_argument("--matchzoo", default=os.environ.get("PT_NEURAL_MATCHZOO"), help="python that has matchzoo-py")


def check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Stop with an error message if the interpreter is named but does not exist."""
    if options.matchzoo and not shutil.which(options.matchzoo):
        parser.error(f"PT_NEURAL_MATCHZOO or --matchzoo names {options.matchzoo}, which is not a program")


def measure(python: str | None, script: str, data: Path, **options: object) -> dict | None:
    """The figures that a script of benchmarks/peers prints for this data; None without an interpreter."""
    if not python:
        return None
    arguments = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    command = [python, str(PEERS / script), "--data", str(data), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=data.parent)
    if done.returncode:
        raise SystemExit(f"matchzoo-py failed; the end of its output:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def print_memory(theirs: dict | None) -> None:
    """Print matchzoo-py's memory and the table that some models make beforehand, or how to have it measured."""
    if theirs is None:
        print("matchzoo-py is not measured: set PT_NEURAL_MATCHZOO to the python of an environment that has it;")
        print("the head of benchmarks/parts/matchzoo.py says how to make one")
        return
    table = ""
    if theirs["ngrams"]:
        table = f"table of {theirs['ngrams']:,} n-graphs {theirs['table_seconds']:.1f} s beforehand, "
    print(f"matchzoo-py: {table}{theirs['peak_memory'] / 1e9:.1f} GB at most")
