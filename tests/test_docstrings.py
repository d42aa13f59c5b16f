"""Examples in docstrings: those with prompts run, and the others are at least valid Python."""

import ast
import doctest
import inspect
import pkgutil
import re
import textwrap
from importlib import import_module
from pathlib import Path

import pytest

import pt_neural

ROOT = Path(pt_neural.__file__).parents[1]
MODULES = sorted(module.name for module in pkgutil.walk_packages(pt_neural.__path__, "pt_neural."))
PLAIN = re.compile(r"^( *)Example::\n\n((?:\1    .*\n|\n)+)", re.MULTILINE)
PROMPTS = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in Path(pt_neural.__file__).parent.rglob("*.py")
    if re.search(r"^ +>>> ", path.read_text(encoding="utf-8"), re.MULTILINE)
)


def docstrings(name):
    """The docstrings of the classes, functions and methods that a module defines."""
    module = import_module(name)
    for _, thing in inspect.getmembers(module, lambda thing: inspect.isclass(thing) or inspect.isfunction(thing)):
        if thing.__module__ == name:
            yield inspect.getdoc(thing) or ""
            members = vars(thing).values() if inspect.isclass(thing) else []
            yield from (inspect.getdoc(member) or "" for member in members if callable(member))


@pytest.mark.parametrize("name", PROMPTS)
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
