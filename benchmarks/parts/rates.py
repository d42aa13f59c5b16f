"""Rates over repeats, and the lines that show them beside a peer's."""

import csv
import itertools
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

Rate = list[float]  # lowest, median and highest


def rate(
    work: Callable[[], object], items: int, repeats: int = 5, *, clock: Callable[[], float] = time.perf_counter
) -> Rate:
    """Items per second over the repeats."""
    rates = []
    for _ in range(repeats):
        started = clock()
        work()
        rates.append(items / (clock() - started))
    return spread(rates)


def keep(model: Any, frame: pd.DataFrame, dtype: str, folder: Path) -> tuple[Any, dict[str, Rate | float]]:
    """What a model keeps of the documents of a frame, how fast it is made, and its bytes per document."""
    paths = (folder / f"{dtype}-{number}" for number in itertools.count())
    corpus = frame[["docno", "text"]].to_dict("records")
    keeping = rate(lambda: model.index(next(paths), corpus, dtype=dtype, verbose=False), len(corpus), repeats=2)
    path = next(paths)
    kept = model.index(path, corpus, dtype=dtype, verbose=False)
    size = sum(file.stat().st_size for file in path.iterdir() if file.is_file()) / len(corpus)
    return kept, {"keeping": keeping, "bytes": size}


def spread(rates: Any) -> Rate:
    """Lowest, median and highest."""
    return [float(value) for value in np.quantile(rates, [0, 0.5, 1])]


def merged(rounds: Sequence[Any]) -> Any:
    """Merge the same measurements of several rounds: rates over all rounds, anything else from the first."""
    first = rounds[0]
    if isinstance(first, dict):
        return {name: merged([found[name] for found in rounds]) for name in first}
    if isinstance(first, list) and isinstance(first[0], float):
        least, median, greatest = zip(*rounds, strict=True)
        return [min(least), statistics.median(median), max(greatest)]
    if isinstance(first, list):
        return [merged(list(parts)) for parts in zip(*rounds, strict=True)]
    return first


def best_setting(settings: list[dict]) -> dict:
    """A peer's setting with the highest median."""
    return max(settings, key=lambda found: found["rate"][1])


def line(label: str, ours: Rate, theirs: list[dict] | None = None, units: int = 1) -> str:
    """Our rate beside that of matchzoo-py's best setting, multiplied by ``units``, and the ratio of medians."""
    shown = f"{label:58}{text(ours):>30}"
    if theirs is None:
        return shown
    best = best_setting(theirs)
    found = [units * rate for rate in best["rate"]]
    ratio = ours[1] / found[1]
    record(label, "matchzoo-py", ratio)
    times = f"{ratio:.1f}" if ratio < 10 else f"{ratio:,.0f}"
    return f"{shown}   matchzoo-py {text(found)} in batches of {best['batch_size']}: {times} times"


def record(task: str, peer: str, ratio: float) -> None:
    """Add our rate as a multiple of a peer's to the file that PT_NEURAL_RATIOS names, if it names one."""
    if path := os.environ.get("PT_NEURAL_RATIOS"):
        with open(path, "a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow([Path(sys.argv[0]).stem, task.strip(), peer, f"{ratio:.3g}"])


def text(rates: Rate) -> str:
    """A rate as it is printed, with a decimal if it is small."""
    return " / ".join(f"{rate:,.1f}" if max(rates) < 100 else f"{rate:,.0f}" for rate in rates)
