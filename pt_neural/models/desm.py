"""The Dual Embedding Space Model (Mitra, Nalisnick, Craswell and Caruana, 2016)."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Unpack

import numpy as np

from pt_neural._arguments import checked_choice
from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.rankers.options import RepresentationOptions
from pt_neural.rankers.representation import RepresentationRanker
from pt_neural.rankers.vectors import Vectors
from pt_neural.text import PackedSequences, Vocabulary, tokenise_packed
from pt_neural.text.counts import bag_of_words
from pt_neural.text.vocabulary import OwnIds


class DESM(RepresentationRanker):
    """Mean cosine similarity of the query's words to the centroid of the document's words, in two embedding spaces.

    ``DESM(Q, D) = 1/|Q| sum over q of cos(q, D̄)``, with ``D̄ = 1/|D| sum over d of d / ||d||`` (section 2.2,
    equations 5 and 6). With ``query="in"`` and ``document="out"`` this is DESM IN-OUT (equation 7), with ``"in"`` twice
    DESM IN-IN (equation 8); the other two pairs are possible as well (footnote 2). The score is one dot product, of the
    mean of unit query vectors and the unit centroid, so that DESM can also retrieve, see :meth:`index` and
    :meth:`retriever`.

    Words without embeddings are ignored (section 2.2, "Out-of-vocabulary words"). A query without any known word
    scores 0 with every document, and retrieves nothing; a document without any known word scores -1, the least
    cosine, and is never retrieved: most IN-OUT cosines are below zero, so that 0 would put it first.

    Args:
        spaces: The word embeddings.
        query: Space of the query's words, ``"in"`` or ``"out"``.
        document: Space of the document's words.
        count_unknown: Whether ``|Q|`` counts words without embeddings. The paper leaves it open. It does not change the
            ranking of one query's documents, but the weight of DESM in a mixture: with True, a query of which half the
            words are known counts half as much.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a setting is unknown.

    Example::

        spaces = pn.EmbeddingSpaces.train(docs.get_corpus_iter())
        desm = pn.DESM(spaces, query="in", document="out")
        (bm25 % 100 >> index.text_loader() >> desm).search("pairwise distance")
    """

    schematic = {"label": "DESM", "help_url": None}
    artifact_format = "desm"
    components: ClassVar[dict[str, Callable[..., Any]]] = {"spaces": EmbeddingSpaces.load}
    free_settings: ClassVar[tuple[str, ...]] = ("query", "document", "count_unknown")
    is_fitted = True  # there is nothing to fit but the embeddings

    def __init__(
        self,
        spaces: EmbeddingSpaces,
        query: Space = "in",
        document: Space = "out",
        *,
        count_unknown: bool = False,
        **options: Unpack[RepresentationOptions],
    ):
        if not isinstance(spaces, EmbeddingSpaces):
            raise TypeError(f"spaces must be pn.EmbeddingSpaces, not {spaces!r:.80}")
        self.spaces = spaces
        self.query = checked_choice("query", query, ("in", "out"))
        self.document = checked_choice("document", document, ("in", "out"))
        self.count_unknown = checked_choice("count_unknown", count_unknown, (True, False))
        self._own_ids = OwnIds()
        super().__init__(**options)

    def represent_queries(self, texts: Sequence[str]) -> Vectors:
        """Means of the unit vectors of the queries' words (equation 5 without D̄)."""
        sequences = tokenise_packed(texts, self.spaces.vocabulary)
        words = bag_of_words(sequences, len(self.spaces))
        counted = sequences.lengths if self.count_unknown else words.sum(axis=1)
        sums = words @ self.spaces.unit_vectors(self.query)
        return Vectors(sums / np.maximum(counted, 1).astype(np.float32)[:, None])

    def represent_documents(self, sequences: PackedSequences, vocabulary: Vocabulary) -> Vectors:
        """Unit centroids of documents (equation 6)."""
        sequences = self._own_ids(sequences, vocabulary, self.spaces.vocabulary)
        centroids = bag_of_words(sequences, len(self.spaces)) @ self.spaces.unit_vectors(self.document)
        norms = np.linalg.norm(centroids, axis=1, keepdims=True)
        return Vectors(np.divide(centroids, norms, out=centroids, where=norms > 0))

    def _identity_parts(self) -> tuple[dict[str, np.ndarray], list[bytes]]:
        # without the query's space, on which centroids do not depend
        words = "\n".join(self.spaces.vocabulary.terms).encode(errors="surrogatepass")
        return {"document": self.spaces.vectors(self.document)}, [words]

    def _save_parts(self, directory: Path) -> None:
        """Nothing: the embeddings are a component."""

    def _load_parts(self, directory: Path) -> None:
        """Nothing: the embeddings are a component."""

    def __repr__(self) -> str:
        return f"DESM({self.query}-{self.document})"
