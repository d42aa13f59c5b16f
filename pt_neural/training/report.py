"""What a ranker was trained on, what came of it, and where the time went."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from pt_neural._evaluation import direction
from pt_neural._messages import say
from pt_neural.training.run import Records, best_epoch, epochs_done
from pt_neural.training.settings import Training


@dataclass(frozen=True)
class Outcome:
    """How a training with dev queries went."""

    measure: str
    start: float  # the dev measure before training
    best: float  # that of the weights that were kept
    last: float  # after the last epoch
    best_epoch: int  # 0 if the weights of the start were kept
    epochs: int  # that were trained
    fell: bool  # whether the last epoch is worse than the start

    @classmethod
    def of(cls, history: Records, training: Training) -> "Outcome | None":
        """The outcome of a training; None without dev queries. Of several stages, the last one counts."""
        name = f"dev {training.dev_measure}"
        if not history or name not in history[-1]:
            return None
        last_start = max(number for number, record in enumerate(history) if record["epoch"] == 0)
        stage = history[last_start:]
        kept = best_epoch(stage, training)
        start, last = history[0][name], stage[-1][name]
        fell = direction(training.dev_measure) * (last - start) < 0
        return cls(name, start, stage[kept][name], last, kept, epochs_done(stage), fell)

    def __str__(self) -> str:
        if self.best_epoch == 0:
            text = f"none of {self.epochs} epochs was better than the start, so its weights were kept: "
            text += f"{self.measure} {self.start:.4f}, after the last epoch {self.last:.4f}"
        else:
            text = f"epoch {self.best_epoch} of {self.epochs} was the best: {self.measure} {self.best:.4f}, "
            text += f"before training {self.start:.4f}"
            text += f"; training ended below its start, at {self.last:.4f}" if self.fell else ""
        return text


@dataclass(frozen=True)
class Report:
    """What a model was trained on, what was left out and why, what came of it, and where the time went."""

    queries: int | None  # with at least one group; None if unknown
    groups: int  # that is, pairs of a query and a relevant document
    documents: int  # that negatives may be drawn from
    negatives: str  # as in Training
    dropped: Mapping[str, int] = field(default_factory=dict)  # reason -> number of queries or judged documents left out
    recipe: str | None = None  # the name of the recipe that the settings come from
    start: str | None = None  # path of the ranker that training starts from
    outcome: Outcome | None = None  # None without dev queries
    precision: str | None = None  # that a network was trained in, as in Training
    seconds: Mapping[str, float] = field(default_factory=dict)  # what the fit did -> seconds spent on it

    def __str__(self) -> str:
        return "; ".join(filter(None, [self.data(), self.result()]))

    def data(self) -> str:
        """What the model is trained on, as a line."""
        text = (
            f"training on {self.groups:,} groups"
            + (f" of {self.queries:,} queries" if self.queries is not None else "")
            + f" with {self.negatives} negatives, {self.documents:,} documents"
        )
        text += f", recipe {self.recipe!r}" if self.recipe else ""
        text += f", starting from {self.start}" if self.start else ""
        reasons = [f"{count:,} {reason}" for reason, count in self.dropped.items() if count]
        return text + (f"; left out: {', '.join(reasons)}" if reasons else "")

    def result(self) -> str:
        """What came of the training and where the time went, as a line; empty before its end."""
        times = ", ".join(f"{seconds:.1f} s of {what}" for what, seconds in self.seconds.items())
        times += f", in {self.precision}" if times and self.precision not in (None, "32-true", "32") else ""
        return "; ".join(filter(None, [str(self.outcome or ""), times]))

    def concluded(
        self, history: Records, training: Training, clock: "FitClock", precision: str | None = None
    ) -> "Report":
        """The same with what came of the training, which is printed unless the training is silent."""
        outcome = Outcome.of(history, training)
        report = replace(self, outcome=outcome, seconds=clock.seconds(), precision=precision)
        if training.verbose:
            say(report.result())
        return report


class FitClock:
    """Tells where the time of a fit goes; it starts when it is made."""

    def __init__(self):
        self._started = self._prepared = perf_counter()
        self._evaluating = 0.0

    def prepared(self) -> None:
        """Note that training begins."""
        self._prepared = perf_counter()

    def timed(self, evaluate: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, with its time counted as dev evaluation."""

        def timed(*arguments: Any) -> Any:
            started = perf_counter()
            try:
                return evaluate(*arguments)
            finally:
                self._evaluating += perf_counter() - started

        return timed

    def seconds(self) -> dict[str, float]:
        """Seconds spent on each part so far."""
        training = perf_counter() - self._prepared - self._evaluating
        return {
            "preparation": self._prepared - self._started,
            "training": training,
            "dev evaluation": self._evaluating,
        }
