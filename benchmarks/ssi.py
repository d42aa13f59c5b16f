"""SSI on a vocabulary of 100,000 words: training, memory, retrieval; LSA and hash kernels beside peers in the same run.

    PT_NEURAL_VOWPAL_WABBIT=/path/to/vw/bin/python python benchmarks/ssi.py
    python benchmarks/ssi.py --dataset neural:folder:/path/to/cpp-docs/links

The head of benchmarks/parts/vowpal_wabbit.py says how to make that environment.

Words follow the Zipf-Mandelbrot law. A document is 114 words, about 100 of them distinct; so is its query, which shares
20 words with it. A tuple is a query with its document and a random one.

Training starts from frames and goes through ``fit``; the first epoch is not counted, and all words have columns in U
and V. It runs on one core. Its limit is the number of bytes of U and V that it reads and writes, divided by the rate at
which one core reads them, from memory or from an array as large as U and V, which the cache may hold. Terms, weights
and the diagonal are not counted. Retrieval is exact, of a thousand documents per query, from frame to frame. Its limit
is the number of bytes that a single query reads, divided by the rate at which one core reads memory.

Epochs are timed by the clock, and the share of a core that the process had is printed beside them; it is below 100% if
the machine is also used by others. Everything else, peers included, is timed by the processor time of the process.
"""

import argparse
import multiprocessing
import os
import shutil
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import torch
from parts import vowpal_wabbit
from parts.collection import Collection, dataset_collection, zipf_collection
from parts.decompositions import print_decompositions
from parts.machine import machine_rates, print_machine, read_rate
from parts.rates import Rate, line
from parts.ssi_retrieval import print_retrieval
from parts.ssi_training import Work, distinct_terms, fit, long_training, loop_rates, share_of_steps

import pt_neural as pn

LOW_RANK = ((50, 1), (50, 4), (50, 8), (100, 8))  # N and negatives
NEGATIVES = 8
TUPLES = 160_000  # of an epoch of low-rank models
OTHER_KINDS = {  # with the tuples of an epoch
    "diagonal": (160_000, {}),
    "hash": (4_000, {}),
    "full": (8_000, {"max_terms": 3000}),
    "sparse": (8_000, {"max_terms": 3000, "rounds": 1}),
    "correlated-hash": (40_000, {"dim": 50, "embedded_terms": 10_000}),
}
FEW_PAIRS = 20_000  # of all but the long training
HASHED_TUPLES, HELD_OUT = 4000, 1000


def main() -> None:
    """Make or load the texts, and print each part as it is measured."""
    options = parse_arguments()
    torch.set_num_threads(1)  # of the machine's rates: training runs on one core
    multiply, memory = machine_rates()
    print_machine(multiply, memory)
    print(f"load of its {os.cpu_count()} cores in the last minute: {os.getloadavg()[0]:.1f}")
    generator = np.random.default_rng(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        collection = read_collection(folder / "documents", options, generator)
        print_collection(collection)
        few = collection.head(FEW_PAIRS)
        model = print_low_rank(few, memory, options, generator)
        print_long_training(collection, options)
        hashed = print_other_kinds(few, options)
        print_decompositions(collection, options.rounds, options.seed)
        print_hash_kernels(few, folder, options)
        tfidf = pn.TFIDF().fit_corpus(collection.documents, verbose=False)
        models = {"TFIDF": tfidf, "U'V + I": model, "hash + I": hashed}
        print_retrieval(models, few, folder, options.rounds, memory)


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    program = os.environ.get("PT_NEURAL_VOWPAL_WABBIT")
    parser.add_argument("--vowpal-wabbit", default=program, help="python that has vowpalwabbit")
    parser.add_argument("--dataset", help="a dataset with training queries, in place of random words")
    parser.add_argument("--words", type=int, default=100_000, help="distinct words (default 100,000)")
    parser.add_argument("--documents", type=int, default=100_000, help="documents, each with a query (default 100,000)")
    parser.add_argument("--tuples", type=int, default=10_000_000, help="tuples of the long training (10,000,000)")
    parser.add_argument("--rounds", type=int, default=3, help="repeats of each measurement (default 3)")
    parser.add_argument("--seed", type=int, default=13)
    options = parser.parse_args()
    if options.vowpal_wabbit and not shutil.which(options.vowpal_wabbit):
        parser.error(f"PT_NEURAL_VOWPAL_WABBIT or --vowpal-wabbit names {options.vowpal_wabbit}, not a program")
    return options


def read_collection(path: Path, options: argparse.Namespace, generator: np.random.Generator) -> Collection:
    """The dataset, or random texts."""
    if options.dataset:
        return dataset_collection(path, options.dataset, generator)
    return zipf_collection(path, options.words, options.documents, generator, terms=114, shared=20)


def print_collection(collection: Collection) -> None:
    """Print its size."""
    documents = collection.documents
    sizes = f"{len(documents):,} documents, {len(documents.vocabulary):,} words, {len(collection.pairs):,} pairs"
    print(f"{sizes}\nlowest / median / highest of repeats", flush=True)


def show(label: str, rates: Rate, note: str) -> None:
    """Print one line."""
    print(f"{line(label, rates)}   {note}", flush=True)


def limits(work: Work, share: float, memory: float, cache: float) -> str:
    """What memory and cache would allow."""
    size = work.bytes(share)
    return f"{size / 1000:.0f} KB per tuple, limit {memory / size:,.0f} from memory, {cache / size:,.0f} from cache"


def print_low_rank(
    collection: Collection, memory: float, options: argparse.Namespace, generator: np.random.Generator
) -> pn.SSI:
    """Measure training of U'V + I from frames, and its loop alone; returns the last model with N = 50."""
    print("\nU'V + I: training, tuples/s")
    kept, terms = None, None
    for dim, negatives in LOW_RANK:
        settings = {"dim": dim, "embedded_terms": options.words, "seed": options.seed}
        settings |= {"tuples": TUPLES, "negatives": negatives, "epochs": options.rounds + 1}
        model, rates, core = fit("low-rank", collection, **settings)
        kept = model if dim == LOW_RANK[0][0] else kept
        terms = terms or distinct_terms(model, collection)
        work, cache = Work(dim, *terms, negatives), cache_rate(model)
        share = share_of_steps(model, collection, generator)
        note = f"{core:.0%} of a core; at the end {share:.0%} with a step, {limits(work, share, memory, cache)}"
        show(f"N = {dim}, {negatives} negatives", rates[""], note)
        for margin, alone in loop_rates(model, collection, options.rounds, generator).items():
            share = float(margin.startswith("each"))
            show(f"    the loop alone, {margin}", alone, limits(work, share, memory, cache))
    print(f"distinct terms of a query {terms[0]:.0f}, of a document {terms[1]:.0f}")
    return kept


def cache_rate(model: pn.SSI) -> float:
    """Bytes per second that one core reads from an array as large as U and V."""
    size = sum(vectors.nbytes for vectors in (model.network.query_vectors, model.network.document_vectors))
    return read_rate(size)


def print_long_training(collection: Collection, options: argparse.Namespace) -> None:
    """Measure training on many tuples, and the memory of its process."""
    settings = {"dim": 50, "embedded_terms": options.words, "negatives": NEGATIVES, "seed": options.seed}
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        found = pool.submit(long_training, collection, options.tuples, settings).result()
    processor = found["seconds"] * found["core"]
    note = f"{found['core']:.0%} of a core, {found['seconds']:.0f} s; all in about {processor:.0f} s of processor time"
    show(f"N = 50, {found['tuples']:,} tuples, rate of each epoch", found["rate"], note)
    sizes = {name: f"{found[name] / 1e9:.2f} GB" for name in ("peak", "before", "weights")}
    print(f"    memory at most {sizes['peak']}: {sizes['before']} before with the pairs, U and V {sizes['weights']}")


def print_other_kinds(collection: Collection, options: argparse.Namespace) -> pn.SSI:
    """Measure training of the other kinds of W; returns the hashed model."""
    print("\nother kinds: training, tuples/s, 8 negatives")
    for kind, (tuples, settings) in OTHER_KINDS.items():
        common = {"tuples": tuples, "negatives": NEGATIVES, "epochs": options.rounds + 1, "seed": options.seed}
        model, rates, core = fit(kind, collection, **common, **settings)
        named = "".join(f", {name}={value:,}" for name, value in settings.items())
        for stage, one in rates.items():
            show(f"{kind}: {stage}".removesuffix(": "), one, f"{core:.0%} of a core{named}")
        if kind == "hash":
            hashed = model
    return hashed


def print_hash_kernels(collection: Collection, folder: Path, options: argparse.Namespace) -> None:
    """Measure hash kernels beside Vowpal Wabbit."""
    held_out = min(HELD_OUT, len(collection.pairs) // 5)
    tuples = min(HASHED_TUPLES, len(collection.pairs) - held_out)
    settings = {"tuples": tuples, "held_out": held_out, "rounds": options.rounds}
    ours, theirs = vowpal_wabbit.measure(options.vowpal_wabbit, collection, folder, **settings)
    what = f"a pass over {tuples:,} tuples of two pairs (q, d) each"
    print(f"\nhash kernels, {what}: pairs/s, and rank loss on {held_out:,} other tuples")
    vowpal_wabbit.print_rates(ours, theirs)


if __name__ == "__main__":
    main()
