"""What topic models share: documents as mixtures of topics, and query likelihood by them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from pt_neural._arguments import checked_choice, checked_number
from pt_neural.models.topic_steps import LEAST, fold_in
from pt_neural.rankers.document_counts import DocumentCounts
from pt_neural.rankers.language_model import LanguageModelRanker
from pt_neural.rankers.last_vocabulary import LastVocabulary
from pt_neural.rankers.learned_words import Records
from pt_neural.text import ForwardIndex, PackedSequences, Vocabulary, tokenise_packed

if TYPE_CHECKING:
    from pt_neural.models.topic_cosine import TopicCosine


class TopicModel(LanguageModelRanker):
    """Base of the rankers with P_model(w|d) = sum over topics z of P(w|z) P(z|d) (Wei & Croft 2006).

    A document's P(z|d) is inferred from its words when it is read, by :func:`~pt_neural.models.topic_steps.fold_in`;
    for documents of a forward index it is kept in memory.

    Args:
        num_topics: Number of topics.
        unigram_weight: Weight of the unigram model, from 0 to 1; may be set on a fitted model.
        mu: Weight of the collection against the document in the unigram model, in words, above 0; likewise.
        fields: Text columns, joined by a space; those that a frame lacks are passed over, one must be there. None for
            those of ``documents``, or ``title`` and ``text`` without a forward index.
        documents: A forward index: re-ranking then needs ``docno`` only, no text and no tokenising.
        batch_size: Documents read at a time.
        verbose: Show a progress bar while scoring.

    Attributes:
        word_topics: P(w|z) of words of documents, float32 of shape ``(words, topics)``.
        query_word_topics: P(w|z) of words of queries; the same array but for bilingual models.
        prior: Occurrences of each topic that a document is thought to have besides, float32 of shape ``(topics,)``.
    """

    def __init__(
        self,
        num_topics: int,
        *,
        unigram_weight: float = 0.7,
        mu: float = 100,
        fields: str | Sequence[str] | None = None,
        documents: ForwardIndex | None = None,
        batch_size: int = 1024,
        verbose: bool = False,
    ):
        self.num_topics = checked_number("num_topics", num_topics, int, least=1)
        self.word_topics = self.query_word_topics = self.prior = None
        self._kept_topics = LastVocabulary()
        super().__init__(
            unigram_weight=unigram_weight,
            mu=mu,
            fields=fields,
            documents=documents,
            batch_size=batch_size,
            verbose=verbose,
        )

    def _set_topics(
        self,
        vocabulary: Vocabulary,
        word_topics: np.ndarray,
        prior: np.ndarray,
        query_word_topics: np.ndarray | None = None,
        history: Records = (),
    ) -> None:
        """Take what was learned, and the records of how; words of queries have the topics of documents by default."""
        query_word_topics = word_topics if query_word_topics is None else query_word_topics
        arrays = {"word_topics": word_topics, "query_word_topics": query_word_topics, "prior": prior}
        for name, array in arrays.items():
            shape = (self.num_topics,) if name == "prior" else (len(vocabulary), self.num_topics)
            if array.shape != shape or array.dtype != np.float32:
                raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, not float32 of shape {shape}")
            if not (np.isfinite(array) & (array >= 0)).all():
                raise ValueError(f"{name} holds numbers that are no probabilities")
        self.word_topics, self.query_word_topics, self.prior = word_topics, query_word_topics, prior
        self._kept_topics = LastVocabulary()
        self._set_vocabulary(vocabulary, history)

    def _represent(self, sequences: PackedSequences, counts: DocumentCounts) -> np.ndarray:
        return fold_in(counts.counts, self.word_topics, self.prior)

    def _represent_stored(
        self, index: ForwardIndex, rows: np.ndarray, sequences: PackedSequences, counts: DocumentCounts
    ) -> np.ndarray:
        known, topics = self._kept_topics(
            lambda: (np.zeros(len(index), dtype=bool), np.zeros((len(index), self.num_topics), dtype=np.float32)),
            index.vocabulary,
        )
        new = np.flatnonzero(~known[rows])
        topics[rows[new]] = self._represent(sequences.take(new), counts.take(new))
        known[rows[new]] = True
        return topics[rows]

    def word_probabilities(self, words: np.ndarray, documents: DocumentCounts) -> np.ndarray:
        """P_model(w|d); float32 of shape ``(documents, words)``."""
        return documents.own @ self.query_word_topics[words].T

    def document_topics(self, texts: Sequence[str]) -> np.ndarray:
        """P(z|d) of document texts, float32 of shape ``(len(texts), topics)``; zero for a text without known words.

        Raises:
            RuntimeError: If the model is not fitted.
            TypeError: If ``texts`` is a single text.
        """
        return self.sequence_topics(self._words_of(texts), self.vocabulary)

    def query_topics(self, texts: Sequence[str]) -> np.ndarray:
        """P(z|q) of queries, as if they were documents; see :meth:`document_topics`."""
        counts = DocumentCounts.of(self._words_of(texts), len(self.vocabulary)).counts
        return fold_in(counts, self.query_word_topics, self.prior)

    def sequence_topics(self, sequences: PackedSequences, vocabulary: Vocabulary) -> np.ndarray:
        """P(z|d) of documents given as term ids over any vocabulary, like :meth:`document_topics`."""
        self._require_fitted()
        return self.read_sequences(sequences, vocabulary).own

    def _words_of(self, texts: Sequence[str]) -> PackedSequences:
        self._require_fitted()
        if isinstance(texts, str):
            raise TypeError(f"texts must be a list of texts, such as [{texts!r:.80}], and not a single one")
        return tokenise_packed(texts, self.vocabulary)

    def cosine(self, **options: Any) -> "TopicCosine":
        """A two-tower ranker by the cosine of the topics of query and document.

        Args:
            **options: ``vectors``, ``documents``, ``fields``, ``batch_size`` and ``verbose``, as
                :class:`~pt_neural.models.topic_cosine.TopicCosine` has them.

        Returns:
            The ranker, which has this model in it.
        """
        from pt_neural.models.topic_cosine import TopicCosine  # which stands on this file

        return TopicCosine(self, **options)

    def topics(
        self, words: int = 10, *, relevance: float = 0.6, side: Literal["document", "query"] = "document"
    ) -> pd.DataFrame:
        """The words that tell most about each topic.

        Words are ranked by relevance log P(w|z) + (1 - relevance) log (P(w|z) / P(w|C)) (Sievert & Shirley 2014): the
        most probable words of all topics alike would be "the" and "of".

        Args:
            words: How many.
            relevance: 1 ranks words by their probability in the topic, 0 by how much more probable they are there than
                in the collection, which favours rare ones.
            side: Words of documents or of queries, which only bilingual models tell apart.

        Returns:
            Frame with ``topic`` (number), ``rank`` (from 0), ``word`` and ``probability``, P(w|z).

        Raises:
            RuntimeError: If the model is not fitted.
            TypeError: If a number is something else.
            ValueError: If ``words`` is below 1, ``relevance`` not from 0 to 1, or ``side`` none of the two.
        """
        self._require_fitted()
        checked_choice("side", side, ("document", "query"))
        weight = checked_number("relevance", relevance, float, least=0, most=1)
        words = min(checked_number("words", words, int, least=1), len(self.vocabulary))
        topics = (self.query_word_topics if side == "query" else self.word_topics).T
        collection = np.log(self.collection_probabilities(np.arange(len(self.vocabulary))))
        ranking = np.log(np.maximum(topics, np.float32(LEAST))) - np.float32(1 - weight) * collection
        best = np.sort(np.argpartition(-ranking, words - 1, axis=1)[:, :words], axis=1)
        order = np.argsort(-np.take_along_axis(ranking, best, axis=1), axis=1, kind="stable")
        best = np.take_along_axis(best, order, axis=1)
        numbers, ranks = np.indices(best.shape).reshape(2, -1)
        names = [self.vocabulary.terms[word] for word in best.ravel()]
        probability = topics[numbers, best.ravel()]
        return pd.DataFrame({"topic": numbers, "rank": ranks, "word": names, "probability": probability})

    def _arrays(self) -> dict[str, np.ndarray]:
        arrays = {"word_topics": self.word_topics, "prior": self.prior}
        if self.query_word_topics is not self.word_topics:
            arrays["query_word_topics"] = self.query_word_topics
        return arrays

    def _set_arrays(self, vocabulary: Vocabulary, arrays: Mapping[str, np.ndarray], history: Records) -> None:
        topics = arrays["word_topics"], arrays["prior"], arrays.get("query_word_topics")
        self._set_topics(vocabulary, *topics, history=history)
