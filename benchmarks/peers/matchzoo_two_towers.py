"""Speed and memory of matchzoo-py's DSSM or CDSSM; run by benchmarks/two_towers.py in an environment of matchzoo-py.

    python matchzoo_two_towers.py --model dssm --data data.json

The head of matchzoo_runs.py says how it is run. Two further choices are in its favour:

- DSSM's batches are one float32 array; its own callback gives lists of NumPy numbers, which a current torch reads one
  by one, as float64, which its float32 network rejects;
- batches have 32 groups; it was no faster with 8 or 128.

Prints JSON.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from matchzoo_runs import Runs, build_model, group_pack, machine_state, mz, peak_memory, seed_everything, timed

MODELS = {"dssm": mz.models.DSSM, "cdssm": mz.models.CDSSM}
NGRAM_MODES = {"dssm": "aggregate", "cdssm": "sum"}


def main() -> None:
    """Prepare the texts, train, score, encode, and print the figures."""
    options = parse_arguments()
    seed_everything(options.seed)
    data = json.loads(options.data.read_text(encoding="utf-8"))
    negatives = len(data["candidates"][0]) - 1
    (preprocessor, groups, titles), preparing = timed(lambda: prepare(MODELS[options.model], data))
    callbacks, table = timed(lambda: batch_callbacks(options.model, preprocessor))
    after_table = peak_memory()
    model = two_tower(options.model, preprocessor.context, negatives)
    runs = Runs(model, callbacks, model.get_default_padding_callback(), negatives)
    settings = [(size, workers) for size in options.batch_sizes for workers in options.workers]
    pairs = [(size * (negatives + 1), workers) for size, workers in settings]
    least = options.groups * (negatives + 1)
    result = {
        **machine_state(preprocessor.context),
        "preparing_seconds": preparing,
        "table_seconds": table,
        "training": [runs.train(groups, *one, options.groups) for one in settings],
        "encoding": [runs.predict(titles, *one, least, units=2) for one in pairs],
        "scoring": [runs.predict(groups, *one, least) for one in pairs],
        "encoding_network_alone": runs.network_alone(titles, 64, units=2),
        "memory_after_table": after_table,
        "peak_memory": peak_memory(),
    }
    print(json.dumps(result))


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=list(MODELS), required=True)
    parser.add_argument("--data", type=Path, required=True, help="JSON with queries, documents and candidates")
    parser.add_argument("--groups", type=int, default=256, help="groups to time for each setting (default 256)")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[32], help="groups in a batch (default 32)")
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1], help="loading processes (default 0 1)")
    parser.add_argument("--seed", type=int, default=13)
    return parser.parse_args()


def prepare(model_class: type, data: dict) -> tuple:
    """The fitted preprocessor, the training groups, and pairs of titles, as data packs."""
    groups = group_pack(data)
    preprocessor = model_class.get_default_preprocessor(ngram_size=3)
    preprocessor.fit(groups, verbose=0)
    half = len(data["documents"]) // 2
    sides = {"text_left": data["documents"][:half], "text_right": data["documents"][half : 2 * half]}
    ids = {"id_left": range(half), "id_right": range(half, 2 * half)}
    titles = mz.pack(pd.DataFrame({**sides, **ids}), "ranking")
    return preprocessor, preprocessor.transform(groups, verbose=0), preprocessor.transform(titles, verbose=0)


def batch_callbacks(name: str, preprocessor: mz.preprocessors.BasicPreprocessor) -> list:
    """The callback that puts trigram vectors into a batch; makes the dense table of terms by trigrams."""
    callbacks = [mz.dataloader.callbacks.Ngram(preprocessor, mode=NGRAM_MODES[name])]
    if name == "dssm":
        callbacks.append(mz.dataloader.callbacks.LambdaCallback(on_batch_unpacked=to_float32))
    return callbacks


def to_float32(x: dict, y: np.ndarray) -> None:
    """DSSM's trigram vectors as arrays that its network accepts; for DSSM, they are also the text."""
    for side in ("left", "right"):
        x[f"ngram_{side}"] = x[f"text_{side}"] = np.array(x[f"ngram_{side}"], dtype=np.float32)


def two_tower(name: str, context: dict, negatives: int) -> torch.nn.Module:
    """The papers' shapes: trigrams, 300, 300, 128 for DSSM; trigrams, 300 filters of width 3, 128 for CDSSM."""
    shapes = {
        "dssm": {"mlp_num_layers": 2},
        "cdssm": {
            "mlp_num_layers": 0,
            "filters": 300,
            "kernel_size": 3,
            "conv_activation_func": "tanh",
            "dropout_rate": 0.0,
        },
    }
    shared = {"mlp_num_units": 300, "mlp_num_fan_out": 128, "mlp_activation_func": "tanh"}
    return build_model(MODELS[name], context, negatives, **shared, **shapes[name])


if __name__ == "__main__":
    main()
