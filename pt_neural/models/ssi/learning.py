"""How W is learned (SSI paper, section 2.3): at once, in rounds that make it sparse, or as a mix of two models."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Timer
from typing import NamedTuple

import numpy as np

from pt_neural._evaluation import direction
from pt_neural._messages import say
from pt_neural.models.ssi.network import Network
from pt_neural.models.ssi.steps import Parts, Rates, Texts, Tuples, learn, learn_in_turn
from pt_neural.training import Training
from pt_neural.training.run import Records, deadline_of, is_over, run_epochs, start_record
from pt_neural.training.sampling import Batch, GroupBatches

MIXING_EPOCHS = 3  # enough for a single number
MIXINGS = [0.0, *(2 ** (half / 2) for half in range(-8, 9))]  # factors to choose from with dev queries
SOON = 1.0  # seconds; enough to read compiled steps from disk
NO_TUPLES = Tuples(np.zeros(0, np.int64), np.zeros((0, 1), np.int64), np.zeros((0, 1), bool))
COMPILING = "compiling the steps of SSI, which takes about ten seconds; they are then kept on disk if possible"


class Task(NamedTuple):
    """All queries and documents, and batches of groups of their numbers, see :func:`pair_of_numbers`."""

    texts: Texts
    batches: GroupBatches

    def tuples(self, epoch: int, number: int) -> Tuples:
        """A batch of an epoch; after the last batch comes the first one again."""
        batch: Batch = self.batches[epoch, number % len(self.batches)]
        queries, documents = (np.ascontiguousarray(numbers, dtype=np.int64) for numbers in batch.inputs)
        return Tuples(queries, documents, np.asarray(batch.valid))


def pair_of_numbers(queries: np.ndarray, documents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The inputs of a batch: the numbers of queries and documents as they are."""
    return queries, documents


@dataclass
class Learner:
    """Learns W from tuples, in place.

    Attributes:
        task: The task.
        training: The settings; with several stages, epochs and patience are per stage, and ``max_time`` is for all.
        history: Receives a record per epoch, see :func:`~pt_neural.training.run.run_epochs`; with several stages, a
            column tells them apart.
        evaluate: Gives the dev measure of a network; None without dev queries.
        origin: Gives text that changes with the data and settings, see :func:`~pt_neural.training.run.run_epochs`.
        other_task: A monolingual task to learn in turn (section 2.4.2), with W = V'V (equation 10); None without.
        other_query_vectors: U of the other task, if it has its own, so that W = U_E'V.
    """

    task: Task
    training: Training
    history: Records
    evaluate: Callable[[Network], float] | None = None
    origin: Callable[[], str] = str
    other_task: Task | None = None
    other_query_vectors: np.ndarray | None = None

    def __post_init__(self) -> None:
        self.deadline = deadline_of(self.training)

    def learn(self, network: Network) -> None:
        """Learn W at once (sections 2.3.1 and 2.3.2)."""
        self._run(network, network.parts(), self._rates(network))

    def learn_off_diagonal(self, network: Network) -> None:
        """Learn W with zeros on its diagonal (section 4.1, footnote 12)."""
        shape = network.shape
        active = ~np.eye(shape.query_terms, shape.document_terms, dtype=bool)
        self._run(network, network.parts(active.ravel()), self._rates(network))

    def learn_sparse(self, network: Network, nonzeros: int, rounds: int) -> None:
        """Algorithm 2: learn, drop the smallest weights of each row of W, and learn the others again.

        Each of the ``rounds`` drops the same share of the weights of each row, until ``nonzeros`` (p) remain; rounds
        that would drop none are left out. In the history, ``nonzeros`` is the number of weights of a row that could
        change.
        """
        shape = network.shape
        weights = network.pairs.reshape(shape.query_terms, shape.document_terms)
        active = None
        counts = shrinking(shape.document_terms, min(nonzeros, shape.document_terms), rounds)
        for count in dict.fromkeys([shape.document_terms, *counts]):  # each number once
            if count < shape.document_terms:
                active = np.ones(weights.shape, dtype=bool) if active is None else active
                keep_largest(weights, active, count)
            self._announce(f"{count:,} weights in each row of W")
            mask = None if active is None else active.ravel()
            self._run(network, network.parts(mask), self._rates(network), stage={"nonzeros": count})

    def learn_mixed(self, network: Network) -> None:
        """Learn a model of frequent words, then one of hashed features by itself, then the latter's factor (4.1).

        With dev queries, the factor is the one of :data:`MIXINGS` with the best dev measure: the training tuples fit
        both models by then, and have no more to say. Without, it is learned from them. In the history, ``model`` is
        what could change: ``"words"``, ``"hashed"``, or ``"mixing"``.
        """
        network.mixing[:] = 0  # the first model alone counts until the second one has learned
        for model, part, what in (
            ("words", network.words_only(), "the model of frequent words"),
            ("hashed", network.hashed_only(), "the model of hashed features"),
        ):
            self._announce(what)
            self._run(part, part.parts(), self._rates(part), stage={"model": model})
        self._announce("the factor that mixes them")
        if self.evaluate is not None:
            self._choose_mixing(network)
            return
        network.mixing[:] = 1
        rates = Rates(0.0, self.training.learning_rate, 0.0, 0.0, self.training.margin)
        epochs = min(self.training.epochs, MIXING_EPOCHS)
        self._run(network, network.parts(), rates, stage={"model": "mixing"}, epochs=epochs)

    def _choose_mixing(self, network: Network) -> None:
        """Keep the factor with the best dev measure, the smallest of equals.

        The history has the first model alone as epoch 0, and the mix as epoch 1.
        """
        found: dict[float, float] = {}
        better = direction(self.training.dev_measure)
        try:
            for factor in MIXINGS:
                network.mixing[:] = factor
                found[factor] = self.evaluate(network)
        finally:
            best = max(found, key=lambda factor: better * found[factor], default=0.0)
            network.mixing[:] = best
        for epoch, factor in enumerate((0.0, best)):
            record = {**start_record(self.training, found[factor]), "epoch": epoch}
            self.history.append({**record, "model": "mixing", "mixing": factor})

    def _rates(self, network: Network) -> Rates:
        rate, diagonal = self.training.learning_rate, network.shape.diagonal
        learned, factor = (rate if diagonal == kind else 0.0 for kind in ("learned", "factor"))
        return Rates(rate, 0.0, learned, factor, self.training.margin)

    def _announce(self, stage: str) -> None:
        if self.training.verbose:
            say(f"training {stage}")

    def _run(
        self,
        network: Network,
        parts: Parts,
        rates: Rates,
        *,
        stage: dict[str, int | str] | None = None,
        epochs: int | None = None,
    ) -> None:
        """Run epochs; a stage has its own column in the history, and its own directory for checkpoints."""
        training, origin, records = self.training, self.origin, []
        if epochs is not None:
            training = replace(training, epochs=epochs)
        if stage is not None:
            origin = partial(_stage_origin, self.origin, network)
        if stage is not None and training.checkpoint_dir is not None:
            ((name, value),) = stage.items()
            directory = str(Path(training.checkpoint_dir) / f"{value}-{name}")
            # Out of time, a stage leaves none: with more time, it begins where those before it then end.
            training = replace(training, checkpoint_dir=None if is_over(self.deadline) else directory)
        state = {name: array for name, array in network.arrays().items() if array.size}
        if self.other_query_vectors is not None:
            state["other_query_vectors"] = self.other_query_vectors

        def step(tuples: Tuples, other_tuples: Tuples | None) -> tuple[float, int]:
            if self.other_task is None:
                return learn(parts, self.task.texts, tuples, rates)
            other_parts = _other_parts(parts, self.other_query_vectors)
            return learn_in_turn(
                parts, self.task.texts, tuples, other_parts, self.other_task.texts, other_tuples, rates
            )

        def learn_batch(epoch: int, number: int) -> tuple[float, int]:
            tuples = self.task.tuples(epoch, number)
            other_tuples = None if self.other_task is None else self.other_task.tuples(epoch, number)
            total, count = step(tuples, other_tuples)
            return total / max(count, 1), len(tuples.queries)

        with told_if_slow(COMPILING if training.verbose else None):
            step(NO_TUPLES, NO_TUPLES)
        try:
            run_epochs(
                learn_batch,
                state,
                training,
                num_batches=len(self.task.batches),
                evaluate=None if self.evaluate is None else partial(self.evaluate, network),
                history=records,
                origin=origin,
                deadline=self.deadline,
            )
        finally:
            self.history += [{**record, **(stage or {})} for record in records]


def shrinking(first: int, last: int, rounds: int) -> list[int]:
    """Numbers that fall from ``first`` to ``last`` by the same factor each round.

    Example::

        >>> shrinking(1000, 1, 3)
        [100, 10, 1]
    """
    return [round(first * (last / first) ** (number / rounds)) for number in range(1, rounds + 1)]


def keep_largest(weights: np.ndarray, active: np.ndarray, count: int) -> None:
    """Step 2 of algorithm 2, in place: the ``count`` active weights of each row largest in absolute value remain.

    The others become 0 and inactive; of equal weights, those of more frequent words are kept.
    """
    for row, kept in zip(weights, active, strict=True):
        dropped = np.argsort(np.where(kept, -np.abs(row), np.inf), kind="stable")[count:]
        row[dropped], kept[dropped] = 0, False


def _other_parts(parts: Parts, query_vectors: np.ndarray | None) -> Parts:
    """W of a task between documents, without a diagonal: V'V (equation 10), or U_E'V with vectors of its own."""
    empty = np.zeros(0, dtype=np.float32)
    return parts._replace(
        query_vectors=parts.document_vectors if query_vectors is None else query_vectors,
        hashed_query_vectors=empty.reshape(0, 0),
        hashed_document_vectors=empty.reshape(0, 0),
        diagonal=empty,
        pairs=empty,
    )


def _stage_origin(origin: Callable[[], str], network: Network) -> str:
    """The origin of a stage: that of the whole training, and the weights that earlier stages have learned."""
    weights = hashlib.sha256()
    for array in network.arrays().values():
        weights.update(array)
    return f"{origin()} {weights.hexdigest()}"


@contextmanager
def told_if_slow(message: str | None) -> Iterator[None]:
    """Print a line if what is done meanwhile takes longer than a moment; None prints nothing."""
    timer = Timer(SOON, print, [message], {"flush": True})
    timer.daemon = True
    if message is not None:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
