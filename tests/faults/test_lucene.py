"""Lucene under attack: damaged files, killed writers, hostile queries, and many queries in one process."""

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from pt_neural import LuceneIndex
from tests.faults import LONG
from tests.faults.lucene import build, use

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.long


def start(*arguments, heap="256m"):
    """A process of the campaigns, whose output are lines of JSON."""
    variables = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PT_NEURAL_JAVA_HEAP": heap}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.faults.lucene", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*arguments):
    """All that such a process says."""
    process = start(*arguments)
    said, errors = process.communicate(timeout=7200)
    assert process.returncode == 0, errors[-3000:]
    return [json.loads(line) for line in said.splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with an index, and another one of other documents."""
    folder = tmp_path_factory.mktemp("lucene")
    build(folder / "whole", 1)
    build(folder / "other", 2)
    return folder


def damages(folder, number):
    """What came of so many damages, and of those that ended their process."""
    outcomes, fatal, first = [], [], 0
    while first < number:
        process = start("damage", folder, first, number)
        lines = [json.loads(line) for line in process.communicate(timeout=7200)[0].splitlines()]
        outcomes += [line for line in lines if "outcome" in line]
        tried = [line for line in lines if "damage" in line]
        if process.returncode:
            assert tried, process.returncode
            fatal.append((process.returncode, tried[-1]))
        names = {line["number"]: line["damage"] for line in tried}
        for line in outcomes:
            line.setdefault("damage", names.get(line["number"]))
        first = tried[-1]["number"] + 1
    return outcomes, fatal


def test_damaged_indexes_are_refused_or_give_the_same(folder):
    outcomes, fatal = damages(folder, 1000 if LONG else 30)
    counts = Counter(line["outcome"] for line in outcomes)
    print(f"damaged Lucene indexes: {dict(counts)}, ended the process: {len(fatal)}")
    assert fatal == []
    assert [line for line in outcomes if line["outcome"] not in ("same", "refused", "other result")] == []
    assert [line for line in outcomes if line["verified"] == "missed"] == []
    assert [line for line in outcomes if line["seconds"] > 20] == []


def test_killed_indexers_leave_an_index_that_works(folder, tmp_path):
    expected, rng, kills = {}, random.Random(1), 100 if LONG else 3
    path = tmp_path / "killed"
    build(path, 0, number=150)
    for _ in range(kills):
        process = start("rebuild", tmp_path)
        seed = json.loads(process.stdout.readline())["built"]
        time.sleep(rng.random())
        process.kill()
        process.communicate()
        version = LuceneIndex(path).docnos()[0].partition("-")[0]
        assert int(version) >= seed - 1
        if version not in expected:
            expected[version] = use(build(tmp_path / "expected", int(version), number=150))
        assert use(LuceneIndex(path)) == expected[version]
    print(f"killed indexers: {kills}, with an index that works each time")


def test_hostile_queries(folder):
    said = run("hostile", folder, 2_000 if LONG else 25)
    seconds = max(line["seconds"] for line in said)
    print(f"hostile queries: {sum(line['queries'] for line in said)}, the slowest 25 in {seconds:.1f} s")
    assert seconds < 20


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_handles_and_mappings_stay_flat(folder):
    said = run("soak", folder, 20_000 if LONG else 500)
    early, late = said[9], said[-1]
    print(f"{sum(line['queries'] for line in said)} queries, {len(said)} rebuilds: {early} half-way, {late} at the end")
    assert late["megabytes"] - early["megabytes"] < 60
    assert late["handles"] - early["handles"] < 20
    assert late["mappings of the index"] - early["mappings of the index"] < 60
