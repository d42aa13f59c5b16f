"""The command line of the pipelines: shared options, and how a run is recorded so that it can be repeated."""

import argparse
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pipelines.common.collection import FIELDS, FOLDER, Collection, short_name

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
PSEUDO = ("title", "sentence", "span")
# Arguments that choose what is made, not how it is made: a run with the same name is the same whatever they are.
# --hash-sizes is not among them, since the names of hash kernels round their sizes.
CHOICES = {
    *("dataset", "out", "seeds", "models", "settings"),
    *("windows", "tables", "figures", "parts", "examples", "sizes", "single_fields", "queries_train", "trials"),
    *("rows", "row_note", "name_note", "keywords", "dims", "nonzeros", "truncated_dims", "embedded_terms"),
    *("shares", "figure_dims"),
}


class _Help(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Keeps the description as it is written, and shows defaults."""


class _OneSeed(argparse.Action):
    """Refuses several seeds."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: list[int],
        option_string: str | None = None,
    ) -> None:
        if len(values) > 1:
            about = "this pipeline trains with one seed only; run it once for each seed, each time with another --out"
            raise argparse.ArgumentError(self, about)
        setattr(namespace, self.dest, values)


def parser(description: str, dataset: str = "neural:pydocs", *, one_seed: bool = False) -> argparse.ArgumentParser:
    """The options of every pipeline.

    Args:
        description: What the pipeline makes.
        dataset: The default of ``--dataset``.
        one_seed: Whether ``--seeds`` takes a single seed, since the pipeline trains everything once.
    """
    path = Path(sys.argv[0])
    program = f"python -m pipelines.{path.parent.name if path.stem == '__main__' else path.stem}"
    arguments = argparse.ArgumentParser(program, description=description, formatter_class=_Help, allow_abbrev=False)
    arguments.add_argument("--dataset", default=dataset, help="name for pt.get_dataset, such as irds:vaswani")
    arguments.add_argument("--out", type=Path, default=Path("results"), help="folder for tables, pictures and runs")
    about = "training seeds; the first is also used for sampling and for whatever is the same for all seeds"
    about = "seed of training and of sampling; only one" if one_seed else about
    action = _OneSeed if one_seed else "store"
    arguments.add_argument("--seeds", type=int, nargs="+", default=[13], action=action, help=about)
    return arguments


def add_training(arguments: argparse.ArgumentParser) -> None:
    """Add the options of every pipeline that trains rankers."""
    arguments.add_argument("--fields", nargs="+", default=list(FIELDS), help="fields that all rankers read")
    arguments.add_argument("--epochs", type=int, default=20, help="maximum number of training epochs")
    arguments.add_argument("--batch-size", type=int, default=256, help="groups per step; None: the model's own default")
    arguments.add_argument("--groups", type=int, help="maximum number of training groups per epoch; None: all")
    arguments.add_argument("--queries", type=int, help="sample size of dev and of test queries; None: all")


def add_recipes(arguments: argparse.ArgumentParser) -> None:
    """Add the options of every pipeline that trains rankers with the settings of their recipes."""
    arguments.add_argument("--fields", nargs="+", default=list(FIELDS), help="fields that all rankers read")
    arguments.add_argument("--depth", type=int, default=100, help="candidates per query")
    arguments.add_argument("--queries", type=int, help="sample size of dev and of test queries; None: all")
    arguments.add_argument("--small", action="store_true", help="networks and epochs of small sizes, for a laptop")
    about = "maximum number of training epochs; None: the recipe's"
    arguments.add_argument("--epochs", type=int, help=about)
    about = "epochs without improvement on dev queries before training stops; None: the recipe's"
    arguments.add_argument("--patience", type=int, help=about)
    arguments.add_argument("--max-time", help='longest time that a model may train, such as "00:00:10:00"; None: any')


def add_pseudo_queries(arguments: argparse.ArgumentParser) -> None:
    """Add the option to train without the queries of the dataset."""
    about = "train on queries made from the documents in this way, instead of the queries of the dataset"
    arguments.add_argument("--pseudo-queries", choices=PSEUDO, help=about)


def training_parser(description: str, rows: Sequence[str], default: Sequence[str]) -> argparse.ArgumentParser:
    """The options of every pipeline that trains re-rankers of BM25's results.

    Args:
        description: What the pipeline makes.
        rows: The choices of ``--models``.
        default: Those made by default.
    """
    arguments = parser(description)
    add_training(arguments)
    arguments.add_argument("--depth", type=int, default=100, help="candidates per query")
    add_pseudo_queries(arguments)
    arguments.add_argument("--dim", type=int, default=200, help="dimensions of LSA and of word embeddings")
    arguments.add_argument("--models", nargs="+", choices=rows, default=list(default), help="rows besides BM25")
    return arguments


def add_negatives(arguments: argparse.ArgumentParser, grades: str) -> None:
    """Add the options that say which documents are negatives.

    Args:
        arguments: Where to add them.
        grades: The default of ``--grades``.
    """
    about = "where our models' negatives come from; None: judged ones if there are any, else retrieved ones"
    arguments.add_argument("--negatives", choices=["judged", "retrieved"], help=about)
    scheme = 'grades of positives with those of their negatives: auto, all, or JSON such as \'{"3": [1, 0], "2": [0]}\''
    arguments.add_argument("--grades", type=grade_scheme, default=grades, help=scheme)


def grade_scheme(text: str) -> str | dict[int, list[int]]:
    """The value of ``--grades``: ``"auto"``, ``"all"``, or a scheme as JSON."""
    if text in ("auto", "all"):
        return text
    try:
        return {int(grade): [int(lower) for lower in grades] for grade, grades in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError):
        raise argparse.ArgumentTypeError(f"must be auto, all, or like '{{\"3\": [1, 0]}}', not {text}") from None


def parsed(arguments: argparse.ArgumentParser) -> argparse.Namespace:
    """The arguments of the command line, with ``seed``, the first of the seeds."""
    values = arguments.parse_args()
    values.seed = values.seeds[0]
    return values


def package_versions() -> dict[str, str]:
    """The versions of the packages that results depend on."""
    return {name: version(name) for name in PACKAGES}


def run_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """What the runs of a pipeline depend on, besides the dataset and the name of the system."""
    settings = {name: value for name, value in vars(arguments).items() if name not in CHOICES}
    return {**settings, "packages": package_versions()}


def command(pipeline: str, given: list[str], collection: Collection) -> str:
    """The command line that makes the same results on any machine.

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
            words.append(_portable(word) if word.startswith(FOLDER) else shlex.quote(word))
    module = f"pipelines.{pipeline.replace('-', '_')}"
    return " ".join(["python -m", module, "--dataset", _portable(collection.name), *words])


def _portable(name: str) -> str:
    """The name of a dataset, with a folder's location left to the environment."""
    label = shlex.quote(short_name(name))
    return f"{FOLDER}$PT_NEURAL_COLLECTIONS/{label}" if name.startswith(FOLDER) else label


def as_json(settings: Mapping[str, Any]) -> str:
    """Settings as the text of a JSON file."""
    return json.dumps(settings, indent=2, sort_keys=True, default=str) + "\n"
