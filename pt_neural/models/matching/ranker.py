"""The base of the later classics: interaction rankers over word embeddings, frozen or trained."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Literal, Unpack

import numpy as np
import torch
from torch import nn

from pt_neural._arguments import checked_choice, checked_number
from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.models.matching.encoded import TERMS_PER_BLOCK, read_blocks, score_pairs
from pt_neural.models.matching.layers import WordVectors
from pt_neural.rankers.interaction import InteractionRanker, KeptReader
from pt_neural.rankers.options import TrainedOptions
from pt_neural.rankers.readers.embedded_words import checked_spaces
from pt_neural.rankers.readers.reader import to_device
from pt_neural.rankers.readers.word_sequences import WordPairGroups, WordSequences
from pt_neural.text import ForwardIndex

Embeddings = Literal["frozen", "trained"]
TRAINING = {
    "loss": "margin",
    "margin": 1.0,
    "gamma": 1.0,
    "negatives": "retrieved",
    "batch_size": 16,
    "learning_rate": 1e-3,
}
RECIPES = {
    "few": {"epochs": 30, "patience": 5},
    "some": {"max_groups": 8_000, "epochs": 30, "patience": 5},
    "many": {"max_groups": 100_000, "epochs": 30, "patience": 5},
}
FAST = {"learning_rate": 1e-2}
TRAINED_VECTORS = {"loss": "softmax", "gamma": 10.0, "embeddings": "trained"}


def for_few(**settings: Any) -> dict[str, dict[str, Any]]:
    """The recipes with other settings for up to tens of thousands of queries."""
    return {name: recipe if name == "many" else {**recipe, **settings} for name, recipe in RECIPES.items()}


class MatchingRanker(InteractionRanker):
    """Base of rankers over word embeddings that match each query word with each document word.

    A model says its settings and its network. Those that may be changed are checked by ``least``, the smallest value of
    each number, and ``choices``.

    Args:
        spaces: The word embeddings.
        space: Which of a word's two vectors to take.
        embeddings: Whether the vectors stay as they are or are trained on.
        query_terms: Words of a query that are read.
        document_terms: Words of a document that are read.
        **options: See :class:`~pt_neural.rankers.options.TrainedOptions`.

    Attributes:
        least: The smallest value of each setting that is a number.
        choices: The values of each setting that is a choice.
        reads_idf: Whether the network uses the idf of query words.
        reads_matches: Whether the network uses exact matches, which the rows of documents that it has read do not show.
    """

    components: ClassVar[dict[str, Callable[..., Any]]] = {"spaces": EmbeddingSpaces.load}
    own_training: ClassVar[dict[str, Any]] = TRAINING
    small_sizes: ClassVar[dict[str, Any]] = {"document_terms": 100}
    recipes: ClassVar[dict[str, dict[str, Any]]] = RECIPES
    terms_per_block: ClassVar[int] = TERMS_PER_BLOCK
    least: ClassVar[Mapping[str, int]] = {}
    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    reads_idf: ClassVar[bool] = False
    reads_matches: ClassVar[bool] = False

    def __init__(
        self,
        spaces: EmbeddingSpaces,
        *,
        space: Space,
        embeddings: Embeddings,
        query_terms: int,
        document_terms: int,
        **options: Unpack[TrainedOptions],
    ):
        self._spaces = checked_spaces(spaces)
        self.space, self.embeddings = space, embeddings
        self.query_terms, self.document_terms = query_terms, document_terms
        self._check_settings()
        super().__init__(**options)

    @property
    def spaces(self) -> EmbeddingSpaces:
        """The word embeddings, which are part of the model: they cannot be set."""
        return self._spaces

    def _check_settings(self) -> None:
        """Raise an error if a setting is invalid, whether given to the constructor or set later."""
        choices = {"space": ("in", "out"), "embeddings": ("frozen", "trained"), **self.choices}
        for name, values in choices.items():
            checked_choice(name, getattr(self, name), values)
        for name, least in {"query_terms": 1, "document_terms": 1, **self.least}.items():
            setattr(self, name, checked_number(name, getattr(self, name), int, least=least))

    def _check_fit(self) -> None:
        super()._check_fit()
        self._check_settings()

    def make_reader(self) -> WordSequences:
        """A reader of words."""
        self._check_settings()
        limits = {"query_terms": self.query_terms, "document_terms": self.document_terms}
        return WordSequences(self.spaces, self.space, **limits, idf=self.reads_idf, matches=self.reads_matches)

    def word_vectors(self, reader: WordSequences) -> WordVectors:
        """The network's table of word vectors."""
        return WordVectors(reader.spaces.vectors(self.space), trained=self.embeddings == "trained")

    def score_texts(
        self,
        network: nn.Module,
        texts: WordPairGroups,
        query_rows: np.ndarray,
        document_rows: np.ndarray,
        kept: KeptReader | None,
    ) -> np.ndarray:
        """The network's scores of pairs; a network that encodes documents reads each of them once."""
        if hasattr(network, "read_documents"):
            return score_pairs(self, network, texts, query_rows, document_rows, kept)
        device = next(network.parameters()).device
        scores = np.empty(len(query_rows), dtype=np.float32)
        order = np.argsort(query_rows, kind="stable")
        lengths = texts.documents.sequences.lengths[document_rows]
        with torch.inference_mode():
            for start in range(0, len(order), self.batch_size):  # pairs of few queries, whose similarities are shared
                chunk = order[start : start + self.batch_size]
                for _, places in self._blocks(lengths[chunk], np.arange(len(chunk)), verbose=False):
                    pairs = chunk[places]
                    groups = texts.batch(query_rows[pairs], document_rows[pairs][:, None])
                    scores[pairs] = network(to_device(groups, device))[:, 0].cpu().numpy()
        return scores

    def kept_columns(self) -> int:
        """Numbers that are kept of each word of a document, or of a document."""
        return self._encoding_network().columns

    def kept_lengths(self, documents: ForwardIndex) -> np.ndarray:
        """Rows of each document."""
        lengths = np.minimum(documents.all().lengths, self.document_terms)
        return self._encoding_network().num_rows(lengths)

    def encode_kept(self, documents: ForwardIndex, *, verbose: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Read all documents of a forward index, those of similar length together."""
        texts = self.reader.read_documents(documents.all(), documents.vocabulary)
        network = self._encoding_network()
        for numbers, rows in read_blocks(self, network, texts, np.arange(len(documents)), verbose=verbose):
            yield numbers, rows.cpu().numpy()

    def _encoding_network(self) -> nn.Module:
        network = self._fitted()
        if not hasattr(network, "read_documents"):
            raise self._keeps_nothing()
        return network

    def __repr__(self) -> str:
        return f"{type(self).__name__}(embeddings={self.embeddings!r})"
