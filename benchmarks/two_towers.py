"""DSSM and CLSM beside matchzoo-py's DSSM and CDSSM, in one run on the same synthetic titles.

    PT_NEURAL_MATCHZOO=/path/to/matchzoo/bin/python python benchmarks/two_towers.py

The head of benchmarks/parts/matchzoo.py says how to make that environment.

A title is eight words drawn uniformly from 20,000 random words; a query is three words of its title; a group is a query
with its title and four others. matchzoo-py keeps a dense vector of trigrams for each word, some 3 GB here and more
while it trains; --words makes the table smaller. Ratios are of medians, and matchzoo-py's median is that of its best
setting.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from parts import matchzoo
from parts.machine import machine_rates, print_machine
from parts.rates import line, rate, spread
from parts.synthetic import Texts, candidate_frame, synthetic_candidates, synthetic_texts

import pt_neural as pn

PEER_MODELS = {"DSSM": "dssm", "CLSM": "cdssm"}
TASKS = {"training": "training, groups/s", "encoding": "encoding, titles/s", "scoring": "scoring, pairs/s"}
BATCH_SIZE = 1024
EPOCHS = 4


def main() -> None:
    """Make the texts, run ours and the peer, print rates, ratios and limits."""
    options = parse_arguments()
    print_limits(options)
    generator = np.random.default_rng(options.seed)
    texts = synthetic_texts(options.words, options.titles, generator, terms=8, shared=3)
    candidates = synthetic_candidates(options.titles, options.negatives, generator)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder / "data.json"
        data.write_text(json.dumps({**texts._asdict(), "candidates": candidates.tolist()}), encoding="utf-8")
        for model, peer in PEER_MODELS.items():
            result = ours(model, texts, candidates, options, folder)
            settings = {"model": peer, "groups": options.groups, "seed": options.seed}
            theirs = matchzoo.measure(options.matchzoo, "matchzoo_two_towers.py", data, **settings)
            print_rates(model, result, theirs)


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    matchzoo.add_argument(parser)
    parser.add_argument("--words", type=int, default=20_000, help="distinct words (default 20,000)")
    parser.add_argument("--titles", type=int, default=20_000, help="titles, each with its query (default 20,000)")
    parser.add_argument("--negatives", type=int, default=4, help="negatives in a group (default 4)")
    parser.add_argument("--groups", type=int, default=256, help="groups per setting for the peer (default 256)")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows re-ranked from vectors (default 1,000,000)")
    parser.add_argument("--seed", type=int, default=13)
    options = parser.parse_args()
    matchzoo.check(parser, options)
    return options


def ours(name: str, texts: Texts, candidates: np.ndarray, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Our model's rates, from frames and strings to frames of scores and vectors."""
    frame = texts.frame()
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
    text_pairs = candidate_frame(frame, candidates)
    pairs = text_pairs[["qid", "query", "docno"]]
    vectors = model.index(folder / name, frame[["docno", "text"]], verbose=False)
    model.save(folder / f"{name}.model")
    kept = type(model).load(folder / f"{name}.model", vectors=vectors)
    many = pd.concat([pairs] * (options.rows // len(pairs) + 1), ignore_index=True).head(options.rows)
    kept.transform(many.head(10))
    return {
        "training": spread(len(frame) / model.history["seconds"].iloc[1:]),
        "fitting": EPOCHS * len(frame) / fitting,
        "encoding": rate(lambda: model.encode_documents(texts.documents), len(frame)),
        "scoring": rate(lambda: model.transform(text_pairs), len(text_pairs)),
        "re-ranking": rate(lambda: kept.transform(many), len(many)),
    }


def print_rates(name: str, ours: dict[str, Any], theirs: dict | None) -> None:
    """Print a line for each task: our rate beside that of the peer's best setting."""
    print(f"\n{name}, lowest / median / highest of repeats")
    for task, label in TASKS.items():
        print(line(label, ours[task], theirs and theirs[task]))
    print(line("re-ranking from vectors, rows/s with the frame", ours["re-ranking"]))
    print(f"{'fit from first to last, groups/s':58}{ours['fitting']:>30,.0f}")
    matchzoo.print_memory(theirs)


def print_limits(options: argparse.Namespace) -> None:
    """The best this machine allows with a table of projected words: time to read bytes plus time to multiply and add.

    Training counts three passes over the texts of a group, one forward and two backward; projecting the words and the
    optimiser's step, which happen once per batch, are left out.
    """
    multiply, read = machine_rates()
    print_machine(multiply, read)
    for model, rows, layers in (("DSSM", 1, [(300, 300), (300, 128)]), ("CLSM", 3, [(300, 128)])):
        flops = 2 * sum(inputs * outputs for inputs, outputs in layers)
        query, title = (flops / multiply + words * rows * 300 * 4 / read for words in (3, 8))
        group = 3 * (query + (options.negatives + 1) * title)
        print(f"limit, {model}: encoding {1 / title:,.0f} titles/s, training {1 / group:,.0f} groups/s")


if __name__ == "__main__":
    main()
