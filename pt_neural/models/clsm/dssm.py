"""The Deep Structured Semantic Model (Huang et al., 2013), as in section 5.2 of the CLSM paper."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pt_neural._arguments import checked_choice, checked_integers
from pt_neural.models.clsm.layers import CosineTowers
from pt_neural.rankers.options import TowerOptions
from pt_neural.rankers.readers.hashed_ngrams import HashedNgrams, HashedTexts, HashingLayer
from pt_neural.rankers.towers import TowerRanker

TRAINING = {
    "batch_size": 256,
    "learning_rate": 1e-3,
    "loss": "softmax",
    "gamma": 10.0,
    "negatives": "in-batch",
}
TOWERS = {"shared": True, "learning_rate": 3e-4, "epochs": 60, "patience": 5}


def checked_towers(shared: bool, ngram_sizes: Sequence[int]) -> tuple[bool, tuple[int, ...]]:
    """The settings that DSSM and CLSM share; each size of n-grams once, in ascending order."""
    sizes = checked_integers("ngram_sizes", ngram_sizes, least=1)
    return checked_choice("shared", shared, (True, False)), tuple(sorted(set(sizes)))


class DSSM(TowerRanker):
    """Cosine of a query and a document, each a bag of letter trigrams encoded by its own network.

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

    Raises:
        TypeError: If ``layers`` is not a sequence of integers, or another argument has the wrong type.
        ValueError: If ``layers`` is empty or holds a number below 1.

    Example::

        dssm = pn.DSSM(training=pn.Training(epochs=10))
        (candidates >> dssm).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
        (candidates >> dssm).search("pairwise distance")
    """

    schematic = {"label": "DSSM", "help_url": None}
    artifact_format = "dssm"
    own_options: ClassVar[dict[str, Any]] = {"batch_size": 8192}
    own_training: ClassVar[dict[str, Any]] = TRAINING
    small_sizes: ClassVar[dict[str, Any]] = {"layers": (100, 64)}
    recipes: ClassVar[dict[str, dict[str, Any]]] = {
        "few": TOWERS,
        "some": TOWERS,
        "many": {**TOWERS, "shared": False},
    }

    def __init__(
        self,
        layers: Sequence[int] = (300, 300, 128),
        *,
        shared: bool = False,
        ngram_sizes: Sequence[int] = (3,),
        **options: Unpack[TowerOptions],
    ):
        self.layers = checked_integers("layers", layers, least=1)
        self.shared, self.ngram_sizes = checked_towers(shared, ngram_sizes)
        super().__init__(**options)

    def make_reader(self) -> HashedNgrams:
        """A reader of letter n-grams."""
        return HashedNgrams(self.ngram_sizes)

    def make_network(self, reader: HashedNgrams) -> CosineTowers:
        """Two new towers, or one."""
        return CosineTowers(BagTower(len(reader.hashing), self.layers), shared=self.shared)

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
