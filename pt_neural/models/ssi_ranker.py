"""What SSI does with the texts of frames: it learns from them, weighs them, and keeps what it has learned."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from torch import nn

from pt_neural._artifacts import ArtifactError, read_json, write_json
from pt_neural.models.bilinear_batches import BatchesInTurn, TuplesCollate
from pt_neural.models.bilinear_network import BilinearNetwork
from pt_neural.models.bilinear_shape import Shape
from pt_neural.models.compiling import compile_steps
from pt_neural.models.correlated_hashing import CorrelatedHashing
from pt_neural.models.mixing import train_mixed
from pt_neural.models.pruning import train_sparse
from pt_neural.models.ssi_features import Features, training_texts
from pt_neural.models.ssi_kinds import shape_of
from pt_neural.rankers import BilinearRanker
from pt_neural.rankers.columns import distinct_queries
from pt_neural.rankers.trained import Scorer, Trained
from pt_neural.rankers.weighed import Weighed
from pt_neural.text import PackedSequences, TfIdf, Vocabulary, tokenise, tokenise_packed
from pt_neural.text.counts import most_frequent
from pt_neural.training import Training
from pt_neural.training.examples import Examples, digest
from pt_neural.training.groups import Groups
from pt_neural.training.losses import Loss
from pt_neural.training.sampling import Collate, GroupBatches

ONLY = {  # values of the settings of a training, of which the first can replace any other
    "loss": ("margin",),
    "optimiser": ("sgd",),
    "device": ("cpu", "auto"),
    "devices": (1,),
    "strategy": ("auto",),
    "precision": ("32-true", "32", 32),
    "weight_decay": (0.0,),
    "gradient_clip": (None,),
}


class SSIRanker(BilinearRanker, Trained):
    """Base of SSI, without its settings.

    Attributes:
        features: What turns texts into vectors, with the vocabularies; None until :meth:`fit`.
    """

    features: Features | None = None
    _monolingual: tuple[pd.DataFrame, pd.DataFrame] | None = None
    _own_queries = False

    def fit(
        self,
        topics_or_res_tr: pd.DataFrame,
        qrels_tr: pd.DataFrame,
        topics_or_res_va: pd.DataFrame | None = None,
        qrels_va: pd.DataFrame | None = None,
        *,
        monolingual: tuple[pd.DataFrame, pd.DataFrame] | None = None,
        own_queries: bool = False,
    ) -> "SSIRanker":
        """Train anew; see :meth:`pt_neural.rankers.trained.Trained.fit`.

        Args:
            topics_or_res_tr: Candidates of the training queries: ``qid, query, docno`` and text (``docno`` is enough
                where the model has a forward index).
            qrels_tr: Their judgements, or links: ``qid, docno, label``.
            topics_or_res_va: Candidates of the dev queries, to stop early by.
            qrels_va: Their judgements.
            monolingual: Candidates and judgements of queries in the language of the documents. Their tuples are taken
                in turn with the others, with W = V'V (equation 10), so that V serves both. Words that only their
                documents have are known where the model has ``documents``, a forward index of all of them.
            own_queries: Let them have a U of their own instead, W = U_E'V; only V is shared.

        Returns:
            The model.

        Raises:
            TypeError: If ``monolingual`` is no pair of frames.
            ValueError: As in the base class; if the settings of the training are not the paper's; or if there are
                monolingual tuples for a kind without V, or none where they are to have queries of their own.
        """
        _check_monolingual(self.kind, monolingual, own_queries)
        self._monolingual, self._own_queries = monolingual, own_queries
        try:
            return super().fit(topics_or_res_tr, qrels_tr, topics_or_res_va, qrels_va)
        finally:
            self._monolingual = None

    def _origin(self) -> list[Any]:
        """As in the base class, and the monolingual tuples."""
        if self._monolingual is None or self.training.checkpoint_dir is None:
            return super()._origin()
        return [*super()._origin(), digest(self._own_queries, self._monolingual, fields=self.fields)]

    def _begin(self, examples: Examples) -> tuple[Features, nn.Module, Collate]:
        self._require_no_vectors()
        training = self.training.completed(self.own_training)
        if changed := [name for name, values in ONLY.items() if getattr(training, name) not in values]:
            needed = ", ".join(f"{name}={ONLY[name][0]!r}" for name in changed)
            raise ValueError(f"SSI makes the steps of its paper, one tuple at a time, and needs Training({needed})")
        features, sequences = self._learn_features(examples, verbose=training.verbose)
        shape = shape_of(self.settings(), len(features.queries.vocabulary), len(features.documents.vocabulary))
        network = BilinearNetwork(
            shape,
            deviation=self.deviation,
            alike=self.alike and self.shared_vocabulary,
            other_queries=self._own_queries,
        )
        vocabulary = features.documents.vocabulary
        texts = training_texts(features.of_queries(examples.query_texts), features.of_sequences(sequences, vocabulary))
        other = None if self._monolingual is None else self._monolingual_batches(features, training)
        return features, network, TuplesCollate(texts, other)

    def _learn_features(self, examples: Examples, *, verbose: bool) -> tuple[Features, PackedSequences]:
        """What turns texts into vectors, and the documents as ids of its vocabulary."""
        limits = {"min_count": self.min_count, "max_terms": self.max_terms}
        if examples.document_texts is None:
            vocabulary = most_frequent(self.documents.vocabulary, **limits)
        else:
            vocabulary = Vocabulary.build(map(tokenise, examples.document_texts), **limits)
        documents = queries = TfIdf(vocabulary, sublinear_tf=self.sublinear_tf)
        if not self.shared_vocabulary:
            of_queries = Vocabulary.build(map(tokenise, examples.query_texts), **limits)
            queries = TfIdf(of_queries, sublinear_tf=self.sublinear_tf)
        if not len(vocabulary) or not len(queries.vocabulary):
            raise ValueError(f"no word occurs {self.min_count} times: give more texts, or a smaller min_count")
        features = Features(queries, documents)
        if examples.document_texts is None:
            sequences = features.own_sequences(self.documents.all(), self.documents.vocabulary)
        else:
            sequences = tokenise_packed(examples.document_texts, vocabulary)
        if self.kind == "correlated-hash":
            weighing = {"bins": self.bins, "ngrams": self.ngrams, "sublinear_tf": self.sublinear_tf}
            hashing = CorrelatedHashing.build(
                sequences, vocabulary, frequent=self.embedded_terms, **weighing, verbose=verbose
            )
            features = Features(queries, documents, hashing)
        return features, sequences

    def _monolingual_batches(self, features: Features, training: Training) -> GroupBatches:
        """Batches of the task in the language of the documents, whose queries are over their vocabulary."""
        examples = self._make_examples(*self._monolingual, training)
        queries = features.of_documents(examples.query_texts)
        if examples.document_texts is None:
            documents = features.of_sequences(self.documents.all(), self.documents.vocabulary)
        else:
            documents = features.of_documents(examples.document_texts)
        return GroupBatches(examples.groups, training, TuplesCollate(training_texts(queries, documents)))

    def _batches(self, groups: Groups, training: Training, collate: TuplesCollate) -> GroupBatches:
        if collate.other is None:
            return super()._batches(groups, training, collate)
        return BatchesInTurn(groups, training, collate, other=collate.other)

    def _train(self, network: nn.Module, batches: GroupBatches, loss: Loss, training: Training, **options: Any) -> None:
        run = network, batches, loss, replace(training, device="cpu")  # where the compiled loops run, GPU or not
        compile_steps(network, batches[0, 0], training)
        if self.kind == "sparse":
            train_sparse(super()._train, *run, nonzeros=self.nonzeros, rounds=self.rounds, **options)
        elif self.kind == "correlated-hash":
            train_mixed(super()._train, *run, **options)
        else:
            super()._train(*run, **options)

    def _install(self, preparation: Features, network: BilinearNetwork) -> None:
        if self.kind == "sparse" and network.shape.pairs:
            network = network.compressed()
        network.forget_other_task()
        super()._install(preparation, network)
        self.features = preparation

    def _scorer(self, preparation: Features, frame: pd.DataFrame) -> Scorer:
        query_rows, texts = distinct_queries(frame)
        queries = preparation.of_queries(texts)
        document_rows, sequences, vocabulary = self._frame_documents(frame)
        documents = preparation.of_sequences(sequences, vocabulary)

        def scores(network: BilinearNetwork) -> np.ndarray:
            weighed = network.weigh_documents(*documents)
            return self.row_scores(
                lambda some: network.weigh_queries(*(part if part is None else part[some] for part in queries)),
                query_rows,
                weighed,
                document_rows,
            )

        return scores

    def weigh_queries(self, texts: Sequence[str]) -> Weighed:
        """Queries as they are multiplied: Uq, and q'W for what W has beside U'V."""
        return self._fitted().weigh_queries(*self.features.of_queries(texts))

    def weigh_documents(self, texts: Sequence[str]) -> Weighed:
        """Documents as they are multiplied: Vd, and d."""
        return self._fitted().weigh_documents(*self.features.of_documents(texts))

    def weigh_sequences(self, sequences: PackedSequences, vocabulary: Vocabulary) -> Weighed:
        """Documents given as term ids over another vocabulary, likewise."""
        return self._fitted().weigh_documents(*self.features.of_sequences(sequences, vocabulary))

    def _save_preparation(self, directory: Path) -> None:
        self.features.save(directory)
        write_json(directory / "shape.json", self.network.shape.to_json())

    def _load_preparation(self, directory: Path) -> tuple[Features, nn.Module]:
        shape = read_json(directory / "shape.json")
        try:
            return Features.load(directory), BilinearNetwork(Shape(**shape))
        except TypeError as error:
            raise ArtifactError(f"{directory / 'shape.json'} is damaged: {error}") from None


def _check_monolingual(kind: str, monolingual: Any, own_queries: bool) -> None:
    if monolingual is None:
        if own_queries:
            raise ValueError("own_queries=True is about monolingual tuples: give monolingual=(candidates, qrels)")
        return
    if kind != "low-rank":
        raise ValueError(f"monolingual tuples share V, which kind={kind!r} has none of: choose 'low-rank'")
    pair = isinstance(monolingual, tuple | list) and len(monolingual) == 2
    if not pair or not all(isinstance(frame, pd.DataFrame) for frame in monolingual):
        raise TypeError("monolingual must be a pair of frames, (candidates, qrels), as fit takes them")
