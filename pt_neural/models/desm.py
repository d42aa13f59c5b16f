"""The Dual Embedding Space Model (Mitra, Nalisnick, Craswell and Caruana, 2016)."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pt_neural._arguments import checked_choice
from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.rankers import TwoTower
from pt_neural.rankers.fingerprint import fingerprint
from pt_neural.rankers.last_vocabulary import OwnIds
from pt_neural.text import ForwardIndex, PackedSequences, Vocabulary, tokenise_packed
from pt_neural.text.counts import bag_of_words

if TYPE_CHECKING:
    from pyterrier_dr import FlexIndex


class DESM(TwoTower):
    """Mean cosine similarity of the query's words to the centroid of the document's words, in two embedding spaces.

    ``DESM(Q, D) = 1/|Q| sum over q of cos(q, D̄)``, with ``D̄ = 1/|D| sum over d of d / ||d||`` (section 2.2,
    equations 5 and 6). With ``query="in"`` and ``document="out"`` this is DESM IN-OUT (equation 7), with ``"in"`` twice
    DESM IN-IN (equation 8); the other two pairs are possible as well (footnote 2). As the mean of unit query vectors
    times the unit centroid it is one dot product: documents are kept by :meth:`~TwoTower.index`, retrieved by
    :meth:`~TwoTower.retriever`, and re-ranked from text, from a forward index or from kept vectors.

    Words that the embeddings lack are ignored (section 2.2, "Out-of-vocabulary words"). A query without any known
    word scores 0 with every document, and retrieves none; a document without any known word scores -1, the least
    cosine, and is never retrieved: most IN-OUT cosines are below zero, so that 0 would put it first.

    Args:
        spaces: The word embeddings.
        query: Space of the query's words, ``"in"`` or ``"out"``.
        document: Space of the document's words.
        count_unknown: Whether ``|Q|`` counts words that the embeddings lack. The paper leaves it open. It does not
            change the ranking of one query's documents, but the weight of DESM in a mixture: with True, a query that
            is half known is trusted half as much.
        fields: Text columns, joined by a space; those that a frame lacks are passed over, one must be there. None for
            those of ``documents``, or ``title`` and ``text``.
        documents: A forward index, to re-rank by ``docno``.
        vectors: An index made by :meth:`~TwoTower.index`, to re-rank by ``docno`` from kept centroids.
        batch_size: Documents encoded at a time.
        verbose: Show a progress bar while encoding documents.

    Raises:
        TypeError: If an argument is of another kind than said here.
        ValueError: If a setting is none of those named.

    Example::

        spaces = pn.EmbeddingSpaces.train(docs.get_corpus_iter())
        desm = pn.DESM(spaces, query="in", document="out")
        (bm25 % 100 >> index.text_loader() >> desm).search("pairwise distance")
    """

    schematic = {"label": "DESM", "help_url": None}
    artifact_format = "desm"
    free_settings: ClassVar[tuple[str, ...]] = ("fields", "spaces", "query", "document", "count_unknown")

    def __init__(
        self,
        spaces: EmbeddingSpaces,
        query: Space = "in",
        document: Space = "out",
        *,
        count_unknown: bool = False,
        fields: str | Sequence[str] | None = None,
        documents: ForwardIndex | None = None,
        vectors: "FlexIndex | None" = None,
        batch_size: int = 1024,
        verbose: bool = False,
    ):
        if not isinstance(spaces, EmbeddingSpaces):
            raise TypeError(f"spaces must be pn.EmbeddingSpaces, not {spaces!r:.80}")
        self.spaces = spaces
        self.query = checked_choice("query", query, ("in", "out"))
        self.document = checked_choice("document", document, ("in", "out"))
        self.count_unknown = checked_choice("count_unknown", count_unknown, (True, False))
        self._own_ids = OwnIds()
        self._fingerprint: tuple[EmbeddingSpaces, Space, str] | None = None
        super().__init__(fields=fields, documents=documents, vectors=vectors, batch_size=batch_size, verbose=verbose)

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        """Means of the unit vectors of the queries' words (equation 5 without D̄)."""
        sequences = tokenise_packed(texts, self.spaces.vocabulary)
        words = bag_of_words(sequences, len(self.spaces))
        counted = sequences.lengths if self.count_unknown else words.sum(axis=1)
        sums = words @ self.spaces.unit_vectors(self.query)
        return sums / np.maximum(counted, 1).astype(np.float32)[:, None]

    def encode_documents(self, texts: Sequence[str]) -> np.ndarray:
        """Unit centroids of the texts (equation 6)."""
        return self._centroids(tokenise_packed(texts, self.spaces.vocabulary))

    def encode_sequences(self, sequences: PackedSequences, vocabulary: Vocabulary) -> np.ndarray:
        """Unit centroids of documents given as term ids over another vocabulary."""
        return self._centroids(self._own_ids(sequences, vocabulary, self.spaces.vocabulary))

    def _centroids(self, sequences: PackedSequences) -> np.ndarray:
        centroids = bag_of_words(sequences, len(self.spaces)) @ self.spaces.unit_vectors(self.document)
        norms = np.linalg.norm(centroids, axis=1, keepdims=True)
        return np.divide(centroids, norms, out=centroids, where=norms > 0)

    def settings(self) -> dict[str, Any]:
        """What makes the model what it is, beside the embeddings."""
        return {"query": self.query, "document": self.document, "count_unknown": self.count_unknown}

    def fingerprint(self) -> str:
        """Changes with the words and the document's space, not with the query's, on which centroids do not depend."""
        kept = self._fingerprint
        if kept is None or kept[0] is not self.spaces or kept[1] != self.document:
            words = "\n".join(self.spaces.vocabulary.terms).encode()
            made = fingerprint(self.artifact_format, {"document": self.spaces.vectors(self.document)}, words)
            kept = self._fingerprint = self.spaces, self.document, made
        return kept[2]

    def _save_parts(self, directory: Path) -> None:
        self.spaces.save(directory / "spaces")

    @classmethod
    def _arguments(cls, config: Any, directory: Path) -> dict[str, Any]:
        return {**config, "spaces": EmbeddingSpaces.load(directory / "spaces")}

    def __repr__(self) -> str:
        return f"DESM({self.query}-{self.document})"
