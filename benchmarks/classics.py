"""The later classics beside matchzoo-py's, in one run on the same texts.

    PT_NEURAL_MATCHZOO=/path/to/matchzoo/bin/python python benchmarks/classics.py
    python benchmarks/classics.py --models KNRM TK --rounds 1

The head of benchmarks/parts/matchzoo.py says how to make that environment.

The texts are training queries of neural:pydocs with a relevant document each: the first eight words of a query and the
first 200 of a document. With ``--dataset synthetic``, a document is 200 words drawn from 20,000 by Zipf's law, so that
all are of one length, and a query is four words of its document and four others. A group is a query with its document
and four others, drawn at random, and a step of Adam takes sixteen groups. Word vectors have 200 dimensions; they are
trained where the papers train them, in both packages. Networks have the same sizes as far as matchzoo-py allows. It has
none of PACRR, TK and POSIT-DRMM. Our rates are end to end, from frames of strings; when we re-rank, a query has 100
documents, the same for all of ten queries, or, in the last rate, most of them shared with the next of 80 queries. The
two take turns, so that other load on the machine affects both. Ratios are of medians, and matchzoo-py's median is that
of its best setting. The share of the GEMM rate counts the operations of a step's matrix products and cosines, and of
convolutions unless a compiled loop pools them, but not of LSTMs. Documents that queries share are read once, so a model
that reads them apart may come to more than all of it.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from parts import matchzoo
from parts.collection import dataset_texts
from parts.machine import machine_rates, print_machine
from parts.rates import line, merged, rate, spread
from parts.synthetic import Texts, synthetic_candidates, synthetic_spaces, synthetic_texts
from torch.utils.flop_counter import FlopCounterMode

import pt_neural as pn
from pt_neural.models.matching.lookups import Pairs, PooledNetwork

MODELS: dict[str, tuple[str | None, dict[str, Any]]] = {  # matchzoo-py's name, and settings beside the defaults
    "KNRM": ("KNRM", {}),
    "ConvKNRM": ("ConvKNRM", {}),
    "TK": (None, {}),
    "MatchPyramid": ("MatchPyramid", {}),
    "PACRR": (None, {}),
    "ARCI": ("ArcI", {}),
    "ARCII": ("ArcII", {}),
    "DRMMTKS": ("DRMMTKS", {}),
    "MVLSTM": ("MVLSTM", {"similarity": "cosine"}),
    "POSITDRMM": (None, {}),
    "ANMM": ("aNMM", {}),
}
SYNTHETIC = "synthetic"
WORDS = 20_000  # distinct ones of synthetic texts
EPOCHS = 3  # per round; the first is not counted
NEGATIVES = 4
DEPTH = 100  # documents per query that are re-ranked
QUERIES_AT_ONCE = 80  # of one request, whose candidates overlap
QUERY_TERMS = 8
BATCH = 16


def main() -> None:
    """Make the texts, run ours and the peer, print rates, ratios and limits."""
    options = parse_arguments()
    generator = np.random.default_rng(options.seed)
    if options.dataset == SYNTHETIC:
        sizes = {"terms": options.document_terms, "shared": 4, "others": 4}
        texts = synthetic_texts(WORDS, options.documents, generator, **sizes, zipf=True)
    else:
        sizes = {"query_terms": QUERY_TERMS, "terms": options.document_terms}
        texts = dataset_texts(options.dataset, options.documents, generator, **sizes)
    candidates = synthetic_candidates(len(texts.documents), NEGATIVES, generator)
    for name in options.models:
        machine, found, peers = zip(
            *(turn(name, texts, candidates, options) for _ in range(options.rounds)), strict=True
        )
        if name == options.models[0]:
            print_machine(*np.max(machine, axis=0))
        print_rates(name, merged(found), merged(peers), max(multiply for multiply, _ in machine))


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    matchzoo.add_argument(parser)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--dataset", default="neural:pydocs", help=f"with training queries; or {SYNTHETIC}")
    parser.add_argument("--documents", type=int, default=800, help="documents, each with its query (default 800)")
    about = "words of a document that are read (default 200)"
    parser.add_argument("--document-terms", type=int, default=200, help=about)
    parser.add_argument("--dim", type=int, default=200, help="dimensions of the word vectors (default 200)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each side (default 3)")
    parser.add_argument("--peer-groups", type=int, default=160, help="groups per round for the peer (default 160)")
    parser.add_argument("--seed", type=int, default=13)
    options = parser.parse_args()
    matchzoo.check(parser, options)
    return options


def turn(
    name: str, texts: Texts, candidates: np.ndarray, options: argparse.Namespace
) -> tuple[tuple, dict, dict | None]:
    """Measure the machine, our model and the peer, one after the other."""
    peer, settings = MODELS[name]
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.json"
        data.write_text(json.dumps({**texts._asdict(), "candidates": candidates.tolist()}), encoding="utf-8")
        theirs = None
        if peer is not None:
            sizes = {"groups": options.peer_groups, "dim": options.dim, "seed": options.seed}
            theirs = matchzoo.measure(options.matchzoo, "matchzoo_classics.py", data, model=peer, **sizes)
        return machine_rates(), ours(getattr(pn, name), settings, texts, options), theirs


def ours(kind: type, settings: dict[str, Any], texts: Texts, options: argparse.Namespace) -> dict[str, Any]:
    """Our rates, from frames of strings to frames of scores."""
    frame = texts.frame()
    training = pn.Training(
        epochs=EPOCHS,
        negatives="random",
        num_negatives=NEGATIVES,
        batch_size=BATCH,
        patience=None,
        seed=options.seed,
        verbose=False,
    )
    model = kind(
        synthetic_spaces(texts, options.dim, options.seed),
        query_terms=QUERY_TERMS,
        document_terms=options.document_terms,
        training=training,
        fields="text",
        **settings,
    )
    model.fit(frame, frame[["qid", "docno"]].assign(label=1))
    many = frame[["qid", "query"]].head(10).merge(frame[["docno", "text"]].head(DEPTH), how="cross")
    model.transform(many.head(10))
    documents = frame[["docno", "text"]]
    shared = pd.concat(
        documents.iloc[(np.arange(DEPTH) + 10 * number) % len(documents)].assign(qid=str(number), query=query)
        for number, query in enumerate(frame["query"].head(QUERIES_AT_ONCE))
    )
    return {
        "training": spread((NEGATIVES + 1) * len(frame) / model.history["seconds"].iloc[1:]),
        "scoring": rate(lambda: model.transform(many), len(many), repeats=3),
        "shared": rate(lambda: model.transform(shared), len(shared), repeats=1),
        "operations": operations(model, texts),
    }


def operations(model: Any, texts: Texts) -> dict[str, float]:
    """Floating-point operations of matrix products, convolutions and cosines for a pair, in training and in scoring."""
    documents = 1 + NEGATIVES
    frame = texts.frame().head(BATCH * documents)
    network = model.network
    rows, *texts_of_rows = model._frame_documents(frame)
    pairs_of_texts = model.reader.pair(list(frame["query"].head(BATCH)), *texts_of_rows)
    groups = pairs_of_texts.batch(np.arange(BATCH), rows.reshape(BATCH, documents))
    with FlopCounterMode(display=False) as counter:
        scores = network(groups)
    forward = counter.get_total_flops()
    with FlopCounterMode(display=False) as counter:
        scores.sum().backward()
    backward = counter.get_total_flops()
    if isinstance(network, PooledNetwork) and network.loop_pays(groups, pairs := Pairs.of(groups)):
        forward += 2 * network.vectors.dim * pairs.cells  # vectors are fixed, so that there is no backward
    return {"training": (forward + backward) / len(frame), "scoring": forward / len(frame)}


def print_rates(name: str, ours: dict[str, Any], theirs: dict | None, multiply: float) -> None:
    """Print our rates beside those of the peer's best setting, and our share of the GEMM rate."""
    print(f"\n{name}, {torch.get_num_threads()} threads, pairs/s, lowest / median / highest of repeats")
    for task, label in (("training", f"{name}: training"), ("scoring", f"{name}: re-ranking from text")):
        print(line(label, ours[task], theirs and theirs[task], units=NEGATIVES + 1 if task == "training" else 1))
        print(f"{'':58}{ours['operations'][task] * ours[task][1] / multiply:>30.0%} of the GEMM rate")
    print(line(f"{name}: re-ranking {QUERIES_AT_ONCE} queries at once", ours["shared"], None))
    if theirs is not None:
        print(f"matchzoo-py needs {theirs['peak_memory'] / 1e9:.1f} GB")


if __name__ == "__main__":
    main()
