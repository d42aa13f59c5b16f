"""Copies of pipelines with other settings, whose rankers are fitted anew; the pipelines stay as they are."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import pyterrier as pt

from pt_neural.rankers import Ranker
from pt_neural.rankers.options import option_names
from pt_neural.training.examples import digest

Changes = Mapping[tuple[int, str], Any]  # by the id of a transformer and the name of its setting


def transformers(pipeline: pt.Transformer) -> Iterator[pt.Transformer]:
    """A pipeline and all transformers in it, each where it first occurs; what a ranker is made of is not one."""
    seen, waiting = set(), [pipeline]
    while waiting:
        transformer = waiting.pop(0)
        if id(transformer) not in seen:
            seen.add(id(transformer))
            yield transformer
            waiting = [inner for parts in _parts(transformer).values() for inner in _listed(parts)] + waiting


def _parts(transformer: pt.Transformer) -> dict[str, pt.Transformer | list[pt.Transformer]]:
    return {} if isinstance(transformer, Ranker) else pt.inspect.subtransformers(transformer)


def _listed(parts: pt.Transformer | list[pt.Transformer]) -> list[pt.Transformer]:
    return [parts] if isinstance(parts, pt.Transformer) else list(parts)


def to_fit(pipeline: pt.Transformer, changed: Sequence[tuple[pt.Transformer, str]] = ()) -> list[pt.Estimator]:
    """What must be fitted in a pipeline: unfitted rankers, those that the changes ask to fit, and other estimators.

    Raises RuntimeError if a ranker is not fitted, and cannot be fitted to judgements.
    """
    found = []
    for transformer in transformers(pipeline):
        if isinstance(transformer, Ranker):
            names = [name for other, name in changed if other is transformer]
            if transformer.is_fitted and not any(map(transformer.counts_in_fitting, names)):
                continue
            if not hasattr(transformer, "fit"):
                transformer._require_fitted()
                raise RuntimeError(f"{transformer!r} does not learn from judgements: search its settings by hand")
            found.append(transformer)
        elif isinstance(transformer, pt.Estimator):
            found.append(transformer)
    return found


def all_arguments(ranker: Ranker) -> dict[str, Any]:
    """Settings, components and options; fitting rankers of one class that are equal in them gives equal rankers.

    Artifacts are kept as they are, and so equal only themselves: others may have the same repr.
    """
    names = [*ranker.components, *option_names(ranker.options_type)]
    return {**ranker.settings(), **{name: getattr(ranker, name) for name in names}}


class Copies:
    """Makes copies of a pipeline, and fits their rankers; one that is equal to the one before is not fitted again.

    Args:
        pipeline: The pipeline.
        estimators: What to fit in it.
        quiet: Whether rankers are fitted in silence.
    """

    def __init__(self, pipeline: pt.Transformer, estimators: Sequence[pt.Estimator], *, quiet: bool):
        self.pipeline = pipeline
        self.estimators = list(estimators)
        self._ids = [id(estimator) for estimator in estimators]
        self._quiet = quiet
        self._latest: dict[int, tuple[list[Any], Ranker]] = {}

    def fitted(
        self, changes: Changes, train: pd.DataFrame, dev: pd.DataFrame | None, qrels: pd.DataFrame
    ) -> tuple[pt.Transformer, list[pt.Estimator]]:
        """A fitted copy of the pipeline, and what was fitted in it, in the order of ``estimators``."""
        made: dict[int, pt.Transformer] = {}
        result = self.copied(changes, made)
        copies = [made[id(estimator)] for estimator in self.estimators]
        self._fit(result, copies, train, dev, qrels)
        return result, copies

    def copied(self, changes: Changes, made: dict[int, pt.Transformer]) -> pt.Transformer:
        """The pipeline with these changes, and unfitted; what is in ``made`` takes the place of what has this id."""
        return self._copy(self.pipeline, changes, made)

    def _copy(self, transformer: pt.Transformer, changes: Changes, made: dict[int, pt.Transformer]) -> pt.Transformer:
        if id(transformer) not in made:
            made[id(transformer)] = self._changed(transformer, changes, made)
        return made[id(transformer)]

    def _changed(
        self, transformer: pt.Transformer, changes: Changes, made: dict[int, pt.Transformer]
    ) -> pt.Transformer:
        own = {name: value for (number, name), value in changes.items() if number == id(transformer)}
        if id(transformer) in self._ids and isinstance(transformer, Ranker):
            return transformer.anew(**own, **({"verbose": False} if self._quiet else {}))
        result, replaced = transformer, {}
        for name, parts in _parts(transformer).items():
            copies = [self._copy(inner, changes, made) for inner in _listed(parts)]
            if any(new is not old for new, old in zip(copies, _listed(parts), strict=True)):
                replaced[name] = copies[0] if isinstance(parts, pt.Transformer) else copies
        if replaced:
            result = pt.inspect.transformer_apply_attributes(transformer, **replaced)
        elif own:
            result = copy.copy(transformer)
            for name, value in vars(transformer).items():
                if isinstance(value, dict):  # settings of Terrier's retrievers
                    setattr(result, name, dict(value))
        elif id(transformer) in self._ids:
            result = copy.deepcopy(transformer)
        for name, value in own.items():
            result.set_parameter(name, value)
        return result

    def _fit(
        self,
        stage: pt.Transformer,
        copies: list[pt.Estimator],
        train: pd.DataFrame,
        dev: pd.DataFrame | None,
        qrels: pd.DataFrame,
    ) -> None:
        """Fit the copies in a stage to the frames that come in there."""
        numbers = [number for number, estimator in enumerate(copies) if estimator is stage]
        if numbers:
            self._fit_one(numbers[0], stage, train, dev, qrels)
        elif isinstance(stage, pt.Compose):
            for place, inner in enumerate(stage):
                self._fit(inner, copies, train, dev, qrels)
                later = [id(other) for after in stage[place + 1 :] for other in transformers(after)]
                if not any(id(estimator) in later for estimator in copies):
                    break
                train, dev = inner.transform(train), None if dev is None else inner.transform(dev)
        else:
            for inner in (inner for parts in _parts(stage).values() for inner in _listed(parts)):
                self._fit(inner, copies, train, dev, qrels)

    def _fit_one(
        self,
        number: int,
        estimator: pt.Estimator,
        train: pd.DataFrame,
        dev: pd.DataFrame | None,
        qrels: pd.DataFrame,
    ) -> None:
        dev_qrels = None if dev is None else qrels
        if not isinstance(estimator, Ranker):
            estimator.fit(train, qrels, dev, dev_qrels)
            return
        key = [all_arguments(estimator), digest(None, [train, dev], fields=estimator.fields)]
        latest, known = self._latest.get(number, (None, None))
        if latest == key:
            vars(estimator).update(vars(known))
            return
        estimator.fit(train, qrels, dev, dev_qrels)
        self._latest[number] = key, estimator
