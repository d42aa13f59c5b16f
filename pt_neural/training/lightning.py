"""The parts of Lightning's Trainer: module, callbacks, trainer. Importing this takes seconds, so only fitting does."""

import math
import signal
import time
from collections.abc import Callable
from contextlib import nullcontext
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyterrier as pt
import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback, Checkpoint, EarlyStopping, Timer
from lightning.pytorch.plugins.io import TorchCheckpointIO
from torch import Tensor, nn
from torch.utils.data import DataLoader

from pt_neural._evaluation import direction
from pt_neural._files import replacing, write_json
from pt_neural._messages import duration, say
from pt_neural.training.devices import accelerator
from pt_neural.training.processes import RAY, from_first, is_first, summed, together
from pt_neural.training.run import (
    Records,
    best_epoch,
    epochs_done,
    log_end,
    log_record,
    log_settings,
    start_record,
)
from pt_neural.training.sampling import Batch, GroupBatches
from pt_neural.training.settings import AUTO, Training
from pt_neural.training.triples import TripleBatches

LAST, HISTORY = "last.ckpt", "history.json"
# A trial of bfloat16 takes two rounds, and more until the time is over; the first one also warms up.
_TRIALS, _TRIAL_SECONDS, _CLEARLY_LESS = 10, 0.5, 0.87
_LOOK_AFTER, _LONG = 5.0, 300.0  # seconds: when the time of a training is estimated, and how much of it is long
_OPTIMISERS = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "adagrad": torch.optim.Adagrad,
    "sgd": torch.optim.SGD,
}


def best_weights(directory: Path, history: Records, training: Training) -> Path:
    """The file of the weights of the best epoch."""
    return directory / f"best-{best_epoch(history, training)}.pt"


def parameter_groups(network: nn.Module, training: Training) -> list[dict[str, Any]]:
    """A network's weights as the groups of an optimiser, with their own learning rates and weight decays.

    A network may name weights that learn at a multiple of the learning rate, in a method ``rate_factors``.

    It may also keep weights as a multiple of what they are, and then names them, with the factor, in a method
    ``scaled_weights``, so that SGD and weight decay ignore it. Their gradients are smaller by that factor. Adam, AdamW
    and Adagrad do not depend on the scale of gradients; steps of SGD would be smaller by the factor's square, in
    proportion to the weights. Weight decay that is added to the gradient, by all but AdamW, would be larger by as much.
    """
    own_rates = network.rate_factors() if hasattr(network, "rate_factors") else []
    scaled = network.scaled_weights() if hasattr(network, "scaled_weights") else []
    rates = {id(weight): factor for weight, factor in own_rates}
    scales = {id(weight): factor for weight, factor in scaled}
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for weight in network.parameters():
        groups.setdefault((rates.get(id(weight), 1.0), scales.get(id(weight), 1.0)), []).append(weight)
    return [
        {
            "params": weights,
            "lr": training.learning_rate * rate * (scale**2 if training.optimiser == "sgd" else 1),
            "weight_decay": training.weight_decay / (1 if training.optimiser == "adamw" else scale**2),
        }
        for (rate, scale), weights in groups.items()
    ]


class GroupTraining(LightningModule):
    """A network, its loss over groups, and the dev measure of the start and after each epoch."""

    def __init__(
        self,
        network: nn.Module,
        batches: GroupBatches | TripleBatches,
        loss: Callable[[Tensor, Tensor, Tensor], Tensor],
        training: Training,
        evaluate: Callable[[], float] | None,
    ):
        super().__init__()
        self.network = network
        self.batches = batches
        self.loss = loss
        self.training_settings = training
        self.evaluate = evaluate
        self.dev_name = f"dev {training.dev_measure}"
        self.history: Records = []
        self._totals = {
            "loss": 0.0,
            "groups": 0,
        }  # a dict, since setting a module's attributes is slow
        self.bf16: bool | None = None  # whether to compute in bfloat16, with precision="auto"

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; that in which Lightning notes each hook it calls bypasses the slow checks of a module."""
        if name == "_current_fx_name":
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    def train_dataloader(self) -> DataLoader:
        """This device's share of the batches."""
        return self.batches.loader(self.trainer.global_rank, self.trainer.world_size)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """The optimiser that the settings name."""
        settings = self.training_settings
        kind = _OPTIMISERS[settings.optimiser]
        groups = parameter_groups(self.network, settings)
        # One pass over weights, gradients and moments in place of a dozen; Lightning does not clip beside it in mixed
        # precision.
        clips_mixed = settings.gradient_clip is not None and "mixed" in str(settings.precision)
        fused = self.device.type in ("cpu", "cuda") and not clips_mixed
        return kind(groups, lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=fused)

    def on_train_epoch_start(self) -> None:
        """Reset the sums of the epoch."""
        self._totals.update(loss=0.0, groups=0)
        self._started = time.perf_counter()

    def transfer_batch_to_device(self, batch: Batch, device: torch.device, dataloader_idx: int) -> Batch:
        """The batch on the device; on a CPU it is already there, and checking each of its tensors takes time."""
        return batch if device.type == "cpu" else super().transfer_batch_to_device(batch, device, dataloader_idx)

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """The loss of a batch; randomness in the network (dropout) depends only on seed, epoch, batch and device."""
        if self.bf16 is None and self.training_settings.precision == AUTO:
            self.bf16 = from_first(lambda: self._bf16_pays(batch))
        key = [self.training_settings.seed, self.current_epoch, batch_idx, self.global_rank]
        self._seed(int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0]))
        with nullcontext() if self.bf16 is None else self._autocast(self.bf16):
            loss = self._loss_of(batch)
        value = loss.item()
        total = summed(loss.detach())
        if not math.isfinite(total):
            raise FloatingPointError(
                f"the loss became {total} in epoch {self.current_epoch + 1}, batch {batch_idx + 1}: {self._advice()}"
            )
        self._totals["loss"] += value * len(batch.labels)
        self._totals["groups"] += len(batch.labels)
        return loss

    def _seed(self, seed: int) -> None:
        """Seed the CPU and this device; torch.manual_seed formats stack traces for others, which takes milliseconds."""
        torch.default_generator.manual_seed(seed)
        if self.device.type != "cpu":
            torch.get_device_module(self.device).manual_seed(seed)

    def _loss_of(self, batch: Batch) -> Tensor:
        return self.loss(self.network(batch.inputs).float(), batch.labels, batch.valid)

    def _autocast(self, bf16: bool) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=bf16)

    def _bf16_pays(self, batch: Batch) -> bool:
        """Whether steps in bfloat16 take clearly less time than in float32; tried on a batch unless a GPU says so."""
        if self.device.type == "cuda":
            return torch.cuda.is_bf16_supported(including_emulation=False)
        if self.device.type != "cpu":
            return False
        weights = [weight for weight in self.network.parameters() if weight.requires_grad]
        shortest, started = [math.inf, math.inf], time.perf_counter()
        for rounds in range(_TRIALS):
            for bf16 in (False, True):
                step_started = time.perf_counter()
                with self._autocast(bf16):
                    loss = self._loss_of(batch)
                torch.autograd.grad(loss, weights, allow_unused=True)
                shortest[bf16] = min(shortest[bf16], time.perf_counter() - step_started)
            if rounds and time.perf_counter() - started > _TRIAL_SECONDS:
                break
        return shortest[True] < _CLEARLY_LESS * shortest[False]

    @property
    def mean_loss(self) -> float:
        """The mean loss over the groups of the epoch so far."""
        return self._totals["loss"] / max(self._totals["groups"], 1)

    def on_train_epoch_end(self) -> None:
        """Evaluate on the dev queries, and add a record to the history."""
        seconds = time.perf_counter() - self._started
        if not all(bool(weight.isfinite().all()) for weight in self.network.parameters()):
            raise FloatingPointError(f"weights became infinite in epoch {self.current_epoch + 1}: {self._advice()}")
        strategy = self.trainer.strategy
        loss = strategy.reduce(torch.tensor(self.mean_loss, device=self.device), reduce_op="mean")
        record = {"epoch": self.current_epoch + 1, "loss": float(loss), "seconds": seconds}
        if self.evaluate is not None:
            record[self.dev_name] = self._dev_value()
            self.log(self.dev_name, record[self.dev_name])  # for EarlyStopping
        self._keep(record)
        if self.batches.finished:
            self.trainer.should_stop = True

    def evaluate_start(self) -> bool:
        """Add the start to the history as epoch 0 if there are dev queries and nothing was trained yet."""
        if self.evaluate is None or self.history:
            return False
        self._keep(start_record(self.training_settings, self._dev_value()))
        return True

    def _keep(self, record: dict[str, Any]) -> None:
        self.history.append(record)
        if is_first():
            log_record(self.training_settings, record)

    def _dev_value(self) -> float:
        self.network.eval()
        value = from_first(lambda: float(self.evaluate()))
        self.network.train()
        return value

    def _advice(self) -> str:
        return f"lower learning_rate (now {self.training_settings.learning_rate:g}), or set gradient_clip=1.0"

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Save the history, and the precision that was chosen."""
        checkpoint["history"], checkpoint["bf16"] = self.history, self.bf16

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Restore the history, and go on after the epochs in it."""
        self.history, self.bf16 = checkpoint["history"], checkpoint["bf16"]
        self.batches.skip(epochs_done(self.history))


class FirstReads(TorchCheckpointIO):
    """Checkpoints that the first process reads and sends to the others, which may not see its files."""

    def load_checkpoint(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        """The checkpoint that the first process reads."""
        return from_first(lambda: super(FirstReads, self).load_checkpoint(*arguments, **options))


class KeepCheckpoints(Checkpoint):
    """After each epoch, writes the best weights, the history, and everything needed to resume, each atomically.

    Only the first process writes, to its directory. A run resumes after the last epoch with a checkpoint, whose history
    says which weights are the best. Those of a later epoch, which max_time cut short or at the end of which the run was
    killed, do not replace them: they are in a file of their own, which is deleted after the next whole epoch.
    """

    def __init__(self, directory: Path, *, resumable: bool):
        self.directory = directory
        self.resumable = resumable

    def on_train_start(self, trainer: Trainer, pl_module: GroupTraining) -> None:
        """Evaluate the start, and write its weights: they may be the best."""
        if is_first():
            log_settings(pl_module.training_settings)
        if pl_module.evaluate_start():
            self._write_results(pl_module)

    def on_train_end(self, trainer: Trainer, pl_module: GroupTraining) -> None:
        """Close the loggers."""
        if is_first():
            log_end(pl_module.training_settings)

    @together()
    def _write_results(self, module: GroupTraining) -> None:
        if is_first():
            history, training = module.history, module.training_settings
            if best_epoch(history, training) == epochs_done(history):
                weights = BytesIO()  # since PyTorch's own errors do not say that a disk is full
                torch.save(module.network.state_dict(), weights)
                with replacing(best_weights(self.directory, history, training), durable=self.resumable) as path:
                    path.write_bytes(weights.getbuffer())
            with replacing(self.directory / HISTORY, durable=self.resumable) as path:
                write_json(path, history)

    @together()
    def _delete_outdated(self, module: GroupTraining) -> None:
        if is_first():
            best = best_weights(self.directory, module.history, module.training_settings)
            for path in set(self.directory.glob("best-[0-9]*.pt*")) - {best}:  # .tmp if a run was killed
                path.unlink()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: GroupTraining) -> None:
        """Write the results of the epoch; a run cannot resume from an epoch that max_time cut short."""
        self._write_results(pl_module)
        if not trainer.fit_loop.epoch_loop.batch_progress.is_last_batch:
            return
        if self.resumable:
            last = self.directory / LAST
            with replacing(last) if trainer.is_global_zero else nullcontext(last) as path:  # others write nothing
                trainer.save_checkpoint(path)
        self._delete_outdated(pl_module)


class StopEarly(EarlyStopping):
    """Lightning's early stopping, whose state a resumed run takes from the history.

    An earlier run may have had another patience, or none. The start, epoch 0, does not count.
    """

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Do nothing: the state is taken from the history."""

    def on_train_start(self, trainer: Trainer, pl_module: GroupTraining) -> None:
        """Take the state from the history, and stop if the patience has run out already."""
        values = [record[self.monitor] for record in pl_module.history if record["epoch"] > 0]
        if values:
            best = max(values) if self.mode == "max" else min(values)
            self.best_score, self.wait_count = torch.tensor(best), len(values) - 1 - values.index(best)
        trainer.should_stop = self.wait_count >= self.patience


class TimeLimit(Timer):
    """Lightning's time limit, except that a resumed run has the whole time again."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Ignore the time that the earlier run took."""


class EpochBars(Callback):
    """A progress bar per epoch, with the mean loss and, at the end, the dev measure; a line if all will take long."""

    bar = None
    told = False  # whether the time that all will take was looked at

    def on_train_epoch_start(self, trainer: Trainer, pl_module: GroupTraining) -> None:
        """Start a bar."""
        self._finish(pl_module)
        name = f"Epoch {trainer.current_epoch + 1}/{trainer.max_epochs}"
        total, hidden = trainer.num_training_batches, not trainer.is_global_zero
        self.bar = pt.tqdm(desc=name, total=total, unit="batch", disable=hidden)
        self.started = time.perf_counter()

    def on_train_batch_end(self, trainer: Trainer, pl_module: GroupTraining, *rest: Any) -> None:
        """Show the mean loss so far."""
        self.bar.set_postfix_str(f"loss {pl_module.mean_loss:.4f}", refresh=False)
        self.bar.update()
        if not self.told and (seconds := time.perf_counter() - self.started) > _LOOK_AFTER and self.bar.n > 1:
            self.told = True
            if not self.bar.disable and math.isfinite(trainer.num_training_batches):
                self._tell(seconds / self.bar.n * trainer.num_training_batches, trainer.max_epochs)

    def _tell(self, epoch: float, epochs: int) -> None:
        """Say how long the training will take if that is long, from the seconds of an epoch."""
        if epoch * epochs > _LONG:
            say(
                f"An epoch will take about {duration(epoch)}, and all {epochs} at most {duration(epoch * epochs)}; "
                "early stopping may end sooner. To take less time: the sizes of small(), which all networks have, "
                "or Training(max_groups=..., epochs=..., max_time=...)"
            )

    def on_train_end(self, trainer: Trainer, pl_module: GroupTraining) -> None:
        """Finish the last bar."""
        self._finish(pl_module)

    def on_exception(self, trainer: Trainer, pl_module: GroupTraining, exception: BaseException) -> None:
        """Leave the bar as it is."""
        if self.bar is not None:
            self.bar.close()

    def _finish(self, module: GroupTraining) -> None:
        """Finish the last epoch's bar, only now: callbacks end an epoch before the module computes its dev measure."""
        if self.bar is not None:
            measures = [f"{name} {value:.4f}" for name, value in module.history[-1].items() if name.startswith("dev ")]
            self.bar.set_postfix_str(", ".join([f"loss {module.history[-1]['loss']:.4f}", *measures]))
            self.bar.close()
            self.bar = None


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
        **_processes(training),
        accelerator=accelerator(training.device),
        precision="32-true" if training.precision == AUTO else training.precision,
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
    # Lightning would "restore" Python's view of all handlers and so remove Java's, without which the process dies when
    # Java next stops its threads at a guarded page. There is no public way to prevent it.
    trainer._signal_connector._get_current_signal_handlers = changed_signal_handlers
    return trainer


def _processes(training: Training) -> dict[str, Any]:
    """The Trainer's arguments that say which processes train together, and how checkpoints reach them."""
    if training.strategy == RAY:
        from ray.train.lightning import RayDDPStrategy, RayLightningEnvironment

        plugins = [FirstReads(), RayLightningEnvironment()]
        return {"strategy": RayDDPStrategy(), "devices": "auto", "plugins": plugins}
    processes = {"strategy": training.strategy, "devices": training.devices, "num_nodes": training.nodes}
    return {**processes, "plugins": [FirstReads()]}


def changed_signal_handlers() -> dict[int, Any]:
    """The handlers that Lightning replaces, to be restored after training."""
    names = ("SIGINT", "SIGTERM", "SIGUSR1")
    return {number: signal.getsignal(number) for name in names if (number := getattr(signal, name, None))}
