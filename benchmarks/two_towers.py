"""DSSM and CLSM beside matchzoo-py's DSSM and CDSSM, in one run on the same synthetic titles.

    PT_NEURAL_MATCHZOO=/path/to/matchzoo/bin/python python benchmarks/two_towers.py

matchzoo-py needs an environment of its own, made once (Python 3.11), with the torch that pt_neural runs on:

    python3.11 -m venv matchzoo
    matchzoo/bin/pip install torch==2.13.0 numpy==1.23.5 pandas==1.5.3 nltk dill h5py tqdm future \
        hyperopt==0.1.2 pytorch-transformers
    matchzoo/bin/pip install --no-deps matchzoo-py==1.1.1

A title is eight words drawn evenly from 20,000 made of letters, a query three words of its title, a group a query with
its title and four others. matchzoo-py keeps a dense vector of trigrams for each word, some 3 GB here, and more while it
trains; --words makes the table smaller. Ratios are of medians, matchzoo-py's of its best setting.
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
from typing import Any

import numpy as np
import pandas as pd
import torch
from parts.machine import gemm_rate, read_rate
from parts.synthetic import synthetic_titles

import pt_neural as pn

PEER = Path(__file__).parent / "peers" / "matchzoo_two_towers.py"
PEER_MODELS = {"DSSM": "dssm", "CLSM": "cdssm"}
TASKS = {"training": "training, groups/s", "encoding": "encoding, titles/s", "scoring": "scoring, pairs/s"}
BATCH_SIZE = 1024
EPOCHS = 4
REPEATS = 5

Rate = list[float]  # least, median and greatest


def main() -> None:
    """Make the texts, run ours and the peer, print rates, ratios and floors."""
    options = parse_arguments()
    print_floors(options)
    data = synthetic_titles(options.words, options.titles, options.negatives, options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "data.json").write_text(json.dumps(data), encoding="utf-8")
        for model in PEER_MODELS:
            result = ours(model, data, options, folder)
            theirs = peer(options, PEER_MODELS[model], folder / "data.json") if options.matchzoo else None
            print_rates(model, result, theirs)
    if not options.matchzoo:
        print("\nmatchzoo-py is not measured: set PT_NEURAL_MATCHZOO to the python of an environment that has it;")
        print("the head of benchmarks/two_towers.py says how to make one")


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--matchzoo", default=os.environ.get("PT_NEURAL_MATCHZOO"), help="python that has matchzoo-py")
    parser.add_argument("--words", type=int, default=20_000, help="distinct words (default 20,000)")
    parser.add_argument("--titles", type=int, default=20_000, help="titles, each with its query (default 20,000)")
    parser.add_argument("--negatives", type=int, default=4, help="negatives in a group (default 4)")
    parser.add_argument("--groups", type=int, default=256, help="groups the peer trains on a setting (default 256)")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows re-ranked from vectors (default 1,000,000)")
    parser.add_argument("--seed", type=int, default=13)
    options = parser.parse_args()
    if options.matchzoo and not shutil.which(options.matchzoo):
        parser.error(f"PT_NEURAL_MATCHZOO or --matchzoo names {options.matchzoo}, which is no program")
    return options


def ours(name: str, data: dict[str, list], options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Our model's rates, from frames and strings to frames and vectors."""
    queries, titles = data["queries"], data["titles"]
    qids, docnos = [f"q{i}" for i in range(len(queries))], [f"d{i}" for i in range(len(titles))]
    frame = pd.DataFrame({"qid": qids, "query": queries, "docno": docnos, "text": titles})
    training = pn.Training(
        epochs=EPOCHS,
        batch_size=BATCH_SIZE,
        negatives="random",
        num_negatives=options.negatives,
        seed=options.seed,
        verbose=False,
    )
    model = getattr(pn, name)(training=training)
    started = time.perf_counter()
    model.fit(frame, frame[["qid", "docno"]].assign(label=1))
    fitting = time.perf_counter() - started
    rows = np.asarray(data["candidates"])
    pairs = frame[["qid", "query"]].loc[np.repeat(np.arange(len(rows)), rows.shape[1])].reset_index(drop=True)
    pairs = pairs.assign(docno=np.array(docnos, dtype=object)[rows.ravel()])
    text_pairs = pairs.assign(text=np.array(titles, dtype=object)[rows.ravel()])
    vectors = model.index(folder / name, frame[["docno", "text"]], verbose=False)
    model.save(folder / f"{name}.model")
    kept = type(model).load(folder / f"{name}.model", vectors=vectors)
    many = pd.concat([pairs] * (options.rows // len(pairs) + 1), ignore_index=True).head(options.rows)
    kept.transform(many.head(10))
    return {
        "training": spread(len(frame) / model.history["seconds"].iloc[1:]),
        "fitting": EPOCHS * len(frame) / fitting,
        "encoding": rate(lambda: model.encode_texts(titles), len(titles)),
        "scoring": rate(lambda: model.transform(text_pairs), len(text_pairs)),
        "re-ranking": rate(lambda: kept.transform(many), len(many)),
    }


def rate(work: Callable[[], object], items: int) -> Rate:
    """Items a second, over the repeats."""
    rates = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        work()
        rates.append(items / (time.perf_counter() - started))
    return spread(rates)


def spread(rates: Any) -> Rate:
    """Least, median and greatest."""
    return [float(value) for value in np.quantile(rates, [0, 0.5, 1])]


def peer(options: argparse.Namespace, model: str, data: Path) -> dict:
    """What matchzoo-py's model measures in its own interpreter."""
    command = [options.matchzoo, str(PEER), "--model", model, "--data", str(data), "--groups", str(options.groups)]
    done = subprocess.run([*command, "--seed", str(options.seed)], capture_output=True, text=True, cwd=data.parent)
    if done.returncode:
        raise SystemExit(f"matchzoo-py's {model} failed; its last words:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def print_rates(name: str, ours: dict[str, Any], theirs: dict | None) -> None:
    """A line a task: ours, and beside the best setting of the peer."""
    print(f"\n{name}, least / median / greatest of repeats")
    for task, label in TASKS.items():
        line = f"{label:44}{text(ours[task]):>30}"
        if theirs is not None:
            best = max(theirs[task], key=lambda found: found["rate"][1])
            ratio = ours[task][1] / best["rate"][1]
            line += f"   matchzoo-py {text(best['rate'])} in batches of {best['batch_size']}: {ratio:,.0f} times"
        print(line)
    print(f"{'re-ranking from vectors, rows/s with the frame':44}{text(ours['re-ranking']):>28}")
    print(f"{'fit from first to last, groups/s':44}{ours['fitting']:>30,.0f}")
    if theirs is not None:
        memory = theirs["peak_memory"] / 1e9
        print(f"matchzoo-py: table of trigrams {theirs['table_seconds']:.1f} s beforehand, {memory:.1f} GB at most")


def text(rates: Rate) -> str:
    """A rate as it is printed."""
    return " / ".join(f"{one:,.0f}" for one in rates)


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


if __name__ == "__main__":
    main()
