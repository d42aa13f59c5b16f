"""What made the results of a pipeline: its arguments, as a command and as JSON, and the versions of packages."""

import argparse
import json
import shlex
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from pipelines.common import FOLDER, Collection, short_name

PACKAGES = (
    "pt-neural",
    "pyterrier",
    "pyterrier-dr",
    "pyserini",
    "gensim",
    "torch",
    "lightning",
    "lightgbm",
    "tomotopy",
    "scikit-learn",
    "numpy",
)
# Arguments that choose what is made, not how it is made.
CHOICES = {
    *("dataset", "out", "seeds", "models", "settings"),
    *("windows", "tables", "figures", "parts", "examples", "sizes"),
}


def versions() -> dict[str, str]:
    """The versions of the packages that results depend on."""
    return {name: version(name) for name in PACKAGES}


def of_runs(arguments: argparse.Namespace) -> dict[str, Any]:
    """What any run of a pipeline depends on, besides its dataset and its name."""
    how = {name: value for name, value in vars(arguments).items() if name not in CHOICES}
    return {**how, "packages": versions()}


def command(pipeline: str, given: list[str], collection: Collection) -> str:
    """The command line that makes the same results anywhere.

    Args:
        pipeline: Name of the pipeline.
        given: The arguments that were given.
        collection: The dataset.
    """
    words, rest = [], iter(given)
    for word in rest:
        if word in ("--dataset", "--out"):
            next(rest)
        elif not word.startswith(("--dataset=", "--out=")):
            words.append(_dataset(word) if word.startswith(FOLDER) else shlex.quote(word))
    module = f"pipelines.{pipeline.replace('-', '_')}"
    return " ".join(["python -m", module, "--dataset", _dataset(collection.name), *words])


def _dataset(name: str) -> str:
    """The name of a dataset, with that of a folder's place left to the environment."""
    label = short_name(name)
    return f"{FOLDER}$PT_NEURAL_COLLECTIONS/{label}" if name.startswith(FOLDER) else label


def as_json(settings: Mapping[str, Any]) -> str:
    """Settings as the text of a JSON file."""
    return json.dumps(settings, indent=2, sort_keys=True, default=str) + "\n"
