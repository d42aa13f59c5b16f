"""Topic models: documents as mixtures of topics, scored by query likelihood, or by the cosine of topics."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Unpack

import numpy as np
import pandas as pd

from pt_neural._arguments import checked_choice, checked_number
from pt_neural._temporary import SparseBlocks, temporary_array
from pt_neural.models.topics.steps import LEAST, fold_in
from pt_neural.rankers.language_model import DocumentCounts, LanguageModelRanker
from pt_neural.rankers.options import RepresentationOptions
from pt_neural.rankers.ranker import digest
from pt_neural.rankers.registry import load_ranker
from pt_neural.rankers.representation import RepresentationRanker
from pt_neural.rankers.vectors import Vectors
from pt_neural.text import ForwardIndex, PackedSequences, Vocabulary, tokenise_packed
from pt_neural.text.vocabulary import LastVocabulary
from pt_neural.training.run import Records, run_iterations


class TopicModel(LanguageModelRanker):
    """Base of the rankers with P_model(w|d) = sum over topics z of P(w|z) P(z|d) (Wei & Croft 2006).

    A document's P(z|d) is inferred from its words when it is read, by :func:`~pt_neural.models.topics.steps.fold_in`.
    For documents of a forward index it stays in a temporary file.

    Args:
        num_topics: Number of topics.
        unigram_weight: Weight of the unigram model, from 0 to 1; may be set on a fitted model.
        mu: Weight of the collection in the unigram model, in words, above 0; may be set on a fitted model.

    Attributes:
        word_topics: P(w|z) of words of documents, float32 of shape ``(words, topics)``.
        query_word_topics: P(w|z) of words of queries; the same array in all models but bilingual ones.
        prior: Pseudo-count of each topic in a document, float32 of shape ``(topics,)``.
    """

    fitting: ClassVar[str] = "model.fit_corpus(docs.get_corpus_iter())"

    def __init__(
        self,
        num_topics: int,
        *,
        unigram_weight: float = 0.7,
        mu: float = 100,
        **options: Unpack[RepresentationOptions],
    ):
        self.num_topics = checked_number("num_topics", num_topics, int, least=1)
        self.word_topics = self.query_word_topics = self.prior = None
        self._stored_topics = LastVocabulary()
        super().__init__(unigram_weight=unigram_weight, mu=mu, **options)

    def _set_topics(
        self,
        vocabulary: Vocabulary,
        word_topics: np.ndarray,
        prior: np.ndarray,
        query_word_topics: np.ndarray | None = None,
    ) -> None:
        """Take what was learned; unless told otherwise, words of queries have the topics of words of documents."""
        query_word_topics = word_topics if query_word_topics is None else query_word_topics
        arrays = {"word_topics": word_topics, "query_word_topics": query_word_topics, "prior": prior}
        for name, array in arrays.items():
            shape = (self.num_topics,) if name == "prior" else (len(vocabulary), self.num_topics)
            if array.shape != shape or array.dtype != np.float32:
                raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, not float32 of shape {shape}")
            if not (np.isfinite(array) & (array >= 0)).all():
                raise ValueError(f"{name} holds numbers that are not probabilities")
        self.word_topics, self.query_word_topics, self.prior = word_topics, query_word_topics, prior
        self._stored_topics = LastVocabulary()
        self._set_vocabulary(vocabulary)

    def _learn_counts(self, vocabulary: Vocabulary, counts: SparseBlocks, *, verbose: bool) -> None:
        # _estimates yields iterations, whose results are functions that give P(w|z), (words, topics), and the prior.
        history: Records = []
        last = None

        def finish() -> None:
            self._set_topics(vocabulary, *last.result())
            self._history = history
            self._mark_fitted()

        options = {"total": self.iterations, "desc": repr(self), "verbose": verbose}
        try:
            for iteration in run_iterations(self._estimates(counts, verbose=verbose), history, **options):
                last = iteration
        except KeyboardInterrupt:
            if last is not None and last.number > 0:
                finish()
            raise
        finish()

    def _extra(self, sequences: PackedSequences, counts: DocumentCounts) -> np.ndarray:
        return fold_in(counts.counts, self.word_topics, self.prior)  # (documents, topics)

    def _stored_extra(
        self, index: ForwardIndex, rows: np.ndarray, sequences: PackedSequences, counts: DocumentCounts
    ) -> np.ndarray:
        known, topics = self._stored_topics(
            lambda: (np.zeros(len(index), dtype=bool), temporary_array((len(index), self.num_topics), np.float32)),
            index.vocabulary,
        )
        new = np.flatnonzero(~known[rows])
        topics[rows[new]] = self._extra(sequences.take(new), counts.take(new))
        known[rows[new]] = True
        return topics[rows]

    def word_probabilities(self, words: np.ndarray, documents: DocumentCounts) -> np.ndarray:
        """P_model(w|d); float32 of shape ``(documents, words)``."""
        return documents.extra @ self.query_word_topics[words].T

    def document_topics(self, texts: Sequence[str]) -> np.ndarray:
        """P(z|d) of document texts, float32 of shape ``(len(texts), topics)``; zero for a text without known words.

        Raises:
            RuntimeError: If the model is not fitted.
            TypeError: If ``texts`` is a single text.
        """
        return self._represent_distinct(self._pack_known(texts), self.vocabulary).extra

    def query_topics(self, texts: Sequence[str]) -> np.ndarray:
        """P(z|q) of queries, as if they were documents; see :meth:`document_topics`."""
        counts = DocumentCounts.of(self._pack_known(texts), len(self.vocabulary)).counts
        return fold_in(counts, self.query_word_topics, self.prior)

    def _pack_known(self, texts: Sequence[str]) -> PackedSequences:
        self._require_fitted()
        if isinstance(texts, str):
            raise TypeError(f"texts must be a list of texts, such as [{texts!r:.80}], not a single one")
        return tokenise_packed(texts, self.vocabulary)

    def cosine(self, **options: Unpack[RepresentationOptions]) -> "TopicCosine":
        """A :class:`TopicCosine` of this model, which ranks by the cosine of the topics of query and document."""
        return TopicCosine(self, **options)

    def topics(
        self, words: int = 10, *, relevance: float = 0.6, side: Literal["document", "query"] = "document"
    ) -> pd.DataFrame:
        """The words that say most about each topic.

        Words are ranked by relevance log P(w|z) + (1 - relevance) log (P(w|z) / P(w|C)) (Sievert & Shirley 2014): the
        most probable words of every topic would be "the" and "of".

        Args:
            words: Number of words for each topic.
            relevance: 1 ranks words by their probability in the topic, 0 by how much more probable they are in it than
                in the collection, which favours rare words.
            side: Words of documents or of queries; only bilingual models tell them apart.

        Returns:
            Frame with ``topic`` (number), ``rank`` (from 0), ``word`` and ``probability``, P(w|z).

        Raises:
            RuntimeError: If the model is not fitted.
            TypeError: If an argument has the wrong type.
            ValueError: If ``words`` is below 1, ``relevance`` outside 0 to 1, or ``side`` unknown.

        Example::

            plsa.topics(words=3)
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

    def _set_arrays(self, vocabulary: Vocabulary, arrays: Mapping[str, np.ndarray]) -> None:
        self._set_topics(vocabulary, arrays["word_topics"], arrays["prior"], arrays.get("query_word_topics"))


class TopicCosine(RepresentationRanker):
    """Cosine of P(z|q) and P(z|d), the distributions of a topic model over topics.

    Topic models rank by query likelihood; this ranks by topics alone, as LSA does by latent dimensions, and so can
    retrieve from a vector index. The query's topics are inferred as if it were a document. A query without any known
    word scores 0 with every document and retrieves nothing; a document without any scores -1 and is never retrieved.
    Vectors from before the topic model was fitted again are refused. ``fields`` defaults to the topic model's.

    Args:
        topics: A topic model, such as a fitted :class:`PLSA`, :class:`LDA` or :class:`BLTM`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a setting is out of range.

    Example::

        cosine = pn.LDA(num_topics=100).fit_corpus(docs.get_corpus_iter()).cosine()
        vectors = cosine.index("topics.flex", docs.get_corpus_iter())
        cosine.retriever(vectors).search("pairwise distance")
    """

    schematic = {"label": "TopicCosine", "help_url": None}
    artifact_format = "topic-cosine"
    components: ClassVar[dict[str, Callable[..., Any]]] = {"topics": load_ranker}

    def __init__(self, topics: TopicModel, **options: Unpack[RepresentationOptions]):
        if not isinstance(topics, TopicModel):
            raise TypeError(f"topics must be a topic model, such as a fitted PLSA or LDA, not {topics!r:.80}")
        self.topics = topics
        if options.get("fields") is None:
            options["fields"] = topics.fields
        super().__init__(**options)

    @property
    def is_fitted(self) -> bool:
        """Whether the topic model is fitted."""
        return self.topics.is_fitted

    def _require_fitted(self) -> None:
        self.topics._require_fitted()

    def represent_queries(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of queries; zero where no word is known."""
        return Vectors(_unit(self.topics.query_topics(texts)))

    def represent_documents(self, sequences: PackedSequences, vocabulary: Vocabulary) -> Vectors:
        """Unit vectors of documents; zero where no word is known."""
        return Vectors(_unit(self.topics.represent_documents(sequences, vocabulary).extra))

    def fingerprint(self) -> str | None:
        """Changes with the topic model; None before that is fitted."""
        topics = self.topics.fingerprint()
        return None if topics is None else digest([self.artifact_format, topics], *self._identity_parts())

    def _identity_parts(self) -> tuple[dict[str, np.ndarray], list[bytes]]:
        return {}, []

    def _save_parts(self, directory: Path) -> None:
        """Nothing: the topic model is a component."""

    def _load_parts(self, directory: Path) -> None:
        """Nothing: the topic model is a component."""

    def subtransformers(self) -> dict:
        """None: the topic model is what this transformer is made of, not a stage before it."""
        return {}

    def __repr__(self) -> str:
        return f"TopicCosine({self.topics!r})"


def _unit(topics: np.ndarray) -> np.ndarray:
    return topics / np.maximum(np.linalg.norm(topics, axis=1, keepdims=True), np.float32(LEAST))
