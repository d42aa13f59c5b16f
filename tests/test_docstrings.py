"""Examples with prompts are run; those without need an index or a collection, and are at least Python."""

import ast
import doctest
import inspect
import pkgutil
import re
import textwrap
from importlib import import_module

import pytest

import pt_neural

MODULES = sorted(module.name for module in pkgutil.walk_packages(pt_neural.__path__, "pt_neural."))
PLAIN = re.compile(r"^( *)Example::\n\n((?:\1    .*\n|\n)+)", re.MULTILINE)


def docstrings(name):
    """The docstrings of a module's own classes, functions and methods."""
    module = import_module(name)
    for _, one in inspect.getmembers(module, lambda one: inspect.isclass(one) or inspect.isfunction(one)):
        if one.__module__ == name:
            yield inspect.getdoc(one) or ""
            members = vars(one).values() if inspect.isclass(one) else []
            yield from (inspect.getdoc(member) or "" for member in members if callable(member))


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    failed, _ = doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert not failed, capsys.readouterr().out


def test_examples_without_prompts_are_python():
    found = 0
    for name in MODULES:
        for text in docstrings(name):
            for _, code in PLAIN.findall(f"{text}\n"):
                if ">>>" not in code:
                    ast.parse(textwrap.dedent(code))
                    found += 1
    assert found > 50
