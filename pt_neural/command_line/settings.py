"""Settings, given as NAME=VALUE or in a TOML file, and checked against the signature of what takes them."""

import inspect
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from pt_neural._files import ArtifactError

_NAME = re.compile(r"[a-z]\w*(\.[a-z]\w*)?", re.IGNORECASE)
_KINDS = {"int": (int,), "float": (int, float), "str": (str,), "bool": (bool,)}
_IN_WORDS = {"int": "an integer", "float": "a number", "str": "a text", "bool": "true or false"}


def read_settings(given: Sequence[str], file: Path | None = None) -> dict[str, Any]:
    """The settings of a TOML file, and those of the command line, which take precedence.

    Args:
        given: ``NAME=VALUE``, where NAME may be ``TABLE.NAME``. A value is written as in TOML; what is not TOML is a
            text, and ``null`` is None.
        file: The TOML file.

    Returns:
        Values by name, and a dict for each table.

    Raises:
        click.UsageError: If a setting or the file cannot be read.

    Example::

        >>> read_settings(["layers=[100, 50]", "training.epochs=3", "training.negatives=retrieved"])
        {'layers': [100, 50], 'training': {'epochs': 3, 'negatives': 'retrieved'}}
    """
    try:
        settings = {} if file is None else tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{file} is not TOML: {error}") from None
    for each in given:
        name, equals, text = each.partition("=")
        name = name.strip()
        if not equals or not _NAME.fullmatch(name):
            raise click.UsageError(f"a setting is written NAME=VALUE, not {each!r}")
        *tables, own = name.split(".")
        place = settings.setdefault(tables[0], {}) if tables else settings
        if not isinstance(place, dict):
            raise click.UsageError(f"{name} is not a setting, since {tables[0]} has a value")
        place[own] = _value(text.strip())
    return settings


def _value(text: str) -> Any:
    try:
        return None if text == "null" else tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def check_settings(settings: Mapping[str, Any], taker: Callable, *, but: Collection[str] = ()) -> None:
    """Raise a UsageError unless settings are arguments of a class or function, and of their types.

    Args:
        settings: Values by name.
        taker: The class or function. Its annotations are compared where they are a single simple type; other values
            are checked when it is called.
        but: Its arguments that are no settings.
    """
    parameters = inspect.signature(taker).parameters
    kinds = inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL
    known = [name for name, each in parameters.items() if name not in ("self", *but) and each.kind not in kinds]
    for name, value in settings.items():
        if name not in known:
            close = get_close_matches(name, known, 1)
            meant = f" (did you mean {close[0]}?)" if close else ""
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise click.UsageError(f"{taker.__name__} has no setting {name}{meant}; {has}")
        kind = getattr(parameters[name].annotation, "__name__", parameters[name].annotation)
        if kind in _KINDS and (not isinstance(value, _KINDS[kind]) or (kind != "bool" and isinstance(value, bool))):
            raise click.UsageError(f"{name} must be {_IN_WORDS[kind]}, not {value!r:.80}")


@contextmanager
def refusals_are_misuse() -> Iterator[None]:
    """Turn errors of arguments in the block into usage errors; damaged artifacts are none."""
    try:
        yield
    except ArtifactError:
        raise
    except (TypeError, ValueError) as error:
        raise click.UsageError(" ".join(str(error).split())) from error
