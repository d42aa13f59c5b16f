"""Speed and memory of matchzoo-py's later models; run by benchmarks/classics.py in an environment of matchzoo-py.

    python matchzoo_classics.py --data data.json --model KNRM

The head of matchzoo_runs.py says how it is run. Sizes are those of benchmarks/classics.py as far as its networks allow.
In its favour, its texts are term ids before the clock starts, padding is not masked, and it comes only to the longest
text of a batch, but for the networks that need texts of a fixed length.

Prints JSON.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from matchzoo_runs import Runs, build_model, group_pack, machine_state, mz, peak_memory, seed_everything, timed

QUERY_TERMS = 8
MLP = {"mlp_num_layers": 1, "mlp_num_fan_out": 1}
SETTINGS = {
    "KNRM": {},
    "ConvKNRM": {},
    "MatchPyramid": {"kernel_count": [8], "kernel_size": [[3, 3]], "dpool_size": [3, 10]},
    "DRMMTKS": {"top_k": 10, "mlp_num_units": 5, **MLP},
    "ArcI": {
        **{f"{side}_filters": [200, 200] for side in ("left", "right")},
        **{f"{side}_kernel_sizes": [3, 3] for side in ("left", "right")},
        **{f"{side}_pool_sizes": [2, 2] for side in ("left", "right")},
        "left_length": QUERY_TERMS,
        "mlp_num_units": 200,
        **MLP,
    },
    "ArcII": {
        "kernel_1d_count": 64,
        "kernel_2d_count": [64],
        "kernel_2d_size": [(3, 3)],
        "pool_2d_size": [(2, 2)],
        "left_length": QUERY_TERMS,
    },
    "MVLSTM": {"hidden_size": 50, "top_k": 10, "mlp_num_units": 20, **MLP},
    "aNMM": {"num_bins": 21, "hidden_sizes": [1]},
}
TRAINED = ("KNRM", "ConvKNRM")  # their word vectors are trained


def main() -> None:
    """Prepare the texts, train, score, and print the figures."""
    options = parse_arguments()
    seed_everything(options.seed)
    data = json.loads(options.data.read_text(encoding="utf-8"))
    negatives = len(data["candidates"][0]) - 1
    document_terms = max(len(text.split()) for text in data["documents"])
    (context, groups), preparing = timed(lambda: prepare(data, document_terms))
    vectors = np.random.default_rng(options.seed).normal(size=(context["vocab_size"], options.dim))
    settings, lengths = dict(SETTINGS[options.model]), {}
    if "left_length" in settings:
        settings["right_length"] = document_terms
        lengths = {"fixed_length_left": QUERY_TERMS, "fixed_length_right": document_terms}
    network = build_model(
        getattr(mz.models, options.model),
        context,
        negatives,
        embedding=vectors.astype(np.float32),
        embedding_freeze=options.model not in TRAINED,
        **settings,
    )
    padding = mz.dataloader.callbacks.BasicPadding(**lengths, pad_word_mode="post")
    runs = Runs(network, [], padding, negatives, torch.optim.Adam)
    loading = [(size, workers) for size in options.batch_sizes for workers in options.workers]
    pairs = [(size * (negatives + 1), workers) for size, workers in loading]
    result = {
        **machine_state(context),
        "preparing_seconds": preparing,
        "training": [runs.train(groups, *one, options.groups) for one in loading],
        "scoring": [runs.predict(groups, *one, options.groups * (negatives + 1)) for one in pairs],
        "scoring_network_alone": runs.network_alone(groups, 4 * (negatives + 1)),
        "peak_memory": peak_memory(),
    }
    print(json.dumps(result))


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="JSON with queries, documents and candidates")
    parser.add_argument("--model", choices=list(SETTINGS), required=True)
    parser.add_argument("--dim", type=int, default=200, help="dimensions of the word vectors (default 200)")
    parser.add_argument("--groups", type=int, default=160, help="groups to time for each setting (default 160)")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[16], help="groups in a batch (default 16)")
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1], help="loading processes (default 0 1)")
    parser.add_argument("--seed", type=int, default=13)
    return parser.parse_args()


def prepare(data: dict, document_terms: int) -> tuple:
    """What the preprocessor has learned, and the training groups as a data pack."""
    groups = group_pack(data)
    preprocessor = mz.preprocessors.BasicPreprocessor(
        truncated_length_left=QUERY_TERMS, truncated_length_right=document_terms
    )
    preprocessor.fit(groups, verbose=0)
    return preprocessor.context, preprocessor.transform(groups, verbose=0)


if __name__ == "__main__":
    main()
