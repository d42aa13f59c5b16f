"""The options that rankers share: declared and documented here, and shown in the signature of each ranker."""

import inspect
import textwrap
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

if TYPE_CHECKING:
    import os

    from pyterrier_dr import FlexIndex

    from pt_neural.rankers.kept.document_representations import DocumentRepresentations
    from pt_neural.rankers.kept.term_vectors import TermVectors
    from pt_neural.text import ForwardIndex
    from pt_neural.training import Training


class RankerOptions(TypedDict, total=False):
    """Options of every ranker."""

    fields: str | Sequence[str] | None
    documents: "ForwardIndex | None"
    batch_size: int
    verbose: bool | None


class RepresentationOptions(RankerOptions, total=False):
    """Options of rankers that represent queries and documents separately."""

    vectors: "FlexIndex | TermVectors | str | os.PathLike | None"


class TrainedOptions(RankerOptions, total=False):
    """Options of rankers with a trained network."""

    training: "Training | None"
    device: str


class TowerOptions(RepresentationOptions, TrainedOptions, total=False):
    """Options of rankers with two trained towers."""


class LearnedOptions(RepresentationOptions, total=False):
    """Options of rankers that represent queries and documents separately, and train without a network."""

    training: "Training | None"


class KeptInteractionOptions(TrainedOptions, total=False):
    """Options of interaction rankers whose documents can be encoded beforehand."""

    representations: "DocumentRepresentations | None"


class Option(NamedTuple):
    """One shared option: its default where neither the user nor the model gives a value, and its description."""

    default: Any
    text: str


OPTIONS = {
    "training": Option(None, "How to train, see :class:`~pt_neural.Training`; None for the model's own settings."),
    "fields": Option(
        None,
        "Text columns, joined by a space. Missing columns are skipped, but one must be present. None for those of "
        "``documents``, or ``title`` and ``text`` without a forward index.",
    ),
    "documents": Option(
        None,
        "A forward index: training and re-ranking then need ``docno`` only, no text and no tokenising.",
    ),
    "vectors": Option(
        None, "What :meth:`index` returned, or its path: re-ranking by ``docno`` then reads stored representations."
    ),
    "representations": Option(
        None, "What :meth:`index` returned: re-ranking by ``docno`` then reads documents that were encoded beforehand."
    ),
    "device": Option("auto", 'Where to score: ``"auto"`` (a GPU if there is one), ``"cpu"``, ``"cuda"``, ``"mps"``.'),
    "batch_size": Option(1024, "Documents read at a time, at most."),
    "verbose": Option(
        None,
        "True: show progress bars and reports of all work. False: of none. None: of fitting and indexing, which take "
        "long and happen once, but not of scoring.",
    ),
}


def option_names(declared: type) -> list[str]:
    """The options that a TypedDict declares, in the order of signatures."""
    return [name for name in OPTIONS if name in declared.__annotations__]


def own_parameters(initialiser: Callable) -> dict[str, inspect.Parameter]:
    """The parameters of a constructor that are not shared options."""
    parameters = inspect.signature(initialiser).parameters
    kinds = inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL
    return {
        name: parameter
        for name, parameter in parameters.items()
        if name != "self" and name not in OPTIONS and parameter.kind not in kinds
    }


def show_options(cls: type, declared: type, defaults: dict[str, Any]) -> None:
    """Give the constructor of a class a signature with all options, and its docstring their descriptions.

    The constructor takes them as ``**options``; ``help()``, editors and PyTerrier's inspection see each by name.
    """
    if "__init__" not in cls.__dict__:

        @wraps(cls.__init__)
        def initialise(self: Any, *args: Any, **options: Any) -> None:
            super(cls, self).__init__(*args, **options)

        cls.__init__ = initialise
    names = option_names(declared)
    own = own_parameters(cls.__init__).values()
    keyword = inspect.Parameter.KEYWORD_ONLY
    shared = [
        inspect.Parameter(name, keyword, default=defaults[name], annotation=_type(declared, name)) for name in names
    ]
    owner = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    cls.__init__.__signature__ = inspect.Signature([owner, *own, *shared])
    if "__doc__" in cls.__dict__ and cls.__doc__:
        cls.__doc__ = _documented(cls.__doc__, names)


def _type(declared: type, name: str) -> Any:
    annotation = declared.__annotations__[name]
    return getattr(annotation, "__forward_arg__", annotation)


def _documented(docstring: str, names: Sequence[str]) -> str:
    """The docstring, without indentation, with the options that it does not describe added to its arguments."""
    docstring = inspect.cleandoc(docstring)  # as Python 3.13 compiles it
    head, found, rest = docstring.partition("\nArgs:\n")
    arguments, blank, rest = rest.partition("\n\n")
    missing = [name for name in names if f"    {name}: " not in f"\n{arguments}"]
    lines = [
        textwrap.fill(f"{name}: {OPTIONS[name].text}", 114, initial_indent=" " * 4, subsequent_indent=" " * 8)
        for name in missing
    ]
    if not found:
        first, blank, rest = docstring.partition("\n\nRaises:")
        if not blank:
            first, blank, rest = docstring.partition("\n\nExample::")
        return first.rstrip() + "\n\nArgs:\n" + "\n".join(lines) + blank + rest
    return head + found + "\n".join([arguments.rstrip(), *lines]) + blank + rest
