"""The settings of a training run, checked before it starts."""

import numbers
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal

import ir_measures
from ir_measures import nDCG

from pt_neural._arguments import checked_choice, checked_number
from pt_neural._evaluation import parse_measure

Negatives = Literal["judged", "retrieved", "random", "in-batch"]
Positives = Literal["all", "retrieved"]
Loss = Literal["softmax", "margin", "pointwise"]
Optimiser = Literal["adam", "adamw", "adagrad", "sgd"]

AUTO = "auto"
DEFAULT_NEGATIVES = 4

_CHOICES = {
    "negatives": (None, "judged", "retrieved", "random", "in-batch"),
    "positives": (None, "all", "retrieved"),
    "loss": (None, "softmax", "margin", "pointwise"),
    "optimiser": (None, "adam", "adamw", "adagrad", "sgd"),
    "device": ("auto", "cpu", "cuda", "gpu", "mps", "tpu"),
    "precision": ("32-true", "bf16-mixed", "16-mixed", "32", 32, AUTO),
    "verbose": (True, False),
}


@dataclass(frozen=True, kw_only=True)
class Training:
    """How a ranker is trained.

    A training example is a group: a query, a document relevant to it, and documents that are not.

    Args:
        epochs: Largest number of passes over the groups.
        batch_size: Groups per step; None for the model's own.
        optimiser: ``"adam"``, ``"adamw"``, ``"adagrad"`` or ``"sgd"``; None for the model's own, or ``"adam"``.
        learning_rate: The optimiser's learning rate; None for the model's own.
        weight_decay: The optimiser's weight decay.
        loss: ``"softmax"`` over the group (CLSM paper, equations 5 and 6), ``"margin"`` between the relevant document
            and each negative (SSI paper, equation 8), ``"pointwise"`` cross-entropy of each document by itself, as in
            the Match-Tensor paper; None for the loss of the model's paper.
        gamma: Smoothing factor of the softmax; None for the model's own.
        margin: Margin of the margin loss; None for the model's own, or 1.
        negatives: Where a group's negatives come from: ``"judged"``, candidates judged less relevant; ``"retrieved"``,
            candidates not judged relevant; ``"random"``, the whole collection (the model's forward index if it has one,
            else the candidates of all queries); ``"in-batch"``, the relevant documents of the other groups of the
            batch; None for the model's own. The last three never include documents judged relevant to the query.
        positives: Which relevant documents make groups: ``"all"`` that are judged so, or only ``"retrieved"`` ones,
            which are among the query's candidates. None means ``"retrieved"`` with retrieved negatives, else ``"all"``:
            beside negatives that the first stage chose for their matches, positives that it did not find would teach
            that fewer matches mean relevant.
        num_negatives: Negatives per group (J in the CLSM paper); None for 4, or with ``"in-batch"`` for all others.
        shared_groups: From how many other groups of the batch each group takes the documents as further negatives, save
            those judged relevant to its query. Documents are read once a batch, so networks that read them apart from
            the query, as Match-Tensor and SSM do, score more pairs in the same time. None for the model's own, or 0.
            The pointwise loss gives all negatives together the weight of the group's own.
        grades: For graded judgements, the grades of negatives for each grade of positives; other positives are left
            out. The Duet's scheme (section 4.2) is ``{3: [1, 0], 2: [0]}``. With None, every document with a
            grade above 0 is a positive, and ``"judged"`` negatives are those of any lower grade.
        patience: Stop after this many epochs without a better dev measure; None never stops early. The weights of the
            best epoch are kept in any case, and the start counts as one, epoch 0.
        dev_measure: A measure of ir_measures on the dev queries, or its name; None for the model's own, or nDCG@10.
            The best epoch has its largest value; for :data:`~pt_neural.experiment.RankLoss`, its smallest.
        dev_queries: Evaluate on at most this many dev queries, drawn at random; None for all.
        max_groups: Train on at most this many groups per epoch, drawn anew each time; None for all. An epoch of
            ``fit_triples`` is the next ``max_groups`` triples of the stream.
        max_time: Stop after this time, written ``"DD:HH:MM:SS"``.
        gradient_clip: Largest norm of the gradient; None for no limit.
        seed: Seed of the initial weights, the order of the groups, and the negatives.
        device: ``"auto"`` (CUDA GPUs if there are any, else the CPU), ``"cpu"``, ``"cuda"``, ``"mps"``: Lightning's
            accelerator.
        devices: Number of devices of each node or list of their indices, as for Lightning.
        nodes: Number of nodes (machines) that train together; each runs the same script, see ``strategy``.
        strategy: How several devices share the work, as for Lightning: ``"ddp"`` in scripts, also under ``torchrun``
            and SLURM; ``"ddp_notebook"`` in notebooks; ``"ray"`` in the workers of Ray Train, whose scaling says how
            many there are. Each device takes batches of ``batch_size``. The first process evaluates, stops early and
            keeps checkpoints; in the end all have its weights and history. Nodes need not share a file system.
        precision: ``"32-true"``, ``"bf16-mixed"`` or ``"16-mixed"``, Lightning's precisions with weights of 32 bits; or
            ``"auto"``, which computes in bfloat16 if a trial of half a second on the first batch shows that a step then
            takes clearly less time, as on processors with AMX. Weights then depend on the machine, so it is not the
            default. Scores, dev measures among them, are always computed in 32 bits.
        start: Path of a saved ranker of the same kind and settings, whose weights training starts from; None to start
            anew. What its vocabulary lacks is added, with fresh weights. A path, since settings are saved as text.
        checkpoint_dir: Directory for a checkpoint after each epoch, from which an interrupted fit resumes. Of several
            processes, only the first one needs it.
        logger: A logger of Lightning, or several: ``lightning.pytorch.loggers.CSVLogger``, ``TensorBoardLogger``
            or ``WandbLogger``. It gets the settings, and of each epoch the loss, the seconds and the dev measure. It is
            not saved with a ranker.
        recipe: The name of the recipe that these settings come from, see ``recipe`` of the rankers; only reported.
        verbose: Print what is trained on, show progress bars, and print what came of it and where the time went. A
            ranker with ``verbose=False`` is silent in any case.

    Raises:
        ValueError: If a value is out of range.
        TypeError: If a value is of the wrong type.

    Example::

        pn.CLSM(training=pn.Training(epochs=5, negatives="retrieved", num_negatives=4, seed=13))
        pn.CLSM(training=pn.Training(start="pre-trained.clsm"))  # what another CLSM has saved
    """

    epochs: int = 20
    batch_size: int | None = None
    optimiser: Optimiser | None = None
    learning_rate: float | None = None
    weight_decay: float = 0.0
    loss: Loss | None = None
    gamma: float | None = None
    margin: float | None = None
    negatives: Negatives | None = None
    positives: Positives | None = None
    num_negatives: int | None = None
    shared_groups: int | None = None
    grades: Mapping[int, Sequence[int]] | None = None
    patience: int | None = 3
    dev_measure: ir_measures.Measure | str | None = None
    dev_queries: int | None = None
    max_groups: int | None = None
    max_time: str | None = None
    gradient_clip: float | None = None
    seed: int = 13
    device: str = "auto"
    devices: int | str | Sequence[int] = 1
    nodes: int = 1
    strategy: str = "auto"
    precision: str | int = "32-true"
    start: str | os.PathLike | None = None
    checkpoint_dir: str | os.PathLike | None = None
    logger: Any = field(default=None, compare=False)
    recipe: str | None = None
    verbose: bool = True

    def __post_init__(self):
        for name, choices in _CHOICES.items():
            checked_choice(name, getattr(self, name), choices)
        self._check_numbers()
        if self.negatives == "in-batch" and self.batch_size == 1:
            raise ValueError("in-batch negatives are the documents of other groups: batch_size must be at least 2")
        if self.dev_measure is not None:
            self._set("dev_measure", parse_measure(self.dev_measure))
        if not isinstance(self.dev_measure, ir_measures.Measure | None):
            raise TypeError(f"dev_measure must be a measure of ir_measures or its name, not {self.dev_measure!r}")
        if self.grades is not None:
            self._set("grades", _checked_grades(self.grades))
        if self.max_time is not None and not re.fullmatch(r"\d+:\d\d:\d\d:\d\d", str(self.max_time)):
            raise ValueError(f"max_time must be written DD:HH:MM:SS, not {self.max_time!r}")
        self._set("devices", _checked_devices(self.devices))
        if not all(hasattr(logger, "log_metrics") for logger in self.loggers):
            raise TypeError(f"logger must be a logger of Lightning, or a list of them, not {self.logger!r:.80}")
        if not isinstance(self.strategy, str):
            raise TypeError(f"strategy must be the name of a strategy of Lightning, not {self.strategy!r}")
        if self.strategy == "ray" and (self.nodes, self.devices) != (1, 1):
            raise ValueError("with strategy='ray', Ray Train's ScalingConfig says how many workers train, not devices=")
        if "spawn" in self.strategy:
            raise ValueError(f"strategy {self.strategy!r} pickles all data; use 'ddp', or 'ddp_notebook' in notebooks")
        for name, what in (("checkpoint_dir", "a path"), ("start", "the path of a saved ranker")):
            if (path := getattr(self, name)) is not None:
                if not isinstance(path, str | os.PathLike):
                    raise TypeError(f"{name} must be {what}, not {path!r:.80}")
                self._set(name, os.path.expanduser(path))

    def _check_numbers(self) -> None:
        for name in ("epochs", "nodes"):
            self._set(name, checked_number(name, getattr(self, name), int, least=1))
        for name in ("batch_size", "num_negatives", "patience", "dev_queries", "max_groups"):
            self._set(name, checked_number(name, getattr(self, name), int, least=1, optional=True))
        shared = checked_number("shared_groups", self.shared_groups, int, least=0, optional=True)
        if shared and self.negatives == "in-batch":
            raise ValueError("in-batch negatives are shared already: leave shared_groups out, or draw other negatives")
        self._set("shared_groups", shared)
        self._set("seed", checked_number("seed", self.seed, int, least=0))
        if self.seed >= 2**32:
            raise ValueError(f"seed must be below 2**32, not {self.seed!r}")
        for name in ("learning_rate", "gamma", "margin", "gradient_clip"):
            self._set(name, checked_number(name, getattr(self, name), float, above=0, optional=True))
        self._set("weight_decay", checked_number("weight_decay", self.weight_decay, float, least=0))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @property
    def loggers(self) -> list[Any]:
        """The loggers as a list."""
        if self.logger is None:
            return []
        return list(self.logger) if isinstance(self.logger, list | tuple) else [self.logger]

    def completed(self, defaults: Mapping[str, Any]) -> "Training":
        """The settings, with a model's defaults in place of None."""
        defaults = {"optimiser": "adam", "margin": 1.0, "shared_groups": 0, "dev_measure": nDCG @ 10, **defaults}
        completed = replace(self, **{name: value for name, value in defaults.items() if getattr(self, name) is None})
        positives = completed.positives or ("retrieved" if completed.negatives == "retrieved" else "all")
        return replace(completed, positives=positives)

    def changed(self) -> dict[str, Any]:
        """The settings that differ from the defaults."""
        return {each.name: value for each in fields(self) if (value := getattr(self, each.name)) != each.default}

    def to_json(self) -> dict[str, Any]:
        """All settings but the loggers, in a form that JSON can hold."""
        settings = asdict(replace(self, logger=None))
        del settings["logger"]
        return {**settings, "dev_measure": self.dev_measure and str(self.dev_measure)}

    @classmethod
    def from_json(cls, settings: Mapping[str, Any]) -> "Training":
        """The settings that :meth:`to_json` returned."""
        return cls(**settings)


RECIPES = {"few": 0, "some": 5_000, "many": 50_000}  # from how many training queries on


def recipe_name(queries: str | int) -> str:
    """The name of the recipe for a number of training queries, which may be given by its name."""
    if isinstance(queries, str):
        return checked_choice("queries", queries, tuple(RECIPES))
    number = checked_number("queries", queries, int, least=1)
    return [name for name, least in RECIPES.items() if number >= least][-1]


def divided(settings: Mapping[str, Any], *, but: Collection[str] = ()) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of a training among those of a recipe, ``but`` some, and the others, which are the ranker's own."""
    names = {each.name for each in fields(Training)} - set(but)
    of_training = {name: value for name, value in settings.items() if name in names}
    return of_training, {name: value for name, value in settings.items() if name not in names}


def _checked_grades(grades: Any) -> dict[int, tuple[int, ...]]:
    """The grades of negatives for each grade of positives, as integers; in JSON, the keys are strings."""
    try:
        checked = {int(grade): tuple(map(int, lower)) for grade, lower in grades.items()}
    except (TypeError, ValueError, AttributeError):
        checked = {}
    if not checked or any(not 0 < grade > max(lower, default=grade) for grade, lower in checked.items()):
        raise ValueError(
            f"grades must map each grade of positives, above 0, to the lower grades of its negatives, such as "
            f"{{3: [1, 0]}}, not {grades!r}"
        )
    return checked


def _checked_devices(devices: Any) -> int | str | list[int]:
    """A number of devices; -1 or ``"auto"`` for all; or their indices."""
    if isinstance(devices, numbers.Integral) and not isinstance(devices, bool) and (devices >= 1 or devices == -1):
        return int(devices)
    if isinstance(devices, str) and re.fullmatch(r"auto|-1|\d+(,\s*\d+)*", devices):
        return devices
    if isinstance(devices, list | tuple) and devices and all(isinstance(index, numbers.Integral) for index in devices):
        return [int(index) for index in devices]
    raise ValueError(f"devices must be a number from 1, a list of indices, or 'auto' for all, not {devices!r}")
