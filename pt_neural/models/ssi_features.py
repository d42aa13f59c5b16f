"""What SSI sees of texts: tf-idf vectors of queries and of documents, and their hashed features."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from pt_neural._artifacts import ArtifactError, read_json, write_json
from pt_neural.models.bilinear_network import no_rows, rows_of
from pt_neural.models.bilinear_steps import Texts
from pt_neural.models.correlated_hashing import CorrelatedHashing
from pt_neural.rankers.last_vocabulary import OwnIds
from pt_neural.text import PackedSequences, TfIdf, Vocabulary, tokenise_packed

Vectors = tuple[csr_array, csr_array | None]  # over terms, and over hashed features


@dataclass(frozen=True)
class Features:
    """Turns texts into vectors.

    Attributes:
        queries: Weights of the terms of queries.
        documents: Those of the terms of documents; the same object where they share a vocabulary.
        hashing: Correlated feature hashing of both; None without.
    """

    queries: TfIdf
    documents: TfIdf
    hashing: CorrelatedHashing | None = None

    def __post_init__(self):
        object.__setattr__(self, "_own_ids", OwnIds())

    @property
    def shared(self) -> bool:
        """Whether queries and documents have one vocabulary."""
        return self.queries is self.documents

    def of_queries(self, texts: Sequence[str]) -> Vectors:
        """Vectors of queries."""
        return self._vectors(self.queries, tokenise_packed(texts, self.queries.vocabulary))

    def of_documents(self, texts: Sequence[str]) -> Vectors:
        """Vectors of document texts."""
        return self._vectors(self.documents, tokenise_packed(texts, self.documents.vocabulary))

    def of_sequences(self, sequences: PackedSequences, vocabulary: Vocabulary) -> Vectors:
        """Vectors of documents given as term ids over another vocabulary."""
        own = sequences if vocabulary is self.documents.vocabulary else self.own_sequences(sequences, vocabulary)
        return self._vectors(self.documents, own)

    def of_words(self, side: Literal["query", "document"], ids: np.ndarray) -> Vectors:
        """Vectors of single words with weight 1, as queries or as documents."""
        weights = self.queries if side == "query" else self.documents
        places = np.arange(len(ids)), ids
        words = csr_array((np.ones(len(ids), dtype=np.float32), places), shape=(len(ids), len(weights.vocabulary)))
        if self.hashing is None:
            return words, None
        return words, self._hashed(words, PackedSequences.from_lists([[number] for number in ids.tolist()]))

    def own_sequences(self, sequences: PackedSequences, vocabulary: Vocabulary) -> PackedSequences:
        """Documents as ids of the vocabulary of documents, from those of another one; -1 is an unknown word."""
        return self._own_ids(sequences, vocabulary, self.documents.vocabulary)

    def _vectors(self, weights: TfIdf, sequences: PackedSequences) -> Vectors:
        terms = weights.of_sequences(sequences)
        return terms, None if self.hashing is None else self._hashed(terms, sequences)

    def _hashed(self, terms: csr_array, sequences: PackedSequences) -> csr_array:
        """Hashed features; their mean over bins (equation 6) is a factor of both sides, the longest are cut to 1."""
        # A product, for scipy would divide in float64.
        hashed = self.hashing.features(terms, sequences) * np.float32(self.hashing.bins**-0.5)
        rows = np.repeat(np.arange(hashed.shape[0]), np.diff(hashed.indptr))
        squares = np.square(hashed.data, dtype=np.float64)
        lengths = np.sqrt(np.bincount(rows, squares, minlength=hashed.shape[0]))
        hashed.data /= np.maximum(lengths, 1)[rows].astype(np.float32)
        return hashed

    def save(self, directory: Path) -> None:
        """Write vocabularies, how terms are weighed, and hashed features."""
        parts = {"shared": self.shared, "hashed": self.hashing is not None}
        write_json(directory / "features.json", {**parts, "sublinear_tf": self.documents.sublinear_tf})
        self.documents.vocabulary.save(directory / "vocabulary")
        if not self.shared:
            self.queries.vocabulary.save(directory / "query_vocabulary")
        if self.hashing is not None:
            self.hashing.save(directory / "hashing")

    @classmethod
    def load(cls, directory: Path) -> "Features":
        """Read what :meth:`save` wrote.

        Raises:
            ArtifactError: If a file is missing or damaged; it is named.
        """
        weighing: dict[str, Any] = read_json(directory / "features.json")
        try:
            shared, hashed, sublinear_tf = weighing["shared"], weighing["hashed"], weighing["sublinear_tf"]
        except (KeyError, TypeError) as error:
            raise ArtifactError(f"{directory / 'features.json'} is damaged: {error!r}") from None
        documents = TfIdf(Vocabulary.load(directory / "vocabulary"), sublinear_tf=sublinear_tf)
        queries = documents
        if not shared:
            queries = TfIdf(Vocabulary.load(directory / "query_vocabulary"), sublinear_tf=sublinear_tf)
        return cls(queries, documents, CorrelatedHashing.load(directory / "hashing") if hashed else None)


def training_texts(queries: Vectors, documents: Vectors) -> Texts:
    """Queries and documents as the compiled loops take them."""
    terms, hashed = zip(queries, documents, strict=True)
    if hashed[0] is None:
        return Texts(*map(rows_of, terms), *(no_rows(matrix.shape[0]) for matrix in terms))
    return Texts(*map(rows_of, (*terms, *hashed)))
