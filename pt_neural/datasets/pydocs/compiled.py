"""Docstrings of compiled code, which no source file holds: numpy's ufuncs, scipy.special, pandas' Timestamp."""

import inspect
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

#: Modules whose compiled members are read at run time. They are loaded by PyTerrier anyway, or light.
COMPILED = {
    "numpy": ("numpy", "numpy.random"),
    "scipy": ("scipy.special", "scipy.spatial"),
    "pandas": ("pandas",),
}


def compiled_docs(package: str) -> Iterator[tuple[str, str]]:
    """Dotted names and dedented docstrings of a package's compiled functions, classes and methods.

    Args:
        package: Import name, a key of :data:`COMPILED` or one without compiled modules to read.
    """
    for module_name in COMPILED.get(package, ()):
        module = import_module(module_name)
        for name, thing in _public(module):
            if _is_compiled(thing):
                yield from _documented(f"{module_name}.{name}", thing)
                if inspect.isclass(thing):
                    for member, inner in _public(thing):
                        yield from _documented(f"{module_name}.{name}.{member}", inner)


def _public(thing: Any) -> list[tuple[str, Any]]:
    return [(name, getattr(thing, name, None)) for name in sorted(dir(thing)) if not name.startswith("_")]


def _documented(name: str, thing: Any) -> Iterator[tuple[str, str]]:
    doc = getattr(thing, "__doc__", None)
    if isinstance(doc, str) and doc != type(thing).__doc__:
        yield name, inspect.cleandoc(doc)


def _is_compiled(thing: Any) -> bool:
    if isinstance(thing, ModuleType) or inspect.isfunction(thing):
        return False
    if inspect.isclass(thing):
        return not any(inspect.isfunction(member) for member in vars(thing).values())
    return callable(thing)
