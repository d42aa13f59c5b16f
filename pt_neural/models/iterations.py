"""Iterations of a fit, noted and shown."""

from collections.abc import Iterable, Iterator
from time import perf_counter
from typing import Any, NamedTuple

import pyterrier as pt


class Iteration(NamedTuple):
    """Where a fit is after some iterations.

    Attributes:
        number: How many; 0 is the start.
        measures: Columns of the history.
        shown: What the progress bar tells.
        result: What the fit has come to.
    """

    number: int
    measures: dict[str, float]
    shown: str
    result: Any


def noted(
    iterations: Iterable[Iteration], history: list[dict[str, Any]], *, total: int, desc: str, verbose: bool
) -> Iterator[Iteration]:
    """Pass iterations on, each noted in a history with the seconds since the one before it.

    Args:
        iterations: The iterations.
        history: Receives a record of each: ``iteration``, its measures, ``seconds``.
        total: Number of iterations, at most.
        desc: Words beside the progress bar.
        verbose: Show it.
    """
    last = perf_counter()
    with pt.tqdm(total=total, desc=desc, unit="iteration", disable=not verbose) as bar:
        for one in iterations:
            now = perf_counter()
            history.append({"iteration": one.number, **one.measures, "seconds": round(now - last, 4)})
            bar.set_postfix_str(one.shown)
            bar.update(one.number - bar.n)
            yield one
            last = perf_counter()
