"""Rankers that score by query likelihood: the probability that a language model of the document generates the query."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._arguments import checked_number
from pt_neural._frames import with_scores
from pt_neural.rankers.columns import accept_candidates, distinct_queries, validated
from pt_neural.rankers.document_counts import DocumentCounts
from pt_neural.rankers.language_model_retriever import LanguageModelRetriever
from pt_neural.rankers.last_vocabulary import LastVocabulary, OwnIds
from pt_neural.rankers.learned_words import LearnedWords, Records
from pt_neural.text import ForwardIndex, PackedSequences, Vocabulary, tokenise

UNSEEN = 0.5  # occurrences in the collection of a word that only training queries have
LEAST = 1e-30  # a probability of zero would make all documents without a word alike


class LanguageModelRanker(LearnedWords):
    """Base of the rankers whose score is log P(q|d), with P(q|d) the product of P(w|d) over the words of the query.

    P(w|d) = unigram_weight · P_uni(w|d) + (1 - unigram_weight) · P_model(w|d). P_uni is the unigram language model with
    Dirichlet smoothing, (tf + mu P(w|C)) / (length of d + mu), where P(w|C) is the relative frequency of the word in
    the collection. P_model is what a model adds, as Wei & Croft (SIGIR 2006) add LDA. With
    ``unigram_weight=1`` all these rankers are the unigram model.

    Re-ranks: frames with ``qid, query, docno`` and the text, or only ``docno`` where ``documents`` are given, get a new
    ``score`` and ``rank``, ties by docno. Words of the query that the model does not know are left out, and a query
    without any known word scores 0 with every document. Unknown words of documents are left out too, and a document
    without any known word has the unigram model's probabilities, those of the collection, and none of the model's.

    Args:
        unigram_weight: Weight of the unigram model, from 0 to 1; may be set on a fitted model.
        mu: Weight of the collection against the document, in words, above 0; likewise.
        fields: Text columns, joined by a space; those that a frame lacks are passed over, one must be there. None for
            those of ``documents``, or ``title`` and ``text`` without a forward index.
        documents: A forward index: re-ranking then needs ``docno`` only, no text and no tokenising.
        batch_size: Documents read at a time.
        verbose: Show progress bars while reading documents and scoring.
    """

    free_settings: ClassVar[tuple[str, ...]] = ("fields", "unigram_weight", "mu")

    def __init__(
        self,
        *,
        unigram_weight: float,
        mu: float,
        fields: str | Sequence[str] | None = None,
        documents: ForwardIndex | None = None,
        batch_size: int = 1024,
        verbose: bool = False,
    ):
        super().__init__(fields=fields, documents=documents, batch_size=batch_size, verbose=verbose)
        self.unigram_weight, self.mu = unigram_weight, mu
        self._check_weights()
        self._own_ids = OwnIds()
        self._whole = LastVocabulary()

    def _check_weights(self) -> None:
        """Raise an error where a setting that may change on a fitted model is out of range."""
        self.unigram_weight = checked_number("unigram_weight", self.unigram_weight, float, least=0, most=1)
        self.mu = checked_number("mu", self.mu, float, above=0)

    def _require_fitted(self) -> None:
        super()._require_fitted()
        self._check_weights()

    @abstractmethod
    def _represent(self, sequences: PackedSequences, counts: DocumentCounts) -> Any:
        """What the model keeps of documents besides their counts: rows of an array or a csr matrix; None for nothing.

        Args:
            sequences: Documents as ids of the model's vocabulary, -1 for unknown words.
            counts: The same documents as bags of words.
        """

    @abstractmethod
    def word_probabilities(self, words: np.ndarray, documents: DocumentCounts) -> np.ndarray:
        """P_model(w|d), zero where the document is empty.

        Args:
            words: Distinct ids of words, int64 of shape ``(words,)``.
            documents: The documents.

        Returns:
            float32 of shape ``(documents, words)``.
        """

    def _represent_stored(
        self, index: ForwardIndex, rows: np.ndarray, sequences: PackedSequences, counts: DocumentCounts
    ) -> Any:
        """What :meth:`_represent` gives, for documents of a forward index."""
        return self._represent(sequences, counts)

    def _set_vocabulary(self, vocabulary: Vocabulary, history: Records = ()) -> None:
        """Take a vocabulary with collection frequencies; what was made for the last one is forgotten."""
        frequency = np.maximum(vocabulary.collection_frequency, UNSEEN)
        self._collection = (frequency / frequency.sum()).astype(np.float32)
        self._own_ids, self._whole = OwnIds(), LastVocabulary()
        super()._set_vocabulary(vocabulary, history)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Re-rank a result frame; see the class for the columns that it needs."""
        with validated(inp, self, self.fields) as v:
            accept_candidates(v, self.fields, kept=self.documents is not None)
        return self.score(inp)

    def score(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Score the rows of a result frame; see the class for the columns that it needs."""
        if frame.empty:
            return with_scores(frame, np.zeros(0))
        self._require_fitted()
        query_rows, texts = distinct_queries(frame)
        document_rows, documents = self._read_frame(frame)
        scores = np.empty(len(frame))
        for query, rows in self._by_query(query_rows, len(texts)):
            scores[rows] = self.log_likelihoods(self.query_words(texts[query]), documents.take(document_rows[rows]))
        return with_scores(frame, scores)

    def _by_query(self, query_rows: np.ndarray, count: int) -> Iterator[tuple[int, np.ndarray]]:
        order = np.argsort(query_rows, kind="stable")
        bounds = np.searchsorted(query_rows[order], np.arange(1, count))
        groups = enumerate(np.split(order, bounds))
        yield from pt.tqdm(groups, desc=repr(self), unit="query", total=count, disable=not self.verbose)

    def query_words(self, text: str) -> np.ndarray:
        """The known words of a query in their order, int64 ids."""
        ids = np.asarray(self.vocabulary.ids(tokenise(text)), dtype=np.int64)
        return ids[ids >= 0]

    def _read_frame(self, frame: pd.DataFrame) -> tuple[np.ndarray, DocumentCounts]:
        """The document of each row, and the distinct documents."""
        if self.documents is not None:
            rows, docnos = pd.factorize(frame["docno"], use_na_sentinel=False)
            return rows, self.read_stored(self.documents, self.documents.known_rows(list(docnos)))
        rows, sequences, vocabulary = self._frame_documents(frame)
        return rows, self.read_sequences(sequences, vocabulary)

    def read_sequences(self, sequences: PackedSequences, vocabulary: Vocabulary) -> DocumentCounts:
        """Documents given as term ids over any vocabulary, as the model reads them."""

        def read(some: np.ndarray) -> DocumentCounts:
            return self._counted(sequences.take(some), vocabulary, self._represent)

        return self._read(len(sequences), read)

    def read_stored(self, index: ForwardIndex, rows: np.ndarray) -> DocumentCounts:
        """Documents of a forward index, given by their rows in it."""

        def read(some: np.ndarray) -> DocumentCounts:
            represent = partial(self._represent_stored, index, rows[some])
            return self._counted(index.all().take(rows[some]), index.vocabulary, represent)

        return self._read(len(rows), read)

    def _counted(
        self,
        sequences: PackedSequences,
        vocabulary: Vocabulary,
        represent: Callable[[PackedSequences, DocumentCounts], Any],
    ) -> DocumentCounts:
        own = self._own_ids(sequences, vocabulary, self.vocabulary)
        counts = DocumentCounts.of(own, len(self.vocabulary))
        return counts.with_own(represent(own, counts))

    def _read(self, number: int, read: Callable[[np.ndarray], DocumentCounts]) -> DocumentCounts:
        """Read documents ``batch_size`` at a time, so that only their counts are ever in memory all at once."""
        self._require_fitted()
        starts = range(0, max(number, 1), self.batch_size)
        bar = pt.tqdm(starts, desc=f"{self!r} documents", unit="batch", disable=not self.verbose)
        return DocumentCounts.joined([read(np.arange(start, min(start + self.batch_size, number))) for start in bar])

    def read_whole(self, index: ForwardIndex) -> DocumentCounts:
        """All documents of a forward index, with postings; those of the last index are kept in memory."""
        self._require_fitted()
        return self._whole(lambda: self.read_stored(index, np.arange(len(index))).with_postings(), index.vocabulary)

    def collection_probabilities(self, words: np.ndarray) -> np.ndarray:
        """P(w|C), the relative frequencies of words in the collection: float32 of shape ``(words,)``."""
        return self._collection[words]

    def unigram_probabilities(self, words: np.ndarray, documents: DocumentCounts) -> np.ndarray:
        """P_uni(w|d), the unigram language model with Dirichlet smoothing: float32 of shape ``(documents, words)``."""
        counts = documents.of_words(words) + np.float32(self.mu) * self._collection[words]
        return counts / (documents.lengths + np.float32(self.mu))[:, None]

    def mixed_probabilities(self, words: np.ndarray, documents: DocumentCounts) -> np.ndarray:
        """P(w|d): float32 of shape ``(documents, words)``, above 0."""
        weight, probabilities = np.float32(self.unigram_weight), self.unigram_probabilities(words, documents)
        if weight < 1:
            probabilities = weight * probabilities + (1 - weight) * self.word_probabilities(words, documents)
        return np.maximum(probabilities, LEAST)

    def log_likelihoods(self, words: np.ndarray, documents: DocumentCounts) -> np.ndarray:
        """The logarithm of P(q|d) of one query with each document.

        Args:
            words: The query's words, int64 ids; repeated ones count as often.
            documents: The documents.

        Returns:
            float64 of shape ``(len(documents),)``.
        """
        distinct, counts = np.unique(words, return_counts=True)
        return np.log(self.mixed_probabilities(distinct, documents), dtype=np.float64) @ counts.astype(np.float64)

    def retriever(
        self, documents: ForwardIndex, *, num_results: int = 1000, verbose: bool = False
    ) -> LanguageModelRetriever:
        """Retrieve from the whole collection, exactly: every document is scored.

        Args:
            documents: A forward index of the collection, whose counts are held in memory.
            num_results: Documents a query.
            verbose: Show a progress bar.

        Returns:
            Transformer from ``qid, query`` to ``qid, query, docno, score, rank``.

        Raises:
            TypeError: If ``num_results`` is no integer, or ``documents`` no forward index.
            ValueError: If ``num_results`` is below 1, or if the forward index holds other fields than the model reads.
        """
        return LanguageModelRetriever(self, documents, num_results=num_results, verbose=verbose)

    def settings(self) -> dict[str, Any]:
        """What makes the model what it is."""
        return {name: getattr(self, name) for name in (*self.fitted_with, "unigram_weight", "mu")}
