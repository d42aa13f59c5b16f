"""The Duet beside matchzoo-py's DUET, in one run on the same synthetic documents.

    PT_NEURAL_MATCHZOO=/path/to/matchzoo/bin/python python benchmarks/duet.py

The head of benchmarks/parts/matchzoo.py says how to make that environment.

A document is 1,000 words drawn evenly from 20,000 made of twelve letters, which have 2,016 letter trigrams; a query
five words of its document and five others; a group a query with its document and four others. matchzoo-py pools 9
windows of a document where the paper and we have 899, so it does a fraction of the arithmetic; the head of its script
says what else is in its favour. Words as even as these are the worst case for us, who project each distinct word of a
batch once. We and it take turns, so that what else the machine does meets both; ratios are of medians, matchzoo-py's of
its best setting. On a machine that does other work too, OMP_WAIT_POLICY=PASSIVE helps threads that wait for each other.
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
from parts.rates import keep, line, merged, rate, spread
from parts.synthetic import Texts, candidate_frame, synthetic_candidates, synthetic_texts

import pt_neural as pn

WINDOW, POOLING, FILTERS, HIDDEN = 3, 100, 300, 300
TRAININGS = {
    "batches of 64, Adam": {"batch_size": 64},
    "batches of 8, SGD as in the paper": {"batch_size": 8, "optimiser": "sgd", "learning_rate": 0.01},
}
DTYPES = ("float16", "int8")
EPOCHS = 2  # of a round; the first is not counted
NEGATIVES = 4
QUERIES = 10  # of one frame that is re-ranked from kept representations


def main() -> None:
    """Make the texts, run ours and the peer, print rates, ratios and floors."""
    options = parse_arguments()
    generator = np.random.default_rng(options.seed)
    sizes = {"terms": options.document_terms, "shared": 5, "others": 5, "letters": "abcdefghijkl"}
    texts = synthetic_texts(options.words, options.documents, generator, **sizes)
    candidates = synthetic_candidates(options.documents, NEGATIVES, generator)
    machine, found, peers = zip(*(turn(texts, candidates, options) for _ in range(options.rounds)), strict=True)
    multiply, read = np.max(machine, axis=0)
    print_machine(multiply, read)
    result = merged(found)
    print_rates(result, merged(peers))
    print_floors(result, options, multiply, read)


def turn(texts: Texts, candidates: np.ndarray, options: argparse.Namespace) -> tuple[tuple, dict, dict | None]:
    """What the machine, we and the peer reach, one after the other."""
    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "data.json"
        groups = options.peer_groups + 16  # a batch of each setting beyond those that are timed
        data.write_text(json.dumps(few_groups(texts, candidates[:groups])), encoding="utf-8")
        settings = {"groups": options.peer_groups, "seed": options.seed}
        theirs = matchzoo.measure(options.matchzoo, "matchzoo_duet.py", data, **settings)
        return machine_rates(), ours(texts, candidates, options, Path(name)), theirs


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    matchzoo.add_argument(parser)
    parser.add_argument("--words", type=int, default=20_000, help="distinct words (default 20,000)")
    parser.add_argument("--documents", type=int, default=5000, help="documents, each with its query (default 5,000)")
    parser.add_argument("--document-terms", type=int, default=1000, help="terms of a document (default 1,000)")
    parser.add_argument("--groups", type=int, default=64, help="groups of an epoch, and re-ranked (default 64)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each side (default 3)")
    parser.add_argument("--peer-groups", type=int, default=8, help="groups the peer is timed on in a round (default 8)")
    parser.add_argument("--kept", type=int, default=400, help="documents kept as representations (default 400)")
    parser.add_argument("--seed", type=int, default=13)
    options = parser.parse_args()
    matchzoo.check(parser, options)
    return options


def few_groups(texts: Texts, candidates: np.ndarray) -> dict[str, list]:
    """Some groups, with the documents that stand in them and no others."""
    used, places = np.unique(candidates, return_inverse=True)
    return {
        "queries": texts.queries[: len(candidates)],
        "documents": [texts.documents[document] for document in used],
        "candidates": places.reshape(candidates.shape).tolist(),
    }


def ours(texts: Texts, candidates: np.ndarray, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Our rates, from frames and strings to frames."""
    frame = texts.frame()
    fitted = {name: fit(frame, options, **settings) for name, settings in TRAININGS.items()}
    model = next(iter(fitted.values()))
    pairs = candidate_frame(frame, candidates[: options.groups])
    model.transform(pairs.head(10))
    trained = options.groups * (NEGATIVES + 1)
    return {
        "training": {name: spread(trained / one.history["seconds"].iloc[1:]) for name, one in fitted.items()},
        "scoring": rate(lambda: model.transform(pairs), len(pairs), repeats=2),
        "kept": {dtype: from_kept(model, frame.head(options.kept), dtype, folder) for dtype in DTYPES},
    }


def fit(frame: pd.DataFrame, options: argparse.Namespace, **settings: Any) -> pn.Duet:
    """A trained model."""
    training = pn.Training(
        epochs=EPOCHS,
        negatives="random",
        num_negatives=NEGATIVES,
        max_groups=options.groups,
        seed=options.seed,
        verbose=False,
        **settings,
    )
    model = pn.Duet(training=training, document_terms=options.document_terms)
    return model.fit(frame, frame[["qid", "docno"]].assign(label=1))


def from_kept(model: pn.Duet, frame: pd.DataFrame, dtype: str, folder: Path) -> dict[str, Any]:
    """Rates of keeping the representations of documents and of re-ranking from them, and their size."""
    model.representations, kept = keep(model, frame, dtype, folder)
    queries, documents = frame[["qid", "query"]].head(QUERIES), frame[["docno"]]
    one, many = (some.merge(documents, how="cross") for some in (queries.head(1), queries))
    model.transform(many.head(10))
    found = {
        "encoding": kept["keeping"],
        "one query": rate(lambda: model.transform(one), len(one)),
        "many queries": rate(lambda: model.transform(many), len(many)),
        "bytes": kept["bytes"],
    }
    model.representations = None
    return found


def print_rates(ours: dict[str, Any], theirs: dict | None) -> None:
    """A line a task: ours, and beside the best setting of the peer."""
    print("\nDuet, least / median / greatest of repeats")
    peer_training, peer_scoring = (theirs and theirs[task] for task in ("training", "scoring"))
    for name, rates in ours["training"].items():
        print(line(f"training, pairs/s, {name}", rates, peer_training, units=NEGATIVES + 1))
    print(line("re-ranking from text, pairs/s", ours["scoring"], peer_scoring))
    for dtype, kept in ours["kept"].items():
        print(line(f"documents kept as {dtype}, documents/s", kept["encoding"]))
        print(line(f"re-ranking from {dtype}, 1 query, rows/s", kept["one query"], peer_scoring))
        print(line(f"re-ranking from {dtype}, {QUERIES} queries, rows/s", kept["many queries"], peer_scoring))
    matchzoo.print_memory(theirs)


def print_floors(ours: dict[str, Any], options: argparse.Namespace, multiply: float, read: float) -> None:
    """What this machine allows at best, and the share of its GEMM rate that the dense layers reach.

    They are those of a document, the 1x1 convolution and the first layer after the match; training counts them three
    times, once forward and twice backward. Words come from a table of projections, three rows a window. From kept
    representations, the bytes of a document are read once a row.
    """
    positions = options.document_terms - WINDOW + 1 - POOLING + 1
    flops = 2 * positions * FILTERS * (FILTERS + HIDDEN)
    gathered = options.document_terms * WINDOW * FILTERS * 4 / read
    text, training = 1 / (flops / multiply + gathered), 1 / (3 * (flops / multiply + gathered))
    print(f"\nfloor: documents {text:,.0f} a second, training {training:,.0f} pairs/s")
    for name, rates in ours["training"].items():
        print(f"dense layers in training, {name}: {3 * flops * rates[1] / multiply:.0%} of the GEMM rate")
    print(f"dense layers in re-ranking from text: {flops * ours['scoring'][1] / multiply:.0%} of the GEMM rate")
    for dtype, kept in ours["kept"].items():
        print(
            f"{dtype}: dense layers {flops * kept['encoding'][1] / multiply:.0%} of the GEMM rate, "
            f"{kept['bytes'] / 1000:,.0f} KB a document, floor of re-ranking {read / kept['bytes']:,.0f} rows/s"
        )


if __name__ == "__main__":
    main()
