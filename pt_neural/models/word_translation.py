"""The word translation model: IBM Model 1 from relevant documents to queries."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from pt_neural._arguments import checked_choice, checked_number
from pt_neural.models.ibm_model1 import document_counts, em_step, equal_translations, query_counts
from pt_neural.models.iterations import Iteration, noted
from pt_neural.models.translation_table import (
    from_tensors,
    largest,
    most_probable,
    scaled_columns,
    to_tensors,
    with_self_translation,
)
from pt_neural.rankers.document_counts import DocumentCounts
from pt_neural.rankers.language_model import LanguageModelRanker
from pt_neural.rankers.learned_words import Records
from pt_neural.rankers.relevant_pairs import LearnedFromPairs, RelevantPairs
from pt_neural.text import ForwardIndex, PackedSequences, Vocabulary, tokenise


class WordTranslation(LearnedFromPairs, LanguageModelRanker):
    """Query likelihood with translated words (Berger & Lafferty 1999; Gao, He & Nie, CIKM 2010).

    P_model(q|d) = sum over the words w of the document of t(q|w) P_ml(w|d): a document may be worded in one way and the
    query in another. The probability t(q|w) that w is translated into q is learned from queries and documents relevant
    to them by expectation maximisation of IBM Model 1 (Brown et al. 1993), in which each word of the query comes from
    one of the words of the document, or from a null word, with equal probabilities.

    A word is not its own best translation by itself, though a document that has the query's very words should be
    better than others (Xue, Jeon & Croft 2008): ``self_translation`` and the unigram model both see to that. A word
    that no document has had in training is its own only translation, so the probabilities of every document add up
    to 1.

    Args:
        iterations: Passes of expectation maximisation.
        self_translation: Part of each word that is translated into itself, from 0 to 1; what was learned shares the
            rest.
        top: So many translations of each word are kept, the most probable ones, and share the probability of all; None
            keeps all.
        null_word: Whether words of queries may come from none of the document while learning; what the null word is
            translated into plays no part in ranking.
        max_terms: So many of the first words of a document are learned from; None for all. In ranking, all count.
        unigram_weight: Weight of the unigram model, from 0 to 1; may be set on a fitted model.
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
        table: t(q|w), self-translation included, float32 csr matrix of shape ``(words, words)``; None before
            :meth:`fit`.

    Raises:
        TypeError: If an argument is of another kind than said here.
        ValueError: If a setting is out of range.

    Example::

        model = pn.WordTranslation(documents=pn.ForwardIndex("pydocs.forward"))
        (candidates >> model).fit(docs.get_topics("train"), docs.get_qrels("train"))
        model.translations("remove")  # words that stand for it in queries
    """

    schematic = {"label": "WordTranslation", "help_url": None}
    artifact_format = "word-translation"
    fitting = "(candidates >> model).fit(topics, qrels)"
    fitted_with = ("iterations", "self_translation", "top", "null_word", "max_terms")

    def __init__(
        self,
        *,
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
        self.iterations = checked_number("iterations", iterations, int, least=1)
        self.self_translation = checked_number("self_translation", self_translation, float, least=0, most=1)
        self.top = checked_number("top", top, int, least=1, optional=True)
        self.null_word = checked_choice("null_word", null_word, (True, False))
        self.max_terms = checked_number("max_terms", max_terms, int, least=1, optional=True)
        self.table: csr_array | None = None
        super().__init__(
            unigram_weight=unigram_weight,
            mu=mu,
            fields=fields,
            documents=documents,
            batch_size=batch_size,
            verbose=verbose,
        )

    def _learn(self, pairs: RelevantPairs, *, verbose: bool) -> None:
        learned, history = self._maximise(pairs, desc=repr(self), verbose=verbose)
        self._set_table(pairs.vocabulary, self._ranking_table(learned), history)

    def _maximise(self, pairs: RelevantPairs, *, desc: str, verbose: bool) -> tuple[csr_array, Records]:
        """IBM Model 1 of pairs, and its history."""
        history: list[dict[str, Any]] = []
        estimates = noted(self._estimates(pairs), history, total=self.iterations, desc=desc, verbose=verbose)
        return deque(estimates, maxlen=1).pop().result, history

    def _estimates(self, pairs: RelevantPairs) -> Iterator[Iteration]:
        num_words = len(pairs.vocabulary)
        documents = document_counts(pairs.documents, num_words, null_word=self.null_word)
        queries = query_counts(pairs.queries, pairs.query_rows, pairs.document_rows, num_words, documents.shape[0])
        table, occurrences = equal_translations(queries, documents), queries.sum(dtype=np.float64)
        for number in range(1, self.iterations + 1):
            table, likelihood = em_step(table, queries, documents)
            perplexity = np.exp(-likelihood / occurrences)
            measures = {"log_likelihood": likelihood, "perplexity": perplexity}
            yield Iteration(number, measures, f"perplexity {perplexity:.1f}", table)

    def _ranking_table(self, learned: csr_array) -> csr_array:
        words = learned[:, : learned.shape[0]]  # without the null word
        return with_self_translation(scaled_columns(most_probable(words, self.top)), self.self_translation)

    def _set_table(self, vocabulary: Vocabulary, table: csr_array, history: Records) -> None:
        self.table = table
        self._set_vocabulary(vocabulary, history)

    def _represent(self, sequences: PackedSequences, counts: DocumentCounts) -> None:
        return None

    def word_probabilities(self, words: np.ndarray, documents: DocumentCounts) -> np.ndarray:
        """P_model(q|d); float32 of shape ``(documents, words)``."""
        return documents.sums(self.table[words]) / np.maximum(documents.lengths, 1)[:, None]

    def translations(self, word: str, k: int = 10) -> pd.DataFrame:
        """The words that a word of documents is translated into, most probable first.

        Args:
            word: A word that the model knows.
            k: How many, at most.

        Returns:
            Frame with ``word`` and ``probability``, t(q|w), self-translation included.

        Raises:
            RuntimeError: If the model is not fitted.
            ValueError: If it does not know the word, or if ``k`` is below 1.
        """
        number = self._known_word(word)
        return self._most_probable(self.table[:, [number]], k)

    def sources(self, word: str, k: int = 10) -> pd.DataFrame:
        """The words of documents that are translated into a word of queries; see :meth:`translations`."""
        number = self._known_word(word)
        return self._most_probable(self.table[[number]], k)

    def _known_word(self, word: str) -> int:
        self._require_fitted()
        tokens = tokenise(word)
        number = int(self.vocabulary.ids(tokens)[0]) if len(tokens) == 1 else -1
        if number < 0:
            raise ValueError(f"{word!r} is not one word that {self!r} knows")
        return number

    def _most_probable(self, probabilities: csr_array, k: int) -> pd.DataFrame:
        best, values = largest(probabilities, checked_number("k", k, int, least=1))
        return pd.DataFrame({"word": [self.vocabulary.terms[word] for word in best], "probability": values})

    def _arrays(self) -> dict[str, np.ndarray]:
        return to_tensors("table", self.table)

    def _set_arrays(self, vocabulary: Vocabulary, arrays: Mapping[str, np.ndarray], history: Records) -> None:
        self._set_table(vocabulary, from_tensors("table", arrays, (len(vocabulary), len(vocabulary))), history)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
