"""Match-Tensor trained with documents that groups of a batch share, beside groups that keep theirs for themselves.

    python benchmarks/sharing.py --dataset neural:pydocs --seeds 13 14 15

Each setting trains on the same number of groups, so that its dev measure says what sharing changes, and its seconds
what it costs; what a setting reaches in equal time can be read off the epochs. BM25 makes the candidates.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt
from ir_measures import nDCG

import pt_neural as pn

SETTINGS = {
    "4 own negatives": {"num_negatives": 4, "shared_groups": 0},
    "4 own, of 1 other group 5": {"num_negatives": 4, "shared_groups": 1},
    "4 own, of 3 other groups 15": {"num_negatives": 4, "shared_groups": 3},
    "2 own, of 1 other group 3": {"num_negatives": 2, "shared_groups": 1},
    "1 own, of 3 other groups 6": {"num_negatives": 1, "shared_groups": 3},
}
MODELS = {"MatchTensor": pn.MatchTensor, "SSM": pn.SSM}
DEPTH = 50


def main() -> None:
    """Train with each setting and seed; print a line for each, and means over the seeds."""
    options = parse_arguments()
    with tempfile.TemporaryDirectory() as folder:
        data = prepare(options, Path(folder))
        found = []
        for seed in options.seeds:
            for name in [name for name in SETTINGS if options.settings is None or options.settings in name]:
                for precision in options.precisions:
                    found.append({"setting": name, "precision": precision, **fit(name, precision, seed, data, options)})
                    print(found[-1], flush=True)
    table = pd.DataFrame(found).drop(columns=["epochs", "seed"]).groupby(["setting", "precision"], sort=False)
    print(f"\n{options.model} on {options.dataset}, means over the seeds {options.seeds}")
    print(table.mean().round(4).to_string())


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="neural:pydocs")
    parser.add_argument("--model", choices=list(MODELS), default="MatchTensor")
    parser.add_argument("--settings", help="only the settings whose names contain this")
    parser.add_argument("--precisions", nargs="+", default=["32-true"], help="32-true, bf16-mixed or auto")
    parser.add_argument("--queries", type=int, default=2000, help="training queries (default 2,000)")
    parser.add_argument("--dev", type=int, default=200, help="dev queries (default 200)")
    parser.add_argument("--epochs", type=int, default=5, help="passes over the groups (default 5)")
    parser.add_argument("--batch-size", type=int, default=10, help="groups a step (default 10)")
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--seeds", type=int, nargs="+", default=[13])
    return parser.parse_args()


def prepare(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Word vectors, a forward index, and the candidates of training and dev queries."""
    dataset = pt.get_dataset(options.dataset)
    index = pn.LuceneIndex(folder / "lucene")
    index.index(dataset.get_corpus_iter(verbose=False))
    documents = pn.ForwardIndex.build(folder / "forward", dataset.get_corpus_iter(verbose=False), verbose=False)
    spaces = pn.EmbeddingSpaces.train(dataset.get_corpus_iter(verbose=False), dim=200, seed=13)
    bm25, data = index.bm25(num_results=DEPTH), {"documents": documents, "spaces": spaces}
    for split, count in (("train", options.queries), ("dev", options.dev)):
        topics = dataset.get_topics(split)
        topics = topics.sample(min(count, len(topics)), random_state=13)
        data[split] = bm25.transform(topics), dataset.get_qrels(split)
    return data


def fit(name: str, precision: str, seed: int, data: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """Seconds of training, pairs a second, and the dev measure of the best epoch and of all."""
    training = pn.Training(
        epochs=options.epochs,
        batch_size=options.batch_size,
        learning_rate=options.learning_rate,
        patience=None,
        precision=precision,
        dev_measure=nDCG @ 10,
        seed=seed,
        verbose=False,
        **SETTINGS[name],
    )
    model = MODELS[options.model](data["spaces"], documents=data["documents"], training=training)
    model.fit(*data["train"], *data["dev"])
    history, settings = model.history, SETTINGS[name]
    seconds = float(history["seconds"].iloc[1:].sum())
    pairs = options.epochs * model.report.groups * (1 + settings["num_negatives"]) * (1 + settings["shared_groups"])
    dev = history["dev nDCG@10"].to_numpy()
    return {
        "seed": seed,
        "seconds": round(seconds, 1),
        "groups/s": options.epochs * model.report.groups / seconds,
        "pairs/s": pairs / seconds,
        "best dev": float(np.max(dev)),
        "last dev": float(dev[-1]),
        "epochs": dev.round(4).tolist(),
    }


if __name__ == "__main__":
    main()
