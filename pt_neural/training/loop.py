"""The training of networks: Lightning's Trainer over groups, with checkpoints from which a later fit resumes."""

import hashlib
import json
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.utilities.exceptions import SIGTERMException
from torch import nn

from pt_neural._artifacts import read_json
from pt_neural.training.lightning import BEST, LAST, GroupTraining, KeepCheckpoints, quiet, stopped_early, trainer_for
from pt_neural.training.losses import Loss
from pt_neural.training.run import FREE_SETTINGS, checkpoint_directory
from pt_neural.training.sampling import GroupBatches
from pt_neural.training.settings import Training


def train(
    network: nn.Module,
    batches: GroupBatches,
    loss: Loss,
    training: Training,
    *,
    evaluate: Callable[[], float] | None = None,
    history: list[dict[str, Any]],
    origin: Callable[[], str] = str,
) -> None:
    """Train a network; it ends up with the weights of the epoch with the best dev measure, or of the last epoch.

    Args:
        network: Takes ``Batch.inputs`` and returns scores of shape (groups, 1 + negatives).
        batches: The training data.
        loss: Takes scores, labels and validity; see :mod:`pt_neural.training.losses`.
        training: The settings.
        evaluate: Returns the dev measure of the network in its current state.
        history: Receives one record per epoch: ``epoch`` (from 1), ``loss``, ``seconds`` and the dev measure; also if
            training is interrupted.
        origin: Returns text that changes with texts, candidates and judgements, so that checkpoints of another run are
            refused; called only if there is a ``checkpoint_dir``.

    Raises:
        FloatingPointError: If the loss is NaN or infinite.
        ValueError: If ``checkpoint_dir`` holds checkpoints of another run, damaged ones, or more epochs than asked for.
        KeyboardInterrupt: If the user interrupts; the network then has the best weights so far.
        SystemExit: If the process is told to terminate (SIGTERM), with code 143.
    """
    module = GroupTraining(network, batches, loss, training, evaluate)
    with ExitStack() as stack:
        stack.enter_context(_process_group_of_this_fit())
        if training.checkpoint_dir is None:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pt_neural-")))
        else:
            fingerprint = _fingerprint(training, batches, network, [evaluate is not None, origin()])
            directory = checkpoint_directory(training.checkpoint_dir, fingerprint)
        checkpoints = KeepCheckpoints(directory, resumable=training.checkpoint_dir is not None)
        try:
            with quiet(), torch.random.fork_rng(range(torch.cuda.device_count())), _interruptible():
                trainer = trainer_for(training, checkpoints, dev=evaluate is not None)
                trainer.fit(module, ckpt_path=_last_checkpoint(directory, training), weights_only=True)
                if trainer.received_sigterm:  # after the last batch, which Lightning does not notice
                    raise SIGTERMException
        finally:
            network.to("cpu").eval()
            if (checkpoints.directory / BEST).exists():
                network.load_state_dict(_read_tensors(checkpoints.directory / BEST))
                history[:] = read_json(checkpoints.directory / "history.json")
        trainer.strategy.barrier()  # the first process deletes a temporary directory once all have read it


def _fingerprint(training: Training, batches: GroupBatches, network: nn.Module, origin: list) -> str:
    settings = {name: value for name, value in training.to_json().items() if name not in FREE_SETTINGS}
    shapes = {name: list(weight.shape) for name, weight in network.state_dict().items()}
    digest = hashlib.sha256(json.dumps([settings, shapes, origin], sort_keys=True).encode())
    for array in (batches.groups.queries, batches.groups.positives, batches.groups.relevant):
        digest.update(array.tobytes())
    return digest.hexdigest()


def _last_checkpoint(directory: Path, training: Training) -> Path | None:
    """The checkpoint to resume from, if there is one; checks that it is readable, and prints a line about it."""
    if not (directory / LAST).exists():
        return None
    _read_tensors(directory / BEST, device="meta")
    checkpoint = _read_tensors(directory / LAST, device="meta")
    done = len(checkpoint["history"])
    if done > training.epochs:
        raise ValueError(
            f"{directory} holds checkpoints of {done} epochs, more than epochs={training.epochs}: ask for {done} or "
            "more, or give another checkpoint_dir"
        )
    if training.verbose:
        finished = done == training.epochs or stopped_early(checkpoint, training.patience)
        print(f"{'finished' if finished else 'going on'} after epoch {done} of {directory}", flush=True)
    return directory / LAST


def _read_tensors(path: Path, *, device: str = "cpu") -> dict[str, Any]:
    try:
        return torch.load(path, map_location=device, weights_only=True)
    except Exception as error:
        raise ValueError(f"{path} is damaged ({error!r:.120}); delete {path.parent} to begin anew") from None


@contextmanager
def _process_group_of_this_fit() -> Iterator[None]:
    """End the group of processes of several devices with the fit, since the next may have other devices."""
    before = _in_process_group()
    try:
        yield
    finally:
        if _in_process_group() and not before:
            torch.distributed.destroy_process_group()


def _in_process_group() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()


@contextmanager
def _interruptible() -> Iterator[None]:
    """Restore the meaning of signals: Lightning ends the process on Ctrl-C, and successfully on SIGTERM."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    except SystemExit as end:
        if isinstance(end.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        if isinstance(end, SIGTERMException):  # Lightning would exit with code 0
            raise SystemExit(128 + signal.SIGTERM) from None
        raise
    finally:
        if in_main_thread:  # other threads may not
            signal.signal(signal.SIGINT, handler)
