"""What happens around epochs: checkpoints, early stopping, progress bars. Importing this takes seconds."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyterrier as pt
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import Callback, Checkpoint, EarlyStopping, Timer

from pt_neural._artifacts import write_json

if TYPE_CHECKING:
    from pt_neural.training.lightning import GroupTraining

LAST, BEST = "last.ckpt", "best.pt"


class KeepCheckpoints(Checkpoint):
    """Writes the best weights, the history, and all that is needed to go on, after each epoch and each at once."""

    def __init__(self, directory: Path, *, resumable: bool):
        self.directory = directory
        self.resumable = resumable

    def setup(self, trainer: Trainer, pl_module: "GroupTraining", stage: str) -> None:
        """Let all processes have the directory of the first."""
        self.directory = trainer.strategy.broadcast(self.directory)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: "GroupTraining") -> None:
        """Write what the epoch has given; one that max_time cut short is none to go on from."""
        if trainer.is_global_zero:
            if pl_module.last_is_best():
                with _replacing(self.directory / BEST) as path:
                    torch.save(pl_module.network.state_dict(), path)
            with _replacing(self.directory / "history.json") as path:
                write_json(path, pl_module.history)
        if self.resumable and trainer.fit_loop.epoch_loop.batch_progress.is_last_batch:
            unfinished = self.directory / f"{LAST}.tmp"
            trainer.save_checkpoint(unfinished)
            if trainer.is_global_zero:
                os.replace(unfinished, self.directory / LAST)
        trainer.strategy.barrier()


class StopEarly(EarlyStopping):
    """Lightning's; a run that goes on may have another patience, and stops at once where that has run out."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take all but the patience."""
        super().load_state_dict({**state_dict, "patience": self.patience})

    def on_train_start(self, trainer: Trainer, pl_module: "GroupTraining") -> None:
        """Stop again."""
        trainer.should_stop = self.wait_count >= self.patience


def stopped_early(checkpoint: dict[str, Any], patience: int | None) -> bool:
    """Whether the patience had run out when a checkpoint was written."""
    states = [state for name, state in checkpoint["callbacks"].items() if name.startswith(StopEarly.__name__)]
    return patience is not None and any(state["wait_count"] >= patience for state in states)


class TimeLimit(Timer):
    """Lightning's, of which a run that goes on has the whole again."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Forget the time before."""


class EpochBars(Callback):
    """A progress bar for each epoch, with the mean loss, and in the end the dev measure."""

    bar = None

    def on_train_epoch_start(self, trainer: Trainer, pl_module: "GroupTraining") -> None:
        """Begin a line."""
        self._finish(pl_module)
        name = f"Epoch {trainer.current_epoch + 1}/{trainer.max_epochs}"
        total, hidden = trainer.num_training_batches, not trainer.is_global_zero
        self.bar = pt.tqdm(desc=name, total=total, unit="batch", disable=hidden)

    def on_train_batch_end(self, trainer: Trainer, pl_module: "GroupTraining", *rest: Any) -> None:
        """Show the loss so far."""
        self.bar.set_postfix_str(f"loss {pl_module.mean_loss:.4f}", refresh=False)
        self.bar.update()

    def on_train_end(self, trainer: Trainer, pl_module: "GroupTraining") -> None:
        """End the last line."""
        self._finish(pl_module)

    def on_exception(self, trainer: Trainer, pl_module: "GroupTraining", exception: BaseException) -> None:
        """Leave the line as it is."""
        if self.bar is not None:
            self.bar.close()

    def _finish(self, module: "GroupTraining") -> None:
        """End the line; only now the dev measure is known, for callbacks are asked before the module."""
        if self.bar is not None:
            measures = [f"{name} {value:.4f}" for name, value in module.history[-1].items() if name.startswith("dev ")]
            self.bar.set_postfix_str(", ".join([f"loss {module.history[-1]['loss']:.4f}", *measures]))
            self.bar.close()
            self.bar = None


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A path to write to, which takes the place of ``path`` when it is written."""
    unfinished = path.with_name(f"{path.name}.tmp")
    yield unfinished
    os.replace(unfinished, path)
