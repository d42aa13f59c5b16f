"""Rates over repeats, and the lines that show them beside a peer's."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

Rate = list[float]  # least, median and greatest


def rate(work: Callable[[], object], items: int, repeats: int = 5) -> Rate:
    """Items a second, over the repeats."""
    rates = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        rates.append(items / (time.perf_counter() - started))
    return spread(rates)


def spread(rates: Any) -> Rate:
    """Least, median and greatest."""
    return [float(value) for value in np.quantile(rates, [0, 0.5, 1])]


def best_setting(settings: list[dict]) -> dict:
    """The setting of a peer with the greatest median."""
    return max(settings, key=lambda found: found["rate"][1])


def line(label: str, ours: Rate, theirs: list[dict] | None = None, units: int = 1) -> str:
    """Our rate, and beside it that of matchzoo-py's best setting times so many units, with the ratio of medians."""
    shown = f"{label:58}{text(ours):>30}"
    if theirs is None:
        return shown
    best = best_setting(theirs)
    found = [units * one for one in best["rate"]]
    return f"{shown}   matchzoo-py {text(found)} in batches of {best['batch_size']}: {ours[1] / found[1]:,.0f} times"


def text(rates: Rate) -> str:
    """A rate as it is printed, with a decimal where it is small."""
    return " / ".join(f"{one:,.1f}" if max(rates) < 100 else f"{one:,.0f}" for one in rates)
