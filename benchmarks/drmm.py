"""DRMM beside matchzoo-py's DRMM, in one run on the same synthetic documents.

    PT_NEURAL_MATCHZOO=/path/to/matchzoo/bin/python python benchmarks/drmm.py

The head of benchmarks/parts/matchzoo.py says how to make that environment.

A document is 500 words drawn uniformly from 20,000; a query is five words of its document and three others; a group is
a query with its document and four others; histograms have 30 bins. matchzoo-py starts from term ids, as we do with a
forward index; from text, our times include tokenising. Uniform words are our worst case, because we compute the
similarity of a query term and a document term once for several queries: here documents share few words, and hardly any
document repeats one. The two take turns, so that other load on the machine affects both. Ratios are of medians, and
matchzoo-py's median is that of its best setting.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from parts import matchzoo
from parts.machine import machine_rates, print_machine
from parts.rates import line, merged, rate, spread
from parts.synthetic import Texts, candidate_frame, synthetic_candidates, synthetic_spaces, synthetic_texts

import pt_neural as pn

GATINGS = {"gates by idf": "idf", "gates by vector as the peer's": "vector"}
EPOCHS = 3  # per round; the first is not counted
NEGATIVES = 4
DEPTH = 100  # documents per query where there are many


def main() -> None:
    """Make the texts, run ours and the peer, print rates, ratios and limits."""
    options = parse_arguments()
    generator = np.random.default_rng(options.seed)
    sizes = {"terms": options.document_terms, "shared": 5, "others": 3}
    texts = synthetic_texts(options.words, options.documents, generator, **sizes)
    candidates = synthetic_candidates(options.documents, NEGATIVES, generator)
    machine, found, peers = zip(*(turn(texts, candidates, options) for _ in range(options.rounds)), strict=True)
    multiply, read = np.max(machine, axis=0)
    print_machine(multiply, read)
    print_rates(merged(found), merged(peers))
    print_limit(options, multiply, read)


def turn(texts: Texts, candidates: np.ndarray, options: argparse.Namespace) -> tuple[tuple, dict, dict | None]:
    """Measure the machine, our model and the peer, one after the other."""
    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "data.json"
        data.write_text(json.dumps({**texts._asdict(), "candidates": candidates.tolist()}), encoding="utf-8")
        settings = {"groups": options.peer_groups, "dim": options.dim, "seed": options.seed}
        theirs = matchzoo.measure(options.matchzoo, "matchzoo_drmm.py", data, **settings)
        return machine_rates(), ours(texts, candidates, options, Path(name)), theirs


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    matchzoo.add_argument(parser)
    parser.add_argument("--words", type=int, default=20_000, help="distinct words (default 20,000)")
    parser.add_argument("--documents", type=int, default=1000, help="documents, each with its query (default 1,000)")
    parser.add_argument("--document-terms", type=int, default=500, help="terms of a document (default 500)")
    parser.add_argument("--dim", type=int, default=200, help="dimensions of the word vectors (default 200)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each side (default 3)")
    parser.add_argument("--peer-groups", type=int, default=32, help="groups per round for the peer (default 32)")
    parser.add_argument("--seed", type=int, default=13)
    options = parser.parse_args()
    matchzoo.check(parser, options)
    return options


def ours(texts: Texts, candidates: np.ndarray, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Our rates, from frames of strings to frames of scores."""
    frame = texts.frame()
    spaces = synthetic_spaces(texts, options.dim, options.seed)
    fitted = {name: fit(frame, spaces, options, gating) for name, gating in GATINGS.items()}
    model = next(iter(fitted.values()))
    pairs = candidate_frame(frame, candidates)
    many = frame[["qid", "query"]].head(10).merge(frame[["docno", "text"]].head(DEPTH), how="cross")
    found = {
        "training": {
            name: spread((NEGATIVES + 1) * len(frame) / one.history["seconds"].iloc[1:]) for name, one in fitted.items()
        },
        "text": scoring(model, pairs, many),
    }
    model.documents = pn.ForwardIndex.build(
        folder / "forward", frame.to_dict("records"), fields=["text"], verbose=False
    )
    return {**found, "ids": scoring(model, pairs, many)}


def scoring(model: pn.DRMM, pairs: pd.DataFrame, many: pd.DataFrame) -> dict[str, list[float]]:
    """Rates of re-ranking few and many documents per query."""
    model.transform(pairs.head(10))
    return {
        f"{NEGATIVES + 1} documents per query": rate(lambda: model.transform(pairs), len(pairs), repeats=3),
        f"{DEPTH} documents per query": rate(lambda: model.transform(many), len(many), repeats=3),
    }


def fit(frame: pd.DataFrame, spaces: pn.EmbeddingSpaces, options: argparse.Namespace, gating: str) -> pn.DRMM:
    """A trained model."""
    training = pn.Training(epochs=EPOCHS, negatives="random", num_negatives=NEGATIVES, seed=options.seed, verbose=False)
    model = pn.DRMM(spaces, gating=gating, training=training, fields="text")
    return model.fit(frame, frame[["qid", "docno"]].assign(label=1))


def print_rates(ours: dict[str, Any], theirs: dict | None) -> None:
    """Print a line for each task: our rate beside that of the peer's best setting."""
    print("\nDRMM, pairs/s, lowest / median / highest of repeats")
    peer_training, peer_scoring = (theirs and theirs[task] for task in ("training", "scoring"))
    for name, rates in ours["training"].items():
        print(line(f"training, {name}", rates, peer_training, units=NEGATIVES + 1))
    for source, label in (("ids", "a forward index"), ("text", "text")):
        for depth, rates in ours[source].items():
            print(line(f"re-ranking from {label}, {depth}", rates, peer_scoring))
    matchzoo.print_memory(theirs)


def print_limit(options: argparse.Namespace, multiply: float, read: float) -> None:
    """The best this machine allows if no two pairs share document words: the cost of each pair's cosines.

    The vector of each document word is read, and multiplied by those of eight query words.
    """
    flops = 2 * 8 * options.document_terms * options.dim
    pair = flops / multiply + options.document_terms * options.dim * 4 / read
    print(f"\nlimit if no two pairs share words: {1 / pair:,.0f} pairs/s")


if __name__ == "__main__":
    main()
