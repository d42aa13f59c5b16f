"""The concepts of queries, from their feedback documents: what :mod:`concepts` needs, brought together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pt_neural._frames import Hits
from pt_neural.lucene.concepts import (
    concept_probabilities,
    missing_from_query_likelihood,
    most_probable,
    usual_terms,
)
from pt_neural.lucene.feedback import FeedbackDocuments
from pt_neural.lucene.progress import in_chunks
from pt_neural.lucene.reader import Reader
from pt_neural.lucene.similarities import QLSimilarity, Similarity

CHUNK = 50  # queries whose feedback documents are in memory at a time


class AnalysedQuery(NamedTuple):
    """Terms and how much each counts, and what SDM multiplies that with beside its windows."""

    terms: Mapping[str, float]
    term_weight: float


@dataclass(frozen=True)
class LatentConcepts:
    """Finds the concepts of queries.

    Attributes:
        reader: The index.
        field: Where its terms and those of the queries are from.
        similarity: What terms of the queries have been scored with.
        fb_terms: Greatest number of concepts a query.
        smoothing, document_weight, collection_weight: See :func:`concept_probabilities`.
        filter_terms: Whether concepts must be :func:`usual_terms`.
    """

    reader: Reader
    field: str
    similarity: Similarity
    fb_terms: int
    smoothing: float
    document_weight: float
    collection_weight: float
    filter_terms: bool

    def find(
        self, queries: Sequence[AnalysedQuery], feedback: Hits, *, progress: str | None = None
    ) -> list[dict[str, float]]:
        """The concepts of each query and their weights, most probable first.

        Args:
            queries: The queries.
            feedback: Documents and their scores, by the places of their queries in ``queries``.
            progress: Label of a progress bar; none by default.
        """
        found = []
        for chunk in in_chunks(len(queries), CHUNK, label=progress, unit="queries"):
            first, end = np.searchsorted(feedback.queries, [chunk.start, chunk.stop])
            documents = FeedbackDocuments.read(self.reader, self.field, feedback.documents[first:end])
            usable = self._usable(documents)
            numbers, scores = feedback.queries[first:end], feedback.scores[first:end]
            for number, query in enumerate(queries[chunk], chunk.start):
                rows = np.flatnonzero((numbers == number) & (documents.lengths > 0))
                if not query.terms or not len(rows):
                    found.append({})
                    continue
                likelihoods = scores[rows] + self._missing(query, documents, rows)
                found.append(self._most_probable(documents, rows, likelihoods, usable))
        return found

    def _usable(self, documents: FeedbackDocuments) -> np.ndarray:
        """Which terms of the documents may become concepts, as booleans."""
        if not self.filter_terms:
            return np.ones(len(documents.terms), dtype=bool)
        return usual_terms(documents.terms, documents.document_frequencies, len(self.reader.docnos))

    def _most_probable(
        self, documents: FeedbackDocuments, rows: np.ndarray, log_likelihoods: np.ndarray, usable: np.ndarray
    ) -> dict[str, float]:
        counts = documents.counts[rows]
        occurring = np.unique(counts.indices)
        wanted = occurring[usable[occurring]]
        probabilities = concept_probabilities(
            log_likelihoods,
            counts[:, wanted].toarray(),
            documents.lengths[rows],
            documents.shares[wanted],
            smoothing=self.smoothing,
            document_weight=self.document_weight,
            collection_weight=self.collection_weight,
        )
        return most_probable(documents.terms[wanted], probabilities, self.fb_terms)

    def _missing(self, query: AnalysedQuery, documents: FeedbackDocuments, rows: np.ndarray) -> np.ndarray | float:
        """What scores by query likelihood are short of; nothing with BM25, which is no likelihood."""
        if not isinstance(self.similarity, QLSimilarity):
            return 0.0
        frequencies = self.reader.collection_frequencies(list(query.terms), self.field)
        known = [term for term, frequency in zip(query.terms, frequencies, strict=True) if frequency]
        length = self.reader.collection_length(self.field)
        shares = (frequencies[frequencies > 0] + 1) / (length + 1)  # Lucene adds one to both
        weights = query.term_weight * np.array([query.terms[term] for term in known])
        counts = documents.counts_of(known, rows)
        return missing_from_query_likelihood(counts, documents.lengths[rows], shares, weights, self.similarity.mu)
