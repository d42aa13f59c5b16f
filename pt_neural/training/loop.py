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
from torch import nn
from torch.utils.data import DataLoader

from pt_neural._artifacts import read_json, write_json
from pt_neural.training.lightning import BEST, LAST, GroupTraining, KeepCheckpoints, quiet, trainer_for
from pt_neural.training.losses import Loss
from pt_neural.training.sampling import EpochSampler, GroupBatches
from pt_neural.training.settings import Training

# What may differ between an interrupted run and the one that goes on.
_FREE_SETTINGS = ("epochs", "max_time", "checkpoint_dir", "verbose", "device", "devices", "strategy")


def train(
    network: nn.Module,
    batches: GroupBatches,
    loss: Loss,
    training: Training,
    *,
    evaluate: Callable[[], float] | None = None,
    history: list[dict[str, Any]],
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

    Raises:
        FloatingPointError: If the loss is NaN or infinite.
        ValueError: If ``checkpoint_dir`` holds the checkpoints of another run, or a damaged one.
        KeyboardInterrupt: If the user interrupts; the network then has the best weights so far.
    """
    module = GroupTraining(network, loss, training, evaluate)
    with ExitStack() as stack:
        if training.checkpoint_dir is None:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pt_neural-")))
        else:
            directory = _checkpoint_directory(training, batches, network)
        checkpoints = KeepCheckpoints(directory, resumable=training.checkpoint_dir is not None)
        last = directory / LAST
        loader = DataLoader(batches, batch_size=None, sampler=EpochSampler(batches))
        try:
            with quiet(), torch.random.fork_rng(), _interruptible():
                trainer = trainer_for(training, checkpoints, dev=evaluate is not None)
                trainer.fit(module, loader, ckpt_path=_readable(last) if last.exists() else None, weights_only=True)
        finally:
            if (directory / BEST).exists():
                network.load_state_dict(torch.load(directory / BEST, map_location="cpu", weights_only=True))
                history[:] = read_json(directory / "history.json")
            network.to("cpu").eval()


def _checkpoint_directory(training: Training, batches: GroupBatches, network: nn.Module) -> Path:
    """The directory of the checkpoints, after making sure that it is of this run."""
    directory = Path(training.checkpoint_dir)
    directory.mkdir(parents=True, exist_ok=True)
    fingerprint = {"run": _fingerprint(training, batches, network)}
    if (directory / "run.json").exists():
        if read_json(directory / "run.json") != fingerprint:
            raise ValueError(
                f"{directory} holds checkpoints of another run (other data, settings or shapes); give another "
                "checkpoint_dir, or delete it"
            )
    elif any(directory.iterdir()):
        raise ValueError(f"{directory} holds other files than checkpoints; give an empty checkpoint_dir")
    else:
        write_json(directory / "run.json", fingerprint)
    return directory


def _fingerprint(training: Training, batches: GroupBatches, network: nn.Module) -> str:
    settings = {name: value for name, value in training.to_json().items() if name not in _FREE_SETTINGS}
    shapes = {name: list(weight.shape) for name, weight in network.state_dict().items()}
    digest = hashlib.sha256(json.dumps([settings, shapes], sort_keys=True).encode())
    for array in (batches.groups.queries, batches.groups.positives, batches.groups.relevant):
        digest.update(array.tobytes())
    return digest.hexdigest()


def _readable(path: Path) -> Path:
    try:
        torch.load(path, map_location="meta", weights_only=True)
    except Exception as error:
        raise ValueError(f"{path} is damaged ({error!r:.120}); delete it to begin anew") from None
    return path


@contextmanager
def _interruptible() -> Iterator[None]:
    """Give Ctrl-C back its meaning: Lightning ignores it from the first on, and ends the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    except SystemExit:
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, handler)
