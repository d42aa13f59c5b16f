"""Pipelines whose queries are shared out among worker processes."""

import copy
import traceback
import weakref
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import pandas as pd
import pyterrier as pt
from pyterrier import _ops

from pt_neural._arguments import checked_number
from pt_neural._frames import check_values
from pt_neural.cluster.connection import connected_ray
from pt_neural.cluster.parts import PartResult, cut, put_together, transform_part
from pt_neural.cluster.workers import Workers

_CRASHES = 3  # of workers, while they work on the same part, before it is given up

Stages = tuple[pt.Transformer, ...]


def on_ray(
    transformer: pt.Transformer,
    *,
    workers: int | None = None,
    cpus: float = 1,
    gpus: float = 0,
    heap: str | None = None,
    parts: int = 1,
    verbose: bool = False,
) -> "OnRay":
    """A transformer that gives what another one gives, computed by worker processes on one or many machines.

    Its result is the same frame: rows, order, index, columns, errors. The result for a query must not depend on other
    queries of the frame, which holds for retrieval, rankers, mixtures and query expansion. PyTerrier's operators
    such as ``+`` are applied in this process.

    Args:
        transformer: The transformer, or a whole pipeline. It is pickled; files that it reads, such as indexes, must be
            at the same place on all machines.
        workers: Worker processes. Default: as many as the cluster has room for.
        cpus: Processors of a worker, and threads that it computes with.
        gpus: GPUs of a worker, or the share of one.
        heap: The largest heap of a worker's Java, such as ``"2g"``. Default: a quarter of the machine's memory, which
            is too much for several workers on one machine.
        parts: Parts that queries are cut into for each worker. A document that belongs to queries of several parts is
            encoded for each of them: more parts make finer progress and a more even load, and cost more.
        verbose: Show a progress bar of parts.

    Raises:
        TypeError: If it is not a transformer.
        ValueError: If a number is out of range; when it is used, if no machine has room for a worker.
        ImportError: When it is used, if Ray is not installed.

    Example::

        pn.cluster.connect("auto")
        with pn.on_ray(bm25 >> dssm, workers=8, heap="2g") as fast:
            pt.Experiment([fast], topics, qrels, [nDCG@10])
    """
    if not isinstance(transformer, pt.Transformer):
        raise TypeError(f"on_ray takes a transformer or a pipeline, not {transformer!r:.80}")
    return OnRay(transformer, Workers(workers, cpus, gpus, heap), parts=parts, verbose=verbose)


class OnRay(pt.Transformer):
    """What :func:`on_ray` makes. Workers start on first use and live until :meth:`release`, or the end of ``with``."""

    def __init__(self, transformer: pt.Transformer, workers: Workers, *, parts: int, verbose: bool):
        self.transformer = transformer
        self.workers = workers
        self.parts = checked_number("parts", parts, int, least=1)
        self.verbose = verbose
        self._pool: _Pool | None = None

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """What the transformer gives for ``inp``."""
        check_values(inp, self)
        return self._run(self.transformer, inp)

    def _run(self, transformer: pt.Transformer, frame: pd.DataFrame) -> pd.DataFrame:
        """Apply operators here, and have everything else done by workers."""
        if isinstance(transformer, _ops.Compose):
            for stages in _stages_between_operators(transformer):
                frame = self._run(stages[0], frame) if _operands(stages[0]) else self._share_out(stages, frame)
            return frame
        if operands := _operands(transformer):
            operator = copy.copy(transformer)
            for name, operand in operands.items():
                found = [_Given(self._run(one, frame)) for one in operand] if isinstance(operand, tuple) else None
                setattr(operator, name, tuple(found) if found else _Given(self._run(operand, frame)))
            return operator.transform(frame)
        return self._share_out((transformer,), frame)

    def _share_out(self, stages: Stages, frame: pd.DataFrame) -> pd.DataFrame:
        pool = self._started_pool()
        rows = cut(frame, pool.size * self.parts)
        parts = [frame.take(part).reset_index(drop=True) for part in rows]
        results: list[Any] = [None] * len(parts)
        with pt.tqdm(total=len(parts), desc=repr(self), unit="part", disable=not self.verbose) as progress:
            for number, result in pool.run(stages, parts):
                results[number] = result
                progress.update()
        return put_together(frame, rows, results)

    def _started_pool(self) -> "_Pool":
        ray = connected_ray()
        session = _session(ray)
        if self._pool is None or self._pool.session != session:
            self._pool = _Pool(self.transformer, self.workers.count(ray), self.workers.options(), session)
            self._finalizer = weakref.finalize(self, _Pool.release, self._pool)
        return self._pool

    def release(self) -> None:
        """End the workers; they start again on the next use."""
        if self._pool is not None:
            self._finalizer()
            self._pool = None

    def __enter__(self) -> "OnRay":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def transform_inputs(self) -> list[list[str]] | None:
        """The columns that the transformer takes."""
        return pt.inspect.transformer_inputs(self.transformer, strict=False)

    def transform_outputs(self, input_columns: list[str]) -> list[str] | None:
        """The columns that it gives for these."""
        return pt.inspect.transformer_outputs(self.transformer, input_columns)

    def schematic(self, *, input_columns: list[str] | None = None) -> dict[str, Any]:
        """How PyTerrier draws it."""
        return {"label": "on Ray", "help_url": None}

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if name != "_finalizer"}
        return {**state, "_pool": None}

    def _identity(self) -> tuple:
        return self.transformer, self.workers, self.parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OnRay) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        number = self.workers.number
        return f"on_ray({self.transformer!r}{'' if number is None else f', workers={number}'})"


class _Given(pt.Transformer):
    """Gives a result that is there already, whatever comes in."""

    def __init__(self, frame: pd.DataFrame):
        self.frame = frame

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        return self.frame.copy()


def _operands(transformer: pt.Transformer) -> dict[str, Any]:
    """The attributes of an operator of PyTerrier that hold its operands; none for other transformers."""
    if isinstance(transformer, (_ops.Sum, _ops.SetUnion, _ops.SetIntersection, _ops.Concatenate)):
        return {"left": transformer.left, "right": transformer.right}
    if isinstance(transformer, _ops.FeatureUnion):
        return {"_transformers": tuple(transformer)}
    return {}


def _stages_between_operators(pipeline: _ops.Compose) -> Iterator[Stages]:
    """The stages of a pipeline: operators one by one, and between them as many together as there are."""
    together: list[pt.Transformer] = []
    for stage in pipeline:
        if _operands(stage):
            if together:
                yield tuple(together)
            yield (stage,)
            together = []
        else:
            together.append(stage)
    if together:
        yield tuple(together)


def _chains(transformer: pt.Transformer) -> Iterator[Stages]:
    """All that workers will be asked to do, in the order in which :meth:`OnRay._run` asks."""
    if isinstance(transformer, _ops.Compose):
        for stages in _stages_between_operators(transformer):
            yield from _chains(stages[0]) if _operands(stages[0]) else (stages,)
    elif operands := _operands(transformer):
        for operand in operands.values():
            for one in operand if isinstance(operand, tuple) else (operand,):
                yield from _chains(one)
    else:
        yield (transformer,)


class _Worker:
    """A process that holds the transformers."""

    def __init__(self, chains: Sequence[Stages]):
        self.chains = chains

    def ready(self) -> None:
        """Returns once the transformers are unpickled."""

    def run(self, chain: int, part: pd.DataFrame) -> "PartResult | _Failure":
        """Apply one chain of transformers to a part."""
        try:
            return transform_part(self.chains[chain], part)
        except Exception as error:  # whatever a transformer may raise
            return _Failure(type(error), error.args, vars(error), traceback.format_exc())


class _Failure(NamedTuple):
    """An error of a transformer, in pieces, since many errors do not pickle."""

    kind: type[Exception]
    args: tuple
    attributes: dict[str, Any]
    traceback: str

    def error(self) -> Exception:
        """The error as it was."""
        error = self.kind.__new__(self.kind)
        error.args = self.args
        vars(error).update(self.attributes)
        error.add_note(f"In a worker:\n{self.traceback}")
        return error


class _Pool:
    """The workers of a pipeline. One that dies is replaced, and its part is done again by whoever is free first."""

    def __init__(self, transformer: pt.Transformer, size: int, options: dict[str, Any], session: tuple[str, str]):
        self._ray = connected_ray()
        self._chains = list(_chains(transformer))
        self._pickled = self._ray.put(self._chains)  # kept, since workers that start later need it
        self._worker = self._ray.remote(**options)(_Worker)
        self.size = size
        self.session = session
        self._idle: list[Any] = []
        self._busy: dict[Any, Any] = {}  # workers by what they will return: that they are ready, or an old result
        for _ in range(size):
            self._start()

    def _start(self) -> None:
        worker = self._worker.remote(self._pickled)
        self._busy[worker.ready.remote()] = worker

    def run(self, stages: Stages, parts: Sequence[pd.DataFrame]) -> Iterator[tuple[int, PartResult]]:
        """The number of each part and its result, as they are done."""
        chain = next(place for place, other in enumerate(self._chains) if _same(stages, other))
        waiting, crashes, running = deque(range(len(parts))), Counter(), {}
        try:
            while waiting or running:
                while waiting and self._idle:
                    worker, number = self._idle.pop(), waiting.popleft()
                    running[worker.run.remote(chain, parts[number])] = worker, number
                (done,), _ = self._ray.wait([*running, *self._busy], num_returns=1)
                worker, number = running.pop(done, None) or (self._busy.pop(done), None)
                try:
                    result = self._ray.get(done)
                    self._idle.append(worker)
                except self._ray.exceptions.RayTaskError as error:  # a result that does not pickle
                    self._idle.append(worker)
                    if number is not None:
                        raise error.cause or error from None
                except self._ray.exceptions.RayError as error:
                    crashes[number] += 1
                    self._replace(worker, crashes[number], error)
                    waiting.extendleft([] if number is None else [number])
                else:
                    if number is not None and isinstance(result, _Failure):
                        raise result.error()
                    if number is not None:
                        yield number, result
        finally:
            self._busy.update({result: worker for result, (worker, _) in running.items()})

    def _replace(self, worker: Any, crashes: int, error: Exception) -> None:
        self._ray.kill(worker)
        if crashes == _CRASHES:
            raise RuntimeError(f"{crashes} workers have died at the same work; the last one so: {error}") from None
        self._start()

    def release(self) -> None:
        """End all workers."""
        if self._ray.is_initialized() and _session(self._ray) == self.session:
            for worker in [*self._idle, *self._busy.values()]:
                self._ray.kill(worker)
        self._idle, self._busy = [], {}


def _session(ray: ModuleType) -> tuple[str, str]:
    """What tells this connection from others: each cluster numbers its jobs from one."""
    context = ray.get_runtime_context()
    return context.get_node_id(), context.get_job_id()


def _same(stages: Stages, others: Stages) -> bool:
    return len(stages) == len(others) and all(a is b for a, b in zip(stages, others, strict=True))
