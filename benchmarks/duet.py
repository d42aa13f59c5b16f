"""The Duet beside matchzoo-py's DUET, in one run on the same synthetic documents.

    PT_NEURAL_MATCHZOO=/path/to/matchzoo/bin/python python benchmarks/duet.py

The head of benchmarks/parts/matchzoo.py says how to make that environment.

A document is 1,000 words drawn uniformly from 20,000, which are made of twelve letters and so have 2,016 letter
trigrams; a query is five words of its document and five others; a group is a query with its document and four others.
matchzoo-py pools a document to 9 positions where the paper and we have 899, so it does a fraction of the arithmetic;
the head of its script says what else is in its favour. Uniform words are our worst case, because we project each
distinct word of a batch once. The two take turns, so that other load on the machine affects both. Ratios are of
medians, and matchzoo-py's median is that of its best setting. On a busy machine, OMP_WAIT_POLICY=PASSIVE helps threads
that wait for each other.
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
EPOCHS = 2  # per round; the first is not counted
NEGATIVES = 4
QUERIES = 10  # in one frame that is re-ranked from stored representations


def main() -> None:
    """Make the texts, run ours and the peer, print rates, ratios and limits."""
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
    print_limits(result, options, multiply, read)


def turn(texts: Texts, candidates: np.ndarray, options: argparse.Namespace) -> tuple[tuple, dict, dict | None]:
    """Measure the machine, our model and the peer, one after the other."""
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
    parser.add_argument("--peer-groups", type=int, default=8, help="groups per round for the peer (default 8)")
    parser.add_argument("--kept", type=int, default=400, help="documents kept as representations (default 400)")
    parser.add_argument("--seed", type=int, default=13)
    options = parser.parse_args()
    matchzoo.check(parser, options)
    return options


def few_groups(texts: Texts, candidates: np.ndarray) -> dict[str, list]:
    """The given groups, with only the documents that occur in them."""
    used, places = np.unique(candidates, return_inverse=True)
    return {
        "queries": texts.queries[: len(candidates)],
        "documents": [texts.documents[document] for document in used],
        "candidates": places.reshape(candidates.shape).tolist(),
    }


def ours(texts: Texts, candidates: np.ndarray, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Our rates, from frames of strings to frames of scores."""
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
    """The rates of storing the representations of documents and of re-ranking from them, and their size."""
    model.representations, kept = keep(model, frame, dtype, folder)
    queries, documents = frame[["qid", "query"]].head(QUERIES), frame[["docno"]]
    one, many = (topics.merge(documents, how="cross") for topics in (queries.head(1), queries))
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
    """Print a line for each task: our rate beside that of the peer's best setting."""
    print("\nDuet, lowest / median / highest of repeats")
    peer_training, peer_scoring = (theirs and theirs[task] for task in ("training", "scoring"))
    for name, rates in ours["training"].items():
        print(line(f"training, pairs/s, {name}", rates, peer_training, units=NEGATIVES + 1))
    print(line("re-ranking from text, pairs/s", ours["scoring"], peer_scoring))
    for dtype, kept in ours["kept"].items():
        print(line(f"documents stored as {dtype}, documents/s", kept["encoding"]))
        print(line(f"re-ranking from {dtype}, 1 query, rows/s", kept["one query"], peer_scoring))
        print(line(f"re-ranking from {dtype}, {QUERIES} queries, rows/s", kept["many queries"], peer_scoring))
    matchzoo.print_memory(theirs)


def print_limits(ours: dict[str, Any], options: argparse.Namespace, multiply: float, read: float) -> None:
    """The best this machine allows, and the share of its GEMM rate that the dense layers reach.

    The dense layers are those of a document: the 1x1 convolution and the first layer after the match. Training counts
    them three times, once forward and twice backward. Words come from a table of projections, three rows per window.
    From stored representations, the bytes of a document are read once for each row.
    """
    positions = options.document_terms - WINDOW + 1 - POOLING + 1
    flops = 2 * positions * FILTERS * (FILTERS + HIDDEN)
    gathered = options.document_terms * WINDOW * FILTERS * 4 / read
    text, training = 1 / (flops / multiply + gathered), 1 / (3 * (flops / multiply + gathered))
    print(f"\nlimit: {text:,.0f} documents/s, training {training:,.0f} pairs/s")
    for name, rates in ours["training"].items():
        print(f"dense layers in training, {name}: {3 * flops * rates[1] / multiply:.0%} of the GEMM rate")
    print(f"dense layers in re-ranking from text: {flops * ours['scoring'][1] / multiply:.0%} of the GEMM rate")
    for dtype, kept in ours["kept"].items():
        print(
            f"{dtype}: dense layers {flops * kept['encoding'][1] / multiply:.0%} of the GEMM rate, "
            f"{kept['bytes'] / 1000:,.0f} KB per document, limit of re-ranking {read / kept['bytes']:,.0f} rows/s"
        )


if __name__ == "__main__":
    main()
