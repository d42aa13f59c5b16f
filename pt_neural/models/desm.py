"""The Dual Embedding Space Model (Mitra, Nalisnick, Craswell and Caruana, 2016)."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Unpack

import numpy as np

from pt_neural._arguments import checked_choice
from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.embeddings.spaces import unit_rows
from pt_neural.rankers.options import RepresentationOptions
from pt_neural.rankers.representation import RepresentationRanker
from pt_neural.rankers.vectors import Vectors
from pt_neural.text import PackedSequences, Vocabulary, tokenise_packed
from pt_neural.text.counts import bag_of_words
from pt_neural.text.vocabulary import OwnIds

Centre = Literal["none", "document", "both"]


class DESM(RepresentationRanker):
    """Mean cosine similarity of the query's words to the centroid of the document's words, in two embedding spaces.

    ``DESM(Q, D) = 1/|Q| sum over q of cos(q, D̄)``, with ``D̄ = 1/|D| sum over d of d / ||d||`` (section 2.2,
    equations 5 and 6). With ``query="in"`` and ``document="out"`` this is DESM IN-OUT (equation 7), with ``"in"`` twice
    DESM IN-IN (equation 8); the other two pairs are possible as well (footnote 2). The score is one dot product, of the
    mean of unit query vectors and the unit centroid, so that DESM can also retrieve, see :meth:`index` and
    :meth:`retriever`.

    Words without embeddings are ignored (section 2.2, "Out-of-vocabulary words"). A query without any known word
    scores 0 with every document, and retrieves nothing; a document without any known word scores -1, the least
    cosine (-2 if ``centre="both"``), and is never retrieved: most IN-OUT cosines are below zero, so that 0 would put it
    first.

    The OUT vectors of a small collection share a direction: their mean unit vector ``μ`` has a length of about 0.75,
    where that of IN has about 0.2. The centroid of a long document lies close to ``μ`` whatever the document is about,
    so that IN-OUT scores fall with length. Centring, which is not in the paper and has no parameter, takes the mean
    away. ``centre="document"`` uses ``D̄ - μ = 1/|D| sum over d of (d / ||d|| - μ)`` in place of ``D̄`` in equation 5.
    ``"both"`` also replaces ``q / ||q||`` by ``q / ||q|| - μ``, with the mean of the query's space, so that

    ``DESM(Q, D) = 1/|Q| sum over q of (q / ||q|| - μ_Q) · (D̄ - μ_D) / ||D̄ - μ_D||``,

    which is not a mean of cosines any more: a frequent word, whose vector lies near the mean, counts less. In ``μ =
    (sum over words w of c(w) w / ||w||) / (sum over words w of c(w))`` each word counts as often as it occurs in the
    texts that the embeddings were trained on; nothing depends on the documents to be scored.

    When BM25's first documents were re-ranked on ``neural:pydocs`` and on vaswani (nDCG@10, means over seeds), IN-OUT
    had .261 and .193, with both centred .356 and .304; IN-IN had .277 and .286, both centred .275 and .283. Where both
    spaces are the same, centring only the document hurts.

    Args:
        spaces: The word embeddings.
        query: Space of the query's words, ``"in"`` or ``"out"``.
        document: Space of the document's words.
        centre: Whether the mean is subtracted: ``"none"`` as in the paper, from the ``"document"``, or from ``"both"``
            the document and the words of the query. It needs ``spaces`` with counts, see
            :meth:`EmbeddingSpaces.centred_vectors`.
        count_unknown: Whether ``|Q|`` counts words without embeddings. The paper leaves it open. It does not change the
            ranking of one query's documents, but the weight of DESM in a mixture: with True, a query of which half the
            words are known counts half as much.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a setting is unknown, or if centring needs counts that the spaces do not have.

    Example::

        spaces = pn.EmbeddingSpaces.train(docs.get_corpus_iter())
        desm = pn.DESM(spaces, query="in", document="out")
        (bm25 % 100 >> index.text_loader() >> desm).search("pairwise distance")
        centred = pn.DESM(spaces, centre="both")
    """

    schematic = {"label": "DESM", "help_url": None}
    artifact_format = "desm"
    components: ClassVar[dict[str, Callable[..., Any]]] = {"spaces": EmbeddingSpaces.load}
    free_settings: ClassVar[tuple[str, ...]] = ("query", "document", "centre", "count_unknown")
    is_fitted = True  # there is nothing to fit but the embeddings

    def __init__(
        self,
        spaces: EmbeddingSpaces,
        query: Space = "in",
        document: Space = "out",
        *,
        centre: Centre = "none",
        count_unknown: bool = False,
        **options: Unpack[RepresentationOptions],
    ):
        if not isinstance(spaces, EmbeddingSpaces):
            raise TypeError(f"spaces must be pn.EmbeddingSpaces, not {spaces!r:.80}")
        self.spaces = spaces
        self.query = checked_choice("query", query, ("in", "out"))
        self.document = checked_choice("document", document, ("in", "out"))
        self.centre = checked_choice("centre", centre, ("none", "document", "both"))
        self.count_unknown = checked_choice("count_unknown", count_unknown, (True, False))
        self._own_ids = OwnIds()
        super().__init__(**options)
        if centre != "none":
            spaces.require_counts()

    @property
    def document_word_vectors(self) -> np.ndarray:
        """The vectors whose mean is a document's centroid, float32 of shape ``(len(spaces), dim)``."""
        spaces = self.spaces
        return spaces.unit_vectors(self.document) if self.centre == "none" else spaces.centred_vectors(self.document)

    def represent_queries(self, texts: Sequence[str]) -> Vectors:
        """Means of the unit vectors of the queries' words (equation 5 without D̄), centred if both sides are."""
        sequences = tokenise_packed(texts, self.spaces.vocabulary)
        words = bag_of_words(sequences, len(self.spaces))
        counted = sequences.lengths if self.count_unknown else words.sum(axis=1)
        both = self.centre == "both"
        vectors = self.spaces.centred_vectors(self.query) if both else self.spaces.unit_vectors(self.query)
        sums = words @ vectors
        return Vectors(sums / np.maximum(counted, 1).astype(np.float32)[:, None])

    def represent_documents(self, sequences: PackedSequences, vocabulary: Vocabulary) -> Vectors:
        """Unit centroids of documents (equation 6), centred if the model is."""
        sequences = self._own_ids(sequences, vocabulary, self.spaces.vocabulary)
        centroids = bag_of_words(sequences, len(self.spaces)) @ self.document_word_vectors
        return Vectors(unit_rows(centroids))

    def _identity_parts(self) -> tuple[dict[str, np.ndarray], list[bytes]]:
        # without the query's space, on which centroids do not depend
        vocabulary, arrays = self.spaces.vocabulary, {"document": self.spaces.vectors(self.document)}
        if self.centre != "none":
            arrays["counts"] = vocabulary.collection_frequency
        return arrays, ["\n".join(vocabulary.terms).encode(errors="surrogatepass")]

    def _save_parts(self, directory: Path) -> None:
        """Nothing: the embeddings are a component."""

    def _load_parts(self, directory: Path) -> None:
        """Nothing: the embeddings are a component."""

    @property
    def least_score(self) -> float:
        """No document scores less: a cosine is at least -1; minus a mean, a unit vector is no longer than 2."""
        return -2.0 if self.centre == "both" else -1.0

    def __repr__(self) -> str:
        centre = "" if self.centre == "none" else f", centre={self.centre!r}"
        return f"DESM({self.query}-{self.document}{centre})"
