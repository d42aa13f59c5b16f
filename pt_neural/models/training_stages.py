"""Trainings of several stages: what each of them adds to the history and to the checkpoints."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from pt_neural.training import Training
from pt_neural.training.losses import Loss
from pt_neural.training.sampling import GroupBatches


def train_stage(
    train: Callable[..., None],
    network: nn.Module,
    batches: GroupBatches,
    loss: Loss,
    training: Training,
    *,
    stage: tuple[str, Any],
    history: list[dict[str, Any]],
    origin: Callable[[], str],
    **options: Any,
) -> None:
    """Train a network as one stage of a longer training.

    Args:
        train: Trains a network, see :func:`~pt_neural.training.loop.train`.
        network: The network of the stage.
        batches: The training data.
        loss: What ``train`` takes.
        training: The settings; checkpoints of the stage go to a directory of their own within ``checkpoint_dir``.
        stage: Name and value of the column that tells the stage in the history.
        history: Receives the records of the stage.
        origin: What ``train`` takes; checkpoints are also of the weights that the stage began with.
        **options: What else ``train`` takes.
    """
    name, value = stage
    if training.checkpoint_dir is not None:
        training = replace(training, checkpoint_dir=str(Path(training.checkpoint_dir) / f"{value}-{name}"))
    records: list[dict[str, Any]] = []
    try:
        train(network, batches, loss, training, history=records, origin=partial(_begun, origin, network), **options)
    finally:
        history += [{**record, name: value} for record in records]


def _begun(origin: Callable[[], str], network: nn.Module) -> str:
    """The origin of a stage: that of the whole training, and what the stages before have learned."""
    weights = hashlib.sha256()
    for weight in network.state_dict().values():
        weights.update(weight.numpy())
    return f"{origin()} {weights.hexdigest()}"
