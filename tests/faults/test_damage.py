"""Damaged artifacts are refused, or give the same scores; none ends the process, and verifying finds the others."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.faults import LONG
from tests.faults.damage import USES, make_all

RUNS = 2000 if LONG else len(USES)
FINE = ("refused", "same", "other, unless verified")


@pytest.mark.long
def test_damage_is_refused_or_harmless(tmp_path):
    make_all(tmp_path)
    command = [sys.executable, "-m", "tests.faults.damage", str(tmp_path), "0", str(RUNS)]
    root = Path(__file__).parents[2]
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(root)}
    done = subprocess.run(command, cwd=root, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    reports = list(map(json.loads, lines))
    print(f"{len(reports):,} damaged artifacts:", dict(Counter(report["outcome"] for report in reports)))
    assert len(reports) == RUNS
    worse = [line for line, report in zip(lines, reports, strict=True) if report["outcome"] not in FINE]
    assert not worse, "\n".join(worse)
