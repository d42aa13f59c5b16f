"""Speed and memory of matchzoo-py's DUET; run by benchmarks/duet.py in an environment of matchzoo-py.

    python matchzoo_duet.py --data data.json

The head of matchzoo_runs.py says how it is run. The shapes are the paper's as far as its network allows; the
differences are in its favour:

- maxima over windows of 100 terms that do not overlap, so 9 where the paper's stride of 1 gives 899, and a first match
  layer with 2,700 inputs instead of 269,700;
- a 1x1 convolution and a dense layer on the query's side without tanh;
- letter n-graphs of one length instead of lengths 1 to 5; words of 12 letters have 2,016 of length 3.

Prints JSON.
"""

import argparse
import json
from pathlib import Path

import torch
from matchzoo_runs import Runs, build_model, group_pack, machine_state, mz, peak_memory, seed_everything, timed

QUERY_TERMS = 10


def main() -> None:
    """Prepare the texts, train, score, and print the figures."""
    options = parse_arguments()
    seed_everything(options.seed)
    data = json.loads(options.data.read_text(encoding="utf-8"))
    negatives = len(data["candidates"][0]) - 1
    document_terms = max(len(text.split()) for text in data["documents"])
    (preprocessor, groups), preparing = timed(lambda: prepare(data, document_terms))
    callback, table = timed(lambda: mz.dataloader.callbacks.Ngram(preprocessor, mode="sum"))
    after_table = peak_memory()
    model = duet(preprocessor.context, QUERY_TERMS, document_terms, negatives)
    padding = model.get_default_padding_callback(fixed_length_left=QUERY_TERMS, fixed_length_right=document_terms)
    runs = Runs(model, [callback], padding, negatives)
    settings = [(size, workers) for size in options.batch_sizes for workers in options.workers]
    pairs = [(size * (negatives + 1), workers) for size, workers in settings]
    result = {
        **machine_state(preprocessor.context),
        "preparing_seconds": preparing,
        "table_seconds": table,
        "training": [runs.train(groups, *one, options.groups) for one in settings],
        "scoring": [runs.predict(groups, *one, options.groups * (negatives + 1)) for one in pairs],
        "scoring_network_alone": runs.network_alone(groups, 2 * (negatives + 1)),
        "memory_after_table": after_table,
        "peak_memory": peak_memory(),
    }
    print(json.dumps(result))


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="JSON with queries, documents and candidates")
    parser.add_argument("--groups", type=int, default=32, help="groups to time for each setting (default 32)")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[2, 8], help="groups in a batch (default 2 8)")
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1], help="loading processes (default 0 1)")
    parser.add_argument("--seed", type=int, default=13)
    return parser.parse_args()


def prepare(data: dict, document_terms: int) -> tuple:
    """The fitted preprocessor, and the training groups as a data pack."""
    groups = group_pack(data)
    preprocessor = mz.models.DUET.get_default_preprocessor(
        truncated_length_left=QUERY_TERMS, truncated_length_right=document_terms, ngram_size=3
    )
    preprocessor.fit(groups, verbose=0)
    return preprocessor, preprocessor.transform(groups, verbose=0)


def duet(context: dict, query_terms: int, document_terms: int, negatives: int) -> torch.nn.Module:
    """The paper's shapes: 300 filters, windows of 3 terms, pooling over 100, two dense layers of 300, dropout 0.2.

    Shorter documents than those of 1,000 terms are pooled over a tenth of their terms.
    """
    return build_model(
        mz.models.DUET,
        context,
        negatives,
        left_length=query_terms,
        right_length=document_terms,
        lm_filters=300,
        dm_filters=300,
        dm_kernel_size=3,
        dm_right_pool_size=min(100, document_terms // 10),
        dm_conv_activation_func="tanh",
        mlp_num_layers=1,
        mlp_num_units=300,
        mlp_num_fan_out=300,
        mlp_activation_func="tanh",
        dropout_rate=0.2,
    )


if __name__ == "__main__":
    main()
