"""The steps of SSI are compiled before its training begins, and the user is told where that takes long."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

import torch

from pt_neural.models.bilinear_network import BilinearNetwork
from pt_neural.training import Training
from pt_neural.training.sampling import Batch

SOON = 1.0  # seconds; what was compiled before is read from the disk in less
MESSAGE = "compiling the steps of SSI, which takes some ten seconds and is kept on disk where there is a place for it"


def compile_steps(network: BilinearNetwork, batch: Batch, training: Training) -> None:
    """Compile what a network needs to learn, by a batch without tuples.

    Args:
        network: Stays as it is.
        batch: One such as those that follow; it loses its tuples.
        training: The settings; with ``verbose`` a line is printed if it is not done soon.
    """
    none = _without_tuples(batch)
    if (other := batch.inputs.other) is not None:
        none.inputs.other = _without_tuples(other)
    with told_if_slow(MESSAGE if training.verbose else None):
        network.learn(none, training)


def _without_tuples(batch: Batch) -> Batch:
    return batch._replace(valid=torch.zeros_like(batch.valid))


@contextmanager
def told_if_slow(message: str | None) -> Iterator[None]:
    """Print a line if what is done meanwhile is not done soon; None prints none.

    Example::

        with told_if_slow("compiling"):
            compile_all()
    """
    timer = Timer(SOON, print, [message], {"flush": True})
    timer.daemon = True
    if message is not None:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
