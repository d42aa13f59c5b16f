import subprocess
import sys

import pytest

from pt_neural import _memory
from pt_neural._memory import freed_memory_kept

FAULTS = """
import resource, numpy as np
from contextlib import nullcontext
from pt_neural._memory import freed_memory_kept

def faults(context):
    with context:
        np.ones(10_000_000)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(5):
            np.ones(10_000_000)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(faults(nullcontext()), faults(freed_memory_kept()), faults(nullcontext()))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="about glibc")
def test_memory_is_mapped_once_within_the_block_only():
    output = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True).stdout
    before, within, after = map(int, output.split())
    assert within < 0.2 * before
    assert after > 0.5 * before


def test_blocks_within_blocks_end_with_the_last(monkeypatch):
    found = []
    monkeypatch.setattr(_memory, "_set", lambda mallopt, thresholds: found.append(thresholds[0]))
    with freed_memory_kept():
        with freed_memory_kept():
            pass
        inside = list(found)
    if found:  # there is a mallopt
        assert set(inside) == {2**31 - 1}
        assert found[len(inside) :] == [2**26]
