"""The run around the steps of a ranker that learns by steps of its own, without a network or an optimiser.

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
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any, NamedTuple

import numpy as np
import pyterrier as pt

from pt_neural._artifacts import ArtifactError, atomic_directory, read_json, read_tensors, write_json, write_tensors
from pt_neural._evaluation import direction
from pt_neural.training.settings import Training

Records = list[dict[str, Any]]

# Settings that may differ between an interrupted run and its continuation.
FREE_SETTINGS = ("epochs", "patience", "max_time", "checkpoint_dir", "verbose", "device", "devices", "strategy")


class Iteration(NamedTuple):
    """Where a fit stands after an iteration.

    Attributes:
        number: Iterations so far; 0 is the start.
        measures: Columns of the history.
        shown: Text beside the progress bar.
        result: What has been learned so far.
    """

    number: int
    measures: dict[str, float]
    shown: str
    result: Any


def run_iterations(
    iterations: Iterable[Iteration], history: Records, *, total: int, desc: str, verbose: bool
) -> Iterator[Iteration]:
    """Pass iterations on, adding a record of each to the history.

    Args:
        iterations: The iterations.
        history: Receives one record per iteration: ``iteration``, its measures, and the ``seconds`` it took.
        total: Largest number of iterations.
        desc: Label of the progress bar.
        verbose: Whether to show a progress bar.

    Yields:
        The iterations as they are, so that the caller has the last one even if the user interrupts.

    Example::

        def estimates():
            for number, topics in enumerate(expectation_maximisation(counts, ...)):
                yield Iteration(number, {"log_likelihood": topics.log_likelihood}, "", topics)

        for last in run_iterations(estimates(), history, total=50, desc="PLSA", verbose=True):
            pass
        last.result
    """
    started = perf_counter()
    with pt.tqdm(total=total, desc=desc, unit="iteration", disable=not verbose) as bar:
        for iteration in iterations:
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
) -> None:
    """Learn for some epochs; the state ends as that of the epoch with the best dev measure, or of the last epoch.

    Args:
        learn: Learns from one batch, changing the state in place. Takes the numbers of the epoch and of the batch, both
            from 0; gives the batch's mean loss and its number of groups.
        state: Everything that is learned: arrays by name.
        training: ``epochs``, ``patience``, ``dev_measure``, ``max_time``, ``checkpoint_dir`` and ``verbose`` are used.
        num_batches: Batches in an epoch.
        evaluate: Gives the dev measure of the current state; None to run all epochs and keep the last.
        history: Receives one record per epoch: ``epoch`` (from 1), ``loss`` (mean over groups), ``seconds`` of
            learning, and the dev measure. It has those of all complete epochs even if the run fails.
        origin: Gives text that changes with the data and the model's settings, so that checkpoints of another run are
            refused; called only if there is a ``checkpoint_dir``.

    Raises:
        FloatingPointError: If the loss or the state is NaN or infinite.
        ValueError: If ``checkpoint_dir`` holds checkpoints of another run, damaged ones, or more epochs than asked for.
        KeyboardInterrupt: If the user interrupts; the state is then the best so far.

    Example::

        weights = {"diagonal": np.ones(num_terms, dtype=np.float32)}

        def learn(epoch, number):
            queries, documents = batches[epoch, number]
            return gradient_steps(weights["diagonal"], queries, documents), len(queries)

        run_epochs(learn, weights, pn.Training(epochs=5), num_batches=len(batches), history=history)
    """
    checkpoints, records, best = None, [], None
    if training.checkpoint_dir is not None:
        fingerprint = _fingerprint(training, state, [evaluate is not None, origin()])
        checkpoints = _Checkpoints(checkpoint_directory(training.checkpoint_dir, fingerprint), training)
        records, best = checkpoints.resume(state)
    history[:] = records
    state_is_best, in_time = False, True
    deadline = math.inf if training.max_time is None else monotonic() + _seconds(training.max_time)
    try:
        while len(records) < training.epochs and in_time and not _out_of_patience(records, training):
            state_is_best = False
            with _Bar(len(records), num_batches, training) as bar:
                record, complete = _learn_epoch(learn, len(records), num_batches, training, deadline, bar)
                _require_finite(state, record["epoch"], training)
                if evaluate is not None:
                    record[f"dev {training.dev_measure}"] = float(evaluate())
                bar.finish(record)
            records = [*records, record]
            if _best_epoch(records, training) == record["epoch"]:
                state_is_best = True  # from now on: the copy may be interrupted
                best = best or {name: np.empty_like(array) for name, array in state.items()}
                _copy(state, best)
            history.append(record)
            if complete and checkpoints is not None:  # a run cannot go on from an epoch that was cut short
                checkpoints.write(state, records)
            in_time = monotonic() < deadline
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


def _require_finite(state: Mapping[str, np.ndarray], epoch: int, training: Training) -> None:
    if not all(np.isfinite(array).all() for array in state.values()):
        raise FloatingPointError(f"weights became infinite in epoch {epoch}: {_advice(training)}")


def _advice(training: Training) -> str:
    return f"lower learning_rate (now {training.learning_rate:g})" if training.learning_rate else "lower learning_rate"


def _best_epoch(records: Records, training: Training) -> int:
    """The epoch with the best dev measure, the first of equals; without a dev measure, the last epoch."""
    name = f"dev {training.dev_measure}"
    if name not in records[-1]:
        return len(records)
    values = [direction(training.dev_measure) * record[name] for record in records]
    return 1 + values.index(max(values))


def _out_of_patience(records: Records, training: Training) -> bool:
    if not records or training.patience is None:
        return False
    return len(records) - _best_epoch(records, training) >= training.patience


def _copy(source: Mapping[str, np.ndarray], target: Mapping[str, np.ndarray]) -> None:
    for name, array in source.items():
        np.copyto(target[name], array)


def _seconds(max_time: str) -> int:
    days, hours, minutes, seconds = map(int, max_time.split(":"))
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


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
    """Checkpoints of a run: a directory for each epoch, of which those of the last and of the best epoch are kept.

    Args:
        directory: Holds them; see :func:`checkpoint_directory`.
        training: The settings.
    """

    def __init__(self, directory: Path, training: Training):
        self._directory = directory
        self._training = training

    def resume(self, state: Mapping[str, np.ndarray]) -> tuple[Records, dict[str, np.ndarray] | None]:
        """Put the state of the last epoch in place; returns the records of the epochs so far, and the best state."""
        done = max(self._epochs(), default=0)
        if not done:
            return [], None
        if done > self._training.epochs:
            raise ValueError(
                f"{self._directory} holds checkpoints of {done} epochs, more than epochs={self._training.epochs}: ask "
                f"for {done} or more, or give another checkpoint_dir"
            )
        try:
            records = read_json(self._path(done) / "history.json")
            if not isinstance(records, list) or len(records) != done:
                raise ArtifactError(f"{self._path(done) / 'history.json'} is damaged: not the records of {done} epochs")
            _copy(self._read(done, state), state)
            best = self._read(_best_epoch(records, self._training), state)
        except ArtifactError as error:
            raise ValueError(f"{error}; delete {self._directory} to begin anew") from None
        if self._training.verbose:
            finished = done == self._training.epochs or _out_of_patience(records, self._training)
            print(f"{'finished' if finished else 'going on'} after epoch {done} of {self._directory}", flush=True)
        return records, best

    def write(self, state: Mapping[str, np.ndarray], records: Records) -> None:
        """Write the state after an epoch, and delete those that are no longer needed."""
        with atomic_directory(self._path(len(records))) as directory:
            write_json(directory / "history.json", records)
            write_tensors(directory / "state.safetensors", dict(state))
        for epoch in set(self._epochs()) - {len(records), _best_epoch(records, self._training)}:
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
    """The directory of a run's checkpoints, made if need be.

    Args:
        path: The directory.
        fingerprint: Tells the run from others; kept in ``run.json``.

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
    elif any(directory.iterdir()):
        raise ValueError(f"{directory} holds other files than checkpoints; give an empty checkpoint_dir")
    else:
        write_json(directory / "run.json", run)
    return directory


def _fingerprint(training: Training, state: Mapping[str, np.ndarray], origin: list) -> str:
    settings = {name: value for name, value in training.to_json().items() if name not in FREE_SETTINGS}
    shapes = {name: list(array.shape) for name, array in state.items()}
    return hashlib.sha256(json.dumps([settings, shapes, origin], sort_keys=True).encode()).hexdigest()
