"""What is opened at a path, all of one version: an index may be replaced at any time, even while it is opened."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pt_neural._artifacts import recover
from pt_neural._files import ArtifactError

ATTEMPTS = 20  # to open an index between two of its replacements
MOST = 64  # indexes that are kept open


class Version(NamedTuple):
    """A folder with a Lucene index, and what changes when the index is replaced."""

    path: Path
    inode: int
    modified: int


class LatestOpened:
    """Opens something of an index, and keeps the latest version of it until the index has been replaced.

    All its files are of one version, since the index is the same before and after they are opened. What has been
    opened earlier lives as long as somebody uses it.

    Args:
        open: ``open(path, parts)`` opens the index at a path, whose Lucene indexes are in the folders ``parts``.
    """

    def __init__(self, open: Callable[[Path, Sequence[Path]], Any]):
        self._open = open
        self._kept: OrderedDict[Path, tuple[list[Version], Any]] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, path: Path, parts: Callable[[], Sequence[Path]]) -> Any:
        """What is at ``path`` now; ArtifactError if it is damaged, or replaced again and again."""
        path = path.resolve()
        for _ in range(ATTEMPTS):
            versions = versions_of(parts())
            kept, opened = self._kept.get(path, (None, None))
            if kept == versions:
                self._keep(path, versions, opened)
                return opened
            try:
                opened = self._open(path, [version.path for version in versions])
            except (OSError, ValueError):
                if versions_of(parts()) == versions:
                    raise
                continue
            if versions_of(parts()) == versions:
                self._keep(path, versions, opened)
                return opened
        raise ArtifactError(f"{path} was rebuilt again and again while it was opened; open it again later")

    def _keep(self, path: Path, versions: list[Version], opened: Any) -> None:
        with self._lock:
            self._kept[path] = versions, opened
            self._kept.move_to_end(path)
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)

    def clear(self) -> None:
        """Keep nothing."""
        self._kept.clear()


def versions_of(parts: Sequence[Path]) -> list[Version]:
    """The present versions of Lucene indexes; ArtifactError if one of the folders holds none."""
    return [_version(part) for part in parts]


def _version(path: Path) -> Version:
    recover(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; build the index with LuceneIndex({str(path)!r}).index(...)")
    if not path.is_dir():
        raise ArtifactError(f"{path} is a file; a Lucene index is a directory")
    listed = path.stat().st_ino
    commits = sorted(path.glob("segments_*"))
    if not commits:
        if path.stat().st_ino != listed:  # the folder that was listed has been replaced, and is being deleted
            return _version(path)
        raise ArtifactError(f"{path} holds no Lucene index (no file segments_N)")
    try:
        status = commits[-1].stat()
    except FileNotFoundError:  # the index has just been replaced
        return _version(path)
    return Version(path.resolve(), status.st_ino, status.st_mtime_ns)
