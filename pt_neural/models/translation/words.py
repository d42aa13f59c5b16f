"""The word translation model: IBM Model 1 from relevant documents to queries."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Unpack

import numpy as np
import pandas as pd
import pyterrier as pt
from scipy.sparse import coo_array, csr_array

from pt_neural._arguments import checked_choice, checked_number
from pt_neural._files import rise
from pt_neural.models.translation.ibm_model1 import document_counts, em_step, equal_translations, query_counts
from pt_neural.rankers.language_model import DocumentCounts, LanguageModelRanker
from pt_neural.rankers.options import RepresentationOptions
from pt_neural.rankers.relevant_pairs import RelevantPairs, fit_to_pairs
from pt_neural.text import Vocabulary, tokenise
from pt_neural.training.report import Report
from pt_neural.training.run import Iteration, Records, run_iterations


class WordTranslation(LanguageModelRanker, pt.Estimator):
    """Query likelihood with translated words (Berger & Lafferty 1999; Gao, He & Nie, CIKM 2010).

    P_model(q|d) = sum over the words w of the document of t(q|w) P_ml(w|d): the query may word things differently from
    the document. The probability t(q|w) that w is translated into q is learned from queries and documents relevant to
    them by expectation maximisation of IBM Model 1 (Brown et al. 1993), in which each word of the query comes from one
    of the words of the document, or from a null word, with equal probability.

    The model may not learn that a word is its own best translation, though documents with the query's own words should
    rank first (Xue, Jeon & Croft 2008); ``self_translation`` and the unigram model both ensure that. A word that no
    training document has is its own only translation, so that the probabilities of every document add up to 1.

    Word frequencies come from ``documents``, or from the candidates of the training queries without a forward index.

    Args:
        iterations: Passes of expectation maximisation.
        self_translation: Probability, from 0 to 1, that a word is translated into itself; the learned translations
            share the rest.
        top: Number of most probable translations of each word to keep, scaled to add up to 1; None keeps all.
        null_word: Whether a query word may come from no word of the document in learning; ranking has no null word.
        max_terms: Number of words, from the start of a document, to learn from; None for all. Ranking uses all.
        unigram_weight: Weight of the unigram model, from 0 to 1; may be set on a fitted model.
        mu: Weight of the collection in the unigram model, in words, above 0; may be set on a fitted model.

    Attributes:
        report: What the model was fitted on, and what was left out; None if it is not fitted, or was loaded.
        history: One row per iteration: ``iteration``, ``log_likelihood`` of the training queries and ``perplexity`` of
            their words before the iteration, ``seconds``.
        table: t(q|w), self-translation included, float32 csr matrix of shape ``(words, words)``; None before
            :meth:`fit`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a setting is out of range.

    Example::

        model = pn.WordTranslation(documents=pn.ForwardIndex("pydocs.forward"))
        (candidates >> model).fit(docs.get_topics("train"), docs.get_qrels("train"))
        model.translations("remove")  # words that stand for it in queries
    """

    schematic = {"label": "WordTranslation", "help_url": None}
    artifact_format = "word-translation"
    fitting: ClassVar[str] = "(candidates >> model).fit(topics, qrels)"

    report: Report | None = None
    fit = fit_to_pairs

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
        **options: Unpack[RepresentationOptions],
    ):
        self.iterations = checked_number("iterations", iterations, int, least=1)
        self.self_translation = checked_number("self_translation", self_translation, float, least=0, most=1)
        self.top = checked_number("top", top, int, least=1, optional=True)
        self.null_word = checked_choice("null_word", null_word, (True, False))
        self.max_terms = checked_number("max_terms", max_terms, int, least=1, optional=True)
        self.table: csr_array | None = None
        super().__init__(unigram_weight=unigram_weight, mu=mu, **options)

    def _learn(self, pairs: RelevantPairs, *, verbose: bool) -> Records:
        learned, history = self._maximise(pairs, desc=repr(self), verbose=verbose)
        self._set_table(pairs.vocabulary, self._ranking_table(learned))
        return history

    def _maximise(self, pairs: RelevantPairs, *, desc: str, verbose: bool) -> tuple[csr_array, Records]:
        """t(q|w) by IBM Model 1, and its history."""
        history: Records = []
        estimates = self._estimates(pairs)
        for last in run_iterations(estimates, history, total=self.iterations, desc=desc, verbose=verbose):
            table: csr_array = last.result
        return table, history

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

    def _set_table(self, vocabulary: Vocabulary, table: csr_array) -> None:
        self.table = table
        self._set_vocabulary(vocabulary)

    def word_probabilities(self, words: np.ndarray, documents: DocumentCounts) -> np.ndarray:
        """P_model(q|d); float32 of shape ``(documents, words)``."""
        return documents.weighted_sums(self.table[words]) / np.maximum(documents.lengths, 1)[:, None]

    def translations(self, word: str, k: int = 10) -> pd.DataFrame:
        """The words that a word of documents is translated into, most probable first.

        Args:
            word: A word that the model knows.
            k: Largest number of words.

        Returns:
            Frame with ``word`` and ``probability``, t(q|w), self-translation included.

        Raises:
            RuntimeError: If the model is not fitted.
            ValueError: If the model does not know the word, or if ``k`` is below 1.

        Example::

            model.translations("remove", k=5)
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
            raise ValueError(f"{word!r} is not a single word known to {self!r}")
        return number

    def _most_probable(self, probabilities: csr_array, k: int) -> pd.DataFrame:
        best, values = largest(probabilities, checked_number("k", k, int, least=1))
        return pd.DataFrame({"word": [self.vocabulary.terms[word] for word in best], "probability": values})

    def _arrays(self) -> dict[str, np.ndarray]:
        return to_tensors("table", self.table)

    def _set_arrays(self, vocabulary: Vocabulary, arrays: Mapping[str, np.ndarray]) -> None:
        self._set_table(vocabulary, from_tensors("table", arrays, (len(vocabulary), len(vocabulary))))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


_PARTS = ("data", "indices", "indptr")


def most_probable(table: csr_array, top: int | None) -> csr_array:
    """Keep the ``top`` most probable translations in each column, the first of equal ones; None keeps all above 0."""
    columns = coo_array(table)
    order = np.lexsort((columns.row, -columns.data, columns.col))
    ranks = np.arange(table.nnz) - np.searchsorted(columns.col[order], columns.col[order])
    kept = np.sort(order[(columns.data[order] > 0) & (ranks < (table.nnz if top is None else top))])
    return csr_array((columns.data[kept], (columns.row[kept], columns.col[kept])), shape=table.shape)


def scaled_columns(table: csr_array, totals: np.ndarray | float = 1.0) -> csr_array:
    """Scale columns to given totals; empty ones stay empty."""
    sums = table.sum(axis=0)
    scale = np.divide(totals, sums, out=np.zeros(len(sums)), where=sums > 0)
    return csr_array((table.data * scale[table.indices], table.indices, table.indptr), shape=table.shape)


def with_self_translation(table: csr_array, weight: float) -> csr_array:
    """Mix in self-translation: t'(w|w) = weight + (1 - weight) t(w|w), and t'(q|w) = (1 - weight) t(q|w) otherwise.

    Words without translation, whose columns add up to 0, become their own only translation; columns then add up to 1.
    """
    translated = table.sum(axis=0) > 0
    words = np.arange(table.shape[1])
    own = csr_array((np.where(translated, weight, 1.0), (words, words)), shape=table.shape)
    mixed = csr_array((1 - weight) * table + own, dtype=np.float32)
    mixed.eliminate_zeros()
    mixed.sort_indices()
    return mixed


def largest(row: csr_array, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions and values of the largest entries above 0 of a single row or column, largest first."""
    values = row.toarray().ravel()
    best = np.argsort(-values, kind="stable")[:k]
    best = best[values[best] > 0]
    return best, values[best]


def to_tensors(name: str, table: csr_array) -> dict[str, np.ndarray]:
    """A table as named arrays."""
    return {f"{name}.{part}": getattr(table, part) for part in _PARTS}


def from_tensors(name: str, tensors: Mapping[str, np.ndarray], shape: tuple[int, int]) -> csr_array:
    """Read what :func:`to_tensors` gave; KeyError if an array is missing, ValueError if they make no such table."""
    data, indices, starts = (tensors[f"{name}.{part}"] for part in _PARTS)
    if data.dtype.kind != "f" or indices.dtype.kind != "i" or starts.dtype.kind != "i":
        raise ValueError(f"{name} is made of {data.dtype}, {indices.dtype} and {starts.dtype}")
    if len(starts) != shape[0] + 1 or not rise(starts, len(data)) or len(indices) != len(data):
        raise ValueError(f"{name} has {len(data)} values, {len(indices)} indices, and starts that do not fit")
    table = csr_array((data, indices, starts), shape=shape)
    table.check_format(full_check=True)
    if not ((table.data >= 0) & (table.data <= 1)).all():
        raise ValueError(f"{name} holds numbers that are not probabilities")
    return table
