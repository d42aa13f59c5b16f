"""Speed and memory of matchzoo-py's DSSM or CDSSM; run by benchmarks/two_towers.py in an environment of matchzoo-py.

    python matchzoo_two_towers.py --model dssm --data data.json

Everything goes through matchzoo-py's own preprocessor, loaders and trainer, put together as in its tutorials. What it
is given beyond them is in its favour, or lets it run at all on a current Python:

- ``collections.Iterable``, which Python 3.10 removed;
- white space as tokeniser, as nltk's own needs a download;
- DSSM's batches as one float32 array, where its callback gives lists of NumPy numbers that a current torch reads, one
  by one, as float64, which its float32 network refuses;
- plain stochastic gradient descent, the cheapest optimiser;
- batches of 32 groups, with and without a process that prepares them; of 8 and of 128 it was no faster.

Prints JSON. Rates are (least, median, greatest) over the batches after the first, so tables and start-up do not count;
they stand apart, in seconds. Memory is that of this process, without the one that prepares batches.
"""

import argparse
import collections
import collections.abc
import itertools
import json
import math
import statistics
import tempfile
import time
import warnings
from pathlib import Path

collections.Iterable = collections.abc.Iterable
warnings.filterwarnings("ignore")

import matchzoo as mz  # noqa: E402
import nltk  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import torch  # noqa: E402

nltk.word_tokenize = str.split

MODELS = {"dssm": mz.models.DSSM, "cdssm": mz.models.CDSSM}
NGRAM_MODES = {"dssm": "aggregate", "cdssm": "sum"}


def main() -> None:
    """Prepare the texts, train, score, encode, and print the figures."""
    options = parse_arguments()
    torch.manual_seed(options.seed)
    np.random.seed(options.seed)  # noqa: NPY002  matchzoo-py shuffles with the global generator
    data = json.loads(options.data.read_text(encoding="utf-8"))
    negatives = len(data["candidates"][0]) - 1
    (preprocessor, groups, titles), preparing = timed(lambda: prepare(MODELS[options.model], data))
    callbacks, table = timed(lambda: batch_callbacks(options.model, preprocessor))
    after_table = peak_memory()
    model = build_model(options.model, preprocessor, negatives)
    settings = [(size, workers) for size in options.batch_sizes for workers in options.workers]
    pairs = [(size * (negatives + 1), workers) for size, workers in settings]
    least = options.groups * (negatives + 1)
    result = {
        "versions": {"matchzoo-py": mz.__version__, "torch": torch.__version__, "numpy": np.__version__},
        "threads": torch.get_num_threads(),
        "terms": preprocessor.context["vocab_size"],
        "trigrams": preprocessor.context["ngram_vocab_size"],
        "preparing_seconds": preparing,
        "table_seconds": table,
        "training": [train(model, groups, callbacks, negatives, *one, options.groups) for one in settings],
        "encoding": [predict(model, titles, callbacks, *one, least, units=2) for one in pairs],
        "scoring": [predict(model, groups, callbacks, *one, least, units=1) for one in pairs],
        "encoding_network_alone": network_alone(model, titles, callbacks),
        "memory_after_table": after_table,
        "peak_memory": peak_memory(),
    }
    print(json.dumps(result))


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=list(MODELS), required=True)
    parser.add_argument("--data", type=Path, required=True, help="JSON with queries, titles and candidates")
    parser.add_argument("--groups", type=int, default=256, help="groups to time for each setting (default 256)")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[32], help="groups in a batch (default 32)")
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1], help="loading processes (default 0 1)")
    parser.add_argument("--seed", type=int, default=13)
    return parser.parse_args()


def timed(work: collections.abc.Callable) -> tuple:
    """The result and the seconds it took."""
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def peak_memory() -> int:
    """Greatest resident memory of this process so far, in bytes; that of the process which started it is left out."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def prepare(model_class: type, data: dict) -> tuple:
    """The fitted preprocessor, the training groups, and pairs of titles, as data packs."""
    rows = pd.DataFrame(
        [
            (query, document, float(place == 0))
            for query, documents in enumerate(data["candidates"])
            for place, document in enumerate(documents)
        ],
        columns=["id_left", "id_right", "label"],
    )
    rows["text_left"] = [data["queries"][query] for query in rows["id_left"]]
    rows["text_right"] = [data["titles"][document] for document in rows["id_right"]]
    groups = mz.pack(rows, "ranking")
    preprocessor = model_class.get_default_preprocessor(ngram_size=3)
    preprocessor.fit(groups, verbose=0)
    half = len(data["titles"]) // 2
    sides = {"text_left": data["titles"][:half], "text_right": data["titles"][half : 2 * half]}
    ids = {"id_left": range(half), "id_right": range(half, 2 * half)}
    titles = mz.pack(pd.DataFrame({**sides, **ids}), "ranking")
    return preprocessor, preprocessor.transform(groups, verbose=0), preprocessor.transform(titles, verbose=0)


def batch_callbacks(name: str, preprocessor: mz.preprocessors.BasicPreprocessor) -> list:
    """What fills trigram vectors into a batch; makes the dense table of terms and trigrams."""
    callbacks = [mz.dataloader.callbacks.Ngram(preprocessor, mode=NGRAM_MODES[name])]
    if name == "dssm":
        callbacks.append(mz.dataloader.callbacks.LambdaCallback(on_batch_unpacked=to_float32))
    return callbacks


def to_float32(x: dict, y: np.ndarray) -> None:
    """DSSM's trigram vectors as arrays that its network takes; the text is the same vectors there."""
    for side in ("left", "right"):
        x[f"ngram_{side}"] = x[f"text_{side}"] = np.array(x[f"ngram_{side}"], dtype=np.float32)


def build_model(name: str, preprocessor: mz.preprocessors.BasicPreprocessor, negatives: int) -> torch.nn.Module:
    """The papers' shapes: trigrams, 300, 300, 128 for DSSM; trigrams, 300 filters of width 3, 128 for CDSSM."""
    task = mz.tasks.Ranking(losses=mz.losses.RankCrossEntropyLoss(num_neg=negatives))
    task.metrics = [mz.metrics.MeanReciprocalRank()]
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
    model = MODELS[name]()
    shared = {"task": task, "mlp_num_units": 300, "mlp_num_fan_out": 128, "mlp_activation_func": "tanh"}
    shared["vocab_size"] = preprocessor.context["ngram_vocab_size"]
    for key, value in {**shared, **shapes[name]}.items():
        model.params[key] = value
    model.build()
    return model


def loader(
    model: torch.nn.Module, pack: mz.DataPack, callbacks: list, workers: int, stage: str, **settings: object
) -> mz.dataloader.DataLoader:
    """matchzoo-py's loader with its default padding."""
    dataset = mz.dataloader.Dataset(pack, callbacks=callbacks, **settings)
    padding = model.get_default_padding_callback()
    return mz.dataloader.DataLoader(dataset, stage=stage, callback=padding, num_workers=workers)


def train(
    model: torch.nn.Module,
    pack: mz.DataPack,
    callbacks: list,
    negatives: int,
    batch_size: int,
    workers: int,
    least: int,
) -> dict:
    """Groups of a query, its positive and its negatives per second, from loading to the optimiser's step."""
    wanted = (math.ceil(least / batch_size) + 1) * batch_size
    pack = pack[: wanted * (negatives + 1)]
    settings = {"mode": "pair", "num_neg": negatives, "batch_size": batch_size}
    batches, grouping = timed(lambda: loader(model, pack, callbacks, workers, "train", **settings))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    times: list[float] = []
    optimiser.register_step_post_hook(lambda *_: times.append(time.perf_counter()))
    trainer(model, optimiser, batches).run()
    return {
        "batch_size": batch_size,
        "workers": workers,
        "grouping_seconds": grouping,
        "rate": rates(times, batch_size),
    }


def predict(
    model: torch.nn.Module, pack: mz.DataPack, callbacks: list, pairs: int, workers: int, least: int, *, units: int
) -> dict:
    """Units per second from loading to the score, in batches of so many pairs that count as ``units`` each."""
    pack = pack[: (math.ceil(least / pairs) + 1) * pairs]
    batches = loader(model, pack, callbacks, workers, "test", mode="point", batch_size=pairs, shuffle=False)
    times: list[float] = []
    hook = model.register_forward_hook(lambda *_: times.append(time.perf_counter()))
    scores = trainer(model, torch.optim.SGD(model.parameters(), lr=0.1), batches).predict(batches)
    hook.remove()
    if not np.isfinite(scores).all():
        raise SystemExit("matchzoo-py gave scores that are not numbers")
    return {"batch_size": pairs, "workers": workers, "rate": rates(times, pairs * units)}


def trainer(
    model: torch.nn.Module, optimiser: torch.optim.Optimizer, batches: mz.dataloader.DataLoader
) -> mz.trainers.Trainer:
    """matchzoo-py's trainer for one epoch without validation; it wants a folder and writes nothing there."""
    with tempfile.TemporaryDirectory() as folder:
        return mz.trainers.Trainer(
            model, optimiser, batches, batches, epochs=1, validate_interval=10**9, save_dir=folder, verbose=0
        )


def rates(times: list[float], size: int) -> list[float]:
    """Least, median and greatest rate of batches of a size that ended at these times."""
    if len(times) < 2:
        raise SystemExit("all texts fit into one batch, and only later ones are timed: give more titles")
    found = [size / (end - start) for start, end in itertools.pairwise(times)]
    return [min(found), statistics.median(found), max(found)]


def network_alone(model: torch.nn.Module, pack: mz.DataPack, callbacks: list, pairs: int = 64) -> list[float]:
    """Titles per second through the network when the batch is already there."""
    batches = loader(model, pack[:pairs], callbacks, 0, "test", mode="point", batch_size=pairs, shuffle=False)
    inputs, _ = next(iter(batches))
    times = []
    with torch.no_grad():
        for _ in range(6):
            model(inputs)
            times.append(time.perf_counter())
    return rates(times[1:], 2 * pairs)


if __name__ == "__main__":
    main()
