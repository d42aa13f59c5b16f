"""Packages whose names are loaded on first use."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy(package: str, files: Mapping[str, str]) -> Callable[[str], Any]:
    """A ``__getattr__`` for a package: loads each name, on first use, from the file of the package that has it.

    Example::

        __getattr__ = lazy(__name__, {"Mixture": "mixture"})
    """

    def load(name: str) -> Any:
        if name not in files:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{files[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
