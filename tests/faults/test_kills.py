"""Writers that are killed before a file event, or at any time: the old or the new artifact is there, and works."""

import pytest

from tests.faults import LONG
from tests.faults.writers import FITS, NAMES, QUICK


@pytest.mark.long
def test_killed_writers_leave_the_old_or_the_new_artifact(campaign):
    names = [name for name in NAMES if name not in FITS] if LONG else QUICK
    counts = campaign("kills", names, 16 if LONG else 4)
    assert sum(count["kills"] for count in counts.values()) >= (200 if LONG else 30)


@pytest.mark.long
def test_killed_fits_end_with_the_same_weights(campaign):
    names = FITS if LONG else ["fit of SSI"]
    counts = campaign("kills", names, 20 if LONG else 2)
    assert sum(count["kills"] for count in counts.values()) >= (40 if LONG else 2)
