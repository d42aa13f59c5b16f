"""Learning a sparse W: train, drop the smallest weights of each row, train again (SSI paper, algorithm 2)."""

from collections.abc import Callable
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
        **options: What else ``train`` takes; the history tells in ``nonzeros`` how many weights of a row could change.
    """
    terms = network.shape.document_terms
    kept = dict.fromkeys([terms, *steps(terms, min(nonzeros, terms), rounds)])  # each number once
    for number, count in enumerate(kept):
        if number:
            network.keep_largest(count)
        if training.verbose:
            print(f"training {count:,} weights in each row of W", flush=True)
        train_stage(train, network, batches, loss, training, stage=("nonzeros", count), **options)


def steps(first: int, last: int, rounds: int) -> list[int]:
    """Numbers that fall from ``first`` to ``last`` by the same factor each round.

    Example::

        >>> steps(1000, 1, 3)
        [100, 10, 1]
    """
    return [round(first * (last / first) ** (number / rounds)) for number in range(1, rounds + 1)]
