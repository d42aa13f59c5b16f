"""Building an index a shard at a time: in this process or by Ray, resumable, merged at the end."""

import shutil
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import pyterrier as pt

from pt_neural._artifacts import refuse_existing
from pt_neural._files import read_json, replacing, write_json
from pt_neural.cluster.connection import connected_ray
from pt_neural.cluster.workers import Workers
from pt_neural.datasets.corpus_shards import CorpusShards

_PLAN = "plan.json"
_CRASHES = 3  # of the process that builds a shard, before its error is raised

Result = TypeVar("Result")


def build_by_shards(
    path: Path,
    shards: CorpusShards,
    build: Callable[[Path, Iterable[dict[str, str]]], Any],
    merge: Callable[[list[Path]], Result],
    *,
    plan: Any,
    kind: dict[str, str],
    overwrite: bool,
    workers: int | Workers | None,
    verbose: bool,
) -> Result:
    """Build an artifact for each shard of a corpus, beside ``path``, and merge them to one at ``path``.

    A shard that is complete is never built again: after an interruption, the same call goes on with the others.

    Args:
        path: Where the merged artifact will be.
        shards: The corpus.
        build: Called with a directory and documents, writes the artifact of a shard, atomically; must pickle.
        merge: Called with the directories of all shards, in order; writes the artifact at ``path``, atomically.
        plan: What the shards depend on beside the corpus, as JSON holds it.
        kind: The type and format of the artifact.
        overwrite: Replace an artifact at ``path``, and shards of another plan.
        workers: Processes of Ray that build a shard each at a time; None to build one after the other in this process.
        verbose: Show a progress bar.

    Raises:
        FileExistsError: If there is something at ``path``, or shards of another plan beside it, and ``overwrite`` is
            false.
    """
    refuse_existing(path, overwrite=overwrite, **kind)
    folder = path.absolute().parent / f".{path.name}.shards"
    _prepare(folder, {"corpus": shards.identity(), "plan": plan}, overwrite=overwrite)
    places = [folder / f"{number:05}" for number in range(len(shards))]
    missing = [number for number, place in enumerate(places) if not place.exists()]
    work = partial(_build_one, build, shards, folder)
    built = map(work, missing)
    if workers is not None:
        built = _by_ray(work, missing, workers if isinstance(workers, Workers) else Workers(workers))
    done = len(shards) - len(missing)
    with pt.tqdm(total=len(shards), initial=done, desc=f"{path.name}", unit="shard", disable=not verbose) as progress:
        for number in built:
            if not places[number].exists():
                raise FileNotFoundError(
                    f"a worker has built {places[number]}, which cannot be seen here: the folder of {path.name} must "
                    "be one that all machines share"
                )
            progress.update()
    result = merge(places)
    (folder / _PLAN).unlink()  # without which a run that finds the rest, after this one was killed, begins anew
    shutil.rmtree(folder)
    return result


def require_shards_for(workers: object, corpus: object) -> None:
    """Raise TypeError if workers are to build from a corpus that is not in shards."""
    if workers is not None and not isinstance(corpus, CorpusShards):
        raise TypeError(
            "workers= needs a corpus that they can read a shard at a time: pn.CorpusShards(files), or "
            "pn.CorpusShards.spool(directory, corpus) for any other"
        )


def _prepare(folder: Path, plan: Any, *, overwrite: bool) -> None:
    """Make the folder of the shards, or check that the shards in it are of the same plan."""
    if (folder / _PLAN).exists():
        if read_json(folder / _PLAN) == plan:
            return
        if not overwrite:
            raise FileExistsError(
                f"{folder} holds shards of an interrupted run with another corpus, model or settings; delete it, or "
                "pass overwrite=True"
            )
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    with replacing(folder / _PLAN) as unfinished:
        write_json(unfinished, plan)


def _build_one(
    build: Callable[[Path, Iterable[dict[str, str]]], Any], shards: CorpusShards, folder: Path, number: int
) -> int:
    build(folder / f"{number:05}", shards.shard(number))
    return number


def _by_ray(work: Callable[[int], int], numbers: list[int], workers: Workers) -> Iterator[int]:
    """Do the work for all numbers; gives numbers as they are done."""
    ray = connected_ray()
    limit = workers.count(ray)
    task = ray.remote(max_retries=_CRASHES, **workers.options())
    kept = ray.put(work)
    start = task(_call).remote
    waiting, running = iter(numbers), []
    try:
        while True:
            running += [start(kept, number) for number in islice(waiting, limit - len(running))]
            if not running:
                return
            done, running = ray.wait(running)
            for one in done:
                try:
                    yield ray.get(one)
                except ray.exceptions.RayTaskError as error:
                    raise error.cause or error from None
    finally:
        for one in running:
            ray.cancel(one, force=True)


def _call(work: Callable[[int], int], number: int) -> int:
    return work(number)
