"""Learning a sparse W: train, drop the smallest weights of each row, train again (SSI paper, algorithm 2)."""

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any

from pt_neural.models.bilinear_network import BilinearNetwork
from pt_neural.models.training_stages import train_stage
from pt_neural.training import Training
from pt_neural.training.losses import Loss
from pt_neural.training.sampling import GroupBatches


def train_sparse(
    train: Callable[..., None],
    network: BilinearNetwork,
    batches: GroupBatches,
    loss: Loss,
    training: Training,
    *,
    nonzeros: int,
    rounds: int,
    history: list[dict[str, Any]],
    origin: Callable[[], str] = str,
    **options: Any,
) -> None:
    """Algorithm 2, in which each round drops the same share of each row's weights; rounds that drop none are left out.

    Args:
        train: Trains the network, see :func:`~pt_neural.training.loop.train`.
        network: Its W has a weight for each pair of words.
        batches: The training data.
        loss: What ``train`` takes.
        training: The settings; epochs and patience are those of each training.
        nonzeros: Weights of each row that remain (p).
        rounds: How often weights are dropped.
        history: Receives the records of all trainings, with ``nonzeros``, how many weights of a row could change.
        origin: What ``train`` takes; checkpoints are also of the weights that a training began with.
        **options: What else ``train`` takes.
    """
    terms = network.shape.document_terms
    kept = dict.fromkeys([terms, *steps(terms, min(nonzeros, terms), rounds)])  # each number once
    for number, count in enumerate(kept):
        if number:
            network.keep_largest(count)
        begun = partial(_origin, origin, network)
        run = {**options, "history": history, "origin": begun}
        train_stage(train, network, batches, loss, training, stage=("nonzeros", count), **run)


def _origin(origin: Callable[[], str], network: BilinearNetwork) -> str:
    return f"{origin()} {hashlib.sha256(network.pairs.numpy()).hexdigest()}"


def steps(first: int, last: int, rounds: int) -> list[int]:
    """Numbers that fall from ``first`` to ``last`` by the same factor each round.

    Example::

        >>> steps(1000, 1, 3)
        [100, 10, 1]
    """
    return [round(first * (last / first) ** (number / rounds)) for number in range(1, rounds + 1)]
