"""DSSM and CLSM beside matchzoo-py's DSSM and CDSSM, in one run on the same synthetic titles.

    PT_NEURAL_MATCHZOO=/path/to/matchzoo/bin/python python benchmarks/two_towers.py

matchzoo-py needs an environment of its own, made once (Python 3.11), with the torch that pt_neural runs on:

    python3.11 -m venv matchzoo
    matchzoo/bin/pip install torch==2.13.0 numpy==1.23.5 pandas==1.5.3 nltk dill h5py tqdm future \
        hyperopt==0.1.2 pytorch-transformers
    matchzoo/bin/pip install --no-deps matchzoo-py==1.1.1

A title is eight words drawn evenly from 20,000 made of letters, a query three words of its title, a group a query with
its title and four others. matchzoo-py keeps a dense vector of trigrams for each word, some 3 GB here, and more while it
trains; --words makes the table smaller.
"""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

PEER = Path(__file__).parent / "peers" / "matchzoo_two_towers.py"
TASKS = {"training": "training, groups/s", "encoding": "encoding, titles/s", "scoring": "scoring, pairs/s"}


def main() -> None:
    """Make the texts, run the peer, print the table and the floors."""
    options = parse_arguments()
    print_floors(options)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.json"
        data.write_text(json.dumps(synthetic_titles(options)), encoding="utf-8")
        for model in ("dssm", "cdssm"):
            if options.matchzoo:
                print_peer(model, peer(options, model, data))
    if not options.matchzoo:
        print("matchzoo-py is not measured: set PT_NEURAL_MATCHZOO to the python of an environment that has it;")
        print("the head of benchmarks/two_towers.py says how to make one")


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--matchzoo", default=os.environ.get("PT_NEURAL_MATCHZOO"), help="python that has matchzoo-py")
    parser.add_argument("--words", type=int, default=20_000, help="distinct words (default 20,000)")
    parser.add_argument("--titles", type=int, default=20_000, help="titles, each with its query (default 20,000)")
    parser.add_argument("--negatives", type=int, default=4, help="negatives in a group (default 4)")
    parser.add_argument("--groups", type=int, default=256, help="groups the peer trains on a setting (default 256)")
    parser.add_argument("--seed", type=int, default=13)
    options = parser.parse_args()
    if options.matchzoo and not shutil.which(options.matchzoo):
        parser.error(f"PT_NEURAL_MATCHZOO or --matchzoo names {options.matchzoo}, which is no program")
    return options


def synthetic_titles(options: argparse.Namespace) -> dict[str, list]:
    """Queries, titles, and for each query the numbers of its title and its negatives, the title first."""
    generator = np.random.default_rng(options.seed)
    words = synthetic_words(options.words, generator)
    drawn = words[generator.integers(len(words), size=(options.titles, 8))]
    titles = np.arange(options.titles)[:, None]
    steps = generator.integers(1, options.titles, size=(options.titles, options.negatives))
    candidates = np.hstack([titles, (titles + steps) % options.titles])  # a title is never its own negative
    return {
        "queries": [" ".join(title[:3]) for title in drawn],
        "titles": [" ".join(title) for title in drawn],
        "candidates": candidates.tolist(),
    }


def synthetic_words(count: int, generator: np.random.Generator) -> np.ndarray:
    """So many different words of four to ten letters."""
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words: dict[str, None] = {}
    while len(words) < count:
        words["".join(generator.choice(letters, size=generator.integers(4, 11)))] = None
    return np.array(list(words))


def peer(options: argparse.Namespace, model: str, data: Path) -> dict:
    """What matchzoo-py's model measures in its own interpreter."""
    command = [options.matchzoo, str(PEER), "--model", model, "--data", str(data), "--groups", str(options.groups)]
    done = subprocess.run([*command, "--seed", str(options.seed)], capture_output=True, text=True, cwd=data.parent)
    if done.returncode:
        raise SystemExit(f"matchzoo-py's {model} failed; its last words:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def print_peer(model: str, result: dict) -> None:
    """The best setting of each task, and what came before the first batch."""
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    print(f"\n{model.upper()}: {versions}; {result['terms']:,} terms, {result['trigrams']:,} trigrams")
    for task, label in TASKS.items():
        for found in sorted(result[task], key=lambda found: found["rate"][1], reverse=True):
            setting = f"batches of {found['batch_size']}, {found['workers']} loading processes"
            print(f"{label:32}{spread(found['rate']):>28}   {setting}")
    print(f"{'encoding, network alone':32}{spread(result['encoding_network_alone']):>28}")
    print(f"{'preparing, table of trigrams':32}{result['preparing_seconds']:>21.1f}, {result['table_seconds']:.1f} s")
    memory = [result[key] / 1e9 for key in ("memory_after_table", "peak_memory")]
    print(f"{'memory with the table, at most':32}{memory[0]:>21.1f}, {memory[1]:.1f} GB")


def spread(rate: list[float]) -> str:
    """Least, median and greatest."""
    return " / ".join(f"{one:,.0f}" for one in rate)


def print_floors(options: argparse.Namespace) -> None:
    """What this machine allows at best, with a table of projected words: bytes read, then multiply-adds, no overlap.

    Training counts three passes over the texts of a group, one forward and two backward; projecting the words and the
    optimiser's step, which come once in a batch, are left out.
    """
    multiply, read = gemm_rate(), read_rate()
    rates = f"GEMM {multiply / 1e9:.0f} GFLOP/s, read {read / 1e9:.0f} GB/s"
    print(f"this machine, {torch.get_num_threads()} threads: {rates}")
    for model, rows, layers in (("DSSM", 1, [(300, 300), (300, 128)]), ("CLSM", 3, [(300, 128)])):
        flops = 2 * sum(inputs * outputs for inputs, outputs in layers)
        query, title = (flops / multiply + words * rows * 300 * 4 / read for words in (3, 8))
        group = 3 * (query + (options.negatives + 1) * title)
        print(f"floor, {model}: encoding {1 / title:,.0f} titles/s, training {1 / group:,.0f} groups/s")


def gemm_rate(size: int = 2048) -> float:
    """Floating-point operations per second of a float32 matrix product."""
    left, right = torch.randn(size, size), torch.randn(size, size)
    return 2 * size**3 / shortest(lambda: left @ right)


def read_rate(size: int = 2**28) -> float:
    """Bytes per second read from memory."""
    source = torch.ones(size // 4)
    return size / shortest(source.sum)


def shortest(work: Callable[[], object], repeats: int = 7) -> float:
    """Shortest time of the repeats in seconds."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


if __name__ == "__main__":
    main()
