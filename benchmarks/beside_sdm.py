"""What threads that search by BM25 wait for while another one searches by SDM.

Eight threads search by BM25, one short query after the other; beside them, one more thread searches by SDM: a batch of
short queries, or a single long one, each time others. The table says how many queries of BM25 were done in a second,
and how long one took.

Usage: ``python benchmarks/beside_sdm.py [--documents 100000] [--seconds 10] [--threads 8]``
"""

import argparse
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from pt_neural import LuceneIndex

WORDS = 20_000


def texts(number: int, length: int, seed: int) -> Iterator[str]:
    """Texts of words as frequent as those of a language."""
    rng = np.random.default_rng(seed)
    for _ in range(number):
        yield " ".join(f"word{word}" for word in (WORDS ** rng.random(length)).astype(int))


def topics(number: int, length: int, seed: int) -> pd.DataFrame:
    """Queries of such words."""
    return pd.DataFrame({"qid": [str(i) for i in range(number)], "query": list(texts(number, length, seed))})


def measure(index: LuceneIndex, beside: Callable[[int], object] | None, threads: int, seconds: float) -> dict:
    """Search by BM25 in threads, beside something else that is done again and again."""
    stop, waits, rounds = time.perf_counter() + seconds, [], []

    def search(seed: int) -> None:
        bm25, rng = index.bm25(num_results=100), random.Random(seed)
        queries = topics(200, 4, seed)
        while time.perf_counter() < stop:
            start = time.perf_counter()
            bm25(queries.iloc[[rng.randrange(len(queries))]])
            waits.append(time.perf_counter() - start)

    def repeat() -> None:
        while time.perf_counter() < stop:
            beside(len(rounds))
            rounds.append(1)

    running = [threading.Thread(target=search, args=(seed,)) for seed in range(threads)]
    running += [threading.Thread(target=repeat)] if beside else []
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    milliseconds = 1000 * np.array(waits)
    median, most, longest = np.percentile(milliseconds, [50, 99, 100])
    return {
        "BM25 queries/s": len(waits) / seconds,
        "median ms": median,
        "99% ms": most,
        "longest ms": longest,
        "SDM rounds": len(rounds),
    }


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--threads", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        documents = ({"docno": str(i), "text": text} for i, text in enumerate(texts(options.documents, 100, 1)))
        index = LuceneIndex(Path(folder) / "index").index(documents, store_text=False, verbose=False)
        sdm = index.sdm(num_results=100)

        def short(round: int) -> None:
            sdm(topics(50, 5, 1000 + round))

        def long(round: int) -> None:
            sdm(topics(1, 500, 2000 + round))

        short(0)
        rows = {}
        for name, beside in {"alone": None, "beside 50 queries of SDM": short, "beside one of 500 words": long}.items():
            rows[name] = measure(index, beside, options.threads, options.seconds)
    print(f"{options.threads} threads of BM25, {options.documents:,} documents")
    print(pd.DataFrame(rows).T.round(1).to_string())


if __name__ == "__main__":
    main()
