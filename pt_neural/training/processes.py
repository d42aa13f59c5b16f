"""The processes that train a network together, on one node or on several, and what they tell each other."""

import logging
import os
import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from mmap import mmap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
import torch.distributed
from torch import nn

from pt_neural.training.devices import accelerator
from pt_neural.training.settings import Training

Value = TypeVar("Value")
LEAST_BYTES = 65_536  # of an array that gets a file of its own
RAY = "ray"  # the strategy
_CONNECTED = ContextVar("connected", default=False)  # for a training; a later one may be of a single process


class Place(NamedTuple):
    """Where a process runs."""

    node: int = 0
    number: int = 0  # among the processes of the node


@contextmanager
def connected(training: Training) -> Iterator[Place]:
    """Start the processes of a training that the user has not started, and connect all.

    A strategy that forks starts its processes later. Processes stay connected for the next training: torch cannot
    reliably connect them anew, since addresses of the first time are still in the store that all look into.

    Raises:
        RuntimeError: If the strategy is Ray's, and this is not a worker of Ray Train.
    """
    if (training.nodes, training.devices, training.strategy) == (1, 1, "auto"):
        yield Place()
        return
    place = _place_in_ray() if training.strategy == RAY else _started(training)
    before = _CONNECTED.set(True)
    try:
        yield place
    finally:
        _CONNECTED.reset(before)


def _place_in_ray() -> Place:
    import ray.train
    from ray.train.torch import get_device

    if not torch.distributed.is_initialized():
        raise RuntimeError(
            "strategy='ray' is for a fit in the workers of Ray Train: call it in the function that is given to "
            "ray.train.torch.TorchTrainer"
        )
    if (device := get_device()).type == "cuda":
        torch.cuda.set_device(device)
    context = ray.train.get_context()
    return Place(context.get_node_rank(), context.get_local_rank())


def _started(training: Training) -> Place:
    from lightning.fabric import Fabric

    fabric = Fabric(
        accelerator=accelerator(training.device),
        devices=training.devices,
        num_nodes=training.nodes,
        strategy=training.strategy,
    )
    launcher = fabric.strategy.launcher
    if launcher is None or launcher.is_interactive_compatible:  # a single process, or one that forks
        return Place()
    with quiet():
        fabric.launch()
    return Place(fabric.node_rank, fabric.local_rank)


@contextmanager
def quiet() -> Iterator[None]:
    """Hide Lightning's messages about hardware, processes and data loading."""
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


def in_group() -> bool:
    """Whether this process trains together with others now."""
    return _CONNECTED.get() and torch.distributed.is_initialized()


def is_first() -> bool:
    """Whether this is the process that decides: the only one, or the first one of the first node."""
    return not in_group() or torch.distributed.get_rank() == 0


@contextmanager
def together() -> Iterator[None]:
    """Raise the error of one process in all of them; all must come here, and none may wait for others within.

    Raises:
        RuntimeError: If another process has failed, with its message.
    """
    error = None
    try:
        yield
    except Exception as raised:
        error = raised
    messages = _gathered(None if error is None else f"{type(error).__name__}: {error}")
    if error is not None:
        raise error
    for number, message in enumerate(messages):
        if message is not None:
            raise RuntimeError(f"process {number} of {len(messages)} that train together failed: {message}")


def from_first(make: Callable[[], Value]) -> Value:
    """What the first process makes, in all of them."""
    value = None
    with together():
        if is_first():
            value = make()
    if in_group():
        values = [value]
        torch.distributed.broadcast_object_list(values)
        value = values[0]
    return value


def summed(value: torch.Tensor) -> float:
    """The sum of the values of all processes."""
    value = value.clone()
    if in_group():
        torch.distributed.all_reduce(value)
    return float(value)


def require_same(make: Callable[[], str], what: str) -> None:
    """Raise ValueError in all processes if ``what``, as the message calls it, is not the same in all."""
    if in_group():
        values = _gathered(make())
        if others := [number for number, value in enumerate(values) if value != values[0]]:
            raise ValueError(
                f"process {others[0]} of {len(values)} has other {what} than the first one: give all the same settings "
                "and data, in the same order"
            )


def weights_from_first(network: nn.Module, device: torch.device) -> None:
    """Give a network the weights that it has in the first process; ``device`` is what processes exchange tensors on."""
    if in_group():
        for weight in network.state_dict().values():
            sent = weight.to(device)
            torch.distributed.broadcast(sent, 0)
            weight.copy_(sent)


def once_a_node(make: Callable[[], Value], place: Place) -> Value:
    """What a function returns, called by one process of each node; the others of the node read it from files.

    Their arrays are memory-mapped, and changes of one process do not reach the others.
    """
    if not in_group():
        return make()
    with TemporaryDirectory(prefix="pt_neural-", ignore_cleanup_errors=True) as folder:
        folders = {each.node: path for each, path in _gathered((place, folder)) if each.number == 0}
        shared = len(folders) < torch.distributed.get_world_size()
        with together():
            if place.number == 0:
                value = make()
                if shared:
                    _write(value, Path(folder))
        with together():
            if place.number > 0:
                value = _read(Path(folders[place.node]))
    return value


def _gathered(value: Value) -> list[Value]:
    """The values of all processes."""
    if not in_group():
        return [value]
    values = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(values, value)
    return values


def _write(value: Any, folder: Path) -> None:
    with (folder / "value.pickle").open("wb") as file:
        _Pickler(file, folder).dump(value)


def _read(folder: Path) -> Any:
    with (folder / "value.pickle").open("rb") as file:
        return pickle.load(file)


class _Pickler(pickle.Pickler):
    """Writes large arrays to files of their own, to be memory-mapped; arrays that are such files stay there."""

    def __init__(self, file: Any, folder: Path):
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._paths = (folder / f"{number}.npy" for number in count())

    def reducer_override(self, value: Any) -> Any:
        """How to read an array again."""
        if isinstance(value, np.memmap) and isinstance(value.base, mmap):  # the whole file, not a view
            return np.load, (os.fspath(value.filename), "r")
        if isinstance(value, np.ndarray) and value.nbytes >= LEAST_BYTES and not value.dtype.hasobject:
            path = next(self._paths)
            np.save(path, value)
            return np.load, (str(path), "c")
        return NotImplemented
