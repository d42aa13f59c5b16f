"""The training loop: Lightning's Trainer over groups, with checkpoints that a later fit goes on from."""

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

from pt_neural._artifacts import read_json, write_json
from pt_neural.training.callbacks import BEST, LAST, KeepCheckpoints, stopped_early
from pt_neural.training.lightning import GroupTraining, quiet, trainer_for
from pt_neural.training.losses import Loss
from pt_neural.training.sampling import GroupBatches
from pt_neural.training.settings import Training

# What may differ between an interrupted run and the one that goes on.
_FREE_SETTINGS = ("epochs", "patience", "max_time", "checkpoint_dir", "verbose", "device", "devices", "strategy")


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
    """Train a network; it ends with the weights of the epoch with the best dev measure, or of the last epoch.

    Args:
        network: Takes ``Batch.inputs``, gives scores of shape (groups, 1 + negatives).
        batches: The training data.
        loss: Takes scores, labels and validity, see :mod:`pt_neural.training.losses`.
        training: The settings.
        evaluate: The dev measure of the network as it is when called.
        history: Receives one record an epoch, ``epoch`` (from 1), ``loss``, ``seconds`` and the dev measure; also
            when the training is interrupted.
        origin: Gives what tells apart runs on other texts, candidates or judgements; asked for with a
            ``checkpoint_dir`` only, where a run goes on from checkpoints of its own origin.

    Raises:
        FloatingPointError: If the loss is NaN or infinite.
        ValueError: If ``checkpoint_dir`` holds the checkpoints of another run, a damaged one, or more epochs than are
            asked for.
        KeyboardInterrupt: If the user interrupts; the network then has the best weights so far.
        SystemExit: If the process is told to terminate (SIGTERM), with code 143.
    """
    module = GroupTraining(network, batches, loss, training, evaluate)
    with ExitStack() as stack:
        stack.enter_context(_process_group_of_this_fit())
        if training.checkpoint_dir is None:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pt_neural-")))
        else:
            directory = _checkpoint_directory(training, batches, network, [evaluate is not None, origin()])
        checkpoints = KeepCheckpoints(directory, resumable=training.checkpoint_dir is not None)
        try:
            with quiet(), torch.random.fork_rng(range(torch.cuda.device_count())), _interruptible():
                trainer = trainer_for(training, checkpoints, dev=evaluate is not None)
                trainer.fit(module, ckpt_path=_last_checkpoint(directory, training), weights_only=True)
                if trainer.received_sigterm:  # after the last batch, where Lightning looks no more
                    raise SIGTERMException
        finally:
            network.to("cpu").eval()
            if (checkpoints.directory / BEST).exists():
                network.load_state_dict(_read_tensors(checkpoints.directory / BEST))
                history[:] = read_json(checkpoints.directory / "history.json")
        trainer.strategy.barrier()  # the first process takes a temporary directory away when all have read


def _checkpoint_directory(training: Training, batches: GroupBatches, network: nn.Module, origin: list) -> Path:
    """The directory of the checkpoints, after making sure that it is of this run."""
    directory = Path(training.checkpoint_dir)
    if directory.exists() and not directory.is_dir():
        raise ValueError(f"checkpoint_dir {directory} is a file; name a directory")
    directory.mkdir(parents=True, exist_ok=True)
    fingerprint = {"run": _fingerprint(training, batches, network, origin)}
    if (directory / "run.json").exists():
        if read_json(directory / "run.json") != fingerprint:
            raise ValueError(
                f"{directory} holds checkpoints of another run (other data or settings); give another "
                "checkpoint_dir, or delete it"
            )
    elif any(directory.iterdir()):
        raise ValueError(f"{directory} holds other files than checkpoints; give an empty checkpoint_dir")
    else:
        write_json(directory / "run.json", fingerprint)
    return directory


def _fingerprint(training: Training, batches: GroupBatches, network: nn.Module, origin: list) -> str:
    settings = {name: value for name, value in training.to_json().items() if name not in _FREE_SETTINGS}
    shapes = {name: list(weight.shape) for name, weight in network.state_dict().items()}
    digest = hashlib.sha256(json.dumps([settings, shapes, origin], sort_keys=True).encode())
    for array in (batches.groups.queries, batches.groups.positives, batches.groups.relevant):
        digest.update(array.tobytes())
    return digest.hexdigest()


def _last_checkpoint(directory: Path, training: Training) -> Path | None:
    """Where to go on from, after a look whether it can be read, and a line that says so."""
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
    """Let the group of processes that several devices form end with the fit, for the next may have other devices."""
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
    """Give signals back their meaning: Lightning makes an end of the process of Ctrl-C, and a success of SIGTERM."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    except SystemExit as end:
        if isinstance(end.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        if isinstance(end, SIGTERMException):  # with which Lightning would end the process as if all were well
            raise SystemExit(128 + signal.SIGTERM) from None
        raise
    finally:
        if in_main_thread:  # the others may not
            signal.signal(signal.SIGINT, handler)
