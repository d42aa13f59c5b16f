"""Docstrings of compiled code, which no source file holds: numpy's ufuncs, scipy.special, pandas' Timestamp."""

import inspect
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

from pt_neural.datasets.pydocs.sources import Definition

#: Modules whose compiled members are read at run time. They are loaded by PyTerrier anyway, or light.
COMPILED = {
    "numpy": ("numpy", "numpy.random"),
    "scipy": ("scipy.special", "scipy.spatial"),
    "pandas": ("pandas",),
}


def compiled_docs(package: str) -> Iterator[tuple[str, Definition]]:
    """Public names and definitions of a package's compiled functions, classes and methods; aliases share a home.

    Args:
        package: Import name, a key of :data:`COMPILED` or one without compiled modules to read.
    """
    for module_name in COMPILED.get(package, ()):
        for name, thing in _public(import_module(module_name)):
            if _is_compiled(thing):
                home = f"{module_name}.{getattr(thing, '__name__', name)}"
                yield f"{module_name}.{name}", Definition(home, _doc(thing))
                for member, inner in _public(thing) if inspect.isclass(thing) else ():
                    yield f"{module_name}.{name}.{member}", Definition(f"{home}.{member}", _doc(inner))


def _public(thing: Any) -> list[tuple[str, Any]]:
    return [(name, getattr(thing, name, None)) for name in sorted(dir(thing)) if not name.startswith("_")]


def _doc(thing: Any) -> str:
    doc = getattr(thing, "__doc__", None)
    return inspect.cleandoc(doc) if isinstance(doc, str) and doc != type(thing).__doc__ else ""


def _is_compiled(thing: Any) -> bool:
    if isinstance(thing, ModuleType) or inspect.isfunction(thing):
        return False
    if inspect.isclass(thing):
        return not any(inspect.isfunction(member) for member in vars(thing).values())
    return callable(thing)
