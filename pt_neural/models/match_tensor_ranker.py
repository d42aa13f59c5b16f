"""What Match-Tensor and its hybrids share as rankers: from frames to tensors, and back to scores."""

from collections.abc import Iterator
from dataclasses import asdict, fields
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch

from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.models.match_tensor_network import MatchTensorNetwork, Shape
from pt_neural.rankers.embedded_ranker import EmbeddedRanker
from pt_neural.rankers.kept_documents import KeptDocuments
from pt_neural.rankers.pair_scores import Documents
from pt_neural.text import ForwardIndex


class MatchTensorRanker(EmbeddedRanker, KeptDocuments):
    """Base of Match-Tensor and of its hybrids with SSM.

    Args:
        spaces: The word embeddings.
        space: Which of their two vectors a word has.
        shape: Sizes of the network.
        **options: What the bases take.
    """

    compares_wholes: ClassVar[bool]

    def __init__(self, spaces: EmbeddingSpaces, space: Space, shape: Shape, **options: Any):
        super().__init__(spaces, space, **options)
        for name, size in asdict(shape).items():  # each is an argument, which PyTerrier inspects and GridSearch sets
            setattr(self, name, size)

    @property
    def shape(self) -> Shape:
        """Sizes of the network."""
        return Shape(**{size.name: getattr(self, size.name) for size in fields(Shape)})

    def settings(self) -> dict[str, Any]:
        """What makes the model what it is, beside the embeddings."""
        return {"space": self.space, "boundaries": self.boundaries, **asdict(self.shape)}

    def score(self, frame: pd.DataFrame) -> np.ndarray:
        """Scores of the rows of a result frame, float32 of shape (rows,)."""
        network = self._fitted()
        return self._scorer(self.vectors_of_words, frame)(network)

    def kept_columns(self) -> int:
        """Channels of the match tensor beside that of exact matches."""
        return self._fitted().columns

    def kept_lengths(self, documents: ForwardIndex) -> np.ndarray:
        """Rows of each document: its words and boundaries, and where query and document are compared as wholes, more.

        A document without words has rows as well.
        """
        boundaries = len(self.fields) + 1 if self.boundaries else 0
        return self._fitted().num_rows(np.minimum(documents.all().lengths + boundaries, self.document_terms))

    def encode_kept(self, documents: ForwardIndex, *, verbose: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Read all documents of a forward index, those of similar length together."""
        texts = self._documents_read(documents.all(), documents.vocabulary, self.vectors_of_words)
        for numbers, rows, _ in self._read(self._fitted(), texts, np.arange(len(documents)), verbose=verbose):
            yield numbers, rows.cpu().numpy()

    def _kept_rows(self, frame: pd.DataFrame) -> Documents | None:
        read = self.kept_reader(frame)
        return None if read is None else lambda numbers: tuple(map(torch.from_numpy, read(numbers)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(encoder={self.encoder!r}, channels={self.channels!r})"

    def _new_network(self) -> MatchTensorNetwork:
        return MatchTensorNetwork(self.spaces.dim, self.shape, compares_wholes=self.compares_wholes)
