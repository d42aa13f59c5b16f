"""Many at once: threads, processes, forks and writers on one artifact, and long runs that take no more and more."""

import gc
import multiprocessing
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from joblib import Parallel, delayed

import pt_neural as pn
from pt_neural.rankers import DocumentRepresentations
from tests.faults import LONG
from tests.faults.readers import lucene, matrices, readers, vectors_path
from tests.rankers.fitted import (
    BARE,
    CANDIDATES,
    CORPUS,
    TOPICS,
    fit,
    fitted,
    forward,
    like,
    unfitted,
)

THREADS, PROCESSES, ROUNDS = 8, 4 if LONG else 2, 20 if LONG else 2
QUERIES, FITS = (20_000, 200) if LONG else (600, 20)
SECONDS = 100  # after which what has not answered hangs

pytestmark = pytest.mark.long


def require_equal(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(found, expected, rtol=1e-5, atol=1e-5)


@contextmanager
def counted(capsys: pytest.CaptureFixture, what: str) -> Iterator[Counter]:
    counts: Counter = Counter()
    yield counts
    with capsys.disabled():
        print(f"\n{what}: {counts.total():,} uses, {len(counts)} kinds, all as when alone")


def test_threads(capsys):
    with counted(capsys, f"{THREADS} threads") as counts:
        for name, read in readers().items():
            expected, barrier = read(), threading.Barrier(THREADS)
            with ThreadPoolExecutor(THREADS) as pool:
                for future in [pool.submit(_together, barrier, read) for _ in range(THREADS)]:
                    for found in future.result(timeout=SECONDS):
                        require_equal(found, expected)
                        counts[name] += 1


def _together(barrier: threading.Barrier, read: Callable[[], pd.DataFrame]) -> list[pd.DataFrame]:
    barrier.wait()
    return [read() for _ in range(ROUNDS)]


def test_threads_share_one_opened_object(capsys):
    opened = {
        "Lucene": pn.LuceneIndex(lucene()).bm25(),
        "docno": like("Duet", documents=pn.ForwardIndex(forward().path)),
        "matrices": like("MatchTensor", representations=DocumentRepresentations(matrices("MatchTensor"))),
        "all": like("TFIDF").retriever(vectors_path("TFIDF")),
        "text": like("CLSM"),
    }
    with counted(capsys, f"{THREADS} threads on one object") as counts:
        for name, one in opened.items():
            frame = CANDIDATES if name == "text" else TOPICS if name in ("Lucene", "all") else BARE
            with ThreadPoolExecutor(THREADS) as pool:
                found = list(pool.map(one.transform, [frame] * THREADS * ROUNDS))
            expected = one.transform(frame)
            for each in found:
                require_equal(each, expected)
                counts[name] += 1


@pytest.mark.parametrize("kind", ["spawned", "loky"] if LONG else ["loky"])
def test_processes(kind, capsys):
    named = readers()
    expected = [read() for read in named.values()]
    with counted(capsys, f"{PROCESSES} processes, {kind}") as counts:
        for _ in range(PROCESSES if LONG else 1):
            if kind == "loky":
                found = Parallel(n_jobs=PROCESSES)(delayed(read)() for read in named.values())
            else:
                with ProcessPoolExecutor(PROCESSES, mp_context=multiprocessing.get_context("spawn")) as pool:
                    found = [one.result(SECONDS) for one in [pool.submit(read) for read in named.values()]]
            for name, one, other in zip(named, found, expected, strict=True):
                require_equal(one, other)
                counts[name] += 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:this process was forked:RuntimeWarning")
def test_forked_children(capsys):
    with counted(capsys, "forked children") as counts:
        for name, read in readers().items():
            expected = read()
            context = multiprocessing.get_context("fork")
            receiver, sender = context.Pipe(duplex=False)
            child = context.Process(target=_answer, args=(read, sender))
            child.start()
            assert receiver.poll(SECONDS), f"{name} hangs in a forked child"
            found = receiver.recv()
            child.join(SECONDS)
            if name.startswith("Lucene") and name != "Lucene text":
                assert isinstance(found, RuntimeError)
                assert "does not survive a fork" in str(found)
            else:
                require_equal(found, expected)
            counts[name] += 1


def _answer(read: Callable[[], pd.DataFrame], sender: multiprocessing.connection.Connection) -> None:
    try:
        sender.send(read())
    except Exception as error:
        sender.send(error)


WRITERS = {
    "ranker": lambda path, number: fitted("TFIDF").save(path, overwrite=True),
    "forward index": lambda path, number: pn.ForwardIndex.build(
        path, CORPUS[: 4 + number], overwrite=True, verbose=False
    ),
    "term vectors": lambda path, number: fitted("TFIDF").index(
        path, CORPUS[: 4 + number], overwrite=True, verbose=False
    ),
}


@pytest.mark.parametrize("name", WRITERS)
def test_two_writers(name, tmp_path, capsys):
    write, path = WRITERS[name], tmp_path / "artifact"
    write(path, 0)
    with counted(capsys, f"two writers of a {name}") as counts, ThreadPoolExecutor(2) as pool:
        for _ in range(ROUNDS * 5):
            for future in [pool.submit(write, path, number) for number in (0, 1)]:
                future.result(timeout=SECONDS)
                counts[name] += 1
            artifact = pt.Artifact.load(str(path))
            assert name == "ranker" or len(artifact) in (4, 5)
            assert [file.name for file in tmp_path.iterdir()] == ["artifact"]


# Long runs


class Taken(NamedTuple):
    """What this process holds."""

    megabytes: float
    handles: int
    mappings: int


def taken() -> Taken:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    mappings = Path("/proc/self/maps").read_text().count("\n")
    return Taken(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, len(os.listdir("/proc/self/fd")), mappings)


def require_flat(do: Callable[[int], object], times: int, capsys: pytest.CaptureFixture, what: str) -> None:
    """Do something many times; after the first third, nothing may be held that was not held then."""
    for number in range(times // 3):
        do(number)
    first = taken()
    for number in range(times // 3, times):
        do(number)
    last = taken()
    with capsys.disabled():
        print(
            f"\n{times:,} {what}: "
            + ", ".join(f"{a:.0f} -> {b:.0f} {n}" for n, a, b in zip(first._fields, first, last, strict=True))
        )
    assert last.handles <= first.handles + 2
    assert last.mappings <= first.mappings + 30  # the allocators take and return some
    assert last.megabytes <= first.megabytes * 1.1 + 20


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_queries_hold_nothing(capsys):
    bm25 = pn.LuceneIndex(lucene()).bm25()
    pipeline = bm25 >> like("DSSM", documents=pn.ForwardIndex(forward().path))
    retriever = like("TFIDF").retriever(vectors_path("TFIDF"))
    words = " ".join(f"{document['title']} {document['text']}" for document in CORPUS).split()

    def search(number: int) -> None:
        random = np.random.default_rng(number)
        query = pd.DataFrame({"qid": ["1"], "query": [f"{' '.join(random.choice(words, 3))} {number}"]})
        (retriever if number % 2 else pipeline).transform(query)

    require_flat(search, QUERIES, capsys, "queries")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_fits_hold_nothing(capsys):
    names = ["DSSM", "LSA", "PLSA", "SSI", "TFIDF"]
    require_flat(lambda number: fit(unfitted(names[number % len(names)])), FITS, capsys, "fits")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_opening_and_closing_hold_nothing(capsys):
    read = readers()
    names = [name for name in read if not name.startswith("Lucene")]  # which keeps some indexes open on purpose
    require_flat(lambda number: read[names[number % len(names)]](), QUERIES // 20, capsys, "openings")
