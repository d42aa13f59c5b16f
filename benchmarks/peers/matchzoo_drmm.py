"""Speed and memory of matchzoo-py's DRMM; run by benchmarks/drmm.py in an environment of matchzoo-py.

    python matchzoo_drmm.py --data data.json

The head of matchzoo_runs.py says how it is run. Its histograms have no bin of their own for exact matches, and its gate
uses the words' vectors, which it trains. In its favour, its texts are term ids before the clock starts.

Prints JSON.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from matchzoo_runs import Runs, build_model, group_pack, machine_state, mz, peak_memory, seed_everything, timed

BINS, HIDDEN = 30, 5


def main() -> None:
    """Prepare the texts, train, score, and print the figures."""
    options = parse_arguments()
    seed_everything(options.seed)
    data = json.loads(options.data.read_text(encoding="utf-8"))
    negatives = len(data["candidates"][0]) - 1
    (preprocessor, groups), preparing = timed(lambda: prepare(data))
    context = preprocessor.context
    vectors = np.random.default_rng(options.seed).normal(size=(context["vocab_size"], options.dim)).astype(np.float32)
    callback = mz.dataloader.callbacks.Histogram(vectors, bin_size=BINS, hist_mode="LCH")
    model = drmm(context, vectors, negatives)
    runs = Runs(model, [callback], model.get_default_padding_callback(), negatives)
    settings = [(size, workers) for size in options.batch_sizes for workers in options.workers]
    pairs = [(size * (negatives + 1), workers) for size, workers in settings]
    result = {
        **machine_state(context),
        "preparing_seconds": preparing,
        "training": [runs.train(groups, *one, options.groups) for one in settings],
        "scoring": [runs.predict(groups, *one, options.groups * (negatives + 1)) for one in pairs],
        "scoring_network_alone": runs.network_alone(groups, 4 * (negatives + 1)),
        "peak_memory": peak_memory(),
    }
    print(json.dumps(result))


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="JSON with queries, documents and candidates")
    parser.add_argument("--dim", type=int, default=200, help="dimensions of the word vectors (default 200)")
    parser.add_argument("--groups", type=int, default=32, help="groups to time for each setting (default 32)")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[4, 16], help="groups in a batch (default 4 16)")
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1], help="loading processes (default 0 1)")
    parser.add_argument("--seed", type=int, default=13)
    return parser.parse_args()


def prepare(data: dict) -> tuple:
    """The fitted preprocessor, and the training groups as a data pack."""
    groups = group_pack(data)
    preprocessor = mz.models.DRMM.get_default_preprocessor()
    preprocessor.fit(groups, verbose=0)
    return preprocessor, preprocessor.transform(groups, verbose=0)


def drmm(context: dict, vectors: np.ndarray, negatives: int) -> torch.nn.Module:
    """The paper's shapes: 30 bins, 5 hidden units, tanh."""
    return build_model(
        mz.models.DRMM,
        context,
        negatives,
        embedding=vectors,
        hist_bin_size=BINS,
        mlp_num_layers=1,
        mlp_num_units=HIDDEN,
        mlp_num_fan_out=1,
        mlp_activation_func="tanh",
    )


if __name__ == "__main__":
    main()
