"""Torch in forked children, in processes of their own, because threads that once ran stay."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FORK = """
import os, warnings
import numpy as np
import torch
import pt_neural as pn
from pt_neural.rankers.vectors import all_products
from tests.rankers.fitted import CANDIDATES, fit, fitted, like, saved, scores, unfitted

torch.set_num_threads(2)
torch.randn(1000, 1000) @ torch.randn(1000, 1000)
expected = {name: scores(fitted(name), CANDIDATES) for name in ("CLSM", "Duet", "LSA")}
saved("Duet")
matrix = np.ones((20_000, 50), dtype=np.float32)
child = os.fork()
if not child:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        np.testing.assert_allclose(scores(like("Duet"), CANDIDATES), expected["Duet"], atol=1e-5)
        for name, found in expected.items():
            np.testing.assert_allclose(scores(fitted(name), CANDIDATES), found, atol=1e-5)
        assert all_products(matrix[:3], matrix)[0, 0] == 50
        fit(unfitted("DSSM"))
    told = [str(one.message) for one in caught if "fork" in str(one.message)]
    print(len(told), told[0], flush=True)
    os._exit(0)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(code, torch.get_num_threads(), flush=True)
"""


WATCHED = """
import warnings
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from pt_neural import _forks
from tests.rankers.fitted import BARE, CANDIDATES, CORPUS, TOPICS, fit, fitted, folder, forward, like, saved, unfitted

class Watch(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), keywords=None):
        # "detach" makes no parallel loop
        if torch.get_num_threads() > 1 and "detach" not in str(function):
            early.append(f"{name}: {function}")
        return function(*args, **keywords or {})

def child(work):
    "Work as in a child of a process with torch, with a look at each operation before it runs."
    torch.set_num_threads(2)
    _forks._with_torch = True
    with Watch():
        return work()

early = []
warnings.simplefilter("ignore")
for name in ("DSSM", "DRMM", "LSA"):
    saved(name)
    child(lambda: fit(unfitted(name)))
    child(lambda: fitted(name).transform(CANDIDATES))
    child(lambda: like(name, documents=forward()).transform(BARE))
    if name != "DRMM":
        kept = child(lambda: fitted(name).index(folder() / f"{name}.child", CORPUS, verbose=False))
    if hasattr(fitted(name), "retriever"):
        child(lambda: fitted(name).retriever(kept).transform(TOPICS))
print(sorted(set(early)))
"""


@pytest.mark.long
def test_no_operation_runs_before_the_threads_are_given_up():
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-W", "ignore", "-c", WATCHED]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert ended.stdout.splitlines()[-1:] == ["[]"], ended.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_computes_without_the_threads_of_its_parent_and_is_told_so():
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-W", "ignore", "-c", FORK]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    child, parent = ended.stdout.splitlines()[-2:]
    assert child.startswith("1 this process was forked from one that uses torch, whose threads do not survive a fork")
    assert "spawn" in child
    assert parent == "0 2"
