"""Latent semantic analysis (Deerwester et al., 1990), a baseline of the DESM, Duet and SSI papers."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from pt_neural._arguments import checked_choice, checked_number
from pt_neural._artifacts import read_tensors, write_tensors
from pt_neural.models.truncated_svd import decompose
from pt_neural.rankers import TwoTower
from pt_neural.rankers.fingerprint import fingerprint
from pt_neural.rankers.last_vocabulary import OwnIds
from pt_neural.text import ForwardIndex, PackedSequences, Vocabulary
from pt_neural.text.counts import count_corpus
from pt_neural.text.tf_idf import TfIdf

if TYPE_CHECKING:
    from pyterrier_dr import FlexIndex

FITTED_WITH = ("dim", "min_count", "max_terms", "sublinear_tf", "seed")


class LSA(TwoTower):
    """Cosine of query and document in the space of a truncated singular value decomposition.

    Of the tf-idf matrix of a collection, terms by documents, C = U Σ Vᵀ, the ``dim`` largest singular values are kept.
    The tf-idf vector d of a text becomes Aᵀ d with A = U_k Σ_k⁻¹, and the score is the cosine of two such vectors
    (CLSM paper, section 2.2, equation 1). Texts that share no word are similar where their words occur with the same
    other words. tf-idf is that of scikit-learn's ``TfidfTransformer``, (1 + ln tf) (ln((1 + N) / (1 + df)) + 1), each
    document of the collection scaled to length 1; the decomposition is its ``TruncatedSVD``, randomised.

    The papers leave the term weights open. The logarithm of tf was chosen on the dev queries of ``neural:pydocs`` by
    ``pipelines/lsa_settings.py``, where the paper's A was also better than U_k alone, with 100, 200 and 400 dimensions.
    More dimensions were better, at the price of time and memory.

    Terms that the collection lacks are ignored. A query without any known term scores 0 with every document, and
    retrieves none; a document without any known term scores -1, and is never retrieved.

    Args:
        dim: Latent dimensions.
        scaling: ``"inverse"`` projects by U_k Σ_k⁻¹, so that rare themes weigh as much as common ones; None by U_k.
        sublinear_tf: Weigh tf occurrences as 1 + ln tf; False as tf.
        min_count: Terms that occur less often are left out.
        max_terms: Keep only that many of the most frequent terms; None keeps all.
        seed: Seed of the randomised decomposition.
        fields: Text columns, joined by a space; those that a frame lacks are passed over, one must be there. None for
            those of ``documents``, or ``title`` and ``text``.
        documents: A forward index, to re-rank by ``docno``.
        vectors: An index made by :meth:`~TwoTower.index`, to re-rank by ``docno`` from kept vectors.
        batch_size: Documents encoded at a time.
        verbose: Show a progress bar while encoding documents.

    Attributes:
        vocabulary: The terms, with their document frequencies; None until :meth:`fit_corpus`.
        term_vectors: U_k, float32 of shape ``(len(vocabulary), dim)``.
        singular_values: The diagonal of Σ_k, float32 of shape ``(dim,)``, falling.

    Raises:
        TypeError: If an argument is of another kind than said here.
        ValueError: If a setting is out of range.

    Example::

        lsa = pn.LSA(dim=200).fit_corpus(docs.get_corpus_iter())
        lsa.neighbours("eigenvalue", k=5)
        (bm25 % 100 >> index.text_loader() >> lsa).search("pairwise distance")
    """

    schematic = {"label": "LSA", "help_url": None}
    artifact_format = "lsa"
    free_settings: ClassVar[tuple[str, ...]] = ("fields", "scaling")

    def __init__(
        self,
        dim: int = 200,
        *,
        scaling: Literal["inverse"] | None = "inverse",
        sublinear_tf: bool = True,
        min_count: int = 2,
        max_terms: int | None = None,
        seed: int = 13,
        fields: str | Sequence[str] | None = None,
        documents: ForwardIndex | None = None,
        vectors: "FlexIndex | None" = None,
        batch_size: int = 1024,
        verbose: bool = False,
    ):
        self.dim = checked_number("dim", dim, int, least=1)
        self.scaling = checked_choice("scaling", scaling, (None, "inverse"))
        self.sublinear_tf = checked_choice("sublinear_tf", sublinear_tf, (True, False))
        self.min_count = checked_number("min_count", min_count, int, least=1)
        self.max_terms = checked_number("max_terms", max_terms, int, least=1, optional=True)
        self.seed = checked_number("seed", seed, int, least=0)
        self.vocabulary: Vocabulary | None = None
        self._own_ids = OwnIds()
        self.term_vectors: np.ndarray | None = None
        self.singular_values: np.ndarray | None = None
        self._fingerprints: dict[tuple, str] = {}
        super().__init__(fields=fields, documents=documents, vectors=vectors, batch_size=batch_size, verbose=verbose)

    def fit_corpus(
        self, corpus: Iterable[Mapping[str, Any]] | pd.DataFrame | ForwardIndex, *, verbose: bool = True
    ) -> "LSA":
        """Decompose the tf-idf matrix of a collection, which is held in memory, as a sparse matrix.

        Args:
            corpus: Documents with ``docno`` and text, read once, or a forward index.
            verbose: Show a progress bar while reading.

        Returns:
            This ranker.

        Raises:
            TypeError: If the corpus is none of these.
            ValueError: If there are too few terms, or fewer independent ones than ``dim``; if ``vectors`` are set; or
                if the forward index holds other fields than the model reads.
        """
        self._require_no_vectors()
        self._settle_fields(corpus)
        limits = {"min_count": self.min_count, "max_terms": self.max_terms}
        vocabulary, counts = count_corpus(corpus, **limits, fields=self.fields, desc=f"{self!r} terms", verbose=verbose)
        if len(vocabulary) < 2:
            raise ValueError(
                f"LSA needs two terms or more that occur at least {self.min_count} times; {counts.shape[0]:,} "
                f"documents have {len(vocabulary)}. Give more documents or a smaller min_count"
            )
        weights = TfIdf(vocabulary, sublinear_tf=self.sublinear_tf).of_counts(counts)
        return self._set(vocabulary, *decompose(weights, self.dim, self.seed))

    def _set(self, vocabulary: Vocabulary, term_vectors: np.ndarray, singular_values: np.ndarray) -> "LSA":
        shapes = (len(vocabulary), self.dim), (self.dim,)
        for array, shape in zip((term_vectors, singular_values), shapes, strict=True):
            if array.shape != shape or array.dtype != np.float32:
                raise ValueError(f"an array is {array.dtype} of shape {array.shape}, not float32 of shape {shape}")
        self._tf_idf = TfIdf(vocabulary, sublinear_tf=self.sublinear_tf)
        self.vocabulary, self.term_vectors, self.singular_values = vocabulary, term_vectors, singular_values
        self._fitted_with = {name: getattr(self, name) for name in FITTED_WITH}
        self._fingerprints = {}
        return self

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors of queries; zero where no term is known."""
        return self.encode_documents(texts)

    def encode_documents(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors of texts; zero where no term is known."""
        self._require_fitted()
        return self._project(self._tf_idf.of_texts(texts))

    def encode_sequences(self, sequences: PackedSequences, vocabulary: Vocabulary) -> np.ndarray:
        """Unit vectors of documents given as term ids over another vocabulary."""
        self._require_fitted()
        known = self._own_ids(sequences, vocabulary, self.vocabulary)
        return self._project(self._tf_idf.of_sequences(known))

    def _project(self, weights: csr_array) -> np.ndarray:
        vectors = weights @ self.term_vectors
        return _unit_rows(vectors / self.singular_values if self.scaling == "inverse" else vectors)

    def _require_fitted(self) -> None:
        if self.vocabulary is None:
            raise RuntimeError(f"{self!r} knows no documents yet; call lsa.fit_corpus(docs.get_corpus_iter()) first")
        if changed := [name for name in FITTED_WITH if getattr(self, name) != self._fitted_with[name]]:
            raise RuntimeError(f"{', '.join(changed)} of {self!r} changed after fit_corpus: fit again, or change back")

    def neighbours(self, word: str, k: int = 10) -> pd.DataFrame:
        """The terms that occur in the most similar documents: largest cosines of the rows of U_k Σ_k.

        Args:
            word: A term of the vocabulary.
            k: Number of neighbours.

        Returns:
            Frame with ``word`` and ``similarity``, most similar first, the word itself included.

        Raises:
            KeyError: If the word is unknown.
        """
        self._require_fitted()
        if word not in self.vocabulary:
            raise KeyError(f"{word!r} is none of the {len(self.vocabulary):,} terms of {self!r}")
        terms = _unit_rows(self.term_vectors * self.singular_values)
        similarity = terms @ terms[self.vocabulary.ids([word])[0]]
        nearest = np.argsort(-similarity, kind="stable")[:k]
        return pd.DataFrame({"word": [self.vocabulary.terms[i] for i in nearest], "similarity": similarity[nearest]})

    def settings(self) -> dict[str, Any]:
        """What makes the model what it is."""
        return {name: getattr(self, name) for name in (*FITTED_WITH, "scaling")}

    def fingerprint(self) -> str | None:
        """Changes with what was fitted, and with how it is used; None before :meth:`fit_corpus`."""
        if self.vocabulary is None:
            return None
        settings = self.scaling, self.sublinear_tf
        if settings not in self._fingerprints:
            idf = self._tf_idf.idf
            arrays = {"term_vectors": self.term_vectors, "singular_values": self.singular_values, "idf": idf}
            terms = "\n".join(self.vocabulary.terms).encode()
            self._fingerprints[settings] = fingerprint([self.artifact_format, *settings], arrays, terms)
        return self._fingerprints[settings]

    def _save_parts(self, directory: Path) -> None:
        weights = {"term_vectors": self.term_vectors, "singular_values": self.singular_values}
        write_tensors(directory / "weights.safetensors", weights)
        self.vocabulary.save(directory / "vocabulary")

    def _load_parts(self, directory: Path) -> None:
        vocabulary, weights = Vocabulary.load(directory / "vocabulary"), read_tensors(directory / "weights.safetensors")
        self._set(vocabulary, weights["term_vectors"], weights["singular_values"])

    def __repr__(self) -> str:
        return f"LSA(dim={self.dim})"


def _unit_rows(matrix: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
