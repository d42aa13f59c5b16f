"""The training of networks: Lightning's Trainer over groups, with checkpoints from which a later fit resumes."""

import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.utilities.exceptions import SIGTERMException
from torch import nn

from pt_neural._files import read_json, replacing, write_json
from pt_neural._memory import freed_memory_kept
from pt_neural.training.lightning import HISTORY, LAST, GroupTraining, KeepCheckpoints, best_weights, trainer_for
from pt_neural.training.losses import Loss
from pt_neural.training.processes import from_first, is_first, quiet, require_same, together, weights_from_first
from pt_neural.training.run import (
    check_resumption,
    checkpoint_directory,
    epochs_done,
    out_of_patience,
    run_fingerprint,
)
from pt_neural.training.sampling import GroupBatches
from pt_neural.training.settings import Training
from pt_neural.training.triples import TripleBatches


def train(
    network: nn.Module,
    batches: GroupBatches | TripleBatches,
    loss: Loss,
    training: Training,
    *,
    evaluate: Callable[[], float] | None = None,
    history: list[dict[str, Any]],
    origin: str = "",
) -> str:
    """Train a network; it ends up with the weights of the epoch with the best dev measure, or of the last epoch.

    Args:
        network: Takes ``Batch.inputs`` and returns scores of shape (groups, 1 + negatives).
        batches: The training data.
        loss: Takes scores, labels and validity; see :mod:`pt_neural.training.losses`.
        training: The settings.
        evaluate: Returns the dev measure of the network in its current state.
        history: Receives one record per epoch, even if training is interrupted: ``epoch`` (from 1), ``loss``,
            ``seconds`` and the dev measure. With dev queries, the first record is of epoch 0, the start, which may be
            the best.
        origin: Text that changes with texts, candidates and judgements, so that checkpoints of another run are refused;
            used only if there is a ``checkpoint_dir``.

    Returns:
        The precision that it was trained in.

    Raises:
        FloatingPointError: If the loss is NaN or infinite.
        ValueError: If ``checkpoint_dir`` holds checkpoints of another run, damaged ones, or more epochs than asked for.
        KeyboardInterrupt: If the user interrupts; the network then has the best weights so far.
        SystemExit: If the process is told to terminate (SIGTERM), with code 143.
    """
    module = GroupTraining(network, batches, loss, training, evaluate)

    def fingerprint(*origins: Any) -> str:
        return run_fingerprint(training, network.state_dict(), list(origins), batches.identity)

    require_same(fingerprint, "training data")
    with tempfile.TemporaryDirectory(prefix="pt_neural-") as temporary:
        directory, checkpoint = Path(temporary), None
        if training.checkpoint_dir is not None:
            with together():
                if is_first():
                    run = fingerprint(evaluate is not None, origin)
                    directory = checkpoint_directory(training.checkpoint_dir, run)
            checkpoint = from_first(lambda: _last_checkpoint(directory, training))
        checkpoints = KeepCheckpoints(directory, resumable=training.checkpoint_dir is not None)
        try:
            generators = torch.random.fork_rng(range(torch.cuda.device_count()))
            with quiet(), generators, _interruptible(), freed_memory_kept():
                trainer = trainer_for(training, checkpoints, dev=evaluate is not None)
                trainer.fit(module, ckpt_path=checkpoint, weights_only=True)
                if trainer.received_sigterm:  # after the last batch, which Lightning does not notice
                    raise SIGTERMException
        finally:
            network.to("cpu").eval()
            if (directory / HISTORY).exists():
                history[:] = read_json(directory / HISTORY)
                network.load_state_dict(_read_tensors(best_weights(directory, history, training)))
    weights_from_first(network, trainer.strategy.root_device)
    history[:] = from_first(lambda: history)
    return {None: str(training.precision), True: "bf16-mixed", False: "32-true"}[module.bf16]


def _last_checkpoint(directory: Path, training: Training) -> Path | None:
    """The checkpoint to resume from, if there is one; checks that it is readable, and prints a line about it.

    The file of the history may have an epoch more, which max_time cut short or after which the run was killed; it is
    made that of the checkpoint.
    """
    if not (directory / LAST).exists():
        (directory / HISTORY).unlink(missing_ok=True)
        return None
    history = _read_tensors(directory / LAST, device="meta")["history"]
    _read_tensors(best_weights(directory, history, training), device="meta")
    check_resumption(directory, epochs_done(history), training, stopped=out_of_patience(history, training))
    with replacing(directory / HISTORY) as path:
        write_json(path, history)
    return directory / LAST


def _read_tensors(path: Path, *, device: str = "cpu") -> dict[str, Any]:
    try:
        return torch.load(path, map_location=device, weights_only=True)
    except Exception as error:
        raise ValueError(f"{path} is damaged ({error!r:.120}); delete {path.parent} to begin anew") from None


@contextmanager
def _interruptible() -> Iterator[None]:
    """Restore what signals do: Lightning ends the process on Ctrl-C, and with exit code 0 on SIGTERM."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    except SystemExit as end:
        if isinstance(end.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        if isinstance(end, SIGTERMException):
            raise SystemExit(128 + signal.SIGTERM) from None
        raise
    finally:
        if in_main_thread:  # other threads must not set handlers
            signal.signal(signal.SIGINT, handler)
