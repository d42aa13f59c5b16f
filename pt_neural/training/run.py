"""The run around the steps of a ranker that learns without a network or an optimiser.

:func:`run_iterations` serves models that learn from texts alone, such as PLSA by expectation maximisation.
:func:`run_epochs` serves those that learn from groups of documents, as :func:`pt_neural.training.loop.train` serves
networks: dev measure, best state, early stopping, checkpoints.
"""

import hashlib
import json
import math
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any, NamedTuple

import numpy as np
import pyterrier as pt

from pt_neural._artifacts import atomic_directory
from pt_neural._evaluation import direction
from pt_neural._files import ArtifactError, read_json, read_tensors, replacing, write_json, write_tensors
from pt_neural._messages import say
from pt_neural.training.settings import Training

Records = list[dict[str, Any]]

# Settings that may differ between an interrupted run and its continuation.
FREE_SETTINGS = (
    *("epochs", "patience", "max_time", "checkpoint_dir"),
    *("recipe", "verbose", "device", "devices", "nodes", "strategy"),
    "start",  # known by its weights, see `origin`, wherever it is saved
)


class Iteration(NamedTuple):
    """Where a fit stands after an iteration."""

    number: int  # of iterations so far; 0 is the start
    measures: dict[str, float]  # columns of the history
    shown: str  # beside the progress bar
    result: Any  # what has been learned so far


def run_iterations(
    iterations: Iterable[Iteration], history: Records, *, total: int, desc: str, verbose: bool
) -> Iterator[Iteration]:
    """Pass iterations on, adding a record of each (``iteration``, its measures, its ``seconds``) to the history.

    The caller thus has the last iteration even if the user interrupts.
    """
    started = perf_counter()
    iterations = iter(iterations)
    first = list(islice(iterations, 1))  # it may show a progress bar of its own, while it reads documents
    with pt.tqdm(total=total, desc=desc, unit="iteration", disable=not verbose) as bar:
        for iteration in chain(first, iterations):
            seconds = round(perf_counter() - started, 4)
            history.append({"iteration": iteration.number, **iteration.measures, "seconds": seconds})
            bar.set_postfix_str(iteration.shown)
            bar.update(iteration.number - bar.n)
            yield iteration
            started = perf_counter()


def run_epochs(
    learn: Callable[[int, int], tuple[float, int]],
    state: Mapping[str, np.ndarray],
    training: Training,
    *,
    num_batches: int,
    evaluate: Callable[[], float] | None = None,
    history: Records,
    origin: Callable[[], str] = str,
    deadline: float | None = None,
) -> None:
    """Learn for some epochs; the state ends as that of the epoch with the best dev measure, or of the last epoch.

    Args:
        learn: Learns from one batch, changing the state in place. Takes the numbers of the epoch and of the batch, both
            from 0; returns the batch's mean loss and its number of groups.
        state: Everything that is learned: arrays by name.
        training: ``epochs``, ``patience``, ``dev_measure``, ``max_time``, ``checkpoint_dir`` and ``verbose`` are used.
        num_batches: Batches in an epoch.
        evaluate: Returns the dev measure of the current state; None to run all epochs and keep the last.
        history: Receives one record per complete epoch, even if the run fails: ``epoch`` (from 1), ``loss`` (mean over
            groups), ``seconds`` of learning, and the dev measure. With dev queries, the first record is of epoch 0,
            the start, which may be the best.
        origin: Returns text that changes with the data and the model's settings, so that checkpoints of another run are
            refused; called only if there is a ``checkpoint_dir``.
        deadline: When to stop, from :func:`deadline_of`; None for ``max_time`` from now.

    Raises:
        FloatingPointError: If the loss or the state is NaN or infinite.
        ValueError: If ``checkpoint_dir`` holds checkpoints of another run, damaged ones, or more epochs than asked for.
        KeyboardInterrupt: If the user interrupts; the state is then the best so far.
    """
    checkpoints, records, best = None, [], None
    if training.checkpoint_dir is not None:
        fingerprint = run_fingerprint(training, state, [evaluate is not None, origin()])
        checkpoints = _Checkpoints(checkpoint_directory(training.checkpoint_dir, fingerprint), training)
        records, best = checkpoints.resume(state)
    history[:] = records
    state_is_best, in_time = False, True
    log_settings(training)
    deadline = deadline_of(training) if deadline is None else deadline
    try:
        if evaluate is not None and not records:
            records = [start_record(training, evaluate())]
            best = {name: array.copy() for name, array in state.items()}
            history.append(records[0])
            log_record(training, records[0])
            if checkpoints is not None:
                checkpoints.write(state, records)
        while (done := epochs_done(records)) < training.epochs and in_time and not out_of_patience(records, training):
            state_is_best = False
            with _Bar(done, num_batches, training) as bar:
                record, complete = _learn_epoch(learn, done, num_batches, training, deadline, bar)
                if not all(np.isfinite(array).all() for array in state.values()):
                    raise FloatingPointError(f"weights became infinite in epoch {record['epoch']}: {_advice(training)}")
                if evaluate is not None:
                    record[f"dev {training.dev_measure}"] = float(evaluate())
                bar.finish(record)
            records = [*records, record]
            if best_epoch(records, training) == record["epoch"]:
                state_is_best = True  # set before the copy, which may be interrupted
                best = best or {name: np.empty_like(array) for name, array in state.items()}
                _copy(state, best)
            history.append(record)
            log_record(training, record)
            if complete and checkpoints is not None:  # a run cannot resume from an epoch that was cut short
                checkpoints.write(state, records)
            in_time = monotonic() < deadline
        log_end(training)
    finally:
        if best is not None and not state_is_best:
            _copy(best, state)


def _learn_epoch(
    learn: Callable[[int, int], tuple[float, int]],
    epoch: int,
    num_batches: int,
    training: Training,
    deadline: float,
    bar: "_Bar",
) -> tuple[dict[str, Any], bool]:
    """The record of an epoch without its dev measure, and whether there was time for all of it."""
    started, total, groups, number = perf_counter(), 0.0, 0, 0
    for number in range(num_batches):
        loss, size = learn(epoch, number)
        if not math.isfinite(loss):
            raise FloatingPointError(
                f"the loss became {loss} in epoch {epoch + 1}, batch {number + 1}: {_advice(training)}"
            )
        total, groups = total + loss * size, groups + size
        bar.update(total / max(groups, 1))
        if monotonic() >= deadline:
            break
    record = {"epoch": epoch + 1, "loss": total / max(groups, 1), "seconds": perf_counter() - started}
    return record, number + 1 == num_batches


def _advice(training: Training) -> str:
    return f"lower learning_rate (now {training.learning_rate:g})" if training.learning_rate else "lower learning_rate"


def start_record(training: Training, value: float) -> dict[str, Any]:
    """The record of epoch 0, the start of a training; it has no loss."""
    return {"epoch": 0, "loss": None, "seconds": 0.0, f"dev {training.dev_measure}": float(value)}


def log_settings(training: Training) -> None:
    """Tell the loggers how a training is set."""
    for logger in training.loggers:
        logger.log_hyperparams({name: value for name, value in training.to_json().items() if value is not None})


def log_record(training: Training, record: Mapping[str, Any]) -> None:
    """Tell the loggers what came of an epoch."""
    values = {name: value for name, value in record.items() if name != "epoch" and value is not None}
    for logger in training.loggers:
        logger.log_metrics(values, step=record["epoch"])
        logger.save()


def log_end(training: Training) -> None:
    """Tell the loggers that a training has ended."""
    for logger in training.loggers:
        logger.finalize("success")


def epochs_done(records: Records) -> int:
    """How many epochs have been trained."""
    return records[-1]["epoch"] if records else 0


def best_epoch(records: Records, training: Training) -> int:
    """The epoch with the best dev measure, the first of equals; without a dev measure, the last epoch."""
    name = f"dev {training.dev_measure}"
    if name not in records[-1]:
        return epochs_done(records)
    return max(records, key=lambda record: direction(training.dev_measure) * record[name])["epoch"]


def out_of_patience(records: Records, training: Training) -> bool:
    """Whether the last epochs were no better than the best one of training, which may be worse than the start."""
    trained = [record for record in records if record["epoch"] > 0]
    if not trained or training.patience is None:
        return False
    return epochs_done(trained) - best_epoch(trained, training) >= training.patience


def _copy(source: Mapping[str, np.ndarray], target: Mapping[str, np.ndarray]) -> None:
    for name, array in source.items():
        np.copyto(target[name], array)


def is_over(deadline: float) -> bool:
    """Whether a deadline has passed."""
    return monotonic() >= deadline


def deadline_of(training: Training) -> float:
    """When a training that starts now must stop, by the monotonic clock."""
    if training.max_time is None:
        return math.inf
    days, hours, minutes, seconds = map(int, training.max_time.split(":"))
    return monotonic() + ((days * 24 + hours) * 60 + minutes) * 60 + seconds


class _Bar:
    """A line for each epoch: batches and mean loss, and in the end the dev measure."""

    def __init__(self, epoch: int, num_batches: int, training: Training):
        desc = f"Epoch {epoch + 1}/{training.epochs}"
        self._bar = pt.tqdm(desc=desc, total=num_batches, unit="batch", disable=not training.verbose)

    def __enter__(self) -> "_Bar":
        return self

    def __exit__(self, *error: Any) -> None:
        self._bar.close()

    def update(self, loss: float) -> None:
        self._bar.set_postfix_str(f"loss {loss:.4f}", refresh=False)
        self._bar.update()

    def finish(self, record: Mapping[str, Any]) -> None:
        measures = [f"{name} {value:.4f}" for name, value in record.items() if name not in ("epoch", "seconds")]
        self._bar.set_postfix_str(", ".join(measures))


class _Checkpoints:
    """Checkpoints of a run: a directory for each epoch; only those of the last and of the best epoch are kept."""

    def __init__(self, directory: Path, training: Training):
        self._directory = directory
        self._training = training

    def resume(self, state: Mapping[str, np.ndarray]) -> tuple[Records, dict[str, np.ndarray] | None]:
        """Put the state of the last epoch in place; returns the records of the epochs so far, and the best state."""
        if not self._epochs():
            return [], None
        done = max(self._epochs())
        try:
            records = read_json(self._path(done) / "history.json")
            if not isinstance(records, list) or not records or records[-1].get("epoch") != done:
                raise ArtifactError(f"{self._path(done) / 'history.json'} is damaged: not the records of {done} epochs")
            last, best = (self._read(epoch, state) for epoch in (done, best_epoch(records, self._training)))
        except ArtifactError as error:
            raise ValueError(f"{error}; delete {self._directory} to begin anew") from None
        stopped = out_of_patience(records, self._training)
        check_resumption(self._directory, done, self._training, stopped=stopped)
        _copy(last, state)
        return records, best

    def write(self, state: Mapping[str, np.ndarray], records: Records) -> None:
        """Write the state after an epoch, and delete those that are no longer needed."""
        done = epochs_done(records)
        with atomic_directory(self._path(done)) as directory:
            write_json(directory / "history.json", records)
            write_tensors(directory / "state.safetensors", dict(state))
        for epoch in set(self._epochs()) - {done, best_epoch(records, self._training)}:
            shutil.rmtree(self._path(epoch))

    def _path(self, epoch: int) -> Path:
        return self._directory / f"epoch-{epoch}"

    def _epochs(self) -> list[int]:
        names = [re.fullmatch(r"epoch-(\d+)", path.name) for path in self._directory.iterdir()]
        return [int(match[1]) for match in names if match]

    def _read(self, epoch: int, state: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        path = self._path(epoch) / "state.safetensors"
        arrays = read_tensors(path)
        for name, array in state.items():
            if name not in arrays or (arrays[name].shape, arrays[name].dtype) != (array.shape, array.dtype):
                raise ArtifactError(f"{path} is damaged: its {name} is not of shape {array.shape}")
        return {name: arrays[name] for name in state}


def checkpoint_directory(path: str | os.PathLike, fingerprint: str) -> Path:
    """The directory of a run's checkpoints, made if need be, with the run's fingerprint in ``run.json``.

    Raises:
        ValueError: If it is a file, or holds checkpoints of another run or anything else.
    """
    directory = Path(path)
    if directory.exists() and not directory.is_dir():
        raise ValueError(f"checkpoint_dir {directory} is a file; name a directory")
    directory.mkdir(parents=True, exist_ok=True)
    run = {"run": fingerprint}
    if (directory / "run.json").exists():
        if read_json(directory / "run.json") != run:
            raise ValueError(
                f"{directory} holds checkpoints of another run (other data or settings); give another "
                "checkpoint_dir, or delete it"
            )
    elif any(file.name != "run.json.tmp" for file in directory.iterdir()):  # which a run that was killed may leave
        raise ValueError(f"{directory} holds other files than checkpoints; give an empty checkpoint_dir")
    else:
        with replacing(directory / "run.json") as unfinished:
            write_json(unfinished, run)
    return directory


def run_fingerprint(
    training: Training, state: Mapping[str, Any], origin: list[Any], arrays: Iterable[np.ndarray] = ()
) -> str:
    """A hash that tells a run from others: by its settings, the shapes of its state, its origin and training data."""
    settings = {name: value for name, value in training.to_json().items() if name not in FREE_SETTINGS}
    shapes = {name: list(array.shape) for name, array in state.items()}
    digest = hashlib.sha256(json.dumps([settings, shapes, origin], sort_keys=True).encode())
    for array in arrays:
        digest.update(array.tobytes())
    return digest.hexdigest()


def check_resumption(directory: Path, done: int, training: Training, *, stopped: bool) -> None:
    """Print a line about a run that resumes; ValueError if its checkpoints have more epochs than asked for."""
    if done > training.epochs:
        raise ValueError(
            f"{directory} holds checkpoints of {done} epochs, more than epochs={training.epochs}: ask for {done} or "
            "more, or give another checkpoint_dir"
        )
    if training.verbose:
        state = "finished" if done == training.epochs or stopped else "resuming"
        say(f"{state} after epoch {done} of {directory}")
