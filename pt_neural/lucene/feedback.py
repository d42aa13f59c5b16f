"""The documents that feedback learns from: which they are, and what is in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pt_neural._frames import Hits, ranks
from pt_neural.lucene.docnos import look_up
from pt_neural.lucene.reader import Reader

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def best_rows(results: pd.DataFrame, groups: np.ndarray, reader: Reader, number: int) -> Hits:
    """The best documents of each query of a result frame.

    Args:
        results: Frame with ``docno`` and ``score``. A document that comes twice counts once; rows whose score is
            not finite are left out.
        groups: The number of each row's query.
        reader: The index that holds the documents.
        number: Greatest number of documents a query.

    Raises:
        ValueError: If one of these documents is not in the index.
    """
    scores, docnos = results["score"].to_numpy(dtype=np.float64), results["docno"]
    repeated = pd.DataFrame({"query": groups, "docno": docnos.to_numpy()}).duplicated().to_numpy()
    rows = np.flatnonzero(np.isfinite(scores) & ~repeated)
    places = ranks(pd.Series(groups[rows]), scores[rows], docnos.iloc[rows])
    rows, places = rows[places < number], places[places < number]
    order = np.lexsort((places, groups[rows]))
    rows, places = rows[order], places[order]
    return Hits(groups[rows], look_up(docnos.iloc[rows], reader.numbers, reader.path), scores[rows], places)


@dataclass(frozen=True)
class FeedbackDocuments:
    """What is in some documents, beside what is in the collection.

    Attributes:
        terms: All terms of these documents in ascending order, an object array of strings.
        counts: How often each document has each term, int64 of shape ``(documents, terms)``.
        lengths: The number of term occurrences in each document, counted and not as Lucene keeps it, in one byte.
        document_frequencies: In how many documents of the collection each term occurs.
        shares: How often each term occurs in the collection, divided by the length of the collection.
    """

    terms: np.ndarray
    counts: csr_array
    lengths: np.ndarray
    document_frequencies: np.ndarray
    shares: np.ndarray

    @classmethod
    def read(cls, reader: Reader, field: str, documents: np.ndarray) -> FeedbackDocuments:
        """The documents with these numbers, in this order, repetitions included."""
        distinct, rows = np.unique(documents, return_inverse=True)
        terms, counts = reader.vectors(distinct, field)
        shares = reader.collection_frequencies(terms, field) / reader.collection_length(field)
        lengths = counts.sum(axis=1)
        return cls(terms, counts[rows], lengths[rows], reader.document_frequencies(terms, field), shares)

    def counts_of(self, terms: Sequence[str], rows: np.ndarray) -> np.ndarray:
        """How often some documents have some terms, of shape ``(len(rows), len(terms))``."""
        wanted = np.array(terms, dtype=object)
        columns = np.searchsorted(self.terms, wanted).clip(max=len(self.terms) - 1)
        return self.counts[rows][:, columns].toarray() * (self.terms[columns] == wanted)
