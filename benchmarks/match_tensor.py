"""Match-Tensor and SSM beside matchzoo-py's MatchPyramid, in one run on the same synthetic documents.

    PT_NEURAL_MATCHZOO=/path/to/matchzoo/bin/python python benchmarks/match_tensor.py

The head of benchmarks/parts/matchzoo.py says how to make that environment.

A document is 200 words drawn uniformly from 20,000; a query is four words of its document and four others; a group is a
query with its document and four others, and a step takes forty groups. Word vectors have 256 dimensions, and the
networks have the paper's sizes. MatchPyramid is the closest model in matchzoo-py: its match matrix compares word
vectors without an LSTM, so it does a fraction of the arithmetic; the head of its script says what else is in its
favour. When we re-rank from text, no two rows have the same document, except where several queries rank all documents.
The two take turns, so that other load on the machine affects both. Ratios are of medians, and matchzoo-py's median is
that of its best setting.
"""

import argparse
import json
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from parts import matchzoo
from parts.machine import machine_rates, print_machine
from parts.rates import Rate, keep, line, merged, rate, spread
from parts.synthetic import Texts, candidate_frame, synthetic_candidates, synthetic_spaces, synthetic_texts

import pt_neural as pn
from pt_neural.models.match_tensor.network import SHIFTS

MODELS = {"Match-Tensor": pn.MatchTensor, "SSM": pn.SSM}
DTYPES = ("float16", "int8")
EPOCHS = 3  # per round; the first is not counted
NEGATIVES = 4
QUERIES = 10  # in one frame that is re-ranked, all with the same documents


def main() -> None:
    """Make the texts, run ours and the peer, print rates, ratios and limits."""
    options = parse_arguments()
    generator = np.random.default_rng(options.seed)
    sizes = {"terms": options.document_terms, "shared": 4, "others": 4}
    texts = synthetic_texts(options.words, options.documents, generator, **sizes)
    candidates = synthetic_candidates(options.documents, NEGATIVES, generator)
    machine, found, peers = zip(*(turn(texts, candidates, options) for _ in range(options.rounds)), strict=True)
    multiply, memory = np.max(machine, axis=0)
    print_machine(multiply, memory)
    result = merged(found)
    print_rates(result, merged(peers))
    print_limits(result, multiply)


def turn(texts: Texts, candidates: np.ndarray, options: argparse.Namespace) -> tuple[tuple, dict, dict | None]:
    """Measure the machine, our models and the peer, one after the other."""
    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "data.json"
        data.write_text(json.dumps({**texts._asdict(), "candidates": candidates.tolist()}), encoding="utf-8")
        settings = {"groups": options.peer_groups, "dim": options.dim, "seed": options.seed}
        theirs = matchzoo.measure(options.matchzoo, "matchzoo_match_pyramid.py", data, **settings)
        return machine_rates(), ours(texts, options, Path(name)), theirs


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    matchzoo.add_argument(parser)
    parser.add_argument("--words", type=int, default=20_000, help="distinct words (default 20,000)")
    parser.add_argument("--documents", type=int, default=1000, help="documents, each with its query (default 1,000)")
    parser.add_argument("--document-terms", type=int, default=200, help="terms of a document (default 200)")
    parser.add_argument("--dim", type=int, default=256, help="dimensions of the word vectors (default 256)")
    parser.add_argument("--groups", type=int, default=160, help="groups of an epoch (default 160)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each side (default 3)")
    parser.add_argument("--peer-groups", type=int, default=80, help="groups per round for the peer (default 80)")
    parser.add_argument("--seed", type=int, default=13)
    options = parser.parse_args()
    matchzoo.check(parser, options)
    return options


def ours(texts: Texts, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Our rates, from frames of strings to frames of scores."""
    frame = texts.frame()
    spaces = synthetic_spaces(texts, options.dim, options.seed)
    fitted = {name: fit(kind, spaces, frame, options) for name, kind in MODELS.items()}
    match_tensor, ssm = fitted.values()
    frames = frames_to_rank(frame)
    found = {
        "training": {name: training_rate(one, options) for name, one in fitted.items()},
        "encoding": rate(lambda: ssm.encode_documents(texts.documents), len(frame), repeats=3),
        "text": re_ranking(match_tensor, frames),
        "operations": operations(match_tensor, ssm, options.document_terms),
        "kept": {},
    }
    for dtype in DTYPES:
        match_tensor.representations, keeping = keep(match_tensor, frame, dtype, folder)
        found["kept"][dtype] = {**keeping, "ranking": re_ranking(match_tensor, frames)}
        match_tensor.representations = None
    return found


def fit(kind: type, spaces: pn.EmbeddingSpaces, frame: pd.DataFrame, options: argparse.Namespace) -> Any:
    """A trained model."""
    training = pn.Training(
        epochs=EPOCHS,
        negatives="random",
        num_negatives=NEGATIVES,
        max_groups=options.groups,
        seed=options.seed,
        verbose=False,
    )
    return kind(spaces, training=training, fields="text").fit(frame, frame[["qid", "docno"]].assign(label=1))


def training_rate(model: pn.MatchTensor | pn.SSM, options: argparse.Namespace) -> Rate:
    """Pairs per second in the epochs after the first."""
    return spread(options.groups * (NEGATIVES + 1) / model.history["seconds"].iloc[1:])


def frames_to_rank(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Frames with few documents per query and none twice, with all for one query, and with all for several queries."""
    count = len(frame) // (NEGATIVES + 1)
    few = np.arange(count * (NEGATIVES + 1)).reshape(count, -1)
    queries, documents = frame[["qid", "query"]].head(QUERIES), frame[["docno", "text"]]
    return {
        f"{NEGATIVES + 1} documents per query": candidate_frame(frame, few),
        "1 query": queries.head(1).merge(documents, how="cross"),
        f"{QUERIES} queries": queries.merge(documents, how="cross"),
    }


def re_ranking(model: pn.MatchTensor, frames: dict[str, pd.DataFrame]) -> dict[str, Rate]:
    """Rows per second of each frame."""
    model.transform(frames["1 query"].head(10))
    return {name: rate(partial(model.transform, rows), len(rows), repeats=3) for name, rows in frames.items()}


def operations(match_tensor: pn.MatchTensor, ssm: pn.SSM, terms: int) -> dict[str, int]:
    """Floating-point operations of reading a document, and of the filters over a pair with the query folded in."""
    sizes = match_tensor.sizes
    columns = sizes.query_terms * sizes.filters
    return {
        "document": recurrent(match_tensor, terms) + 2 * terms * 2 * sizes.document_units * sizes.tensor_size,
        "first layer": 2 * terms * SHIFTS * sizes.tensor_size * columns,
        "second layer": 2 * terms * columns * sizes.second_filters,
        "SSM document": recurrent(ssm, terms),
    }


def recurrent(model: pn.MatchTensor | pn.SSM, terms: int) -> int:
    """Floating-point operations of a document's LSTM: four gates in each of two directions."""
    return 2 * terms * 2 * 4 * model.document_units * (model.projection + model.document_units)


def print_rates(ours: dict[str, Any], theirs: dict | None) -> None:
    """Print a line for each task: our rate beside that of the peer's best setting."""
    print("\nlowest / median / highest of repeats")
    peer_training, peer_scoring = (theirs and theirs[task] for task in ("training", "scoring"))
    for name, rates in ours["training"].items():
        print(line(f"{name}: training, pairs/s", rates, peer_training, units=NEGATIVES + 1))
        in_tutorial = theirs and theirs["training, vectors too"]
        print(line("    beside matchzoo-py as in its tutorial", rates, in_tutorial, units=NEGATIVES + 1))
    print(line("SSM: encoding, documents/s", ours["encoding"]))
    for name, rates in ours["text"].items():
        print(line(f"Match-Tensor: from text, {name}, rows/s", rates, peer_scoring))
    for dtype, kept in ours["kept"].items():
        size = f"{kept['bytes'] / 1000:.1f} KB"
        print(line(f"Match-Tensor: storing as {dtype}, {size} each, documents/s", kept["keeping"]))
        for name, rates in kept["ranking"].items():
            print(line(f"Match-Tensor: from {dtype}, {name}, rows/s", rates, peer_scoring))
            print(f"{'':58}{rates[1] / ours['text'][name][1]:>30.1f} times as fast as from text")
    matchzoo.print_memory(theirs)


def print_limits(ours: dict[str, Any], multiply: float) -> None:
    """The limits that the multiply-adds set at this machine's GEMM rate, and the share of that rate that is reached.

    Training counts them three times, once forward and twice backward; only the second layer of filters counts once,
    because only the largest values have gradients. Work done once per distinct word, query or pair is left out.
    """
    work = ours["operations"]
    document, first, second = (work[part] for part in ("document", "first layer", "second layer"))
    tasks = {
        "Match-Tensor: training, pairs/s": (3 * (document + first) + second, ours["training"]["Match-Tensor"]),
        "Match-Tensor: from text, 1 query, rows/s": (document + first + second, ours["text"]["1 query"]),
        "Match-Tensor: from float16, 1 query, rows/s": (first + second, ours["kept"]["float16"]["ranking"]["1 query"]),
        "Match-Tensor: storing as float16, documents/s": (document, ours["kept"]["float16"]["keeping"]),
        "SSM: training, pairs/s": (3 * work["SSM document"], ours["training"]["SSM"]),
        "SSM: encoding, documents/s": (work["SSM document"], ours["encoding"]),
    }
    print("\nlimit by the GEMM rate, and the share that is reached")
    for name, (flops, rates) in tasks.items():
        print(f"{name:58}{multiply / flops:>30,.0f}   {flops * rates[1] / multiply:.0%}")


if __name__ == "__main__":
    main()
