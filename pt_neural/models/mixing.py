"""Learning two low-rank models, of frequent words and of hashed features, and how they are mixed (SSI paper, 4.1)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pt_neural.models.bilinear_network import BilinearNetwork
from pt_neural.models.training_stages import train_stage
from pt_neural.training import Training
from pt_neural.training.losses import Loss
from pt_neural.training.sampling import GroupBatches

EPOCHS_OF_MIXING = 3  # of one number


def train_mixed(
    train: Callable[..., None],
    network: BilinearNetwork,
    batches: GroupBatches,
    loss: Loss,
    training: Training,
    **options: Any,
) -> None:
    """Train the model of frequent words, then that of hashed features by itself, then the factor of the latter.

    Args:
        train: Trains a network, see :func:`~pt_neural.training.loop.train`.
        network: Has both models.
        batches: The training data.
        loss: What ``train`` takes.
        training: The settings; epochs and patience are those of each model.
        **options: What else ``train`` takes; the history tells the ``model`` of each record.
    """
    network.mixing.fill_(0)
    _announce("the model of frequent words", training)
    train_stage(train, network.of_words(), batches, loss, training, stage=("model", "words"), **options)
    _announce("the model of hashed features", training)
    train_stage(train, network.of_hashed(), batches, loss, training, stage=("model", "hashed"), **options)
    network.mixing.fill_(1)
    network.learns_mixing = True
    settings = replace(training, epochs=min(training.epochs, EPOCHS_OF_MIXING))
    _announce("the factor that mixes them", training)
    try:
        train_stage(train, network, batches, loss, settings, stage=("model", "mixing"), **options)
    finally:
        network.learns_mixing = False


def _announce(stage: str, training: Training) -> None:
    if training.verbose:
        print(f"training {stage}", flush=True)
