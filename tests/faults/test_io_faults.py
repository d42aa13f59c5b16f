"""Writers whose calls fail, one after another: a clear error, nothing lost, nothing left."""

import pytest

from tests.faults import LONG
from tests.faults.writers import LUCENE, NAMES, QUICK

EVERY = 1000  # more than any but Lucene has


@pytest.mark.long
def test_a_call_that_fails_loses_nothing_and_leaves_nothing(campaign):
    names = [name for name in NAMES if name not in LUCENE] if LONG else QUICK
    counts = campaign("faults", names, EVERY if LONG else 2)
    assert sum(count["faults"] for count in counts.values()) >= (800 if LONG else 25)


@pytest.mark.long
@pytest.mark.skipif(not LONG, reason="each run starts Java")
def test_a_call_that_fails_in_lucene(campaign):
    counts = campaign("faults", LUCENE, 20)
    assert sum(count["faults"] for count in counts.values()) >= 70
