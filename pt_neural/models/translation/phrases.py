"""The phrase translation model: phrases of a few words from relevant documents to queries."""

from collections.abc import Mapping
from typing import ClassVar, Unpack

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from pt_neural._arguments import checked_number
from pt_neural.models.translation.ibm_model1 import align, mutual
from pt_neural.models.translation.phrase_table import PhraseTable, phrase_pair_counts
from pt_neural.models.translation.words import WordTranslation, largest
from pt_neural.rankers.language_model import DocumentCounts
from pt_neural.rankers.options import RepresentationOptions
from pt_neural.rankers.relevant_pairs import RelevantPairs
from pt_neural.text import PackedSequences, Vocabulary, tokenise_packed
from pt_neural.text.phrases import Phrases
from pt_neural.training.run import Records


class PhraseTranslation(WordTranslation):
    """Query likelihood with translated words and phrases (Gao, He & Nie, CIKM 2010).

    A query is cut into words and phrases, each translated from a word or phrase of the document: "random forest" may
    stand for "ensemble of trees", though neither word does alone. The probability of the query is that of its most
    probable segmentation. A segment of one word has the P(w|d) of :class:`WordTranslation`. A phrase q has
    (1 - ``unigram_weight``) times the sum over all words and phrases w of the document of
    P(q|w) count(w) / (length of d · ``max_length``), as if w were drawn from the phrases of one of the ``max_length``
    lengths, all equally likely; the unigram model has no phrases.

    Phrases are learned from the words that IBM Model 1 aligns best. Each query and relevant document are aligned in
    both directions (Viterbi), and the links that both alignments have are kept (Och & Ney 2003). All pairs of phrases
    consistent with the links are counted, and P(q|w) is their relative frequency.

    A product of fewer probabilities is larger, so a phrase that occurred by chance may outdo several words. Gao et al.
    therefore use the logarithm of the model's probability as one feature among others, with tuned weights, and so does
    this ranker: its score is ``phrase_weight`` · log P of the best segmentation + (1 - ``phrase_weight``) · log P of
    the words alone. With ``phrase_weight=0`` or ``max_length=1`` it is :class:`WordTranslation`, and with
    ``phrase_weight=1`` the segmentation model alone.

    Word frequencies come from ``documents``, or from the candidates of the training queries without a forward index.

    Args:
        max_length: Most words of a phrase, on both sides.
        min_count: Pairs of phrases that were seen less often are left out.
        phrase_weight: Weight of the segmentation model, from 0 to 1; may be set on a fitted model.
        iterations: Passes of expectation maximisation.
        self_translation: Probability, from 0 to 1, that a word is translated into itself; the learned translations
            share the rest.
        top: Number of most probable translations to keep for each word and each phrase; None keeps all.
        null_word: Whether a word may come from no word of the other text in learning.
        max_terms: Number of words, from the start of a document, to learn from; None for all. Ranking uses all.
        unigram_weight: Weight of the unigram model against translated words, from 0 to 1; may be set on a fitted model.
        mu: Weight of the collection in the unigram model, in words, above 0; may be set on a fitted model.

    Attributes:
        history: One row per iteration: ``iteration``, ``log_likelihood`` of the training queries and ``perplexity`` of
            their words before the iteration, ``seconds``.
        phrase_table: P(q|w) of phrases; None before :meth:`fit`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a setting is out of range.

    Example::

        model = pn.PhraseTranslation(documents=pn.ForwardIndex("pydocs.forward"))
        (candidates >> model).fit(docs.get_topics("train"), docs.get_qrels("train"))
        model.segmentation("standard deviation of an array", "the spread of values in an ndarray")
    """

    schematic = {"label": "PhraseTranslation", "help_url": None}
    artifact_format = "phrase-translation"
    free_settings: ClassVar[tuple[str, ...]] = (*WordTranslation.free_settings, "phrase_weight")

    def __init__(
        self,
        *,
        max_length: int = 3,
        min_count: int = 1,
        phrase_weight: float = 0.2,
        iterations: int = 10,
        self_translation: float = 0.3,
        top: int | None = 50,
        null_word: bool = True,
        max_terms: int | None = None,
        unigram_weight: float = 0.5,
        mu: float = 100,
        **options: Unpack[RepresentationOptions],
    ):
        self.max_length = checked_number("max_length", max_length, int, least=1)
        self.min_count = checked_number("min_count", min_count, int, least=1)
        self.phrase_weight = phrase_weight
        self.phrase_table: PhraseTable | None = None
        super().__init__(
            iterations=iterations,
            self_translation=self_translation,
            top=top,
            null_word=null_word,
            max_terms=max_terms,
            unigram_weight=unigram_weight,
            mu=mu,
            **options,
        )

    def _check_weights(self) -> None:
        super()._check_weights()
        self.phrase_weight = checked_number("phrase_weight", self.phrase_weight, float, least=0, most=1)

    def _learn(self, pairs: RelevantPairs, *, verbose: bool) -> Records:
        learned, history = self._maximise(pairs, desc=repr(self), verbose=verbose)
        phrase_table = self._learn_phrases(pairs, learned, verbose=verbose)
        self.phrase_table = phrase_table
        self._set_table(pairs.vocabulary, self._ranking_table(learned))
        return history

    def _learn_phrases(self, pairs: RelevantPairs, learned: csr_array, *, verbose: bool) -> PhraseTable:
        sides = pairs.queries, pairs.query_rows, pairs.documents, pairs.document_rows
        forward = align(learned, *sides)
        swapped, _ = self._maximise(pairs.swapped(), desc=f"{self!r} queries to documents", verbose=verbose)
        links = mutual(forward, align(swapped, *sides[2:], *sides[:2]))
        queries, documents = (
            Phrases.build(texts, len(pairs.vocabulary), max_length=self.max_length) for texts in sides[::2]
        )
        counts = phrase_pair_counts(links, *sides[:2], queries, *sides[2:], documents)
        return PhraseTable.of(counts, queries, documents, min_count=self.min_count, top=self.top)

    def _extra(self, sequences: PackedSequences, counts: DocumentCounts) -> csr_array:
        return self.phrase_table.counts(sequences)  # (documents, phrases)

    def log_likelihoods(self, words: np.ndarray, documents: DocumentCounts) -> np.ndarray:
        """The score of one query with each document, float64 of shape ``(documents,)``; see the class."""
        word_logs, phrase_logs = self._log_probabilities(words, documents)
        best, _ = best_segmentations(word_logs, phrase_logs)
        return (1 - self.phrase_weight) * word_logs.sum(axis=1) + self.phrase_weight * best

    def _log_probabilities(
        self, words: np.ndarray, documents: DocumentCounts
    ) -> tuple[np.ndarray, dict[tuple[int, int], np.ndarray]]:
        """Log P(w|d) of a query's words, and log P(q|d) of its phrases by first word and length."""
        distinct, places = np.unique(words, return_inverse=True)
        word_logs = np.log(self.mixed_probabilities(distinct, documents), dtype=np.float64)[:, places]
        numbers = self.phrase_table.segments(words)
        weights = self.phrase_table.table[list(numbers.values())]
        share = (1 - self.unigram_weight) / (np.maximum(documents.lengths, 1)[:, None] * self.max_length)
        with np.errstate(divide="ignore"):
            phrase_logs = np.log((documents.extra @ weights.T).toarray() * share, dtype=np.float64)
        return word_logs, dict(zip(numbers, phrase_logs.T, strict=True))

    def phrases(self, phrase: str, k: int = 10) -> pd.DataFrame:
        """The phrases that a word or phrase of documents is translated into, most probable first.

        Args:
            phrase: Words that the model knows.
            k: Largest number of phrases.

        Returns:
            Frame with ``phrase``, of two words or more, and ``probability``, P(q|w); empty if there are none.

        Raises:
            RuntimeError: If the model is not fitted.
            ValueError: If ``k`` is below 1.

        Example::

            model.phrases("ensemble of trees", k=3)
        """
        self._require_fitted()
        checked_number("k", k, int, least=1)
        table, words = self.phrase_table, tokenise_packed([phrase], self.vocabulary)
        number = table.document_phrases.numbers(words)[:1, len(words.terms) - 1 : len(words.terms)]
        best, values = largest(table.table[:, number[number >= 0]], k)
        return pd.DataFrame({"phrase": table.query_phrases.names(best, self.vocabulary), "probability": values})

    def segmentation(self, query: str, text: str) -> pd.DataFrame:
        """The best segmentation of a query into words and phrases, given a document.

        Args:
            query: The query.
            text: The document.

        Returns:
            Frame with ``segment``, ``probability`` given the document, and ``source``, the word or phrase of the
            document that contributes most to its translation probability; None if nothing does.

        Raises:
            RuntimeError: If the model is not fitted.
        """
        words = self.represent_queries([query])[0]
        document = self.represent_documents(tokenise_packed([text], self.vocabulary), self.vocabulary)
        word_logs, phrase_logs = self._log_probabilities(words, document)
        _, lengths = best_segmentations(word_logs, phrase_logs)
        numbers = self.phrase_table.segments(words)
        rows = []
        for first, length in segments(lengths[0]):
            segment = " ".join(self.vocabulary.terms[word] for word in words[first : first + length])
            if length == 1:
                source = self._source(self.table[[words[first]]], document.counts, Phrases([], len(self.vocabulary)))
                rows.append((segment, np.exp(word_logs[0, first]), source))
            else:
                row = self.phrase_table.table[[numbers[first, length]]]
                source = self._source(row, document.extra, self.phrase_table.document_phrases)
                rows.append((segment, np.exp(phrase_logs[first, length][0]), source))
        return pd.DataFrame(rows, columns=["segment", "probability", "source"])

    def _source(self, translations: csr_array, counts: csr_array, phrases: Phrases) -> str | None:
        """The word or phrase of a document that contributes most to the probability of a segment."""
        best, _ = largest(translations * counts, 1)
        return phrases.names(best, self.vocabulary)[0] if len(best) else None

    def _arrays(self) -> dict[str, np.ndarray]:
        return {**super()._arrays(), **self.phrase_table.tensors()}

    def _set_arrays(self, vocabulary: Vocabulary, arrays: Mapping[str, np.ndarray]) -> None:
        phrase_table = PhraseTable.from_tensors(arrays, vocabulary, self.max_length)
        super()._set_arrays(vocabulary, arrays)
        self.phrase_table = phrase_table


def best_segmentations(
    words: np.ndarray, phrases: Mapping[tuple[int, int], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The most probable segmentation of a query for each document, by dynamic programming.

    The first j words have alpha_j = max over the length l of their last segment of alpha_{j-l} · P(segment|d), with
    alpha_0 = 1: the maximum in place of the sum over segmentations (Gao, He & Nie 2010). ``words`` are log P(w|d) of
    shape ``(documents, words)``; ``phrases`` are log P(phrase|d) by first word and length, -inf to rule a segment out.

    Returns the logarithm of the largest product, and the length of the last segment of the words up to each word, int64
    of shape ``(documents, words)``; of equal products, the one with shorter segments.

    Example::

        >>> best_segmentations(np.log([[0.5, 0.5]]), {(0, 2): np.log([0.3])})[1]
        array([[1, 2]])
    """
    count, num_words = words.shape
    best, lengths = [np.zeros(count)], np.ones((count, num_words), dtype=np.int64)
    by_end: dict[int, list[int]] = {}
    for first, length in sorted(phrases, key=lambda segment: segment[1]):
        by_end.setdefault(first + length - 1, []).append(length)
    for last in range(num_words):
        product = best[last] + words[:, last]
        for length in by_end.get(last, []):
            first = last + 1 - length
            other = best[first] + phrases[first, length]
            better = other > product
            product = np.where(better, other, product)
            lengths[better, last] = length
        best.append(product)
    return best[-1], lengths


def segments(lengths: np.ndarray) -> list[tuple[int, int]]:
    """First word and length of each segment of a query, from what :func:`best_segmentations` gives for one document.

    Example::

        >>> segments(np.array([1, 2, 1]))
        [(0, 2), (2, 1)]
    """
    found, end = [], len(lengths)
    while end:
        length = int(lengths[end - 1])
        end -= length
        found.append((end, length))
    return found[::-1]
