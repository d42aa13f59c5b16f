import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RUN = [sys.executable, "-m", "tests.faults.campaign"]


def run(command: list[str], **environment: str) -> str:
    """What a program prints, run where the tests are, on one core."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="session")
def prepared(tmp_path_factory) -> Path:
    """A folder with what the writers read."""
    folder = tmp_path_factory.mktemp("prepared") / "prepared"
    folder.mkdir()
    code = "import sys; from pathlib import Path; from tests.faults.writers import prepare; prepare(Path(sys.argv[1]))"
    run([sys.executable, "-c", code, str(folder)])
    return folder


@pytest.fixture(scope="session")
def library(tmp_path_factory) -> Path:
    """faults.c, compiled; tests that need it are skipped without a compiler, or where it cannot be loaded first."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("faults.c needs Linux and a C compiler")
    path = tmp_path_factory.mktemp("library") / "faults.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", path, Path(__file__).with_name("faults.c")], check=True)
    return path


@pytest.fixture
def campaign(prepared, library, tmp_path) -> Callable[..., dict[str, Any]]:
    """Runs a campaign of so many events of each writer, prints its counts, and gives them by writer."""

    def campaign(kind: str, names: list[str], events: int, *, before: list[str] | None = None, **environment: str):
        folder = tmp_path / "disk"
        shutil.copytree(prepared, folder / "prepared")
        command = [*(before or []), *RUN, kind, str(folder), str(events), "7", *names]
        lines = run(command, LD_PRELOAD=str(library), **environment).splitlines()
        counts = {name: count for line in lines if line.startswith("{") for name, count in json.loads(line).items()}
        for name, found in counts.items():
            print(f"{kind} of {name}: {found}")
        assert list(counts) == names
        return counts

    return campaign
