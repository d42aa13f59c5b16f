"""A disk without room: an error that says how much is needed, the old artifact as it was, and nothing left."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.faults import LONG

WRITERS = ["forward index", "term vectors", "spaces", "corpus shards"]
ALL = [*WRITERS, "vectors", "representations", "Lucene index"]
DOCUMENTS = {"PT_NEURAL_FAULTS_DOCUMENTS": "3000"}  # whose artifacts are larger than what is always free


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
    events = 8 if LONG else 1
    counts = campaign("full_disk", ALL if LONG else WRITERS, events, before=own_disk(tmp_path / "disk"), **DOCUMENTS)
    assert all(count["errors"] == events for count in counts.values())
