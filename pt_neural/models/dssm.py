"""The Deep Structured Semantic Model (Huang et al., 2013), as section 5.2 of the CLSM paper has it."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pt_neural._arguments import checked_integers
from pt_neural.models.hashing_layer import HashingLayer
from pt_neural.rankers.hashed import HashedTexts
from pt_neural.rankers.hashed_two_tower import HashedTwoTower
from pt_neural.text import ForwardIndex
from pt_neural.training import Training

if TYPE_CHECKING:
    from pyterrier_dr import FlexIndex


class DSSM(HashedTwoTower):
    """Cosine of a query and a document, each a bag of letter trigrams sent through a network of its own.

    The text is one bag of letter trigrams (word hashing); two hidden layers of 300 tanh units and an output layer of
    128 follow, without biases; the score is the cosine (CLSM paper, section 5.2 and equation 4). A text without any
    letter trigram that was seen in training has no vector: such a query scores 0, such a document -1.

    The paper trains with J = 4 or 50 random documents, ``pn.Training(negatives="random", num_negatives=50)``. The
    default is the relevant documents of the other groups of the batch, which are encoded anyway, and Adam. The paper
    tunes gamma on held-out queries; here it is 10, and both networks start with the same random weights.

    Args:
        layers: Units of each layer; the last is the length of the vectors.
        shared: One network for queries and documents. The paper found two better.
        ngram_sizes: Lengths of the letter n-grams.
        training: How to train; see :class:`~pt_neural.Training`.
        fields: Text columns, joined by a space; those that a frame lacks are passed over, one must be there. None for
            those of ``documents``, or ``title`` and ``text``.
        documents: A forward index: training and re-ranking need ``docno`` only, and random negatives come from the
            whole collection.
        vectors: An index made by :meth:`index`, to re-rank by ``docno`` from kept vectors.
        device: Where to score: ``"auto"``, ``"cpu"``, ``"cuda"``, ``"mps"``.
        batch_size: Texts encoded at a time.
        verbose: Show a progress bar while encoding documents.

    Raises:
        TypeError: If ``layers`` is no sequence of integers, or another argument is of another kind than said here.
        ValueError: If ``layers`` is empty or holds a number below 1.

    Example::

        dssm = pn.DSSM(training=pn.Training(epochs=10))
        (candidates >> dssm).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
        (candidates >> dssm).search("pairwise distance")
    """

    schematic = {"label": "DSSM", "help_url": None}
    artifact_format = "dssm"

    def __init__(
        self,
        layers: Sequence[int] = (300, 300, 128),
        *,
        shared: bool = False,
        ngram_sizes: Sequence[int] = (3,),
        training: Training | None = None,
        fields: str | Sequence[str] | None = None,
        documents: ForwardIndex | None = None,
        vectors: "FlexIndex | None" = None,
        device: str = "auto",
        batch_size: int = 8192,
        verbose: bool = False,
    ):
        super().__init__(
            shared=shared,
            ngram_sizes=ngram_sizes,
            training=training,
            fields=fields,
            documents=documents,
            vectors=vectors,
            device=device,
            batch_size=batch_size,
            verbose=verbose,
        )
        self.layers = checked_integers("layers", layers, least=1)

    def tower(self, num_ngrams: int) -> nn.Module:
        """A new network for one side."""
        return BagTower(num_ngrams, self.layers)

    def settings(self) -> dict[str, Any]:
        """What makes the model what it is."""
        return {"layers": list(self.layers), **super().settings()}

    def __repr__(self) -> str:
        return f"DSSM({'-'.join(map(str, self.layers))})"


class BagTower(nn.Module):
    """A text as one bag of letter n-grams, through layers of tanh units.

    Args:
        num_ngrams: Number of letter n-grams.
        layers: Units of each layer.
    """

    def __init__(self, num_ngrams: int, layers: Sequence[int]):
        super().__init__()
        self.hashing = HashingLayer(num_ngrams, layers[0], bound=0.02)
        self.dense = nn.ModuleList(nn.Linear(*shape, bias=False) for shape in pairwise(layers))
        for layer in self.dense:
            nn.init.xavier_uniform_(layer.weight)

    def forward(self, texts: HashedTexts) -> Tensor:
        """Vectors of shape (texts, units of the last layer)."""
        return self.read(self.project(texts), texts.words, texts.offsets)

    def project(self, texts: HashedTexts) -> Tensor:
        """What each distinct word adds to the first layer: (distinct words, units of the first layer)."""
        return self.hashing(texts)

    def read(self, projections: Tensor, words: Tensor, offsets: Tensor) -> Tensor:
        """Vectors of texts whose words are projected already."""
        units = torch.tanh(F.embedding_bag(words, projections, offsets, mode="sum", include_last_offset=True))
        for layer in self.dense:
            units = torch.tanh(layer(units))
        return units
