"""Trained rankers that read texts as sequences of word embeddings."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from pt_neural._arguments import checked_choice
from pt_neural._artifacts import ArtifactError
from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.rankers.columns import distinct_queries
from pt_neural.rankers.embedded import EmbeddedCorpus, EmbeddedPairs, WordVectors
from pt_neural.rankers.pair_scores import Documents, pair_scores
from pt_neural.rankers.pairs import moved
from pt_neural.rankers.ranker import Ranker
from pt_neural.rankers.trained import Scorer
from pt_neural.rankers.word_vectors import WithSpaces
from pt_neural.text import PackedSequences, Vocabulary, pack_texts, with_boundaries
from pt_neural.text.arrays import load_array
from pt_neural.text.packed import offsets_of, ranges
from pt_neural.training.examples import Examples

OTHERS = "other_vectors.npy"  # file of a saved model


class EmbeddedRanker(WithSpaces):
    """Mix-in of rankers whose network reads the words of a query and of a document one after the other.

    It stands before the other bases, a :class:`~pt_neural.rankers.ranker.Ranker` and
    :class:`~pt_neural.rankers.trained.Trained` among them.

    Args:
        spaces: The word embeddings.
        space: Which of their two vectors a word has.
        boundaries: Whether boundary tokens stand before each field and after the last. A trained model then reads as
            many fields as it was trained on.
        **options: What the other bases take.
    """

    own_training: ClassVar[dict[str, Any]] = {
        "loss": "pointwise",
        "gamma": 1.0,
        "negatives": "retrieved",
        "batch_size": 40,
        "learning_rate": 1e-3,
    }
    terms_per_block = 16_384  # what reading them takes then stays in the processor's cache
    looks_at_matches = True

    def __init__(self: Ranker, spaces: EmbeddingSpaces, space: Space, *, boundaries: bool, **options: Any):
        self.boundaries = boundaries
        super().__init__(spaces, space, **options)
        self.vectors_of_words: WordVectors | None = None

    @abstractmethod
    def _new_network(self) -> nn.Module:
        """A new network for the embeddings of the model."""

    @property
    def boundaries(self) -> bool:
        """Whether boundary tokens stand before each field and after the last."""
        return self.tells_fields_apart

    @boundaries.setter
    def boundaries(self, boundaries: bool) -> None:
        self.tells_fields_apart = checked_choice("boundaries", boundaries, (True, False))

    def _fitted(self) -> nn.Module:
        network = super()._fitted()
        self._require_as_many_fields()
        return network

    def _check_options(self) -> None:
        super()._check_options()
        self._require_as_many_fields()

    def _require_as_many_fields(self) -> None:
        trained_on = len(self.vectors_of_words.others) - 2
        if self.boundaries and len(self.fields) != trained_on:
            raise ValueError(
                f"{self!r} tells apart the {trained_on} fields that it was trained on, and cannot read "
                f"{', '.join(self.fields)} instead: give as many, or fit it again"
            )

    def _documents_read(
        self, sequences: PackedSequences, vocabulary: Vocabulary, vectors: WordVectors
    ) -> EmbeddedCorpus:
        if self.boundaries:
            sequences = with_boundaries(
                sequences, len(vocabulary), fields=len(vectors.others) - 2, max_terms=self.document_terms
            )
        else:
            sequences = sequences.take(np.arange(len(sequences)), max_terms=self.document_terms)
        return EmbeddedCorpus(sequences, vectors.rows_of(vocabulary), vectors)

    def _queries_read(self, texts: Sequence[str], vectors: WordVectors) -> tuple[EmbeddedCorpus, list[str]]:
        sequences, terms = pack_texts(texts)
        sequences = sequences.take(np.arange(len(sequences)), max_terms=self.query_terms)
        return EmbeddedCorpus(sequences, vectors.rows(terms), vectors), terms

    def _pairs(
        self, queries: Sequence[str], documents: PackedSequences, vocabulary: Vocabulary, vectors: WordVectors
    ) -> EmbeddedPairs:
        read, terms = self._queries_read(queries, vectors)
        return EmbeddedPairs(
            read,
            vocabulary.ids(terms),
            self._documents_read(documents, vocabulary, vectors),
            len(vocabulary) + len(vectors.others),
            matches=self.looks_at_matches,
        )

    def _begin(self, examples: Examples) -> tuple[WordVectors, nn.Module, EmbeddedPairs]:
        documents, vocabulary = self._training_documents(examples)
        if not (self.spaces.ids(vocabulary.terms) >= 0).any():
            raise ValueError(
                f"no word of {' and '.join(self.fields)} has a vector in {self.spaces!r}: train the embeddings on the "
                "same collection, or one in the same language"
            )
        vectors = WordVectors.draw(self.spaces, self.space, len(self.fields) + 1 if self.boundaries else 0)
        network = self._new_network()
        return vectors, network, self._pairs(examples.query_texts, documents, vocabulary, vectors)

    def _scorer(self, preparation: WordVectors, frame: pd.DataFrame) -> Scorer:
        query_rows, query_texts = distinct_queries(frame)
        document_rows, sequences, vocabulary = self._frame_documents(frame)
        pairs = self._pairs(query_texts, sequences, vocabulary, preparation)
        kept = self._kept_rows(frame)

        def scores(network: nn.Module) -> np.ndarray:
            read = kept or _Reading(self, network, pairs.documents)
            return pair_scores(network, pairs, query_rows, document_rows, read).numpy()

        return scores

    def _preparation_identity(self) -> tuple[dict[str, np.ndarray], list[bytes]]:
        arrays, parts = super()._preparation_identity()
        return {**arrays, "others": self.vectors_of_words.others}, parts

    def _kept_rows(self, frame: pd.DataFrame) -> Documents | None:
        """Gives what is kept of the frame's documents; None where nothing is."""
        return None

    def _read(
        self, network: nn.Module, documents: EmbeddedCorpus, numbers: np.ndarray, *, verbose: bool | None = None
    ) -> Iterator[tuple[np.ndarray, Tensor, Tensor]]:
        """Let a network read documents in blocks: places among the numbers, rows and their offsets."""
        device = next(network.parameters()).device
        lengths = documents.sequences.lengths[numbers]
        for places, _ in self._blocks(lengths, np.arange(len(numbers)), unit="doc", verbose=verbose):
            with torch.inference_mode():
                yield places, *network.read_documents(moved(documents.take(numbers[places]), device))

    def _install(self, preparation: WordVectors, network: nn.Module) -> None:
        super()._install(preparation, network)
        self.vectors_of_words = preparation

    def _save_preparation(self, directory: Path) -> None:
        super()._save_preparation(directory)
        np.save(directory / OTHERS, self.vectors_of_words.others, allow_pickle=False)

    def _load_preparation(self, directory: Path) -> tuple[WordVectors, nn.Module]:
        others = load_array(directory / OTHERS, dtype=np.float32, ndim=2, memory_map=False)
        enough = len(others) > 2 if self.boundaries else len(others) == 1
        if not enough or others.shape[1] != self.spaces.dim:
            raise ArtifactError(f"{directory / OTHERS} is damaged: it does not fit the other files")
        return WordVectors(self.spaces, self.space, others), self._new_network()


class _Reading:
    """Reads documents with a network when their rows are asked for."""

    def __init__(self, model: EmbeddedRanker, network: nn.Module, documents: EmbeddedCorpus):
        self.model, self.network, self.documents = model, network, documents

    def __call__(self, numbers: np.ndarray) -> tuple[Tensor, Tensor]:
        """The rows of some documents, one after the other, and where each starts."""
        lengths = self.network.num_rows(self.documents.sequences.lengths[numbers])
        offsets = offsets_of(lengths)
        rows = None
        for places, block, _ in self.model._read(self.network, self.documents, numbers):
            if rows is None:
                rows = block.new_empty(int(offsets[-1]), block.shape[1])
            rows[torch.from_numpy(ranges(offsets[places], lengths[places]))] = block
        return rows, torch.from_numpy(offsets)
