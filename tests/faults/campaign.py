"""Writers that are killed, or whose calls fail, at one file event after another; run with faults.c loaded first.

``python -m tests.faults.campaign {kills,faults,full_disk} FOLDER EVENTS SEED WRITER...`` prints counts for each writer,
as JSON. The folder has what ``writers.prepare`` wrote.
"""

import collections
import contextlib
import ctypes
import errno
import importlib
import itertools
import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults.writers import NEW, OLD, Writer, digest, writers

OPEN, WRITE, RENAME, REMOVE, SYNC, MAKE = 1, 2, 4, 8, 16, 32
CHANGES = OPEN | WRITE | RENAME | REMOVE | SYNC | MAKE
FAILING = WRITE | RENAME | SYNC
ABSENT = "absent"


def forked(act: Callable[[], Any], *, kill_after: float | None = None) -> tuple[int, Any]:
    """Call a function in a forked process; gives the signal that ended it, or 0, and the result."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            result = act()
        except BaseException as error:
            result = {"error": type(error).__mro__[:-2], "message": str(error), "trace": traceback.format_exc()}
            result["error"] = [kind.__name__ for kind in result["error"]]
        os.write(writing, json.dumps(result).encode())
        os.kill(os.getpid(), signal.SIGKILL) if kill_after else os._exit(0)
    os.close(writing)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(reading, "rb") as file:
        text = file.read()
    status = os.waitpid(child, 0)[1]
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, json.loads(text) if text else None


class Campaign:
    """One writer in a folder of its own; every run begins with the old version, or with none."""

    def __init__(self, folder: Path, name: str):
        self.writer: Writer = writers(folder / "prepared")[name]
        self.folder, self.target = folder / "place", folder / "place" / "artifact"
        self.counts: collections.Counter[str] = collections.Counter()
        self.library = ctypes.CDLL(None)
        self.old = None
        self.folder.mkdir(exist_ok=True)
        self.expected = {}
        for version in (OLD, NEW) if self.writer.overwrites else (NEW,):
            self.begin(None)
            self._import(lambda version=version: self.writer.write(self.target, version))
            self._import(lambda: self.writer.use(self.target))
            self.expected[version] = self.used()
            if version == OLD:
                self.old = shutil.copytree(self.target, folder / f"old {name}")

    def begin(self, number: int | None) -> set[str]:
        """Lay out the folder for a run, every third of which finds no artifact; gives what may be there afterwards."""
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        if number is None or self.old is None or number % 3 == 0:
            return {ABSENT, self.expected.get(NEW)}
        shutil.copytree(self.old, self.target)
        return {self.expected[OLD], self.expected[NEW]}

    def write(self, event: int, kinds: int, fault: int) -> Any:
        """Write the new version in a forked process, which is struck at an event; gives the number of events."""

        def act() -> int:
            self.library.strike(os.fsencode(self.folder), ctypes.c_long(event), kinds, fault)
            self.writer.write(self.target, NEW)
            return self.library.events()

        return act

    def _import(self, act: Callable[[Any], Any]) -> None:
        """Call a function in a forked process, and import what it has imported, so that later ones need not."""

        def modules() -> list[str]:
            act()
            return sorted(name for name in sys.modules if not name.startswith("jnius"))  # which starts Java

        for name in self._succeed(modules):
            if name not in sys.modules:
                with contextlib.suppress(Exception):
                    importlib.import_module(name)

    def used(self) -> str:
        """What a user gets who reads the artifact."""
        if not self.target.exists():  # a reader would put back what was moved aside; here nothing is
            return ABSENT
        return self._succeed(lambda: digest(self.writer.use(self.target)))

    def leftovers(self) -> list[str]:
        """What is in the folder beside the artifact, and what is unfinished within it."""
        unfinished = [path.name for path in self.folder.rglob("*.tmp")]
        return sorted({path.name for path in self.folder.iterdir()} - {self.target.name} | set(unfinished))

    def require(self, holds: bool, what: str) -> None:
        if not holds:
            raise AssertionError(f"{what}; counts so far: {dict(self.counts)}")

    def require_next_write(self, where: str) -> None:
        """The next write, or the fit that goes on, succeeds and leaves nothing but the new version."""
        if self.writer.overwrites or not self.target.exists():
            self._succeed(lambda: self.writer.write(self.target, NEW) and None)
        self.require(self.used() == self.expected[NEW], f"{where}: the next write gave something else")
        self.require(not self.leftovers(), f"{where}: {self.leftovers()} left after the next write")

    def num_events(self, kinds: int) -> int:
        self.begin(1)
        return self._succeed(self.write(0, kinds, 0))

    def kills(self, events: int, seed: int) -> None:
        """Kill the writer before events, spread evenly over all of them, and a quarter as often at random times."""
        total = self.num_events(CHANGES)
        started = time.perf_counter()
        self.num_events(CHANGES)
        duration = time.perf_counter() - started
        self.counts["events"] = total
        drawn = random.Random(seed)
        chosen = _spread(drawn, total, events)
        for number, event in enumerate([*chosen, *[None] * (events // 4)]):
            allowed = self.begin(number)
            if event is None:
                ended, result = forked(self.write(0, CHANGES, 0), kill_after=drawn.uniform(0, duration))
            else:
                ended, result = forked(self.write(event, CHANGES, 0))
            where = f"killed before event {event} of {total}" if event else "killed at a random time"
            if ended:
                self.require(ended == signal.SIGKILL, f"{where}: ended by signal {ended}")
                self.counts["kills"] += 1
            else:
                self.require(isinstance(result, int), f"{where}: {result}")
                self.counts["runs with fewer events"] += 1
            if self.old is not None or not self.target.exists():
                found = self.used()
                self.require(found in allowed, f"{where}: there is neither the old nor the new artifact")
                self.counts["old or none" if found != self.expected[NEW] else "new"] += 1
            self.require_next_write(where)

    def faults(self, events: int, seed: int) -> None:
        """Let calls fail, one in each run, spread evenly over all of them."""
        total = self.num_events(FAILING)
        self.counts["events"] = total
        chosen = _spread(random.Random(seed), total, events)
        for number, event in enumerate(chosen):
            for fault in (errno.ENOSPC, errno.EIO):
                allowed = self.begin(number)
                ended, result = forked(self.write(event, FAILING, fault))
                where = f"{errno.errorcode[fault]} at event {event} of {total}"
                self.require(not ended, f"{where}: ended by signal {ended}")
                self.counts["faults"] += 1
                if isinstance(result, dict):
                    self.counts[result["error"][0]] += 1
                    self.require(_is_clear(result, fault), f"{where}: {result}")
                    left = [name for name in self.leftovers() if not name.endswith((".shards", ".corpus"))]
                    self.require(not left, f"{where}: left {left} after {result['message']}")
                else:
                    self.counts["no error"] += 1
                    allowed = {self.expected[NEW]}
                if self.old is not None or not self.target.exists():
                    self.require(self.used() in allowed, f"{where}: neither the old nor the new artifact: {result}")
                self.require_next_write(where)

    def full_disk(self, events: int, seed: int) -> None:
        """Write to a disk on which less and less of the room for the new version is free."""
        self.begin(None)
        self._succeed(lambda: self.writer.write(self.target, NEW) and None)
        size = sum(path.stat().st_size for path in self.target.rglob("*"))
        for number in range(events):
            allowed = self.begin(1)
            free = shutil.disk_usage(self.folder).free
            wanted = int(size * number / events)
            with (self.folder.parent / "filler").open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, free - wanted)
            ended, result = forked(self.write(0, CHANGES, 0))
            where = f"{wanted:,} of {size:,} bytes free"
            self.require(not ended, f"{where}: ended by signal {ended}")
            self.counts["errors"] += 1
            self.require(isinstance(result, dict) and _is_clear(result, errno.ENOSPC), f"{where}: {result}")
            self.require(not self.leftovers(), f"{where}: left {self.leftovers()} after {result}")
            self.require(self.used() == self.expected[OLD] in allowed, f"{where}: the old artifact is gone")
            (self.folder.parent / "filler").unlink()
            self.require(shutil.disk_usage(self.folder).free >= free, f"{where}: less is free than before")
            self.require_next_write(where)

    def _succeed(self, act: Callable[[], Any]) -> Any:
        ended, result = forked(act)
        self.require(not ended, f"ended by signal {ended}")
        if isinstance(result, dict):
            raise AssertionError(result["trace"])
        return result


def _spread(drawn: random.Random, total: int, count: int) -> list[int]:
    """Events among so many, one drawn from each of as many parts."""
    bounds = [total * part // count for part in range(count + 1)]
    return sorted({drawn.randint(low + 1, max(low + 1, high)) for low, high in itertools.pairwise(bounds)})


def _is_clear(result: dict[str, Any], fault: int) -> bool:
    """Whether an error is the system's, or says what the system said."""
    return "OSError" in result["error"] or os.strerror(fault) in result["message"]


def main(kind: str, folder: str, events: str, seed: str, *names: str) -> None:
    for name in names:
        campaign = Campaign(Path(folder), name)
        getattr(campaign, kind)(int(events), int(seed))
        print(json.dumps({name: campaign.counts}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
