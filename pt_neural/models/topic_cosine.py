"""Cosine of the topics of query and document: the two-tower use of topic models."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pt_neural import models
from pt_neural.models.topic_model import TopicModel
from pt_neural.models.topic_steps import LEAST
from pt_neural.rankers import TwoTower
from pt_neural.rankers.fingerprint import fingerprint
from pt_neural.text import ForwardIndex, PackedSequences, Vocabulary

if TYPE_CHECKING:
    from pyterrier_dr import FlexIndex


class TopicCosine(TwoTower):
    """Cosine of P(z|q) and P(z|d), the distributions of a topic model over topics.

    Topic models rank by query likelihood; this ranks by their topics alone, as LSA does by its latent dimensions, and
    so can retrieve from a vector index. The query's topics are inferred as if it were a document. A query without any
    known word scores 0 with every document, and retrieves none; a document without any scores -1, and is never
    retrieved. Where the topic model is fitted again, vectors that were kept before are refused.

    Args:
        topics: A topic model, such as a fitted :class:`PLSA`, :class:`LDA` or :class:`BLTM`.
        fields: Text columns, joined by a space; those that a frame lacks are passed over, one must be there. None for
            those of the topic model.
        documents: A forward index, to re-rank by ``docno``.
        vectors: An index made by :meth:`~TwoTower.index`, to re-rank by ``docno`` from kept vectors.
        batch_size: Documents encoded at a time.
        verbose: Show a progress bar while encoding documents.

    Raises:
        TypeError: If an argument is of another kind than said here.
        ValueError: If a setting is out of range.

    Example::

        cosine = pn.LDA(num_topics=100).fit_corpus(docs.get_corpus_iter()).cosine()
        vectors = cosine.index("topics.flex", docs.get_corpus_iter())
        cosine.retriever(vectors).search("pairwise distance")
    """

    schematic = {"label": "TopicCosine", "help_url": None}
    artifact_format = "topic-cosine"
    free_settings: ClassVar[tuple[str, ...]] = ("fields",)

    def __init__(
        self,
        topics: TopicModel,
        *,
        fields: str | Sequence[str] | None = None,
        documents: ForwardIndex | None = None,
        vectors: "FlexIndex | None" = None,
        batch_size: int = 1024,
        verbose: bool = False,
    ):
        if not isinstance(topics, TopicModel):
            raise TypeError(f"topics must be a topic model, such as a fitted PLSA or LDA, not {topics!r:.80}")
        self.topics = topics
        fields = topics.fields if fields is None else fields
        super().__init__(fields=fields, documents=documents, vectors=vectors, batch_size=batch_size, verbose=verbose)

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors of queries; zero where no word is known."""
        return _unit(self.topics.query_topics(texts))

    def encode_documents(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors of texts; zero where no word is known."""
        return _unit(self.topics.document_topics(texts))

    def encode_sequences(self, sequences: PackedSequences, vocabulary: Vocabulary) -> np.ndarray:
        """Unit vectors of documents given as term ids over another vocabulary."""
        return _unit(self.topics.sequence_topics(sequences, vocabulary))

    def settings(self) -> dict[str, Any]:
        """Nothing but the topic model makes it what it is."""
        return {}

    def fingerprint(self) -> str | None:
        """Changes with the topic model; None before that is fitted."""
        topics = self.topics.fingerprint()
        return None if topics is None else fingerprint([self.artifact_format, topics], {})

    def _require_fitted(self) -> None:
        self.topics._require_fitted()

    def _save_parts(self, directory: Path) -> None:
        self.topics.save(directory / "topics")

    def _config(self) -> dict[str, Any]:
        return {**super()._config(), "topics": type(self.topics).__name__}

    @classmethod
    def _arguments(cls, config: Any, directory: Path) -> dict[str, Any]:
        kind = getattr(models, config["topics"])
        if not issubclass(kind, TopicModel):
            raise TypeError(f"{kind.__name__} is no topic model")
        return {**config, "topics": kind.load(directory / "topics")}

    def subtransformers(self) -> dict:
        """None: the topic model is what this transformer is made of, not a stage before it."""
        return {}

    def __repr__(self) -> str:
        return f"TopicCosine({self.topics!r})"


def _unit(topics: np.ndarray) -> np.ndarray:
    return topics / np.maximum(np.linalg.norm(topics, axis=1, keepdims=True), np.float32(LEAST))
