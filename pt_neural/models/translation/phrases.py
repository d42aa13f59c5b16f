"""The phrase translation model: phrases of a few words from relevant documents to queries."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from pt_neural._arguments import checked_number
from pt_neural.models.translation.ibm_model1 import align, mutual
from pt_neural.models.translation.phrase_table import PhraseTable, phrase_pair_counts
from pt_neural.models.translation.words import WordTranslation, largest
from pt_neural.rankers.document_counts import DocumentCounts
from pt_neural.rankers.learned_words import Records
from pt_neural.rankers.relevant_pairs import RelevantPairs
from pt_neural.text import ForwardIndex, PackedSequences, Vocabulary, tokenise_packed
from pt_neural.text.phrases import Phrases


class PhraseTranslation(WordTranslation):
    """Query likelihood with translated words and phrases (Gao, He & Nie, CIKM 2010).

    A query is cut into words and phrases, each of which is translated from a word or a phrase of the document:
    "random forest" may stand for "ensemble of trees", though neither word does alone. The probability of the query is
    that of its most probable segmentation; a word as a segment has the P(w|d) of :class:`WordTranslation`, and a
    phrase q has (1 - ``unigram_weight``) times the sum over all words and phrases w of the document of
    P(q|w) count(w) / (length of d · ``max_length``), as if w were drawn from the phrases of one of the ``max_length``
    lengths, each as likely as the others; the unigram model has no phrases.

    Phrases are learned from the words that IBM Model 1 aligns best: Viterbi alignments of each query and relevant
    document from either side, of which those links remain that both have (Och & Ney 2003). All pairs of phrases that
    are consistent with the links are counted, and P(q|w) is their relative frequency.

    Products of fewer probabilities are larger, so a phrase that was found by chance may outdo several words. Gao et al.
    therefore take the logarithm of the model's probability as a feature beside others, whose weights are tuned, and so
    does this ranker: its score is ``phrase_weight`` · log P of the best segmentation + (1 - ``phrase_weight``) · log P
    of the words alone. With ``phrase_weight=0`` or ``max_length=1`` it is :class:`WordTranslation`, and with
    ``phrase_weight=1`` the segmentation model alone.

    Args:
        max_length: Words of a phrase, at most, on both sides.
        min_count: Pairs of phrases that were seen less often are left out.
        phrase_weight: See above, from 0 to 1; may be set on a fitted model.
        iterations: Passes of expectation maximisation.
        self_translation: Part of each word that is translated into itself, from 0 to 1; what was learned shares the
            rest.
        top: So many translations of each word, and of each phrase, are kept, the most probable ones; None keeps all.
        null_word: Whether words may come from none of the other text while learning.
        max_terms: So many of the first words of a document are learned from; None for all. In ranking, all count.
        unigram_weight: Weight of the unigram model against translated words, from 0 to 1; may be set on a fitted model.
        mu: Weight of the collection against the document in the unigram model, in words, above 0; likewise.
        fields: Text columns, joined by a space; those that a frame lacks are passed over, one must be there. None for
            those of ``documents``, or ``title`` and ``text`` without a forward index.
        documents: A forward index: re-ranking then needs ``docno`` only, no text and no tokenising. Its words then
            have their frequency in the whole collection; otherwise, that in the candidates of the training queries.
        batch_size: Documents read at a time.
        verbose: Show a progress bar while scoring.

    Attributes:
        history: One row an iteration: ``iteration``, ``log_likelihood`` of the training queries and ``perplexity`` of
            their words as the iteration found them, ``seconds``.
        phrase_table: P(q|w) of phrases; None before :meth:`fit`.

    Raises:
        TypeError: If an argument is of another kind than said here.
        ValueError: If a setting is out of range.

    Example::

        model = pn.PhraseTranslation(documents=pn.ForwardIndex("pydocs.forward"))
        (candidates >> model).fit(docs.get_topics("train"), docs.get_qrels("train"))
        model.segmentation("standard deviation of an array", "the spread of values in an ndarray")
    """

    schematic = {"label": "PhraseTranslation", "help_url": None}
    artifact_format = "phrase-translation"
    fitted_with = (*WordTranslation.fitted_with, "max_length", "min_count")
    free_settings = (*WordTranslation.free_settings, "phrase_weight")

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
        fields: str | Sequence[str] | None = None,
        documents: ForwardIndex | None = None,
        batch_size: int = 1024,
        verbose: bool = False,
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
            fields=fields,
            documents=documents,
            batch_size=batch_size,
            verbose=verbose,
        )

    def _check_weights(self) -> None:
        super()._check_weights()
        self.phrase_weight = checked_number("phrase_weight", self.phrase_weight, float, least=0, most=1)

    def _learn(self, pairs: RelevantPairs, *, verbose: bool) -> None:
        learned, history = self._maximise(pairs, desc=repr(self), verbose=verbose)
        phrase_table = self._learn_phrases(pairs, learned, verbose=verbose)
        self.phrase_table = phrase_table
        self._set_table(pairs.vocabulary, self._ranking_table(learned), history)

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

    def _represent(self, sequences: PackedSequences, counts: DocumentCounts) -> csr_array:
        return self.phrase_table.counts(sequences)

    def log_likelihoods(self, words: np.ndarray, documents: DocumentCounts) -> np.ndarray:
        """The score of one query with each document; see the class.

        Args:
            words: The query's words in their order, int64 ids.
            documents: The documents.

        Returns:
            float64 of shape ``(len(documents),)``.
        """
        of_words, of_phrases = self._log_probabilities(words, documents)
        best, _ = best_segmentations(of_words, of_phrases)
        return (1 - self.phrase_weight) * of_words.sum(axis=1) + self.phrase_weight * best

    def _log_probabilities(
        self, words: np.ndarray, documents: DocumentCounts
    ) -> tuple[np.ndarray, dict[tuple[int, int], np.ndarray]]:
        """Logarithms of P(w|d) of a query's words, and of P(q|d) of its phrases by their first word and length."""
        distinct, places = np.unique(words, return_inverse=True)
        of_words = np.log(self.mixed_probabilities(distinct, documents), dtype=np.float64)[:, places]
        numbers = self.phrase_table.segments(words)
        weights = self.phrase_table.table[list(numbers.values())]
        share = (1 - self.unigram_weight) / (np.maximum(documents.lengths, 1)[:, None] * self.max_length)
        with np.errstate(divide="ignore"):
            of_phrases = np.log((documents.own @ weights.T).toarray() * share, dtype=np.float64)
        return of_words, dict(zip(numbers, of_phrases.T, strict=True))

    def phrases(self, phrase: str, k: int = 10) -> pd.DataFrame:
        """The phrases that a word or a phrase of documents is translated into, most probable first.

        Args:
            phrase: Words that the model knows.
            k: How many, at most.

        Returns:
            Frame with ``phrase``, of two words or more, and ``probability``, P(q|w); empty if there are none.

        Raises:
            RuntimeError: If the model is not fitted.
            ValueError: If ``k`` is below 1.
        """
        self._require_fitted()
        checked_number("k", k, int, least=1)
        known, words = self.phrase_table, tokenise_packed([phrase], self.vocabulary)
        found = known.document_phrases.numbers(words)[:1, len(words.terms) - 1 : len(words.terms)]
        best, values = largest(known.table[:, found[found >= 0]], k)
        return pd.DataFrame({"phrase": known.query_phrases.names(best, self.vocabulary), "probability": values})

    def segmentation(self, query: str, text: str) -> pd.DataFrame:
        """How a query is best cut into words and phrases, given a document.

        Args:
            query: The query.
            text: The document.

        Returns:
            Frame with ``segment``, ``probability`` given the document, and ``source``, the word or phrase of the
            document that most of its translation probability comes from; None if there is no such.

        Raises:
            RuntimeError: If the model is not fitted.
        """
        self._require_fitted()
        words = self.query_words(query)
        document = self.read_sequences(tokenise_packed([text], self.vocabulary), self.vocabulary)
        of_words, of_phrases = self._log_probabilities(words, document)
        _, lengths = best_segmentations(of_words, of_phrases)
        numbers = self.phrase_table.segments(words)
        rows = []
        for first, length in segments(lengths[0]):
            segment = " ".join(self.vocabulary.terms[word] for word in words[first : first + length])
            if length == 1:
                source = self._source(self.table[[words[first]]], document.counts, Phrases([], len(self.vocabulary)))
                rows.append((segment, np.exp(of_words[0, first]), source))
            else:
                row = self.phrase_table.table[[numbers[first, length]]]
                source = self._source(row, document.own, self.phrase_table.document_phrases)
                rows.append((segment, np.exp(of_phrases[first, length][0]), source))
        return pd.DataFrame(rows, columns=["segment", "probability", "source"])

    def _source(self, translations: csr_array, counts: csr_array, phrases: Phrases) -> str | None:
        """What of a document contributes most to the probability of a segment."""
        best, _ = largest(translations * counts, 1)
        return phrases.names(best, self.vocabulary)[0] if len(best) else None

    def settings(self) -> dict[str, Any]:
        """What makes the model what it is."""
        return {**super().settings(), "phrase_weight": self.phrase_weight}

    def _arrays(self) -> dict[str, np.ndarray]:
        return {**super()._arrays(), **self.phrase_table.tensors()}

    def _set_arrays(self, vocabulary: Vocabulary, arrays: Mapping[str, np.ndarray], history: Records) -> None:
        phrase_table = PhraseTable.from_tensors(arrays, vocabulary, self.max_length)
        super()._set_arrays(vocabulary, arrays, history)
        self.phrase_table = phrase_table


def best_segmentations(
    words: np.ndarray, phrases: Mapping[tuple[int, int], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The largest product of probabilities of segments, for each of some documents, by dynamic programming.

    A query of j words has alpha_j = max over the length l of its last segment of alpha_{j-l} · P(segment|d), with
    alpha_0 = 1: the maximum in place of the sum over segmentations (Gao, He & Nie 2010).

    Args:
        words: log P(w|d) of each word of the query as a segment of its own, float64 of shape ``(documents, words)``.
        phrases: log P(phrase|d) of longer segments, by their first word (from 0) and length, float64 of shape
            ``(documents,)``; -inf is no segment.

    Returns:
        The logarithm of the largest product, float64 of shape ``(documents,)``, and the length of the last segment of
        the first words up to each one, int64 of shape ``(documents, words)``; of equal products the shorter segment.
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
    """First word and length of each segment, in their order.

    Args:
        lengths: Those of one document that :func:`best_segmentations` gives, of shape ``(words,)``.

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
