"""What all trained rankers share: fit, history, save and load."""

from abc import abstractmethod
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyterrier as pt
import torch
from torch import nn

from pt_neural._artifacts import ArtifactError, read_json, read_tensors, write_json, write_tensors
from pt_neural.rankers.fingerprint import fingerprint
from pt_neural.rankers.saved import Saved
from pt_neural.training import Training, losses
from pt_neural.training.devices import known_device, require_available, torch_device
from pt_neural.training.evaluation import dev_evaluator
from pt_neural.training.examples import Examples, digest, make_examples
from pt_neural.training.groups import Groups, Report
from pt_neural.training.sampling import Collate, GroupBatches

Scorer = Callable[[nn.Module], np.ndarray]


class Trained(Saved, pt.Estimator):
    """Base of the rankers that learn from judgements.

    Args:
        training: How to train; None for the model's default.
        device: Where to score: ``"auto"`` (a GPU if there is one), ``"cpu"``, ``"cuda"``, ``"mps"``.

    Attributes:
        own_training: Values for the settings of :class:`~pt_neural.Training` that are None.
        network: The network; None before :meth:`fit`.
        report: What the model was trained on, and what was left out; None if it was loaded.
    """

    own_training: ClassVar[dict[str, Any]]
    free_settings: ClassVar[tuple[str, ...]] = ("fields", "training")

    def __init__(self, *, training: Training | None = None, device: str = "auto"):
        if training is not None and not isinstance(training, Training):
            raise TypeError(f"training must be a pn.Training, not {training!r:.80}")
        self.training = training or Training()
        if device != "auto":
            known_device(device)
        self.device = device
        self.network: nn.Module | None = None
        self.report: Report | None = None
        self._history: list[dict[str, Any]] = []
        self._trained_settings: dict[str, Any] = {}
        self._fingerprint: str | None = None  # of the network as it is

    @abstractmethod
    def _begin(self, examples: Examples) -> tuple[Any, nn.Module, Collate]:
        """What turns texts into tensors, learned from the examples; the network as it starts; the collate function."""

    @abstractmethod
    def _scorer(self, preparation: Any, frame: pd.DataFrame) -> Scorer:
        """Prepare the texts of a frame once; the scorer gives its rows the scores of a network."""

    @abstractmethod
    def _save_preparation(self, directory: Path) -> None:
        """Write what turns texts into tensors."""

    @abstractmethod
    def _load_preparation(self, directory: Path) -> tuple[Any, nn.Module]:
        """Read what turns texts into tensors, and make a network for it."""

    def _install(self, preparation: Any, network: nn.Module) -> None:
        """Make a trained network, and what turns texts into tensors, the model's own."""
        self.network, self._trained_settings, self._fingerprint = network, self.settings(), None

    def fit(
        self,
        topics_or_res_tr: pd.DataFrame,
        qrels_tr: pd.DataFrame,
        topics_or_res_va: pd.DataFrame | None = None,
        qrels_va: pd.DataFrame | None = None,
    ) -> "Trained":
        """Train anew on candidates and their judgements; ``(candidates >> model).fit(...)`` calls this.

        Args:
            topics_or_res_tr: Candidates of the training queries: ``qid, query, docno`` and text (``docno`` is enough
                where the model has a forward index).
            qrels_tr: Their judgements: ``qid, docno, label``.
            topics_or_res_va: Candidates of the dev queries. With them, the weights of the epoch with the best dev
                measure are kept, and training stops when it no longer grows; without, the last epoch's are kept.
            qrels_va: Judgements of the dev queries.

        Returns:
            The model. ``history`` and ``report`` tell what happened.

        Raises:
            ValueError: If there is nothing to train on, if the device is not available, or if ``vectors`` or
                ``representations`` are set, which would not change; the message says why.
            FloatingPointError: If the loss is no longer a number; the model stays as it was.
            KeyboardInterrupt: If the user interrupts; the model then has the best weights so far, and stays as it was
                if no epoch was complete.
        """
        training = self.training.completed(self.own_training)
        require_available(training.device, training.device)
        frames = topics_or_res_tr, qrels_tr, topics_or_res_va, qrels_va
        origin = partial(digest, [self.artifact_format, self.settings(), *self._origin()], frames, fields=self.fields)
        examples = self._make_examples(topics_or_res_tr, qrels_tr, training)
        if training.verbose:
            print(f"{self!r}: {examples.report}", flush=True)
        with torch.random.fork_rng(range(torch.cuda.device_count())):
            torch.manual_seed(training.seed)
            preparation, network, collate = self._begin(examples)
        groups, report = examples.groups, examples.report
        del examples  # its texts stand in the collate function by now, as term ids
        evaluate = None
        if topics_or_res_va is not None:
            evaluate = self._evaluation(preparation, topics_or_res_va, qrels_va)
        batches = self._batches(groups, training, collate)
        loss = losses.make_loss(training, highest=float(groups.labels.max()))
        history: list[dict[str, Any]] = []
        try:
            self._train(network, batches, loss, training, evaluate=evaluate, history=history, origin=origin)
        except KeyboardInterrupt:
            if history:
                self._finish(preparation, network, history, report)
            raise
        self._finish(preparation, network, history, report)
        return self

    def _batches(self, groups: Groups, training: Training, collate: Collate) -> GroupBatches:
        """The batches of all epochs."""
        return GroupBatches(groups, training, collate)

    def _train(
        self,
        network: nn.Module,
        batches: GroupBatches,
        loss: losses.Loss,
        training: Training,
        *,
        evaluate: Callable[[nn.Module], float] | None,
        **run: Any,
    ) -> None:
        """Train the network; see :func:`~pt_neural.training.loop.train`."""
        from pt_neural.training.loop import train  # imports Lightning, which takes seconds

        train(network, batches, loss, training, evaluate=evaluate and partial(evaluate, network), **run)

    def _make_examples(self, candidates: pd.DataFrame, qrels: pd.DataFrame, training: Training) -> Examples:
        options = {"fields": self.fields, "documents": self.documents, "mark_ends": self.tells_fields_apart}
        return make_examples(candidates, qrels, training, **options)

    def _finish(self, preparation: Any, network: nn.Module, history: list[dict[str, Any]], report: Report) -> None:
        self._install(preparation, network)
        self._settle_fields()
        self._history, self.report = history, report

    def _evaluation(
        self, preparation: Any, frame: pd.DataFrame, qrels: pd.DataFrame | None
    ) -> Callable[[nn.Module], float]:
        """A function that gives the dev measure of a network as it is when called."""
        used, measure = dev_evaluator(frame, qrels, self.training.completed(self.own_training))
        scorer = self._scorer(preparation, used)
        return lambda network: float(measure(scorer(network)).mean())

    @property
    def history(self) -> pd.DataFrame:
        """One row an epoch: ``epoch``, ``loss`` (mean over groups), ``seconds`` of training, and the dev measure."""
        return pd.DataFrame(self._history, columns=None if self._history else ["epoch", "loss", "seconds"])

    def _fitted(self) -> nn.Module:
        """The network on the model's device, or an error that says what to do."""
        if self.network is None:
            name = type(self).__name__
            raise RuntimeError(
                f"{self!r} is not trained yet: call (candidates >> model).fit(topics, qrels), or load one with "
                f"pn.{name}.load(path)"
            )
        changed = [name for name, value in self.settings().items() if value != self._trained_settings[name]]
        if changed:
            raise RuntimeError(f"{', '.join(changed)} of {self!r} changed after training: fit it again, or change back")
        return self.network.to(torch_device(self.device))

    def __getstate__(self) -> dict[str, Any]:
        if self.network is None or next(self.network.parameters()).is_cpu:
            return self.__dict__
        return {**self.__dict__, "network": deepcopy(self.network).cpu()}  # another thread may score with its own

    def _require_fitted(self) -> None:
        self._fitted()

    def _config(self) -> dict[str, Any]:
        return {"settings": super()._config(), "training": self.training.to_json()}

    @classmethod
    def _arguments(cls, config: Any, directory: Path) -> dict[str, Any]:
        return {**config["settings"], "training": Training.from_json(config["training"])}

    def _weights(self) -> dict[str, np.ndarray]:
        return {name: weight.cpu().numpy() for name, weight in self._fitted().state_dict().items()}

    def _origin(self) -> list[Any]:
        """What else a training depends on than settings and frames, as JSON can hold it."""
        if self.documents is None:
            return []
        return [len(self.documents), len(self.documents.vocabulary), len(self.documents.all().terms)]

    def fingerprint(self) -> str | None:
        """Changes with the weights and with what turns texts into tensors; None before :meth:`fit`."""
        if self.network is not None and self._fingerprint is None:
            arrays, parts = self._preparation_identity()
            arrays = {**arrays, **self._weights()}
            self._fingerprint = fingerprint([self.artifact_format, self.settings()], arrays, *parts)
        return self._fingerprint

    def _preparation_identity(self) -> tuple[dict[str, np.ndarray], list[bytes]]:
        """Arrays and all else that tell what turns texts into tensors from others of its kind."""
        with TemporaryDirectory(prefix="pt_neural-") as directory:
            self._save_preparation(Path(directory))
            files = sorted(path for path in Path(directory).rglob("*") if path.is_file())
            return {}, [part for path in files for part in (path.name.encode(), path.read_bytes())]

    def _save_parts(self, directory: Path) -> None:
        write_json(directory / "history.json", self._history)
        write_tensors(directory / "weights.safetensors", self._weights())
        self._save_preparation(directory)

    def _load_parts(self, directory: Path) -> None:
        self._history = _read_history(directory / "history.json")
        weights = read_tensors(directory / "weights.safetensors")
        preparation, network = self._load_preparation(directory)
        network.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
        self._install(preparation, network.eval())


def _read_history(path: Path) -> list[dict[str, Any]]:
    history = read_json(path)
    if not isinstance(history, list) or not all(isinstance(record, dict) for record in history):
        raise ArtifactError(f"{path} is damaged: it is no list of records")
    return history
