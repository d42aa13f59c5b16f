"""Learning from queries and the documents relevant to them, without negatives.

The ``fit`` of BLTM and of the translation models is :func:`fit_to_pairs`. Such a model has the setting ``max_terms``
and a method ``_learn(pairs, verbose=)``, which returns the history.
"""

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import pandas as pd

from pt_neural._messages import say
from pt_neural.rankers.ranker import Ranker
from pt_neural.text import PackedSequences, Vocabulary
from pt_neural.text.tokens import pack_texts
from pt_neural.training.examples import Examples
from pt_neural.training.report import Report

Model = TypeVar("Model", bound=Ranker)


@dataclass(frozen=True)
class RelevantPairs:
    """Queries paired with documents relevant to them; each has at least one word.

    Attributes:
        vocabulary: The words of the collection with their frequencies, followed by words of queries alone, with
            frequency 0.
        queries: The queries as word ids; each has a pair.
        documents: The documents as word ids; each has a pair.
        query_rows: The query of each pair, int64 of shape ``(pairs,)``.
        document_rows: The document of each pair, int64 of shape ``(pairs,)``.
        labels: The grade of each pair, float32, above 0.
        report: What was used, and what was left out and why.
    """

    vocabulary: Vocabulary
    queries: PackedSequences
    documents: PackedSequences
    query_rows: np.ndarray
    document_rows: np.ndarray
    labels: np.ndarray
    report: Report

    def __len__(self) -> int:
        return len(self.query_rows)

    def swapped(self) -> "RelevantPairs":
        """The same pairs with the roles of queries and documents exchanged."""
        return replace(
            self,
            queries=self.documents,
            documents=self.queries,
            query_rows=self.document_rows,
            document_rows=self.query_rows,
        )

    @classmethod
    def of(
        cls,
        examples: Examples,
        documents: PackedSequences,
        vocabulary: Vocabulary,
        *,
        max_terms: int | None = None,
    ) -> "RelevantPairs":
        """The pairs of training examples, with the first ``max_terms`` words of each document; None for all words.

        Raises ValueError if no pair has words on both sides.
        """
        groups = examples.groups
        queries, vocabulary = _pack_queries(examples.query_texts, vocabulary)
        have_words = (queries.lengths[groups.queries] > 0) & (documents.lengths[groups.positives] > 0)
        if not have_words.any():
            raise ValueError("no query with a word has a relevant document with a word: there is nothing to learn from")
        paired_queries, query_rows = np.unique(groups.queries[have_words], return_inverse=True)
        paired_documents, document_rows = np.unique(groups.positives[have_words], return_inverse=True)
        dropped = {"pairs without a word in the query or in the document": int((~have_words).sum())}
        return cls(
            vocabulary,
            queries.take(paired_queries),
            documents.take(paired_documents, max_terms=max_terms),
            query_rows,
            document_rows,
            groups.labels[have_words],
            replace(
                examples.report,
                queries=len(paired_queries),
                groups=int(have_words.sum()),
                dropped=examples.report.dropped | dropped,
            ),
        )


def _pack_queries(texts: list[str], vocabulary: Vocabulary) -> tuple[PackedSequences, Vocabulary]:
    """Queries as word ids, and the vocabulary followed by the queries' words that it does not have."""
    queries, words = pack_texts(texts)
    ids = vocabulary.ids(words)
    new = ids < 0
    ids[new] = np.arange(len(vocabulary), len(vocabulary) + new.sum())
    frequency = np.append(vocabulary.collection_frequency, np.zeros(new.sum(), dtype=np.int64))
    terms = vocabulary.terms + [words[number] for number in np.flatnonzero(new)]
    return PackedSequences(ids[queries.terms], queries.offsets), Vocabulary(terms, frequency)


def fit_to_pairs(
    self: Model,
    topics_or_res_tr: pd.DataFrame,
    qrels_tr: pd.DataFrame,
    topics_or_res_va: pd.DataFrame | None = None,
    qrels_va: pd.DataFrame | None = None,
    *,
    verbose: bool | None = None,
) -> Model:
    """Learn anew from candidates and their judgements; ``(candidates >> model).fit(...)`` calls this.

    Every document judged relevant to a query (label above 0) makes a pair with it, whatever the grade. With a forward
    index, relevant documents that were not retrieved count as well.

    Args:
        self: The ranker.
        topics_or_res_tr: Candidates of the training queries: ``qid, query, docno`` and text (``docno`` is enough where
            the model has a forward index).
        qrels_tr: Their judgements: ``qid, docno, label``.
        topics_or_res_va: Candidates of dev queries, which pipelines pass on; not used.
        qrels_va: Their judgements; not used.
        verbose: Print a summary of the training data, and show a progress bar; None for the ranker's own ``verbose``.

    Returns:
        This ranker; see ``history`` and ``report``. If interrupted, it stays as it was.

    Raises:
        TypeError: If the candidates or the judgements are not a frame.
        ValueError: If there is nothing to learn from; the message says why.
    """
    verbose = self.reports(verbose)
    examples = self._make_examples(topics_or_res_tr, qrels_tr, None)
    pairs = RelevantPairs.of(examples, *self._training_documents(examples), max_terms=self.max_terms)
    if verbose:
        say(f"{self!r}: {pairs.report}")
    self._history = self._learn(pairs, verbose=verbose)
    self.report = pairs.report
    self._settle_fields()
    self._mark_fitted()
    return self
