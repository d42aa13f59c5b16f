"""Speed and memory of training on a stream of triples: ten million, drawn while they are read.

The documents and queries are of random words; a small DSSM trains on them, so that reading the stream counts.

    python benchmarks/triples.py
    python benchmarks/triples.py --triples 1000000 --documents 100000
"""

import argparse
import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np
from parts.synthetic import synthetic_texts

import pt_neural as pn

QUERIES, WORDS, CHUNK = 1_000, 5_000, 100_000


class Drawn:
    """Triples of random queries and documents; prints the memory of the process and the time while it is read."""

    def __init__(self, triples: int, documents: int):
        self.triples, self.documents, self.started = triples, documents, perf_counter()
        self.shown = [triples // 100, triples // 10, triples // 2, triples - CHUNK]

    def __call__(self) -> Iterator[tuple[str, str, str]]:
        """The triples, the same each time."""
        random = np.random.default_rng(13)
        for start in range(0, self.triples, CHUNK):
            if start in self.shown:
                seconds = perf_counter() - self.started
                print(f"{start:12,} triples {seconds:8.0f} s {megabytes():8.0f} MB", flush=True)
            queries = random.integers(QUERIES, size=CHUNK).tolist()
            documents = random.integers(self.documents, size=(CHUNK, 2)).tolist()
            for query, (positive, negative) in zip(queries, documents, strict=True):
                yield f"q{query}", f"d{positive}", f"d{negative}"


def megabytes() -> float:
    """What this process has in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def main() -> None:
    """Train for one pass, and print triples per second and the memory at some places of the stream."""
    arguments = argparse.ArgumentParser(description=main.__doc__)
    arguments.add_argument("--triples", type=int, default=10_000_000)
    arguments.add_argument("--documents", type=int, default=10_000)
    arguments.add_argument("--batch-size", type=int, default=4_096)
    arguments = arguments.parse_args()
    random = np.random.default_rng(13)
    texts = synthetic_texts(WORDS, arguments.documents, random, terms=8, shared=3)
    with tempfile.TemporaryDirectory() as folder:
        frame = texts.frame()
        documents = pn.ForwardIndex.build(Path(folder) / "forward", frame.to_dict("records"), verbose=False)
        topics = frame[["qid", "query"]].head(QUERIES)
        training = pn.Training(epochs=1, batch_size=arguments.batch_size, verbose=False, device="cpu")
        model = pn.DSSM((32, 16), documents=documents, training=training)
        stream = Drawn(arguments.triples, arguments.documents)
        model.fit_triples(stream, topics)
    seconds = perf_counter() - stream.started
    print(f"{model.report}\n{arguments.triples / seconds:,.0f} triples/s, at the end {megabytes():.0f} MB")


if __name__ == "__main__":
    main()
