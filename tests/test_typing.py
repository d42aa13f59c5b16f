"""What type checkers and editors see."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import pt_neural as pn

STUB = Path(pn.__file__).with_suffix(".pyi")
CONFIG = """\
[mypy]
follow_imports = skip
ignore_missing_imports = True
[mypy-pt_neural,pt_neural.models.clsm.*,pt_neural.rankers.*,pt_neural.training,pt_neural.training.settings]
follow_imports = silent
"""
RIGHT = """\
import pt_neural as pn

pn.DSSM((300, 128), ngram_sizes=(3,), training=pn.Training(epochs=2), fields="text")
"""
WRONG = """\
import pt_neural as pn

pn.DSSM((300, 128), training="yes")
pn.DSSM((300, 128), trainin=pn.Training())
pn.Training(epochs="two")
pn.Dssm()
"""


def test_the_stub_names_what_is_public():
    imports = [f"from pt_neural import {room} as {room}" for room in pn._ROOMS]
    for name, home in pn._HOMES.items():
        value = getattr(import_module(home), name)
        if value.__name__ == name:
            imports.append(f"from {value.__module__} import {name} as {name}")
        else:
            assert f"{name} = {value.__name__}" in STUB.read_text().splitlines()
    assert [line for line in STUB.read_text().splitlines() if line.startswith("from")] == sorted(imports)


@pytest.mark.long
def test_mypy_refuses_wrong_arguments_and_names(tmp_path):
    pytest.importorskip("mypy")
    for name, text in (("mypy.ini", CONFIG), ("right.py", RIGHT), ("wrong.py", WRONG)):
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "right.py", "wrong.py"]
    environment = {"MYPYPATH": str(STUB.parents[1]), "PATH": ""}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert [line.split(":")[:2] for line in errors] == [["wrong.py", str(number)] for number in (3, 4, 5, 6)], done


def test_jedi_completes_public_names():
    jedi = pytest.importorskip("jedi")
    found = {completion.name for completion in jedi.Script("import pt_neural as pn\npn.").complete(2, 3)}
    assert set(pn.__all__) <= found
