"""Writers that are killed, whose calls fail, or whose disk is full.

After a kill, before a file event or at any time, the old or the new artifact is there, and works. A call that fails is
a clear error, which loses nothing and leaves nothing; so is a lack of room.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.faults import LONG
from tests.faults.writers import FITS, LUCENE, NAMES, QUICK

EVERY = 1000  # more calls than any but Lucene has
LARGE = ["forward index", "term vectors", "spaces", "corpus shards"]
ALL_LARGE = [*LARGE, "vectors", "representations", "Lucene index"]
DOCUMENTS = {"PT_NEURAL_FAULTS_DOCUMENTS": "3000"}  # whose artifacts are larger than what is always free


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


def own_disk(folder: Path) -> list[str]:
    """What goes before a command, so that it finds a disk of some megabytes at a folder, with what lay there."""
    script = 'cp -r "$0" "$0.kept" && mount -t tmpfs -o size=40m tmpfs "$0" && cp -r "$0.kept/." "$0" && exec "$@"'
    return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, str(folder)]


@pytest.mark.long
def test_a_full_disk(campaign, tmp_path):
    (tmp_path / "tried").mkdir()
    tried = shutil.which("unshare") and subprocess.run([*own_disk(tmp_path / "tried"), "true"], capture_output=True)
    if not tried or tried.returncode:
        pytest.skip("this machine allows no mounting")
    names, events = (ALL_LARGE, 8) if LONG else (LARGE, 1)
    counts = campaign("full_disk", names, events, before=own_disk(tmp_path / "disk"), **DOCUMENTS)
    assert all(count["errors"] == events for count in counts.values())
