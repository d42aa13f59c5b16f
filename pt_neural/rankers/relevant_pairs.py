"""Models of how queries are worded for relevant documents: what they learn from, and their fit."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural.rankers.ranker import Ranker
from pt_neural.text import PackedSequences, Vocabulary
from pt_neural.text.packed import pack_texts
from pt_neural.training.examples import Examples, make_examples
from pt_neural.training.groups import Report


@dataclass(frozen=True)
class RelevantPairs:
    """Queries with documents that are relevant to them; both have a word at least.

    Attributes:
        vocabulary: The words of the collection, with their frequencies in it, and after them those that only queries
            have, with frequency 0.
        queries: The queries as ids of words; each has a pair.
        documents: The documents, likewise.
        query_rows: The query of each pair, int64 of shape ``(pairs,)``.
        document_rows: Its document, likewise.
        labels: The grades of the pairs, float32, above 0.
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
        """The same pairs with documents as queries and queries as documents."""
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
        """The pairs of training examples.

        Args:
            examples: The examples, without negatives.
            documents: All of their documents, as ids of words.
            vocabulary: The words, with their frequencies.
            max_terms: Keep only so many of the first words of a document; None keeps all.

        Raises:
            ValueError: If no pair has words on both sides.
        """
        groups = examples.groups
        queries, vocabulary = _packed_queries(examples.query_texts, vocabulary)
        worded = (queries.lengths[groups.queries] > 0) & (documents.lengths[groups.positives] > 0)
        if not worded.any():
            raise ValueError("no query with a word has a relevant document with a word: there is nothing to learn from")
        of_queries, query_rows = np.unique(groups.queries[worded], return_inverse=True)
        of_documents, document_rows = np.unique(groups.positives[worded], return_inverse=True)
        return cls(
            vocabulary,
            queries.take(of_queries),
            documents.take(of_documents, max_terms=max_terms),
            query_rows,
            document_rows,
            groups.labels[worded],
            _report(examples.report, len(of_queries), worded),
        )


def _packed_queries(texts: list[str], vocabulary: Vocabulary) -> tuple[PackedSequences, Vocabulary]:
    """Queries as ids of words, and the vocabulary with the words that it lacks."""
    queries, words = pack_texts(texts)
    ids = vocabulary.ids(words)
    new = ids < 0
    ids[new] = np.arange(len(vocabulary), len(vocabulary) + new.sum())
    frequency = np.append(vocabulary.collection_frequency, np.zeros(new.sum(), dtype=np.int64))
    terms = vocabulary.terms + [words[number] for number in np.flatnonzero(new)]
    return PackedSequences(ids[queries.terms], queries.offsets), Vocabulary(terms, frequency)


def _report(report: Report, queries: int, worded: np.ndarray) -> Report:
    """The report of training examples as that of pairs that have words."""
    dropped = {**report.dropped, "pairs without a word in the query or in the document": int((~worded).sum())}
    return replace(report, queries=queries, groups=int(worded.sum()), dropped=dropped)


class LearnedFromPairs(Ranker, pt.Estimator):
    """Base of the rankers that learn from queries and documents relevant to them, without negatives.

    Attributes:
        report: What the model was fitted on, and what was left out; None if it is not fitted, or was loaded.
        max_terms: So many of the first words of a document are learned from; None for all.
    """

    report: Report | None = None
    max_terms: int | None = None

    @abstractmethod
    def _learn(self, pairs: RelevantPairs, *, verbose: bool) -> None:
        """Learn from pairs; what was learned before stays until all is done."""

    def fit(
        self,
        topics_or_res_tr: pd.DataFrame,
        qrels_tr: pd.DataFrame,
        topics_or_res_va: pd.DataFrame | None = None,
        qrels_va: pd.DataFrame | None = None,
        *,
        verbose: bool = True,
    ) -> Any:
        """Learn anew from candidates and their judgements; ``(candidates >> model).fit(...)`` calls this.

        Every document that is judged relevant to a query (label above 0) makes a pair with it, whatever the grade.
        With a forward index, those that were not retrieved count as well.

        Args:
            topics_or_res_tr: Candidates of the training queries: ``qid, query, docno`` and text (``docno`` is enough
                where the model has a forward index).
            qrels_tr: Their judgements: ``qid, docno, label``.
            topics_or_res_va: Candidates of dev queries, which pipelines hand on; nothing is learned or chosen by them.
            qrels_va: Their judgements, likewise.
            verbose: Show what is learned from, and a progress bar.

        Returns:
            This ranker. ``history`` and ``report`` tell what happened. Interrupted, it stays as it was.

        Raises:
            TypeError: If what was given is no frame.
            ValueError: If there is nothing to learn from; the message says why.
        """
        options = {"fields": self.fields, "documents": self.documents}
        examples = make_examples(topics_or_res_tr, qrels_tr, None, **options)
        pairs = RelevantPairs.of(examples, *self._training_documents(examples), max_terms=self.max_terms)
        if verbose:
            print(f"{self!r}: {pairs.report}", flush=True)
        self._learn(pairs, verbose=verbose)
        self._settle_fields()
        self.report = pairs.report
        return self
