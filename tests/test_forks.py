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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_computes_without_the_threads_of_its_parent_and_is_told_so():
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-W", "ignore", "-c", FORK]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    child, parent = ended.stdout.splitlines()[-2:]
    assert child.startswith("1 this process was forked from one that uses torch, whose threads do not survive a fork")
    assert "spawn" in child
    assert parent == "0 2"
