"""Shared by the scripts that measure matchzoo-py: how it is made to run, and how its training and scoring are timed.

Everything goes through matchzoo-py's own preprocessors, loaders and trainer, put together as in its tutorials. The
following additions are in its favour, or let it run at all on a current Python:

- ``collections.Iterable``, which Python 3.10 removed;
- splitting at white space, because nltk's tokeniser needs a download;
- plain stochastic gradient descent, the cheapest optimiser, where a script does not choose another;
- loading of batches both with and without a separate process.

Rates are (lowest, median, highest) over the batches after the first, so tables and start-up do not count. Memory is
that of this process, without the one that prepares batches.
"""

import collections
import collections.abc
import itertools
import math
import statistics
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

collections.Iterable = collections.abc.Iterable
warnings.filterwarnings("ignore")

import matchzoo as mz  # noqa: E402
import nltk  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import torch  # noqa: E402

nltk.word_tokenize = str.split


@dataclass
class Runs:
    """A model with the callbacks that fill and pad its batches; a group is one positive and ``negatives`` negatives."""

    model: torch.nn.Module
    callbacks: list
    padding: mz.engine.base_callback.BaseCallback
    negatives: int
    optimiser: type[torch.optim.Optimizer] = torch.optim.SGD

    def train(self, pack: mz.DataPack, batch_size: int, workers: int, least: int) -> dict:
        """Groups per second (a query, its positive and its negatives), from loading to the optimiser's step."""
        wanted = (math.ceil(least / batch_size) + 1) * batch_size
        pack = pack[: wanted * (self.negatives + 1)]
        settings = {"mode": "pair", "num_neg": self.negatives, "batch_size": batch_size}
        batches, grouping = timed(lambda: self.loader(pack, workers, "train", **settings))
        optimiser = self.optimiser(self.model.parameters(), lr=1e-3)
        times: list[float] = []
        optimiser.register_step_post_hook(lambda *_: times.append(time.perf_counter()))
        trainer(self.model, optimiser, batches).run()
        return {
            "batch_size": batch_size,
            "workers": workers,
            "grouping_seconds": grouping,
            "rate": rates(times, batch_size),
        }

    def predict(self, pack: mz.DataPack, pairs: int, workers: int, least: int, *, units: int = 1) -> dict:
        """Units per second from loading to the score, in batches of ``pairs`` pairs that count as ``units`` each."""
        pack = pack[: (math.ceil(least / pairs) + 1) * pairs]
        batches = self.loader(pack, workers, "test", mode="point", batch_size=pairs, shuffle=False)
        times: list[float] = []
        hook = self.model.register_forward_hook(lambda *_: times.append(time.perf_counter()))
        scores = trainer(self.model, self.optimiser(self.model.parameters(), lr=1e-3), batches).predict(batches)
        hook.remove()
        if not np.isfinite(scores).all():
            raise SystemExit("some scores of matchzoo-py are not finite")
        return {"batch_size": pairs, "workers": workers, "rate": rates(times, pairs * units)}

    def network_alone(self, pack: mz.DataPack, pairs: int, *, units: int = 1) -> list[float]:
        """Units per second through the network alone, with the batch already loaded."""
        batches = self.loader(pack[:pairs], 0, "test", mode="point", batch_size=pairs, shuffle=False)
        inputs, _ = next(iter(batches))
        times = []
        with torch.no_grad():
            for _ in range(6):
                self.model(inputs)
                times.append(time.perf_counter())
        return rates(times[1:], pairs * units)

    def loader(self, pack: mz.DataPack, workers: int, stage: str, **settings: object) -> mz.dataloader.DataLoader:
        """matchzoo-py's loader of batches."""
        dataset = mz.dataloader.Dataset(pack, callbacks=self.callbacks, **settings)
        return mz.dataloader.DataLoader(dataset, stage=stage, callback=self.padding, num_workers=workers)


def trainer(
    model: torch.nn.Module, optimiser: torch.optim.Optimizer, batches: mz.dataloader.DataLoader
) -> mz.trainers.Trainer:
    """matchzoo-py's trainer for one epoch without validation; it requires a folder but writes nothing to it."""
    with tempfile.TemporaryDirectory() as folder:
        return mz.trainers.Trainer(
            model, optimiser, batches, batches, epochs=1, validate_interval=10**9, save_dir=folder, verbose=0
        )


def group_pack(data: dict[str, list]) -> mz.DataPack:
    """Each query with its candidates, the first of which is relevant."""
    rows = pd.DataFrame(
        [
            (query, document, float(place == 0))
            for query, documents in enumerate(data["candidates"])
            for place, document in enumerate(documents)
        ],
        columns=["id_left", "id_right", "label"],
    )
    rows["text_left"] = [data["queries"][query] for query in rows["id_left"]]
    rows["text_right"] = [data["documents"][document] for document in rows["id_right"]]
    return mz.pack(rows, "ranking")


def build_model(model: type, context: dict, negatives: int, **settings: object) -> torch.nn.Module:
    """A network with these settings, trained with softmax over a group."""
    task = mz.tasks.Ranking(losses=mz.losses.RankCrossEntropyLoss(num_neg=negatives))
    task.metrics = [mz.metrics.MeanReciprocalRank()]
    made = model()
    if "vocab_size" in made.params:  # networks over n-grams
        settings["vocab_size"] = context["ngram_vocab_size"]
    for key, value in {"task": task, **settings}.items():
        made.params[key] = value
    made.build()
    return made


def machine_state(context: dict) -> dict:
    """Versions, threads, and sizes of the vocabularies."""
    return {
        "versions": {"matchzoo-py": mz.__version__, "torch": torch.__version__, "numpy": np.__version__},
        "threads": torch.get_num_threads(),
        "terms": context["vocab_size"],
        "ngrams": context.get("ngram_vocab_size"),
    }


def seed_everything(seed: int) -> None:
    """Seed torch's generator, and NumPy's global one, which matchzoo-py uses for shuffling."""
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002


def timed(work: collections.abc.Callable) -> tuple:
    """The result and the seconds it took."""
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def peak_memory() -> int:
    """Peak resident memory of this process so far, in bytes, without that of the process that started it."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def rates(times: list[float], size: int) -> list[float]:
    """Lowest, median and highest rate of batches of this size that ended at these times."""
    if len(times) < 2:
        raise SystemExit("all texts fit into one batch, but only later batches are timed: give more texts")
    found = [size / (end - start) for start, end in itertools.pairwise(times)]
    return [min(found), statistics.median(found), max(found)]
