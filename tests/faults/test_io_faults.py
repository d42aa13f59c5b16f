"""Writers whose calls fail, one after another: a clear error, nothing lost, nothing left."""

import pytest

from tests.faults import LONG
from tests.faults.writers import NAMES, QUICK

EVERY = 1000  # more than any writer has


@pytest.mark.long
def test_a_call_that_fails_loses_nothing_and_leaves_nothing(campaign):
    counts = campaign("faults", NAMES if LONG else QUICK, EVERY if LONG else 4)
    assert sum(count["faults"] for count in counts.values()) >= (1000 if LONG else 50)
