"""Cross-fitting: each fold of the queries is ranked by a pipeline fitted and tuned on the others."""

import csv
import itertools
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ir_measures
import numpy as np
import pandas as pd
import pyterrier as pt
from ir_measures import nDCG

from pt_neural._arguments import checked_choice
from pt_neural._artifacts import atomic_directory, read_metadata, write_metadata
from pt_neural._evaluation import RunEvaluator, direction, parse_measure
from pt_neural._files import ArtifactError, read_json, read_object, reading, replacing, write_json
from pt_neural._frames import ranks, require_columns, with_numeric_labels
from pt_neural._messages import say
from pt_neural.experiment._copies import Copies, to_fit, transformers
from pt_neural.experiment._descriptions import described, printed, sha256
from pt_neural.experiment.folds import Folds, RunOfFolds, assign_folds
from pt_neural.rankers import Ranker
from pt_neural.rankers.options import option_names

Grid = Mapping[pt.Transformer, Mapping[str, Sequence[Any]]]

_KIND = {"type": "fold", "format": "pt_neural"}
_COLUMNS = ["qid", "query", "docno", "score", "rank"]


class CrossFitted(RunOfFolds):
    """A system for ``pt.Experiment``: the results of all queries, each ranked by a pipeline not fitted on it.

    Attributes:
        run: The result frame: ``qid, query, docno, score, rank``.
        folds: Frame with the ``fold`` of each ``qid``.
        scan: A row for each fold and each setting that was tried: the ``fold``, a column for each setting, the mean of
            the measure on the queries that it was chosen on, and whether it was ``chosen``. Without a grid, a row
            for each fold.
        pipelines: The fitted pipeline that ranked each fold.
    """

    schematic = {"label": "CrossFitted", "help_url": None}

    def __init__(
        self,
        run: pd.DataFrame,
        folds: pd.DataFrame,
        scan: pd.DataFrame,
        pipelines: dict[object, pt.Transformer],
    ):
        super().__init__(run, folds)
        self.scan = scan
        self.pipelines = pipelines

    @property
    def choices(self) -> pd.DataFrame:
        """The settings chosen for each fold, without having seen it, and the measure that they were chosen by."""
        return self.scan[self.scan["chosen"]].drop(columns="chosen").reset_index(drop=True)


def cross_fit(
    pipeline: pt.Transformer,
    topics: pd.DataFrame,
    qrels: pd.DataFrame,
    folds: Folds = 5,
    *,
    grid: Grid | None = None,
    measure: ir_measures.Measure | str = nDCG @ 10,
    directory: str | os.PathLike | None = None,
    seed: int = 13,
    verbose: bool = True,
) -> CrossFitted:
    """Fit and tune copies of a pipeline on all folds but one, which they rank, for each fold in turn.

    So collections without training queries, such as Robust04, are evaluated: together, the folds' rankings are one run
    of all queries. The pipeline itself stays as it is.

    If there are rankers to fit, the fold after the one to be ranked holds the dev queries, on which epochs and settings
    are chosen, and the rankers are fitted on the others; they are not fitted again once settings are chosen. If there
    are none, settings are chosen on all other folds.

    Args:
        pipeline: Candidates, then rankers, which may also be sides of a mixture. Unfitted rankers are fitted, and so
            are those whose settings for fitting are in the grid; other fitted rankers stay.
        topics: The queries (``qid, query``), or a result frame if the pipeline begins with a re-ranker.
        qrels: Their judgements: ``qid, docno, label``.
        folds: A number of random folds, a frame with ``qid`` and ``fold``, or a mapping from qid to fold.
        grid: Values to try, as for ``pt.GridScan``: ``{dssm: {"layers": [(300, 128), (100, 50)]}, bm25: {"b": [0.4,
            0.75]}}``, for transformers of the pipeline. Settings of :class:`~pt_neural.Training` are named as those of
            their ranker. Only all combinations are tried.
        measure: A measure of ir_measures, or its name, to choose settings by on the dev queries. Epochs are chosen by
            ``dev_measure`` of the ranker's ``Training``.
        directory: Where to keep each fold's run, values and fitted rankers, after each setting that was tried. If
            interrupted, the same call goes on from there, in this process or another. A call is the same if the frames
            are equal in all columns, and the pipelines in the arguments and plain public attributes of all their
            transformers. Functions are compared by their code, arrays and frames by content, and artifacts by their
            metadata, wherever they are; an index that was built anew is another one, since Lucene gives each an id of
            its own. All other objects are compared by their repr alone.
        seed: Seed of the random folds.
        verbose: Show a progress bar over folds and settings, and a line for each fold. Rankers are fitted in silence.

    Returns:
        A transformer with the run of all queries, and the choices.

    Raises:
        ValueError: If a query has no fold, if there are fewer than three folds but rankers to fit, if dev queries have
            no judgements, if the grid names what is not in the pipeline, or if the directory holds anything else.
        TypeError: If an argument is of the wrong kind.

    Example::

        dssm = pn.DSSM(documents=documents)
        pipeline = bm25 % 100 >> dssm
        fitted = pn.experiment.cross_fit(pipeline, topics, qrels, folds=5, grid={dssm: {"layers": [(300, 128), (50,)]}})
        pt.Experiment([bm25, fitted], topics, qrels, [AP, nDCG @ 20], names=["BM25", "DSSM"])
    """
    verbose = checked_choice("verbose", verbose, (True, False))
    require_columns(topics, ("qid",), "the frame of topics")
    qrels = with_numeric_labels(qrels, "qrels")
    topics, qrels = topics.assign(qid=topics["qid"].astype(str)), qrels.assign(qid=qrels["qid"].astype(str))
    qids = topics["qid"].drop_duplicates().tolist()
    assignment = pd.Series(assign_folds(folds, qids, seed), index=qids)
    search = _Search(pipeline, grid, parse_measure(measure))
    names = sorted(set(assignment))
    if search.estimators and len(names) < 3:
        raise ValueError(
            f"fitting {search.estimators[0]!r} takes at least 3 folds: to fit on, to choose epochs by, and to rank"
        )
    kept = None if directory is None else _Directory(Path(directory), search, topics, qrels, assignment)
    total = len(names) * len(search.points)
    done = []
    with pt.tqdm(total=total, desc="cross_fit", unit="setting", disable=not verbose) as bar:
        for place, name in enumerate(names):
            dev = names[(place + 1) % len(names)]
            fold_of = topics["qid"].map(assignment)
            chosen_on = fold_of == dev if search.estimators else fold_of != name
            data = _Data(topics[(fold_of != name) & ~chosen_on], topics[chosen_on], topics[fold_of == name], qrels)
            part = None if kept is None else kept.fold(place)
            fold = search.run(data, part, bar)
            done.append(fold)
            if verbose:
                say(f"fold {name}: {search.describe(fold)}")
    scan = pd.concat([search.table(name, fold) for name, fold in zip(names, done, strict=True)], ignore_index=True)
    run = pd.concat([fold.run for fold in done], ignore_index=True)
    return CrossFitted(
        run,
        assignment.rename_axis("qid").rename("fold").reset_index(),
        scan,
        {name: fold.pipeline for name, fold in zip(names, done, strict=True)},
    )


class _Data(NamedTuple):
    """The queries of one fold's fit: to fit on, to choose settings on, and to rank; and the judgements of all."""

    train: pd.DataFrame
    dev: pd.DataFrame
    test: pd.DataFrame
    qrels: pd.DataFrame

    def judged(self, *parts: pd.DataFrame) -> pd.DataFrame:
        """The judgements of these queries alone."""
        return self.qrels[self.qrels["qid"].isin(pd.concat(parts)["qid"])]


class _Fold(NamedTuple):
    """What came of one fold so far: the values of the settings tried, the best of them, and its ranking."""

    values: list[float]
    best: int
    run: pd.DataFrame
    pipeline: pt.Transformer


class _Search:
    """The settings to try for a pipeline."""

    def __init__(self, pipeline: pt.Transformer, grid: Grid | None, measure: ir_measures.Measure):
        if not isinstance(pipeline, pt.Transformer):
            raise TypeError(f"pipeline must be a transformer, not {pipeline!r:.80}")
        self.pipeline, self.measure = pipeline, measure
        self.axes = _axes(pipeline, grid or {})
        self.estimators = to_fit(pipeline, [axis[:2] for axis in self.axes])
        # Those that do not change what is fitted vary fastest, so that a ranker is not fitted again for them.
        self.axes.sort(key=lambda axis: self._order(axis[0]))
        self.points = list(itertools.product(*(values for _, _, values in self.axes)))
        for estimator in self.estimators:
            if isinstance(estimator, Ranker) and estimator._is_trained() and estimator.training.checkpoint_dir:
                raise ValueError(f"{estimator!r} has a checkpoint_dir, which only one fit can use: give a directory")

    def _order(self, transformer: pt.Transformer) -> int:
        inside = list(transformers(transformer))
        fits = any(estimator is inner for estimator in self.estimators for inner in inside)
        return 0 if fits and len(inside) == 1 else 1 + fits

    def columns(self) -> list[str]:
        """The names of the settings."""
        labels = [type(transformer).__name__ for transformer, _, _ in self.axes]
        names = [f"{label} {name}" for label, (_, name, _) in zip(labels, self.axes, strict=True)]
        return [f"{name} ({number})" if names.count(name) > 1 else name for number, name in enumerate(names, 1)]

    def run(self, data: _Data, kept: "_Part | None", bar: Any) -> _Fold:
        """Try all settings, or those that were not tried before; the best one ranks the fold."""
        copies = Copies(self.pipeline, self.estimators, quiet=True)
        fold = None if kept is None else kept.read(self, copies)
        bar.update(0 if fold is None else len(fold.values))
        for number in range(0 if fold is None else len(fold.values), len(self.points)):
            pipeline, fitted = copies.fitted(
                self.changes(number), data.train, data.dev, data.judged(data.train, data.dev)
            )
            value = self._value(pipeline, data)
            better = fold is None or direction(self.measure) * (value - fold.values[fold.best]) > 0
            values = [value] if fold is None else [*fold.values, value]
            if better:
                fold = _Fold(values, number, _ranking(pipeline, data.test), pipeline)
            else:
                fold = fold._replace(values=values)
            if kept is not None:
                kept.write(fold, fitted if better else None)
            bar.set_postfix_str(f"{self.measure} {value:.4f}", refresh=False)
            bar.update()
        return fold

    def changes(self, number: int) -> dict[tuple[int, str], Any]:
        """The settings of a point of the grid, as copies take them."""
        values = zip(self.axes, self.points[number], strict=True)
        return {(id(transformer), name): value for (transformer, name, _), value in values}

    def _value(self, pipeline: pt.Transformer, data: _Data) -> float:
        found = pipeline.transform(data.dev)
        evaluate = RunEvaluator(found, data.judged(data.dev), data.dev["qid"].drop_duplicates(), self.measure)
        return float(evaluate(found["score"].to_numpy(dtype=np.float64)).mean())

    def table(self, name: object, fold: _Fold) -> pd.DataFrame:
        """The settings that were tried for a fold, with their values."""
        settings = pd.DataFrame(self.points, columns=self.columns(), dtype=object)
        settings.insert(0, "fold", [name] * len(self.points))
        return settings.assign(**{str(self.measure): fold.values, "chosen": np.arange(len(self.points)) == fold.best})

    def describe(self, fold: _Fold) -> str:
        """What was chosen, in words."""
        chosen = zip(self.columns(), self.points[fold.best], strict=True)
        settings = "".join(f"{name}={value!r}, " for name, value in chosen)
        queries = fold.run["qid"].nunique()
        return f"{settings}{self.measure} {fold.values[fold.best]:.4f} on its dev queries; {queries:,} queries ranked"


def _axes(pipeline: pt.Transformer, grid: Grid) -> list[tuple[pt.Transformer, str, list[Any]]]:
    """The transformers, names and values of a grid."""
    if not isinstance(grid, Mapping) or not all(isinstance(settings, Mapping) for settings in grid.values()):
        raise TypeError(
            'grid must map transformers of the pipeline to values by name, such as {dssm: {"layers": [(300, 128), '
            f"(100, 50)]}}}}, not {grid!r:.80}"
        )
    present, axes = list(transformers(pipeline)), []
    for transformer, settings in grid.items():
        if not any(transformer is other for other in present):
            raise ValueError(f"the grid names {transformer!r}, which is not in the pipeline {pipeline!r}")
        for name, values in settings.items():
            transformer.get_parameter(name)
            values = [values] if isinstance(values, str) else list(values)
            if not values:
                raise ValueError(f"the grid has no values for {name} of {transformer!r}")
            axes.append((transformer, name, values))
    return axes


def _ranking(pipeline: pt.Transformer, topics: pd.DataFrame) -> pd.DataFrame:
    """The ranking of a fold, in the columns and types in which it is kept."""
    found = pipeline.transform(topics)
    found = found[[column for column in _COLUMNS if column in found]].astype({"score": np.float64})
    found = found.assign(rank=ranks(found["qid"], found["score"].to_numpy(), found["docno"]))
    return found.sort_values(["qid", "rank"], kind="stable", ignore_index=True)


class _Directory:
    """What is kept of a cross-fit: a folder for each fold."""

    def __init__(self, path: Path, search: _Search, topics: pd.DataFrame, qrels: pd.DataFrame, folds: pd.Series):
        for estimator in search.estimators:
            if not isinstance(estimator, Ranker):
                raise TypeError(f"{estimator!r} cannot be kept in a directory; only rankers of this package can")
        self.path = path.expanduser()
        run = {"run": _fingerprint(search, topics, qrels, folds)}
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"{self.path} is a file; name a directory")
        self.path.mkdir(parents=True, exist_ok=True)
        if (self.path / "cross_fit.json").exists():
            if read_json(self.path / "cross_fit.json") != run:
                raise ValueError(
                    f"{self.path} holds another cross-fit (of another pipeline, grid, or other data); name another "
                    "directory, or delete it"
                )
        elif any(file.name != "cross_fit.json.tmp" for file in self.path.iterdir()):
            raise ValueError(f"{self.path} holds something else; name an empty directory")
        else:
            with replacing(self.path / "cross_fit.json") as unfinished:
                write_json(unfinished, run)

    def fold(self, place: int) -> "_Part":
        """What is kept of one fold."""
        return _Part(self.path / f"fold-{place + 1}")


class _Part:
    """What is kept of one fold: the ranking and the rankers of the best setting, and the values of all so far."""

    def __init__(self, path: Path):
        self.path = path
        self.values = path.with_suffix(".json")

    def read(self, search: _Search, copies: Copies) -> _Fold | None:
        """What was kept; None if nothing was."""
        if not self.path.exists():
            return None
        read_metadata(self.path, **_KIND)
        state = read_object(self.path / "state.json")
        try:
            values, best = [float(value) for value in state["values"]], int(state["best"])
            changes = search.changes(best)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ArtifactError(f"{self.path / 'state.json'} is damaged: {error!r}") from None
        if self.values.exists() and len(later := read_json(self.values)) > len(values):
            values = later
        with reading(self.path / "run.csv"):
            run = pd.read_csv(self.path / "run.csv", dtype=str, keep_default_na=False)
            run = run.astype({"rank": np.int64}).assign(
                score=run["score"].map(float)
            )  # exact in all versions of pandas
        made: dict[int, pt.Transformer] = {}
        for number, ranker in enumerate(copies.estimators):
            taken = option_names(ranker.options_type)
            own = {name: getattr(ranker, name) for name in _KEPT_OPTIONS if name in taken}
            options = {name: changes.get((id(ranker), name), value) for name, value in own.items()}
            made[id(ranker)] = type(ranker).load(self.path / f"ranker-{number + 1}", **options)
        return _Fold(values, best, run, copies.copied(changes, made))

    def write(self, fold: _Fold, rankers: list[Ranker] | None) -> None:
        """Keep a fold, in one step if it has a new best setting; otherwise ``rankers`` is None."""
        if rankers is None:
            with replacing(self.values) as unfinished:
                write_json(unfinished, fold.values)
            return
        with atomic_directory(self.path, overwrite=True, **_KIND) as directory:
            write_metadata(directory, **_KIND)
            write_json(directory / "state.json", {"values": fold.values, "best": fold.best})
            fold.run.to_csv(directory / "run.csv", index=False, quoting=csv.QUOTE_NONNUMERIC)
            for number, ranker in enumerate(rankers):
                ranker.save(directory / f"ranker-{number + 1}")


_KEPT_OPTIONS = ("documents", "device", "batch_size")


def _fingerprint(search: _Search, topics: pd.DataFrame, qrels: pd.DataFrame, folds: pd.Series) -> str:
    """Changes with the pipeline, the grid, the measure and the data; the same in all processes."""
    known: list[Any] = []
    settings = [printed(search.pipeline), str(search.measure)]
    settings += [described(transformer, known) for transformer in transformers(search.pipeline)]
    settings += [[described(axis, known) for axis in search.axes]]
    settings += [[qid, str(fold)] for qid, fold in folds.items()]
    settings += [described(frame, known) for frame in (topics, qrels)]
    return sha256(json.dumps(settings, sort_keys=True).encode())
