"""SSM, the semantic similarity model of the Match-Tensor paper (Jaech, Kamisetty, Ringger and Clarke, 2017)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pandas as pd
import torch

from pt_neural._arguments import checked_choice, checked_number
from pt_neural._frames import with_scores
from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.models.ssm_network import DocumentPooling, SSMNetwork
from pt_neural.models.text_encoders import ENCODERS, Encoder, TextEncoders
from pt_neural.rankers.columns import distinct_queries
from pt_neural.rankers.embedded import EmbeddedCorpus, WordVectors
from pt_neural.rankers.embedded_ranker import EmbeddedRanker
from pt_neural.rankers.pairs import moved
from pt_neural.rankers.trained import Scorer
from pt_neural.rankers.trained_two_tower import TrainedTwoTower
from pt_neural.text import ForwardIndex, PackedSequences, Vocabulary
from pt_neural.training import Training
from pt_neural.training.examples import Examples

if TYPE_CHECKING:
    from pyterrier_dr import FlexIndex


SIZES = ("projection", "document_units", "query_units", "hidden", "query_terms", "document_terms")


class SSM(EmbeddedRanker, TrainedTwoTower):
    """The dot product of a query's and a document's embedding, both made of their words in context (section 5.3).

    Fixed word embeddings are projected by one layer for both sides, and read by a bi-directional LSTM for each. The
    query's embedding is a linear layer over the last states of both directions; the document's, over the largest value
    of each unit over its words. The score is the dot product, which a sigmoid would make a probability. With
    ``pooling="attention"`` (section 5.7) the document's words are averaged instead, with weights from a softmax of the
    dot products of what query and words become in a ReLU layer each: the model then re-ranks, but neither encodes
    documents nor retrieves, since their embeddings depend on the query.

    Unknown words share one random vector, which stays fixed, as do the boundary tokens before each field and after the
    last (section 5.2). With max pooling, a text without any known word has no embedding: such a query scores 0 and
    retrieves nothing, and such a document scores -20, a probability of two in a thousand millions, and is never
    retrieved.

    Sizes are those of Table 2, which counts 216K weights; dropout, which the paper does not give, was chosen here.
    Training is pointwise as in the paper: cross-entropy of each document's sigmoid against its grade, divided by the
    highest, with Adam, and 200 documents a step (40 groups of five). Few training queries make few steps of
    that size: ``pn.Training(batch_size=10, learning_rate=0.003)`` then learns sooner.

    Args:
        spaces: The word embeddings; 256 dimensions in the paper.
        space: Which of their two vectors a word has, ``"in"`` or ``"out"``.
        encoder: ``"lstm"``; or ``"cnn"``, convolutions over one and over three words in its place (section 5.6), of
            which the query's largest values are taken too.
        pooling: ``"max"`` or ``"attention"``.
        projection: Dimensions that word embeddings are projected to.
        document_units: Units of each direction of the document's encoder.
        query_units: Those of the query's.
        hidden: Length of the embeddings that are compared.
        query_terms: Words of a query that are read.
        document_terms: Words of a document that are read, boundaries included.
        boundaries: Whether boundary tokens stand before each field and after the last.
        dropout: Share of the encoders' inputs and outputs that is dropped in training.
        training: How to train; see :class:`~pt_neural.Training`.
        fields: Text columns; those that a frame lacks are empty, one must be there. None for those of ``documents``, or
            ``title`` and ``text``. A trained model keeps their number, since it tells them apart.
        documents: A forward index: training and re-ranking need ``docno`` only.
        vectors: An index made by :meth:`index`, to re-rank by ``docno`` from kept vectors.
        device: Where to score: ``"auto"``, ``"cpu"``, ``"cuda"``, ``"mps"``.
        batch_size: Documents read at a time, at most.
        verbose: Show a progress bar while reading documents.

    Raises:
        TypeError: If an argument is of another kind than said here.
        ValueError: If a size is out of range or a choice unknown.

    Example::

        spaces = pn.EmbeddingSpaces.train(docs.get_corpus_iter(), dim=256)
        ssm = pn.SSM(spaces)
        (candidates >> ssm).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
    """

    schematic = {"label": "SSM", "help_url": None}
    artifact_format = "ssm"
    least_score = -20.0
    looks_at_matches = False

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
        training: Training | None = None,
        fields: str | Sequence[str] | None = None,
        documents: ForwardIndex | None = None,
        vectors: "FlexIndex | None" = None,
        device: str = "auto",
        batch_size: int = 1024,
        verbose: bool = False,
    ):
        self.encoder, self.pooling, self.dropout = encoder, pooling, dropout
        self.projection, self.document_units, self.query_units = projection, document_units, query_units
        self.hidden, self.query_terms, self.document_terms = hidden, query_terms, document_terms
        super().__init__(
            spaces,
            space,
            boundaries=boundaries,
            training=training,
            fields=fields,
            documents=documents,
            vectors=vectors,
            device=device,
            batch_size=batch_size,
            verbose=verbose,
        )
        self._check_sizes()

    def _check_sizes(self) -> None:
        checked_choice("encoder", self.encoder, ENCODERS)
        checked_choice("pooling", self.pooling, ("max", "attention"))
        for name in SIZES:
            setattr(self, name, checked_number(name, getattr(self, name), int, least=1))
        self.dropout = checked_number("dropout", self.dropout, float, least=0)
        if self.dropout >= 1:
            raise ValueError(f"dropout must be below 1, not {self.dropout}")

    def settings(self) -> dict[str, Any]:
        """What makes the model what it is, beside the embeddings."""
        return {name: getattr(self, name) for name in ("space", "encoder", "pooling", *SIZES, "boundaries", "dropout")}

    def _new_network(self) -> SSMNetwork:
        encoders = TextEncoders(
            self.spaces.dim, self.projection, self.query_units, self.document_units, self.encoder, self.dropout
        )
        return SSMNetwork(encoders, 2 * self.query_units, 2 * self.document_units, self.hidden, self.pooling)

    def _begin(self, examples: Examples) -> tuple:
        self._require_no_vectors()
        self._check_sizes()
        return super()._begin(examples)

    def _scorer(self, preparation: WordVectors, frame: pd.DataFrame) -> Scorer:
        if self.pooling == "attention":
            return super()._scorer(preparation, frame)
        query_rows, query_texts = distinct_queries(frame)
        queries, _ = self._queries_read(query_texts, preparation)
        document_rows, sequences, vocabulary = self._frame_documents(frame)
        documents = self._documents_read(sequences, vocabulary, preparation)
        return self._tower_scorer(queries, query_rows, documents, document_rows)

    def score(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Score the rows of a result frame; see the class for the columns that it needs."""
        if self.pooling != "attention" or frame.empty:
            return super().score(frame)
        if "query" not in frame or (self.documents is None and not any(field in frame for field in self.fields)):
            self._refuse("scoring by vectors")
        network = self._fitted()
        return with_scores(frame, self._scorer(self.vectors_of_words, frame)(network))

    def _encode(self, network: SSMNetwork, side: str, corpus: EmbeddedCorpus) -> np.ndarray:
        """Embeddings of texts, float32 of shape (len(corpus), hidden)."""
        device = next(network.parameters()).device
        vectors = np.zeros((len(corpus), self.hidden), dtype=np.float32)
        for numbers, _ in self._blocks(corpus.sequences.lengths, np.arange(len(corpus)), verbose=False):
            if len(numbers):
                with torch.inference_mode():
                    vectors[numbers] = network.encode(side, moved(corpus.take(numbers), device)).cpu().numpy()
        return vectors

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        """Embeddings of queries, float32 of shape (len(texts), hidden)."""
        self._require_document_vectors("encode_queries")
        network = self._fitted()
        return self._encode(network, "query", self._queries_read(texts, self.vectors_of_words)[0])

    def encode_documents(self, texts: Sequence[str]) -> np.ndarray:
        """Embeddings of document texts, float32 of shape (len(texts), hidden)."""
        sequences, terms = self._pack(texts)
        return self.encode_sequences(sequences, Vocabulary(terms))

    def encode_sequences(self, sequences: PackedSequences, vocabulary: Vocabulary) -> np.ndarray:
        """Embeddings of documents given as term ids over a vocabulary."""
        self._require_document_vectors("encode_documents")
        network = self._fitted()
        return self._encode(network, "document", self._documents_read(sequences, vocabulary, self.vectors_of_words))

    def _require_document_vectors(self, what: str) -> None:
        if self.pooling == "attention":
            self._refuse(what)

    def _refuse(self, what: str) -> NoReturn:
        raise ValueError(
            f"{what} needs document embeddings that do not depend on the query: with pooling='attention' SSM re-ranks "
            "only; use pooling='max'"
        )

    def __repr__(self) -> str:
        return f"SSM(encoder={self.encoder!r}, pooling={self.pooling!r})"


class SSMNetwork(nn.Module):
    """The dot product of a query embedding and a document embedding, before its sigmoid.

    Args:
        encoders: What reads the words of both sides.
        query_width: Length of what the query encoder gives.
        document_width: Length of what the document encoder gives.
        hidden: Length of the embeddings.
        pooling: How the words of a document become one vector: the largest value of each unit, or an average whose
            weights depend on the query (section 5.7).
    """

    def __init__(
        self, encoders: TextEncoders, query_width: int, document_width: int, hidden: int, pooling: DocumentPooling
    ):
        super().__init__()
        self.encoders, self.pooling = encoders, pooling
        self.query_whole, self.document_whole = nn.Linear(query_width, hidden), nn.Linear(document_width, hidden)
        if pooling == "attention":
            self.query_attention = nn.Linear(query_width, hidden)
            self.document_attention = nn.Linear(document_width, hidden)

    def num_rows(self, lengths: np.ndarray) -> np.ndarray:
        """Rows of documents that have this many words."""
        return lengths if self.pooling == "attention" else np.ones_like(lengths)

    def read_queries(self, texts: EmbeddedTexts) -> Queries:
        """Query embeddings; with attention, what each query looks for stands beside them as its only word."""
        _, whole = self.encoders("query", texts)  # (queries, query width)
        sought = whole.new_zeros(len(whole), 1, 0)
        if self.pooling == "attention":
            sought = torch.relu(self.query_attention(whole))[:, None]  # (queries, 1, hidden)
        return Queries(sought, torch.ones_like(texts.offsets[1:]), self.query_whole(whole))

    def read_documents(self, texts: EmbeddedTexts) -> tuple[Tensor, Tensor]:
        """What does not depend on the query.

        Returns:
            Document embeddings, float32 of shape (documents, hidden); with attention, the state of each word, of shape
            (words, document width). And where the rows of each document start, int64 of shape (documents + 1,).
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
            rows: What :meth:`read_documents` returned.
            offsets: Likewise.
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
        """States averaged over each document, by a softmax of how well words fit what the query looks for."""
        lengths = offsets.diff()[document_rows][..., None]  # (groups, documents, 1)
        steps = torch.arange(max(1, int(lengths.max())), device=states.device)
        places = torch.where(steps < lengths, offsets[:-1][document_rows][..., None] + steps, len(states))
        padded = nn.functional.pad(states, (0, 0, 0, 1))
        offered = torch.relu(self.document_attention(padded))  # (words + 1, hidden)
        fit = (nn.functional.embedding(places, offered) @ sought[:, None].transpose(2, 3)).squeeze(3)
        weights = torch.softmax(fit.masked_fill(steps >= lengths, -1e9), dim=2)  # zeros are averaged in an empty text
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
