"""Memory that a fit takes for each group: candidates as numbers, texts by a forward index.

Each query has a relevant document and, among its candidates, some that are not. The candidates come as one frame, or
as a stream of frames of a thousand queries. Peaks are those of the fit beside what was in memory before.

    python benchmarks/many_groups.py
    python benchmarks/many_groups.py --queries 100000 1000000 --candidates 10 --negatives retrieved
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from time import perf_counter

import numpy as np
import pandas as pd
from parts.synthetic import synthetic_texts

import pt_neural as pn
import pt_neural.training.loop  # counts Lightning among the libraries

DOCUMENTS, BLOCK = 100_000, 1_000


class Peak:
    """The largest memory of the process in a ``with`` block, in bytes, looked up every hundredth of a second."""

    def __enter__(self) -> "Peak":
        self.start = self.most = memory()
        self._ended = Event()
        self._thread = Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._ended.wait(0.01):
            self.most = max(self.most, memory())

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()


def memory() -> int:
    """Memory of this process alone: not files that are mapped."""
    fields = Path("/proc/self/statm").read_text().split()
    return (int(fields[1]) - int(fields[2])) * 4096


def blocks(queries: int, candidates: int, texts: list[str]) -> Iterator[pd.DataFrame]:
    """Frames of ``qid``, ``query`` and ``docno``, the relevant document of each query first."""
    random = np.random.default_rng(13)
    for start in range(0, queries, BLOCK):
        numbers = np.arange(start, min(start + BLOCK, queries))
        documents = random.integers(DOCUMENTS, size=(len(numbers), candidates))
        documents[:, 0] = numbers % DOCUMENTS
        qids = np.array([f"q{number}" for number in numbers], dtype=object)
        asked = np.array([f"{texts[number % DOCUMENTS]} {number % 997}" for number in numbers], dtype=object)
        yield pd.DataFrame(
            {
                "qid": qids.repeat(candidates),
                "query": asked.repeat(candidates),
                "docno": [f"d{number}" for number in documents.ravel()],
            }
        )


def measure(queries: int, candidates: int, negatives: str, *, stream: bool) -> None:
    """Fit on so many queries, for a few steps, and print the peak and the seconds of preparation."""
    texts = synthetic_texts(20_000, DOCUMENTS, np.random.default_rng(13), terms=8, shared=3)
    pairs = ((f"q{number}", f"d{number % DOCUMENTS}", 1) for number in range(queries))
    qrels = pd.DataFrame(pairs, columns=["qid", "docno", "label"])
    with tempfile.TemporaryDirectory() as folder:
        documents = pn.ForwardIndex.build(Path(folder) / "forward", texts.frame().to_dict("records"), verbose=False)
        frames = blocks(queries, candidates, texts.queries)
        if not stream:
            frames = pd.concat(frames, ignore_index=True)
        training = pn.Training(
            epochs=1, batch_size=64, max_groups=1024, negatives=negatives, num_negatives=4, verbose=False, device="cpu"
        )
        model = pn.DSSM((16, 8), documents=documents, training=training)
        started = perf_counter()
        with Peak() as peak:
            model.fit(frames, qrels)
    print(f"{peak.most - peak.start} {perf_counter() - started:.1f}")


def main() -> None:
    """Measure each size in a process of its own, and print the slope between the first and the last."""
    arguments = argparse.ArgumentParser(description=main.__doc__)
    arguments.add_argument("--queries", type=int, nargs="+", default=[100_000, 1_000_000])
    arguments.add_argument("--candidates", type=int, default=1, help="of each query")
    arguments.add_argument("--negatives", choices=["random", "in-batch", "retrieved"], default="random")
    arguments.add_argument("--stream", action="store_true", help="give candidates as a stream of frames")
    arguments.add_argument("--alone", action="store_true", help="measure in this process")
    arguments = arguments.parse_args()
    if arguments.alone:
        measure(arguments.queries[0], arguments.candidates, arguments.negatives, stream=arguments.stream)
        return
    peaks = []
    options = ["--candidates", str(arguments.candidates), "--negatives", arguments.negatives]
    options += ["--stream"] * arguments.stream
    for queries in arguments.queries:
        command = [sys.executable, __file__, "--alone", "--queries", str(queries), *options]
        peak, seconds = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        peaks.append(int(peak))
        print(f"{queries:12,} queries {peaks[-1] / 1e6:8.0f} MB {seconds:>8} s", flush=True)
    slope = (peaks[-1] - peaks[0]) / (arguments.queries[-1] - arguments.queries[0])
    print(f"{slope:.0f} bytes a query, {' '.join(options)}")


if __name__ == "__main__":
    main()
