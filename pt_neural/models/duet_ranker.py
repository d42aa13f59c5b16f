"""What the Duet and its two parts share as rankers: from frames to tensors, and back to scores."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from torch import Tensor, nn

from pt_neural._arguments import checked_number
from pt_neural.models.duet_networks import DuetNetwork, Shape, joint_scores
from pt_neural.models.duet_scoring import part_outputs
from pt_neural.rankers.columns import distinct_queries
from pt_neural.rankers.hashed import word_bags
from pt_neural.rankers.interaction import Interaction
from pt_neural.rankers.last_vocabulary import LastVocabulary
from pt_neural.rankers.pairs import PairTexts
from pt_neural.rankers.trained import Scorer
from pt_neural.text import PackedSequences, Vocabulary, WordHashing, pack_texts
from pt_neural.training.examples import Examples
from pt_neural.training.sampling import Collate

Outputs = Callable[[DuetNetwork], Tensor]


class DuetRanker(Interaction):
    """Base of the Duet and of its two parts as rankers of their own.

    Args:
        shape: Sizes of the network.
        ngram_sizes: Lengths of the letter n-grams that the distributed part reads.
        num_ngrams: How many of them count, the most frequent ones.
        **options: What :class:`~pt_neural.rankers.interaction.Interaction` takes.
    """

    parts: ClassVar[tuple[str, ...]]
    own_training: ClassVar[dict[str, Any]] = {
        "loss": "softmax",
        "gamma": 10.0,
        "negatives": "retrieved",
        "batch_size": 64,
        "learning_rate": 1e-3,
    }

    def __init__(self, shape: Shape, *, ngram_sizes: Sequence[int] = (), num_ngrams: int = 0, **options: Any):
        super().__init__(**options)
        for name, size in asdict(shape).items():  # each is an argument, which PyTerrier inspects and GridSearch sets
            setattr(self, name, size)
        self.ngram_sizes = tuple(ngram_sizes)
        self.num_ngrams = num_ngrams
        self.hashing: WordHashing | None = None
        self._bags = LastVocabulary()

    @property
    def shape(self) -> Shape:
        """Sizes of the network."""
        return Shape(**{size.name: getattr(self, size.name) for size in fields(Shape)})

    @property
    def reads_words(self) -> bool:
        """Whether there is a distributed part."""
        return "distributed" in self.parts

    def _texts(
        self, queries: Sequence[str], documents: PackedSequences, vocabulary: Vocabulary, hashing: WordHashing | None
    ) -> PairTexts:
        sequences, terms = pack_texts(queries)
        return PairTexts(
            sequences,
            vocabulary.ids(terms),
            documents,
            len(vocabulary),
            query_terms=self.shape.query_terms,
            document_terms=self.shape.document_terms,
            matches="local" in self.parts,
            query_bags=None if hashing is None else word_bags(terms, hashing),
            document_bags=None
            if hashing is None
            else self._bags(lambda: word_bags(vocabulary.terms, hashing), vocabulary, hashing),
        )

    def _begin(self, examples: Examples) -> tuple[WordHashing | None, nn.Module, Collate]:
        documents, vocabulary = self._training_documents(examples)
        hashing = None
        if self.reads_words:
            hashing = WordHashing.build(
                vocabulary,
                sizes=self.ngram_sizes,
                max_ngrams=checked_number("num_ngrams", self.num_ngrams, int, least=1),
            )
        texts = self._texts(examples.query_texts, documents, vocabulary, hashing)
        return hashing, self._new_network(hashing), texts.take

    def _new_network(self, hashing: WordHashing | None) -> DuetNetwork:
        return DuetNetwork(self.shape, 0 if hashing is None else len(hashing), self.parts)

    def _scorer(self, preparation: WordHashing | None, frame: pd.DataFrame) -> Scorer:
        outputs = self._outputs(preparation, frame)
        return lambda network: joint_scores(outputs(network)).numpy()

    def score(self, frame: pd.DataFrame) -> np.ndarray:
        """Scores of the rows of a result frame, float32 of shape (rows,)."""
        network = self._fitted()
        return self._scorer(self.hashing, frame)(network)

    def part_outputs(self, frame: pd.DataFrame) -> Tensor:
        """The output of each part before its tanh for the rows of a result frame, float32 of shape (rows, parts)."""
        network = self._fitted()
        return self._outputs(self.hashing, frame)(network)

    def _outputs(self, hashing: WordHashing | None, frame: pd.DataFrame) -> Outputs:
        """Prepare the texts of a frame once; what is returned gives a network's outputs for its rows."""
        queries, query_texts = distinct_queries(frame)
        documents, sequences, vocabulary = self._frame_documents(frame)
        texts = self._texts(query_texts, sequences, vocabulary, hashing)
        read = self._document_reader(frame)

        def outputs(network: DuetNetwork) -> Tensor:
            blocks = self._blocks(texts.lengths(np.arange(len(sequences))), documents)
            return part_outputs(network, texts, queries, documents, blocks, read=read)

        return outputs

    def _document_reader(self, frame: pd.DataFrame) -> Callable[[np.ndarray], Tensor] | None:
        """Reads what is kept of the frame's documents; None where nothing is."""
        return None

    def _install(self, preparation: WordHashing | None, network: nn.Module) -> None:
        super()._install(preparation, network)
        self.hashing = preparation

    def _save_preparation(self, directory: Path) -> None:
        if self.hashing is not None:
            self.hashing.save(directory)

    def _load_preparation(self, directory: Path) -> tuple[WordHashing | None, nn.Module]:
        hashing = WordHashing.load(directory) if self.reads_words else None
        return hashing, self._new_network(hashing)
