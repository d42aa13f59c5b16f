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
