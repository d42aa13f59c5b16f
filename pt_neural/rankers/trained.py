"""Rankers that learn from judgements: a reader turns texts into tensors, and a network scores them."""

import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd
import pyterrier as pt
import torch
from torch import nn

from pt_neural._files import finite, read_tensors, write_tensors
from pt_neural._forks import without_lost_threads
from pt_neural._frames import require_columns
from pt_neural._messages import say
from pt_neural.rankers.columns import distinct_queries
from pt_neural.rankers.options import TrainedOptions
from pt_neural.rankers.ranker import Ranker, digest
from pt_neural.rankers.readers.reader import Pairs, Reader
from pt_neural.text import PackedSequences, Vocabulary
from pt_neural.training import Training, losses
from pt_neural.training.devices import known_device, require_available, torch_device
from pt_neural.training.examples import dev_evaluator
from pt_neural.training.examples import digest as frames_digest
from pt_neural.training.groups import Groups
from pt_neural.training.processes import connected, from_first, is_first, once_a_node, together
from pt_neural.training.report import FitClock, Report
from pt_neural.training.run import epochs_done
from pt_neural.training.sampling import GroupBatches
from pt_neural.training.triples import TripleBatches, Triples, TripleStream

Scorer = Callable[[nn.Module], np.ndarray]


class Preparation(NamedTuple):
    """What a fit reads before it trains."""

    groups: Groups
    report: Report
    reader: Reader
    network: nn.Module
    pairs: Pairs
    origin: str  # changes with the data; only for checkpoints


SMALL_TRAINING = {"epochs": 10, "max_groups": 1000}


class Trained(Ranker, pt.Estimator):
    """Base of the rankers that hold a reader and a network, and train the network on judgements.

    A model has two methods, :meth:`make_reader` and :meth:`make_network`.

    Args:
        **options: See :class:`~pt_neural.rankers.options.TrainedOptions`.

    Attributes:
        own_training: The model's own values for the settings of :class:`~pt_neural.Training` that are None.
        small_sizes: The settings of :meth:`small` that are not those of the class.
        reader: Turns texts into tensors; None before :meth:`fit`.
        network: The network; None before :meth:`fit`.
        history: One row an epoch: ``epoch``, ``loss`` (mean over groups), ``seconds`` of training, the dev measure.
            With dev queries, the first row is of epoch 0, the start.
        report: What the model was trained on, what was left out, what came of it, and where the time went; None if it
            was loaded.
        terms_per_block: How many terms of documents are read at a time, at most.
    """

    options_type: ClassVar[type] = TrainedOptions
    own_training: ClassVar[dict[str, Any]]
    small_sizes: ClassVar[dict[str, Any]] = {}
    fitting: ClassVar[str] = "(candidates >> model).fit(topics, qrels)"
    history_columns: ClassVar[tuple[str, ...]] = ("epoch", "loss", "seconds")
    terms_per_block: ClassVar[int] = 65_536

    reader: Reader | None = None
    network: nn.Module | None = None
    report: Report | None = None

    @classmethod
    def small(cls, *arguments: Any, training: Training | None = None, **options: Any) -> Self:
        """An unfitted ranker whose training a laptop finishes in minutes: smaller layers, fewer groups and epochs.

        For a first look, a lesson or a test; :meth:`recipe` has the settings that do well.

        Args:
            *arguments: Arguments of the ranker, such as word embeddings.
            training: Settings that differ from the defaults of :class:`~pt_neural.Training` and so take precedence.
            **options: Arguments of the ranker by name, which take precedence.

        Example::

            duet = pn.Duet.small(training=pn.Training(seed=14))
            (candidates >> duet).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
        """
        given = {} if training is None else training.changed()
        return cls(*arguments, training=Training(**{**SMALL_TRAINING, **given}), **{**cls.small_sizes, **options})

    @abstractmethod
    def make_reader(self) -> Reader:
        """An empty reader for the settings of the model."""

    @abstractmethod
    def make_network(self, reader: Reader) -> nn.Module:
        """A new network for what a reader gives.

        Loading calls this on torch's meta device first, to compare shapes before they take memory: it must not read
        the values of tensors that it makes.
        """

    @abstractmethod
    def _scorer(self, reader: Reader, frame: pd.DataFrame) -> Scorer:
        """Read the texts of a frame once; the result scores its rows by a network."""

    @property
    def device(self) -> str:
        """Where to score."""
        return self._device

    @device.setter
    def device(self, device: str) -> None:
        if device != "auto":
            known_device(device)
        self._device = device

    def fit(
        self,
        topics_or_res_tr: pd.DataFrame | Iterable[pd.DataFrame],
        qrels_tr: pd.DataFrame,
        topics_or_res_va: pd.DataFrame | None = None,
        qrels_va: pd.DataFrame | None = None,
    ) -> "Trained":
        """Train on candidates and their judgements; ``(candidates >> model).fit(...)`` calls this.

        Training starts anew, or from the ranker that ``pn.Training(start=...)`` names.

        Args:
            topics_or_res_tr: Candidates of the training queries: ``qid, query, docno`` and text (``docno`` is enough
                where the model has a forward index). With a forward index they may also come as a stream of such
                frames, each with whole queries, of which only numbers are kept.
            qrels_tr: Their judgements: ``qid, docno, label``.
            topics_or_res_va: Candidates of the dev queries. With them, training stops when the dev measure no longer
                improves, and the weights of the best epoch are kept, or those of the start if no epoch was better;
                without, those of the last epoch.
            qrels_va: Judgements of the dev queries.

        Returns:
            The model; see ``history`` and ``report``.

        Raises:
            ValueError: If there is nothing to train on, if rows of one docno have different texts, if the device is not
                available, if ``vectors`` or ``representations`` are set, which would not change, or if the model cannot
                start from ``start``; the message says why.
            FileNotFoundError: If there is no ``start``.
            FloatingPointError: If the loss is no longer a number; the model stays as it was.
            KeyboardInterrupt: If the user interrupts; the model then has the best weights so far, and stays as it was
                if no epoch was complete.

        Example::

            candidates = map(bm25 % 100, pt.model.split_df(topics, batch_size=1000))  # a thousand queries at a time
            pn.DSSM(documents=documents).fit(candidates, qrels, (bm25 % 100)(dev), dev_qrels)
        """
        clock = FitClock()
        training = self._completed_training()
        self._check_fit()
        require_available(training.device, training.device)
        dev = topics_or_res_va, qrels_va
        with connected(training) as place:
            prepare = partial(self._prepare, topics_or_res_tr, qrels_tr, dev, training)
            groups, known, reader, network, pairs, origin = once_a_node(prepare, place)
            batches = GroupBatches(groups, training, pairs.batch)
            loss = losses.make_loss(training, highest=float(groups.labels.max()))
            options = {"dev": dev, "origin": origin, "report": lambda: known, "clock": clock}
            self._learn(reader, network, batches, loss, training, **options)
        return self

    def _prepare(
        self,
        candidates: pd.DataFrame | Iterable[pd.DataFrame],
        qrels: pd.DataFrame,
        dev: Sequence[pd.DataFrame | None],
        training: Training,
    ) -> Preparation:
        """Read the training data, and make a reader and a network for it."""
        start = self._load_start(training)
        examples = self._make_examples(candidates, qrels, training)
        if training.verbose and is_first():
            say(f"{self!r}: {examples.report.data()}")
        documents, vocabulary = self._training_documents(examples)
        reader, network = self._beginning(training, start, examples.query_texts, documents, vocabulary)
        pairs = reader.pair(examples.query_texts, documents, vocabulary)
        frames = examples.seen(candidates), qrels, *dev
        origin = "" if training.checkpoint_dir is None else self._origin(frames, reader, start)
        return Preparation(examples.groups, examples.report, reader, network, pairs, origin)

    def fit_triples(
        self,
        triples: Triples,
        topics: pd.DataFrame | None = None,
        topics_or_res_va: pd.DataFrame | None = None,
        qrels_va: pd.DataFrame | None = None,
    ) -> "Trained":
        """Train on triples of a query, a relevant document and one that is less so, as collections publish them.

        Triples are read as a stream, in their order and in constant memory; the model's forward index has the texts.
        ``Training.epochs`` counts passes over them. With ``Training.max_groups``, an epoch ends after so many triples,
        and the next one goes on from there: the dev measure of a stream that is huge or endless is then taken every
        ``max_groups`` triples, and no pass is needed. Negatives are those of the triples, whatever ``Training`` says of
        negatives, positives, grades and shared groups. Readers learn their terms from the forward index and ``topics``,
        not from the stream. Training starts anew, or from the ranker that ``pn.Training(start=...)`` names.

        Args:
            triples: ``(qid, docno, docno)``, the relevant document first; as tuples, as ir_datasets has them
                (``docpairs_iter``), as dicts or as a frame with ``qid, pos, neg``. Tuples may have further negatives,
                all the same number. An iterator is read once, however many ``epochs`` there are; to read it again, give
                the function that makes it. Triples with unknown queries or documents are left out.
            topics: ``qid`` and ``query``; None if the triples have the text of the query in place of its qid
                (``query`` in dicts and frames).
            topics_or_res_va: Candidates of the dev queries, as in :meth:`fit`.
            qrels_va: Judgements of the dev queries.

        Returns:
            The model; see ``history`` and ``report``.

        Raises:
            ValueError: If the model has no forward index, if there are no triples, if none of the first is known, or
                if ``Training.checkpoint_dir`` is set and the triples are an iterator; otherwise as in :meth:`fit`.
            TypeError: If the triples are of another kind.
            FloatingPointError: If the loss is no longer a number; the model stays as it was.
            KeyboardInterrupt: If the user interrupts; as in :meth:`fit`.

        Example::

            msmarco = pt.get_dataset("irds:msmarco-passage/train/triples-small")
            documents = pn.ForwardIndex.build("msmarco.forward", msmarco.get_corpus_iter())
            model = pn.DSSM(documents=documents, training=pn.Training(epochs=20, max_groups=1_000_000))
            model.fit_triples(msmarco.irds_ref().docpairs_iter, msmarco.get_topics(), candidates(dev), dev_qrels)
        """
        clock = FitClock()
        training = self._completed_training()
        self._check_fit()
        require_available(training.device, training.device)
        if self.documents is None:
            raise ValueError(
                f"{self!r} needs a forward index to train on triples, which name documents by docno: set "
                "model.documents = pn.ForwardIndex.build(path, corpus_iter)"
            )
        if topics is not None:
            require_columns(topics, ("qid", "query"), "the frame of topics")
        stream = TripleStream(triples, "query" if topics is None else "qid", training.max_groups)
        if training.checkpoint_dir is not None and not stream.replayable:
            raise ValueError(
                "checkpoint_dir is set, but an iterator of triples cannot be read again to resume: give a frame, a "
                "list, or the function that makes the iterator"
            )
        documents, vocabulary = self.documents.all(), self.documents.vocabulary
        with connected(training) as place:
            if training.verbose and is_first():
                say(f"{self!r}: training on a stream of triples, {len(self.documents):,} documents")
            dev = topics_or_res_va, qrels_va
            prepare = partial(self._prepare_triples, topics, dev, list(map(str, stream.first())), training)
            reader, network, origin = once_a_node(prepare, place)

            def collate(queries: list[str], numbers: np.ndarray, query_rows: np.ndarray, rows: np.ndarray) -> Any:
                return reader.pair(queries, documents.take(numbers), vocabulary).batch(query_rows, rows)

            batches = TripleBatches(stream, training.batch_size, self.documents, topics, collate)
            loss = losses.make_loss(replace(training, shared_groups=0), highest=1.0)

            def report() -> Report:
                dropped = {"triples with unknown queries or documents": batches.unknown}
                sources = {"recipe": training.recipe, "start": training.start}
                return Report(None, batches.read, len(self.documents), "given", dropped, **sources)

            options = {"dev": dev, "origin": origin, "report": report, "clock": clock}
            self._learn(reader, network, batches, loss, training, **options)
        return self

    def _prepare_triples(
        self,
        topics: pd.DataFrame | None,
        dev: Sequence[pd.DataFrame | None],
        first: Sequence[str],
        training: Training,
    ) -> tuple[Reader, nn.Module, str]:
        """A reader of the forward index and the topics, a network for it, and the origin of a stream."""
        start, documents = self._load_start(training), (self.documents.all(), self.documents.vocabulary)
        texts = [] if topics is None else distinct_queries(topics)[1]
        reader, network = self._beginning(training, start, texts, *documents)
        frames = topics, None, *dev
        origin = "" if training.checkpoint_dir is None else self._origin(frames, reader, start, *first)
        return reader, network, origin

    def _beginning(
        self,
        training: Training,
        start: Self | None,
        query_texts: list[str],
        documents: PackedSequences,
        vocabulary: Vocabulary,
    ) -> tuple[Reader, nn.Module]:
        """A reader of these texts and a network for it, new or with what an earlier ranker has learned."""
        reader = self.make_reader()
        with torch.random.fork_rng(range(torch.cuda.device_count())):
            torch.manual_seed(training.seed)
            reader.build(query_texts, documents, vocabulary)
            if start is not None:
                reader.grow(start.reader)
            network = self.make_network(reader)
        if start is not None:
            copy_weights(start.network, network)
        return reader, network

    def _learn(
        self,
        reader: Reader,
        network: nn.Module,
        batches: GroupBatches | TripleBatches,
        loss: losses.Loss,
        training: Training,
        *,
        dev: tuple[pd.DataFrame | None, pd.DataFrame | None],
        origin: str,
        report: Callable[[], Report],
        clock: FitClock,
    ) -> None:
        """Train a network, and make it the model's own; ``report`` says what it was trained on."""
        if training.verbose and is_first() and "lightning.pytorch" not in sys.modules:
            say("importing Lightning, which takes some seconds once in a process")
        from pt_neural.training.loop import train

        evaluate, history = None, []
        if dev[0] is not None:
            evaluate = float  # only the first process evaluates
            with together():
                if is_first():
                    evaluate = clock.timed(self._dev_measure(reader, network, *dev, training))
        clock.prepared()
        try:
            precision = train(network, batches, loss, training, evaluate=evaluate, history=history, origin=origin)
        except KeyboardInterrupt:
            if epochs_done(history):
                self._finish(reader, network, history, report())
            raise
        self._finish(
            reader, network, history, from_first(lambda: report().concluded(history, training, clock, precision))
        )

    def _dev_measure(
        self, reader: Reader, network: nn.Module, frame: pd.DataFrame, qrels: pd.DataFrame | None, training: Training
    ) -> Callable[[], float]:
        """A function that gives the dev measure of a network; texts are read once."""
        frame, measure = dev_evaluator(frame, qrels, training)
        scorer = self._scorer(reader, frame)

        def evaluate() -> float:
            with self.silent_scoring():  # within the bar of an epoch
                return float(measure(scorer(network)).mean())

        return evaluate

    def _finish(self, reader: Reader, network: nn.Module, history: list[dict[str, Any]], report: Report) -> None:
        self._take(reader, network)
        self._history, self.report = history, report
        self._settle_fields()

    def _check_fit(self) -> None:
        """Raise ValueError if settings or options forbid training."""

    def _take(self, reader: Reader, network: nn.Module) -> None:
        """Make a reader and a trained network the model's own."""
        self.reader, self.network = reader, network
        self._mark_fitted()

    def _fitted(self) -> nn.Module:
        """The network on the model's device, or an error that says what to do."""
        self._require_fitted()
        device = torch_device(self.device)
        if next(self.network.parameters()).device != device:  # a look at all of them takes longer than a small network
            self.network.to(device)
        return self.network

    def __getstate__(self) -> dict[str, Any]:
        if self.network is None or next(self.network.parameters()).is_cpu:
            return self.__dict__
        return {**self.__dict__, "network": deepcopy(self.network).cpu()}  # another thread may score with its own

    def _weights(self) -> dict[str, np.ndarray]:
        return {name: weight.cpu().numpy() for name, weight in self.network.state_dict().items()}

    def _origin(self, frames: tuple[pd.DataFrame | None, ...], reader: Reader, start: Self | None, *more: str) -> str:
        """Changes with everything that a training depends on, so that checkpoints of another one are not used."""
        settings = [self.artifact_format, self.settings(), digest([], *reader.identity_parts()), *more]
        if self.documents is not None:
            settings += [len(self.documents), len(self.documents.vocabulary), len(self.documents.all().terms)]
        if start is not None:
            settings.append(start.fingerprint())
        return frames_digest(settings, frames, fields=self.fields)

    def _identity_parts(self) -> tuple[dict[str, np.ndarray], list[bytes]]:
        arrays, parts = self.reader.identity_parts()
        weights = {f"network.{name}": weight for name, weight in self._weights().items()}
        return {**arrays, **weights}, parts

    def _save_parts(self, directory: Path) -> None:
        write_tensors(directory / "weights.safetensors", self._weights())
        (directory / "reader").mkdir()
        self.reader.save(directory / "reader")

    def _load_parts(self, directory: Path) -> None:
        without_lost_threads()
        weights = read_tensors(directory / "weights.safetensors")
        reader = self.make_reader()
        reader.load(directory / "reader")
        with torch.device("meta"):  # which takes no memory, whatever the sizes
            require_weights(weights, self.make_network(reader))
        with torch.random.fork_rng(devices=[]):  # the random numbers of the user stay as they are
            network = self.make_network(reader)
        network.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
        self._take(reader, network.eval())

    def _blocks(
        self, lengths: np.ndarray, rows: np.ndarray, *, unit: str = "pair", verbose: bool | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield blocks of documents of similar length, the longest first, each with its pairs; with a progress bar.

        ``lengths`` are terms of documents, ``rows`` the document of each pair. Blocks are numbers of documents and of
        pairs.
        """
        order = np.argsort(-lengths, kind="stable")
        starts = _starts(np.maximum(lengths[order], 1).tolist(), self.batch_size, self.terms_per_block)
        ranks = np.argsort(order)[rows]
        sequence = np.argsort(ranks, kind="stable")
        bounds = np.searchsorted(ranks[sequence], starts[1:])
        blocks = zip(np.split(order, starts[1:]), np.split(sequence, bounds), strict=True)
        quiet = not (self.verbose if verbose is None else verbose) or len(starts) == 1
        with pt.tqdm(total=len(rows), desc=repr(self), unit=unit, disable=quiet) as progress:
            for documents, pairs in blocks:
                yield documents, pairs
                progress.update(len(pairs))


def require_weights(weights: Mapping[str, np.ndarray], network: nn.Module) -> None:
    """Raise ValueError unless these are the weights of such a network, all of them numbers, and of its types.

    Example::

        with torch.device("meta"):
            require_weights(read_tensors("weights.safetensors"), nn.Linear(3, 2))
    """
    expected = network.state_dict()
    if weights.keys() != expected.keys():
        raise ValueError(f"only one of both has {', '.join(sorted(weights.keys() ^ expected.keys()))}")
    for name, weight in expected.items():
        shape, kind = tuple(weight.shape), str(weight.dtype).removeprefix("torch.")
        array = weights[name]
        if array.shape != shape or array.dtype != kind:
            raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, not {kind} of shape {shape}")
        if not finite(array):
            raise ValueError(f"{name} holds NaN or infinity")


def copy_weights(start: nn.Module, network: nn.Module) -> None:
    """Copy the weights of a network to one that may know more n-grams or words, whose rows are the last.

    Raises:
        ValueError: If a weight is missing, or if a shape differs by more than further rows.
    """
    weights, others = start.state_dict(), network.state_dict()  # which share memory with the networks
    for name in weights.keys() | others.keys():
        shape, other = (list(found[name].shape) if name in found else None for found in (weights, others))
        if shape is None or other is None or shape[1:] != other[1:] or shape[:1] > other[:1]:
            raise ValueError(f"{name} is of shape {shape} in the ranker to start from, and of shape {other} here")
    for name, weight in weights.items():
        others[name][tuple(map(slice, weight.shape))] = weight


def _starts(lengths: list[int], most: int, terms: int) -> list[int]:
    """Where blocks of documents of falling lengths start."""
    starts = [0]
    for place in range(len(lengths)):
        if place - starts[-1] >= min(most, max(1, terms // lengths[starts[-1]])):
            starts.append(place)
    return starts
