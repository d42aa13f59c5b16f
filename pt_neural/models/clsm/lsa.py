"""Latent semantic analysis (Deerwester et al., 1990), a baseline of the DESM, Duet, CLSM and SSI papers."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal, Unpack

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from pt_neural._arguments import checked_choice, checked_number
from pt_neural._files import finite, read_tensors, write_tensors
from pt_neural._temporary import SparseBlocks
from pt_neural.rankers.options import RepresentationOptions
from pt_neural.rankers.representation import RepresentationRanker
from pt_neural.rankers.term_counts import fit_to_counts
from pt_neural.rankers.vectors import Vectors
from pt_neural.text import PackedSequences, Vocabulary, tokenise_packed
from pt_neural.text.counts import TfIdf
from pt_neural.text.vocabulary import OwnIds

POWER_ITERATIONS, OVERSAMPLING = 5, 10  # as scikit-learn has them
NEGLIGIBLE = 1e-6  # a term vector this short is rounding error: the term is not in any latent dimension


class LSA(RepresentationRanker):
    """Cosine of query and document in the space of a truncated singular value decomposition.

    The tf-idf matrix of a collection, terms by documents, is C = U Σ Vᵀ; its ``dim`` largest singular values are kept.
    The tf-idf vector d of a text becomes Aᵀ d with A = U_k Σ_k⁻¹, and the score is the cosine of two such vectors
    (CLSM paper, section 2.2, equation 1). Texts that share no word are similar if their words occur with the same
    other words. tf-idf is that of scikit-learn's ``TfidfTransformer``, (1 + ln tf) (ln((1 + N) / (1 + df)) + 1), with
    each document of the collection scaled to length 1; the decomposition is randomised, as in its ``TruncatedSVD``, but
    reads the collection in blocks, so that memory depends on the number of terms alone.

    The papers leave the term weights open. The logarithm of tf was chosen on the dev queries of ``neural:pydocs`` by
    ``pipelines/settings.py``, where the paper's A was also better than U_k alone, with 100, 200 and 400 dimensions.
    More dimensions were better, at the price of time and memory.

    Unknown terms are ignored. A query without any known term scores 0 with every document, and
    retrieves nothing; a document without any known term scores -1, and is never retrieved.

    Args:
        dim: Latent dimensions.
        scaling: ``"inverse"`` projects by U_k Σ_k⁻¹, so that rare themes weigh as much as common ones; None by U_k.
        sublinear_tf: Replace the term frequency tf by 1 + ln tf.
        min_count: Terms that occur less often are left out.
        max_terms: Number of most frequent terms to keep; None keeps all.
        seed: Seed of the randomised decomposition.

    Attributes:
        vocabulary: The terms, with their document frequencies; None until :meth:`fit_corpus`.
        term_vectors: U_k, float32 of shape ``(len(vocabulary), dim)``.
        singular_values: The diagonal of Σ_k, float32 of shape ``(dim,)``, falling.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a setting is out of range.

    Example::

        lsa = pn.LSA(dim=200).fit_corpus(docs.get_corpus_iter())
        lsa.neighbours("eigenvalue", k=5)
        (bm25 % 100 >> index.text_loader() >> lsa).search("pairwise distance")
    """

    schematic = {"label": "LSA", "help_url": None}
    artifact_format = "lsa"
    free_settings: ClassVar[tuple[str, ...]] = ("scaling",)
    fitting: ClassVar[str] = "lsa.fit_corpus(docs.get_corpus_iter())"
    fit_corpus = fit_to_counts

    def __init__(
        self,
        dim: int = 200,
        *,
        scaling: Literal["inverse"] | None = "inverse",
        sublinear_tf: bool = True,
        min_count: int = 2,
        max_terms: int | None = None,
        seed: int = 13,
        **options: Unpack[RepresentationOptions],
    ):
        self.dim = checked_number("dim", dim, int, least=1)
        self.scaling = checked_choice("scaling", scaling, (None, "inverse"))
        self.sublinear_tf = checked_choice("sublinear_tf", sublinear_tf, (True, False))
        self.min_count = checked_number("min_count", min_count, int, least=1)
        self.max_terms = checked_number("max_terms", max_terms, int, least=1, optional=True)
        self.seed = checked_number("seed", seed, int, least=0)
        self.vocabulary: Vocabulary | None = None
        self.term_vectors: np.ndarray | None = None
        self.singular_values: np.ndarray | None = None
        self._own_ids = OwnIds()
        super().__init__(**options)

    def _learn_counts(self, vocabulary: Vocabulary, counts: SparseBlocks, *, verbose: bool) -> None:
        if len(vocabulary) < 2:
            raise ValueError(
                f"LSA needs two terms or more that occur at least {self.min_count} times; {counts.shape[0]:,} "
                f"documents have {len(vocabulary)}. Give more documents or a smaller min_count"
            )
        tf_idf = TfIdf(vocabulary, sublinear_tf=self.sublinear_tf)
        weights = SparseBlocks(tf_idf.of_counts(block) for block in counts)
        self._set(vocabulary, *decompose(weights, self.dim, self.seed))
        self._mark_fitted()

    def _set(self, vocabulary: Vocabulary, term_vectors: np.ndarray, singular_values: np.ndarray) -> None:
        shapes = (len(vocabulary), self.dim), (self.dim,)
        for array, shape in zip((term_vectors, singular_values), shapes, strict=True):
            if array.shape != shape or array.dtype != np.float32:
                raise ValueError(f"an array is {array.dtype} of shape {array.shape}, not float32 of shape {shape}")
            if not finite(array):
                raise ValueError("an array holds NaN or infinity")
        self._tf_idf = TfIdf(vocabulary, sublinear_tf=self.sublinear_tf)
        self.vocabulary, self.term_vectors, self.singular_values = vocabulary, term_vectors, singular_values

    def represent_queries(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of queries; zero where no term is known."""
        self._require_fitted()
        return self._project(tokenise_packed(texts, self.vocabulary))

    def represent_documents(self, sequences: PackedSequences, vocabulary: Vocabulary) -> Vectors:
        """Unit vectors of documents; zero where no term is known."""
        self._require_fitted()
        return self._project(self._own_ids(sequences, vocabulary, self.vocabulary))

    def _project(self, sequences: PackedSequences) -> Vectors:
        weights: csr_array = self._tf_idf.of_sequences(sequences)
        vectors = weights @ self.term_vectors
        return Vectors(_unit_rows(vectors / self.singular_values if self.scaling == "inverse" else vectors))

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
            raise KeyError(f"{word!r} is not one of the {len(self.vocabulary):,} terms of {self!r}")
        terms = _unit_rows(self.term_vectors * self.singular_values)
        similarity = terms @ terms[self.vocabulary.ids([word])[0]]
        nearest = np.argsort(-similarity, kind="stable")[:k]
        return pd.DataFrame({"word": [self.vocabulary.terms[i] for i in nearest], "similarity": similarity[nearest]})

    def _identity_parts(self) -> tuple[dict[str, np.ndarray], list[bytes]]:
        idf = self._tf_idf.idf
        arrays = {"term_vectors": self.term_vectors, "singular_values": self.singular_values, "idf": idf}
        terms = "\n".join(self.vocabulary.terms).encode(errors="surrogatepass")
        return arrays, [str(self.scaling).encode(), terms]

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


def decompose(weights: SparseBlocks, dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The largest singular values of a matrix C' of documents by terms, with rows scaled to length 1, and U_k.

    The randomised subspace iteration of Halko, Martinsson & Tropp (2011), with the steps of scikit-learn's
    ``randomized_svd``. Only products with CC' are made, one block of documents at a time, so that arrays have a row for
    each term and none for each document.

    Returns U_k, float32 of shape ``(terms, dim)``, and the diagonal of Σ_k, ``(dim,)``; ValueError if the rank is
    smaller.

    Example::

        >>> blocks = SparseBlocks([csr_array([[2.0, 0.0], [0.0, 1.0]]), csr_array([[0.0, 3.0]])])
        >>> vectors, values = decompose(blocks, dim=1, seed=13)
        >>> (vectors**2).round(2).tolist(), (values**2).round(2).tolist()
        ([[0.0], [1.0]], [2.0])
    """
    from sklearn.utils import check_random_state

    documents, terms = weights.shape
    basis = check_random_state(seed).normal(size=(terms, min(dim + OVERSAMPLING, terms)))
    for _ in range(POWER_ITERATIONS):
        basis, _ = np.linalg.qr(_product(weights, basis))
    product = _product(weights, basis)
    squares, rotation = np.linalg.eigh(basis.T @ product)  # of C' in the space of the basis
    known = squares > squares[-1] * max(documents, terms) * np.finfo(np.float64).eps
    rank = int(known.sum())
    if rank < dim:
        raise ValueError(
            f"dim={dim} is too large: the {documents:,} documents over {terms:,} terms have only {rank} "
            f"independent dimensions; choose dim={rank} or less"
        )
    vectors, values, _ = np.linalg.svd(product @ (rotation[:, known] / np.sqrt(squares[known])), full_matrices=False)
    vectors, values = vectors[:, :dim], values[:dim]
    vectors *= np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(dim)])  # else signs would be arbitrary
    vectors[np.linalg.norm(vectors, axis=1) < NEGLIGIBLE] = 0
    return np.ascontiguousarray(vectors, dtype=np.float32), values.astype(np.float32)


def _product(weights: SparseBlocks, basis: np.ndarray) -> np.ndarray:
    """CC' times a basis, (terms, columns of the basis)."""
    from sklearn.preprocessing import normalize

    product = np.zeros_like(basis)
    for block in weights:
        rows = normalize(block.astype(np.float64))
        product += rows.T @ (rows @ basis)
    return product
