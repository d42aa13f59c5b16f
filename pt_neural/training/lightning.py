"""The parts that Lightning's Trainer asks for. Importing this takes seconds, so only fitting does."""

import logging
import math
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Checkpoint, EarlyStopping, TQDMProgressBar
from torch import Tensor, nn

from pt_neural._artifacts import write_json
from pt_neural.training.sampling import Batch
from pt_neural.training.settings import Training

LAST, BEST = "last.ckpt", "best.pt"
_OPTIMISERS = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "adagrad": torch.optim.Adagrad,
    "sgd": torch.optim.SGD,
}


class GroupTraining(LightningModule):
    """One network, its loss over groups, and the dev measure after each epoch."""

    def __init__(
        self,
        network: nn.Module,
        loss: Callable[[Tensor, Tensor, Tensor], Tensor],
        training: Training,
        evaluate: Callable[[], float] | None,
    ):
        super().__init__()
        self.network = network
        self.loss = loss
        self.training_settings = training
        self.evaluate = evaluate
        self.dev_name = f"dev {training.dev_measure}"
        self.history: list[dict[str, Any]] = []

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """The optimiser that the settings name."""
        settings = self.training_settings
        kind = _OPTIMISERS[settings.optimiser]
        return kind(self.network.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay)

    def on_train_epoch_start(self) -> None:
        """Seed what is random in the network (dropout) by epoch, so that a resumed run draws the same."""
        torch.manual_seed(self.training_settings.seed * 1_000_003 + self.current_epoch)
        self._sum, self._groups, self._started = 0.0, 0, time.perf_counter()

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """The loss of one batch."""
        loss = self.loss(self.network(batch.inputs).float(), batch.labels, batch.valid)
        value = loss.item()
        if not math.isfinite(value):
            raise FloatingPointError(
                f"the loss became {value} in epoch {self.current_epoch + 1}, batch {batch_idx + 1}: lower "
                f"learning_rate (now {self.training_settings.learning_rate:g}), or set gradient_clip=1.0"
            )
        self._sum, self._groups = self._sum + value * len(batch.labels), self._groups + len(batch.labels)
        self.log("loss", value, prog_bar=True, on_step=True, on_epoch=False, batch_size=len(batch.labels))
        return loss

    def on_train_epoch_end(self) -> None:
        """Evaluate on the dev queries, and add a line to the history."""
        seconds = time.perf_counter() - self._started
        loss = self.trainer.strategy.reduce(torch.tensor(self._sum / self._groups), reduce_op="mean")
        record = {"epoch": self.current_epoch + 1, "loss": float(loss), "seconds": seconds}
        if self.evaluate is not None:
            self.network.eval()
            record[self.dev_name] = float(self.evaluate())
            self.network.train()
            self.log(self.dev_name, record[self.dev_name], prog_bar=True, rank_zero_only=True)
        self.history.append(record)

    def last_is_best(self) -> bool:
        """Whether the epoch that just ended has the best dev measure, the first of equals; without one, always."""
        values = [record.get(self.dev_name, record["epoch"]) for record in self.history]
        return values.index(max(values)) == len(values) - 1

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep the history in the checkpoint."""
        checkpoint["history"] = self.history

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Take the history from the checkpoint."""
        self.history = checkpoint["history"]


class KeepCheckpoints(Checkpoint):
    """Writes the best weights, the history, and all that is needed to go on, after each epoch and each at once."""

    def __init__(self, directory: Path, *, resumable: bool):
        self.directory = directory
        self.resumable = resumable

    def on_train_epoch_end(self, trainer: Trainer, pl_module: GroupTraining) -> None:
        """Write what the epoch has given."""
        if trainer.is_global_zero:
            if pl_module.last_is_best():
                with _replacing(self.directory / BEST) as path:
                    torch.save(pl_module.network.state_dict(), path)
            with _replacing(self.directory / "history.json") as path:
                write_json(path, pl_module.history)
        if self.resumable:
            unfinished = self.directory / f"{LAST}.tmp"
            trainer.save_checkpoint(unfinished)
            if trainer.is_global_zero:
                os.replace(unfinished, self.directory / LAST)
        trainer.strategy.barrier()


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A path to write to, which takes the place of ``path`` when it is written."""
    unfinished = path.with_name(f"{path.name}.tmp")
    yield unfinished
    os.replace(unfinished, path)


def trainer_for(training: Training, checkpoints: KeepCheckpoints, *, dev: bool = True) -> Trainer:
    """Lightning's Trainer for these settings."""
    callbacks = [checkpoints]
    if dev and training.patience is not None:
        callbacks.append(EarlyStopping(f"dev {training.dev_measure}", mode="max", patience=training.patience))
    if training.verbose:
        callbacks.append(TQDMProgressBar(refresh_rate=1, leave=True))
    return Trainer(
        accelerator=training.device,
        devices=training.devices,
        strategy=training.strategy,
        precision=training.precision,
        max_epochs=training.epochs,
        max_time=training.max_time,
        gradient_clip_val=training.gradient_clip,
        callbacks=callbacks,
        default_root_dir=checkpoints.directory,
        logger=False,
        enable_progress_bar=training.verbose,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )


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
