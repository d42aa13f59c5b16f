"""Peak memory while a ranker trains on a million pairs, beside what the texts take.

Each pair is a query of three words and a title of eight, drawn from words made of letters. What the frame of pairs and
the judgements take in memory, their strings included, is counted as text.

    python benchmarks/training_memory.py
"""

import argparse
import resource
import sys

import numpy as np
import pandas as pd
from parts.synthetic import synthetic_words

import pt_neural as pn


def main() -> None:
    """Train for an epoch, and print memory before, at the peak, and the difference to the texts."""
    arguments = argparse.ArgumentParser(description=main.__doc__)
    arguments.add_argument("--model", choices=["DSSM", "CLSM"], default="CLSM")
    arguments.add_argument("--pairs", type=int, default=1_000_000)
    arguments.add_argument("--words", type=int, default=100_000, help="distinct words")
    arguments.add_argument("--groups", type=int, default=50_000, help="groups of the epoch; more only take longer")
    arguments = arguments.parse_args()
    frame, qrels = synthetic_pairs(arguments.pairs, arguments.words)
    text = sum(int(part.memory_usage(deep=True).sum()) for part in (frame, qrels))
    print(f"{arguments.pairs:,} pairs: {text / 1e9:.2f} GB of text; process {peak_memory() / 1e9:.2f} GB")
    training = pn.Training(
        epochs=1, batch_size=1024, negatives="random", num_negatives=4, max_groups=arguments.groups, verbose=False
    )
    model = getattr(pn, arguments.model)(training=training).fit(frame, qrels)
    peak = peak_memory()
    seconds = model.history["seconds"].sum()
    print(f"{model!r} trained on {arguments.groups:,} groups in {seconds:.0f} s ({model.report})")
    print(f"peak {peak / 1e9:.2f} GB, {(peak - text) / 1e9:.2f} GB beside the text, Python and libraries included")


def synthetic_pairs(pairs: int, words: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Queries with their titles, and judgements that say so."""
    generator = np.random.default_rng(13)
    drawn = synthetic_words(words, generator).astype(object)[generator.integers(words, size=(pairs, 8))]
    qids, docnos = [f"q{i}" for i in range(pairs)], [f"d{i}" for i in range(pairs)]
    texts = [" ".join(title) for title in drawn]
    queries = [" ".join(title[:3]) for title in drawn]
    frame = pd.DataFrame({"qid": qids, "query": queries, "docno": docnos, "text": texts})
    return frame, frame[["qid", "docno"]].assign(label=1)


def peak_memory() -> int:
    """The most bytes that this process has had in memory."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    main()
