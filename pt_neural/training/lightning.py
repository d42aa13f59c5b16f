"""The parts that Lightning's Trainer asks for. Importing this takes seconds, so only fitting does."""

import logging
import math
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from lightning.pytorch import LightningModule, Trainer
from torch import Tensor, nn
from torch.utils.data import DataLoader

from pt_neural._measures import direction
from pt_neural.training.callbacks import EpochBars, KeepCheckpoints, StopEarly, TimeLimit
from pt_neural.training.sampling import Batch, EpochSampler, GroupBatches
from pt_neural.training.settings import Training

_OPTIMISERS = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "adagrad": torch.optim.Adagrad,
    "sgd": torch.optim.SGD,
}


class GroupTraining(LightningModule):
    """One network, its loss over groups, and the dev measure after each epoch.

    A network that has a method ``learn(batch, training)`` makes its own steps, and gives the mean loss before them.
    """

    def __init__(
        self,
        network: nn.Module,
        batches: GroupBatches,
        loss: Callable[[Tensor, Tensor, Tensor], Tensor],
        training: Training,
        evaluate: Callable[[], float] | None,
    ):
        super().__init__()
        self.network = network
        self.automatic_optimization = not hasattr(network, "learn")
        self.batches = batches
        self.loss = loss
        self.training_settings = training
        self.evaluate = evaluate
        self.dev_name = f"dev {training.dev_measure}"
        self.history: list[dict[str, Any]] = []

    def train_dataloader(self) -> DataLoader:
        """The share of the batches that this device has among those of the trainer."""
        sampler = EpochSampler(self.batches, self.trainer.global_rank, self.trainer.world_size)
        return DataLoader(self.batches, batch_size=None, sampler=sampler)

    def configure_optimizers(self) -> torch.optim.Optimizer | None:
        """The optimiser that the settings name; none for a network that makes its own steps."""
        settings = self.training_settings
        if not self.automatic_optimization:
            return None
        kind = _OPTIMISERS[settings.optimiser]
        return kind(self.network.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay)

    def on_train_epoch_start(self) -> None:
        """Begin the account of the epoch."""
        self._sum, self._groups, self._started = 0.0, 0, time.perf_counter()

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor | None:
        """The loss of one batch; what is random in the network (dropout) follows from its number alone."""
        key = [self.training_settings.seed, self.current_epoch, batch_idx, self.global_rank]
        torch.manual_seed(int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0]))
        loss = None
        if self.automatic_optimization:
            loss = self.loss(self.network(batch.inputs).float(), batch.labels, batch.valid)
        value = self.network.learn(batch, self.training_settings) if loss is None else loss.item()
        if not math.isfinite(value):
            raise FloatingPointError(
                f"the loss became {value} in epoch {self.current_epoch + 1}, batch {batch_idx + 1}: {self._advice()}"
            )
        self._sum, self._groups = self._sum + value * len(batch.labels), self._groups + len(batch.labels)
        return loss

    @property
    def mean_loss(self) -> float:
        """The mean over the groups of the epoch so far."""
        return self._sum / max(self._groups, 1)

    def on_train_epoch_end(self) -> None:
        """Evaluate on the dev queries, and add a line to the history."""
        seconds = time.perf_counter() - self._started
        if not all(bool(weight.isfinite().all()) for weight in self.network.parameters()):
            raise FloatingPointError(f"weights became infinite in epoch {self.current_epoch + 1}: {self._advice()}")
        strategy = self.trainer.strategy
        loss = strategy.reduce(torch.tensor(self.mean_loss, device=self.device), reduce_op="mean")
        record = {"epoch": self.current_epoch + 1, "loss": float(loss), "seconds": seconds}
        if self.evaluate is not None:
            self.network.eval()
            value = float(self.evaluate()) if self.trainer.is_global_zero else None
            self.network.train()
            record[self.dev_name] = strategy.broadcast(value)
            self.log(self.dev_name, record[self.dev_name])  # where EarlyStopping finds it
        self.history.append(record)

    def _advice(self) -> str:
        lower = f"lower learning_rate (now {self.training_settings.learning_rate:g})"
        return f"{lower}, or set gradient_clip=1.0" if self.automatic_optimization else lower

    def last_is_best(self) -> bool:
        """Whether the epoch that just ended has the best dev measure, the first of equals; without one, always."""
        if self.evaluate is None:
            return True
        values = [direction(self.training_settings.dev_measure) * record[self.dev_name] for record in self.history]
        return values.index(max(values)) == len(values) - 1

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep the history in the checkpoint."""
        checkpoint["history"] = self.history

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Take the history from the checkpoint."""
        self.history = checkpoint["history"]


def trainer_for(training: Training, checkpoints: KeepCheckpoints, *, dev: bool = True) -> Trainer:
    """Lightning's Trainer for these settings."""
    callbacks = [checkpoints]
    if dev and training.patience is not None:
        mode = "max" if direction(training.dev_measure) > 0 else "min"
        callbacks.append(StopEarly(f"dev {training.dev_measure}", mode=mode, patience=training.patience))
    if training.max_time is not None:
        callbacks.append(TimeLimit(training.max_time))
    if training.verbose:
        callbacks.append(EpochBars())
    trainer = Trainer(
        accelerator=_accelerator(training.device),
        devices=training.devices,
        strategy=training.strategy,
        precision=training.precision,
        max_epochs=training.epochs,
        gradient_clip_val=training.gradient_clip,
        callbacks=callbacks,
        default_root_dir=checkpoints.directory,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        use_distributed_sampler=False,
    )
    trainer._signal_connector._get_current_signal_handlers = changed_signal_handlers
    return trainer


def _accelerator(device: str) -> str:
    """``"auto"`` is a CUDA GPU or the processor, as for scoring; Lightning would take Apple's GPU too.

    That one has no embedding bags with gradients before torch 2.10.
    """
    if device != "auto":
        return device
    return "cuda" if torch.cuda.is_available() else "cpu"


def changed_signal_handlers() -> dict[int, Any]:
    """The handlers that Lightning changes, and puts back after training.

    It would put back those of all signals, as Python knows them. Python knows nothing of Java's, without which the
    process ends when Java next stops its threads at a guarded page.
    """
    names = ("SIGINT", "SIGTERM", "SIGUSR1")
    return {number: signal.getsignal(number) for name in names if (number := getattr(signal, name, None))}


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Lightning's remarks on hardware and data loading from the user."""
    loggers = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="lightning")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
