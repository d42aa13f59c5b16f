"""Two workers beside one process: encoding a collection, and re-ranking with the Duet, in one run.

    python benchmarks/cluster.py

Each process computes with one thread. Workers have started before the clock runs; how long that takes is printed. CPU
seconds are those of this process and of the workers. Re-ranking is measured in turns after a first one, and its medians
are printed.
Documents are of 41 words of a Zipf distribution; models are fitted for one epoch, since only their size counts here.
On a machine whose cores are not idle, ratios say little: the load is printed.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
import torch
from threadpoolctl import threadpool_limits

import pt_neural as pn

WORDS, LENGTH = 50_000, 41


def main() -> None:
    """Measure serial and shared work, and print both."""
    options = parse_arguments()
    # Ray ends idle processes beyond the number of processors, among which are two that it starts by itself.
    pn.cluster.connect("local", num_cpus=2 * options.workers, include_dashboard=False)
    documents = generated(options.documents, np.random.default_rng(13))
    print(f"load of the machine: {os.getloadavg()[0]:.1f}; {options.workers} workers")
    with tempfile.TemporaryDirectory() as name:
        rows = [encoding(Path(name), documents, options), reranking(documents, options)]
    print("| work | items/s, one process | items/s, workers | ratio | CPU ratio |\n|---|---|---|---|---|")
    for measurement in rows:
        print(row(*measurement))


def encoding(folder: Path, documents: list[dict[str, str]], options: argparse.Namespace) -> tuple:
    """DSSM encodes the documents, written to one file or to shards."""
    dssm = fitted(pn.DSSM(layers=(300, 128), training=training()), documents)
    corpus = pn.CorpusShards.spool(folder / "corpus", documents, documents_per_shard=len(documents), verbose=False)
    shards = pn.CorpusShards(folder / "corpus", documents_per_shard=-(-len(documents) // options.workers))
    few = pn.CorpusShards.spool(folder / "few", documents[:100], documents_per_shard=50, verbose=False)

    def share(corpus: pn.CorpusShards, name: str) -> tuple[float, float]:
        return measured(lambda: dssm.index(folder / name, corpus, workers=options.workers, verbose=False))

    alone = measured(lambda: dssm.index(folder / "alone", iter(corpus), verbose=False))
    start = share(few, "started")
    print(f"workers start, and encode a hundred documents, in {start[0]:.1f} s and {start[1]:.1f} CPU s\n")
    return "DSSM encodes documents", len(documents), alone, share(shards, "shared")


def reranking(documents: list[dict[str, str]], options: argparse.Namespace) -> tuple:
    """The Duet re-ranks 50 documents of each query, from text."""
    generator = np.random.default_rng(14)
    frame = pd.DataFrame(documents)
    duet = fitted(pn.Duet(document_terms=50, filters=100, hidden=100, training=training()), documents)
    rows = generator.integers(0, len(frame), size=options.queries * 50)
    queries = pd.DataFrame({"qid": np.repeat(np.arange(options.queries), 50).astype(str)})
    queries["query"] = np.repeat(frame["text"].sample(options.queries, random_state=1).str[:30].to_numpy(), 50)
    pairs = pd.concat([queries, frame.iloc[rows].reset_index(drop=True)], axis=1)
    pairs = pairs.drop_duplicates(["qid", "docno"], ignore_index=True)
    with pn.on_ray(duet, workers=options.workers) as fast:
        for _ in range(5):  # until all workers have begun
            fast(pairs.head(50 * options.workers))
            time.sleep(2)
        turns = [(measured(lambda: duet(pairs)), measured(lambda: fast(pairs))) for _ in range(options.rounds + 1)]
        alone, shared = (sorted(times)[len(times) // 2] for times in zip(*turns[1:], strict=True))
        return "Duet re-ranks pairs", len(pairs), alone, shared


def fitted(model: Any, documents: list[dict[str, str]]) -> Any:
    """A model after one epoch on a few documents."""
    few = pd.DataFrame(documents[:200])
    candidates = few.assign(qid=few.index.astype(str), query=few["text"].str[:30])
    others = candidates.assign(**{name: np.roll(few[name], 1) for name in few})
    qrels = candidates[["qid", "docno"]].assign(label=1)
    return model.fit(pd.concat([candidates, others], ignore_index=True), qrels)


def training() -> pn.Training:
    """One epoch, in silence."""
    return pn.Training(epochs=1, verbose=False)


def generated(count: int, generator: np.random.Generator) -> list[dict[str, str]]:
    """Documents of words whose frequencies are Zipf's."""
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = np.array(["".join(word) for word in letters[generator.integers(0, 26, size=(WORDS, 7))]])
    shares = 1 / np.arange(1, WORDS + 1)
    chosen = words[generator.choice(WORDS, size=(count, LENGTH), p=shares / shares.sum())]
    return [{"docno": f"d{number}", "title": "", "text": " ".join(terms)} for number, terms in enumerate(chosen)]


def measured(work: Callable[[], Any]) -> tuple[float, float]:
    """Wall and CPU seconds of some work, in this process and its workers."""
    wall, processor = time.perf_counter(), cpu_seconds()
    work()
    used = {pid: seconds - processor.get(pid, 0.0) for pid, seconds in cpu_seconds().items()}
    return time.perf_counter() - wall, sum(used.values())


def cpu_seconds() -> dict[int, float]:
    """CPU seconds so far of this process and of each of Ray's workers."""
    found = {os.getpid(): sum(psutil.Process().cpu_times()[:2])}
    for process in psutil.process_iter(["name", "cpu_times"]):
        if (process.info["name"] or "").startswith("ray::"):
            found[process.pid] = sum(process.info["cpu_times"][:2])
    return found


def row(label: str, count: int, alone: tuple[float, float], shared: tuple[float, float]) -> str:
    """A line of the table."""
    rates = [count / seconds for seconds, _ in (alone, shared)]
    cells = [label, f"{rates[0]:,.0f}", f"{rates[1]:,.0f}", f"{rates[1] / rates[0]:.2f}", f"{shared[1] / alone[1]:.2f}"]
    return f"| {' | '.join(cells)} |"


def parse_arguments() -> argparse.Namespace:
    """What to run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=100_000, help="documents to encode")
    parser.add_argument("--queries", type=int, default=400, help="queries with 50 documents each to re-rank")
    parser.add_argument("--rounds", type=int, default=3, help="turns of re-ranking")
    parser.add_argument("--workers", type=int, default=2, help="worker processes")
    return parser.parse_args()


if __name__ == "__main__":
    torch.set_num_threads(1)
    with threadpool_limits(1):
        main()
