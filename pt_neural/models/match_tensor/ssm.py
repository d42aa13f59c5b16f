"""SSM, the semantic similarity model of the Match-Tensor paper (Jaech, Kamisetty, Ringger and Clarke, 2017)."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, Unpack

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.models.match_tensor.match_tensor import (
    RECIPES,
    TRAINING,
    make_word_reader,
    require_trained_input,
)
from pt_neural.models.matching.encoded import TERMS_PER_BLOCK, score_pairs
from pt_neural.models.matching.encoders import (
    ENCODERS,
    Encoder,
    Queries,
    RowLinear,
    TextEncoders,
    checked_sizes,
    max_over_texts,
)
from pt_neural.rankers.columns import distinct_queries
from pt_neural.rankers.options import TowerOptions
from pt_neural.rankers.readers.embedded_words import EmbeddedCorpus, EmbeddedGroups, EmbeddedTexts, EmbeddedWords
from pt_neural.rankers.readers.reader import to_device
from pt_neural.rankers.readers.word_pairs import Matches
from pt_neural.rankers.towers import TowerRanker
from pt_neural.rankers.trained import Scorer
from pt_neural.rankers.vectors import Vectors
from pt_neural.text import PackedSequences, Vocabulary

DocumentPooling = Literal["max", "attention"]
IN_BATCH = {
    "loss": "softmax",
    "negatives": "in-batch",
    "batch_size": 64,
    "learning_rate": 1e-3,
    "epochs": 60,
    "patience": 8,
}
SIZES = ("projection", "document_units", "query_units", "hidden", "query_terms", "document_terms", "dropout")


class SSM(TowerRanker):
    """The dot product of a query embedding and a document embedding, both made from words in context (section 5.3).

    Fixed word embeddings are projected by one layer that both sides share, and read by a bi-directional LSTM for each
    side. The query embedding is a linear layer over the last states of both directions; the document embedding is one
    over the largest value of each unit over all words. The score is the dot product, which a sigmoid would turn into a
    probability. With ``pooling="attention"`` (section 5.7) the states of the document's words are averaged instead.
    Their weights are a softmax of dot products of query and word, after a ReLU layer each. Document embeddings then
    depend on the query, so the model re-ranks, but neither encodes documents nor retrieves.

    Unknown words share one random vector, which stays fixed, as do the vectors of the boundary tokens before each field
    and after the last (section 5.2). With max pooling, a text without any known word has no embedding: such a query
    scores 0 and retrieves nothing; such a document scores -100, lower than any other score should be, and is never
    retrieved.

    Sizes are those of Table 2, which counts 216K weights; the paper does not say how much dropout there is, so the
    default was chosen here. Training is pointwise as in the paper: cross-entropy of each document's sigmoid against its
    grade, divided by the highest, with Adam, and 200 documents a step (40 groups of five). The recipes for up to tens
    of thousands of training queries have the softmax loss over 63 negatives from the batch instead, which did better on
    the dev queries of ``neural:pydocs`` and of the C++ reference.

    Args:
        spaces: The word embeddings; 256 dimensions in the paper.
        space: Which of a word's two vectors to take, ``"in"`` or ``"out"``.
        encoder: ``"lstm"``; or ``"cnn"``, convolutions over one and over three words instead (section 5.6), with max
            pooling for the query too.
        pooling: ``"max"`` or ``"attention"``.
        projection: Dimensions that word embeddings are projected to.
        document_units: Units of each direction of the document encoder.
        query_units: Units of each direction of the query encoder.
        hidden: Length of the embeddings that are compared.
        query_terms: Number of words of a query that are read.
        document_terms: Number of words of a document that are read, boundaries included.
        boundaries: Whether boundary tokens stand before each field and after the last. A trained model then reads only
            as many fields as it was trained on.
        dropout: Share of the encoders' inputs and outputs that is dropped in training.

    Raises:
        TypeError: If an argument is of another kind than described.
        ValueError: If a size is out of range or a choice unknown.

    Example::

        spaces = pn.EmbeddingSpaces.train(docs.get_corpus_iter(), dim=256)
        ssm = pn.SSM(spaces)
        (candidates >> ssm).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
    """

    schematic = {"label": "SSM", "help_url": None}
    artifact_format = "ssm"
    components: ClassVar[dict[str, Callable[..., Any]]] = {"spaces": EmbeddingSpaces.load}
    learning_settings: ClassVar[tuple[str, ...]] = ("dropout",)
    own_training: ClassVar[dict[str, Any]] = TRAINING
    small_sizes: ClassVar[dict[str, Any]] = {"document_units": 40, "query_units": 16, "document_terms": 100}
    recipes: ClassVar[dict[str, dict[str, Any]]] = {"few": IN_BATCH, "some": IN_BATCH, "many": RECIPES["many"]}
    terms_per_block: ClassVar[int] = TERMS_PER_BLOCK
    least_score: ClassVar[float] = -100.0

    def __init__(
        self,
        spaces: EmbeddingSpaces,
        *,
        space: Space = "in",
        encoder: Encoder = "lstm",
        pooling: DocumentPooling = "max",
        projection: int = 50,
        document_units: int = 120,
        query_units: int = 32,
        hidden: int = 50,
        query_terms: int = 8,
        document_terms: int = 200,
        boundaries: bool = True,
        dropout: float = 0.2,
        **options: Unpack[TowerOptions],
    ):
        self.spaces, self.space, self.encoder, self.pooling = spaces, space, encoder, pooling
        self.projection, self.document_units, self.query_units = projection, document_units, query_units
        self.hidden, self.query_terms, self.document_terms = hidden, query_terms, document_terms
        self.boundaries, self.dropout = boundaries, dropout
        super().__init__(**options)
        self._check_settings()

    @property
    def tells_fields_apart(self) -> bool:
        """Whether boundary tokens separate fields."""
        return self.boundaries

    def make_reader(self) -> EmbeddedWords:
        """A reader of word embeddings."""
        return make_word_reader(self, matches=False)

    def make_network(self, reader: EmbeddedWords) -> "SSMNetwork":
        """A new network."""
        encoders = TextEncoders(
            reader.spaces.dim, self.projection, self.query_units, self.document_units, self.encoder, self.dropout
        )
        return SSMNetwork(encoders, 2 * self.query_units, 2 * self.document_units, self.hidden, self.pooling)

    def represent_queries(self, texts: Sequence[str]) -> Vectors:
        """Query embeddings."""
        self._require_document_representations("encode_queries")
        return super().represent_queries(texts)

    def represent_documents(self, sequences: PackedSequences, vocabulary: Vocabulary) -> Vectors:
        """Document embeddings."""
        self._require_document_representations("encode_documents")
        return super().represent_documents(sequences, vocabulary)

    def score(self, frame: pd.DataFrame) -> np.ndarray:
        """Scores of the rows of a result frame; see the class for the columns that it needs."""
        if self.pooling != "attention":
            return super().score(frame)
        if "query" not in frame or (self.documents is None and not any(field in frame for field in self.fields)):
            self._require_document_representations("scoring by vectors")
        network = self._fitted()
        return self._scorer(self.reader, frame)(network)

    def _scorer(self, reader: EmbeddedWords, frame: pd.DataFrame) -> Scorer:
        if self.pooling != "attention":
            return super()._scorer(reader, frame)
        query_rows, query_texts = distinct_queries(frame)
        document_rows, sequences, vocabulary = self._frame_documents(frame)
        texts = reader.pair(query_texts, sequences, vocabulary)
        return lambda network: score_pairs(self, network, texts, query_rows, document_rows)

    def _encode(self, network: nn.Module, side: Literal["query", "document"], texts: EmbeddedCorpus) -> np.ndarray:
        device = next(network.parameters()).device
        vectors = np.zeros((len(texts), self.hidden), dtype=np.float32)
        for numbers, _ in self._blocks(texts.sequences.lengths, np.arange(len(texts)), verbose=False):
            if len(numbers):
                with torch.inference_mode():
                    vectors[numbers] = network.encode(side, to_device(texts.take(numbers), device)).cpu().numpy()
        return vectors

    def _require_document_representations(self, what: str) -> None:
        if self.pooling == "attention":
            raise ValueError(
                f"{what} needs document embeddings that do not depend on the query: with pooling='attention' SSM "
                "only re-ranks; use pooling='max'"
            )

    def _check_settings(self) -> None:
        self.make_reader()
        choices = {"encoder": ENCODERS, "pooling": ("max", "attention")}
        sizes = {name: getattr(self, name) for name in (*SIZES, *choices)}
        for name, value in checked_sizes(sizes, choices).items():
            setattr(self, name, value)  # now a Python number

    def _check_fit(self) -> None:
        super()._check_fit()
        self._check_settings()

    def _check_options(self) -> None:
        super()._check_options()
        require_trained_input(self)

    def _require_fitted(self) -> None:
        super()._require_fitted()
        require_trained_input(self)

    def __repr__(self) -> str:
        return f"SSM(encoder={self.encoder!r}, pooling={self.pooling!r})"


class SSMNetwork(nn.Module):
    """The dot product of a query embedding and a document embedding, before its sigmoid.

    Args:
        encoders: The encoders of both sides.
        query_width: Length of the query encoder's output.
        document_width: Length of the document encoder's output.
        hidden: Length of the embeddings.
        pooling: How the words of a document become one vector: the largest value of each unit, or an average whose
            weights depend on the query (section 5.7).
    """

    def __init__(
        self, encoders: TextEncoders, query_width: int, document_width: int, hidden: int, pooling: DocumentPooling
    ):
        super().__init__()
        self.encoders, self.pooling = encoders, pooling
        self.query_whole, self.document_whole = RowLinear(query_width, hidden), RowLinear(document_width, hidden)
        if pooling == "attention":
            self.query_attention = nn.Linear(query_width, hidden)
            self.document_attention = nn.Linear(document_width, hidden)

    def num_rows(self, lengths: np.ndarray) -> np.ndarray:
        """Number of rows that represent documents of these lengths in words."""
        return lengths if self.pooling == "attention" else np.ones_like(lengths)

    def read_queries(self, texts: EmbeddedTexts) -> Queries:
        """Query embeddings; with attention, each query's attention vector stands in the place of its words."""
        _, whole = self.encoders("query", texts)  # (queries, query width)
        sought = whole.new_zeros(len(whole), 1, 0)
        if self.pooling == "attention":
            sought = torch.relu(self.query_attention(whole))[:, None]  # (queries, 1, hidden)
        return Queries(sought, torch.ones_like(texts.offsets[1:]), self.query_whole(whole))

    def read_documents(self, texts: EmbeddedTexts) -> tuple[Tensor, Tensor]:
        """The document's side, which does not depend on the query.

        Returns:
            Document embeddings, float32 of shape (documents, hidden), or, with attention, the state of each word, of
            shape (words, document width); and where each document's rows start, int64 of shape (documents + 1,).
        """
        states, _ = self.encoders("document", texts)  # (words, document width)
        if self.pooling == "attention":
            return states, texts.offsets
        vectors = self.document_whole(max_over_texts(states, texts.offsets))  # (documents, hidden)
        return vectors, torch.arange(len(vectors) + 1, device=vectors.device)

    def match(
        self, queries: Queries, rows: Tensor, offsets: Tensor, document_rows: Tensor, matches: Matches | None
    ) -> Tensor:
        """Scores of documents before the sigmoid.

        Args:
            queries: The query of each group.
            rows: The rows that :meth:`read_documents` returned.
            offsets: Where each document's rows start.
            document_rows: Documents of each group, int64 of shape (groups, documents).
            matches: Ignored.

        Returns:
            float32 of shape (groups, documents).
        """
        if self.pooling == "attention":
            vectors = self.document_whole(self._attended(queries.words, rows, offsets, document_rows))
        else:
            vectors = rows[document_rows]  # (groups, documents, hidden)
        return (vectors @ queries.whole[..., None]).squeeze(2)

    def _attended(self, sought: Tensor, states: Tensor, offsets: Tensor, document_rows: Tensor) -> Tensor:
        """States averaged over each document, weighted by a softmax over the fit of each word and the query."""
        lengths = offsets.diff()[document_rows][..., None]  # (groups, documents, 1)
        steps = torch.arange(max(1, int(lengths.max())), device=states.device)
        places = torch.where(steps < lengths, offsets[:-1][document_rows][..., None] + steps, len(states))
        padded = nn.functional.pad(states, (0, 0, 0, 1))
        offered = torch.relu(self.document_attention(padded))  # (words + 1, hidden)
        fit = (nn.functional.embedding(places, offered) @ sought[:, None].transpose(2, 3)).squeeze(3)
        least = torch.finfo(fit.dtype).min
        weights = torch.softmax(fit.masked_fill(steps >= lengths, least), dim=2)  # an empty text averages zeros
        return (weights[:, :, None] @ nn.functional.embedding(places, padded)).squeeze(2)

    def encode(self, side: Literal["query", "document"], texts: EmbeddedTexts) -> Tensor:
        """Embeddings of texts, float32 of shape (texts, hidden); zero for texts without any known word."""
        if side == "query":
            vectors = self.read_queries(texts).whole
        else:
            vectors, _ = self.read_documents(texts)
        return vectors * texts.known[:, None]

    def forward(self, groups: EmbeddedGroups) -> Tensor:
        """Scores before the sigmoid, float32 of shape (groups, documents)."""
        queries = self.read_queries(groups.queries).take(groups.query_rows)
        rows, offsets = self.read_documents(groups.documents)
        return self.match(queries, rows, offsets, groups.document_rows, groups.matches)
