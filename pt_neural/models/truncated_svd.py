"""The largest singular values of term weights, and the vectors of the terms."""

import numpy as np
from scipy.sparse import csr_array

NEGLIGIBLE = 1e-6  # a term vector this short is rounding error: the term is in none of the latent dimensions


def decompose(weights: csr_array, dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The largest singular values of a matrix, and the vectors of its columns.

    Args:
        weights: Term weights of shape ``(documents, terms)``; scaled to rows of length 1 here.
        dim: Singular values to keep.
        seed: Seed of the randomised decomposition.

    Returns:
        U_k, float32 of shape ``(terms, dim)``, and the diagonal of Σ_k, float32 of shape ``(dim,)``.

    Raises:
        ValueError: If the matrix has a smaller rank.

    Example::

        >>> vectors, values = decompose(csr_array([[2.0, 0.0], [0.0, 1.0], [0.0, 3.0]]), dim=1, seed=13)
        >>> (vectors**2).round(2).tolist(), (values**2).round(2).tolist()
        ([[0.0], [1.0]], [2.0])
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.preprocessing import normalize

    rows = normalize(weights.astype(np.float64))
    svd = TruncatedSVD(
        min(dim, *rows.shape),
        algorithm="randomized",
        # LU, scikit-learn's choice, needs more stack than a running Java leaves to the main thread, and crashes.
        power_iteration_normalizer="QR",
        random_state=seed,
    ).fit(rows)
    singular_values = svd.singular_values_
    rank = int((singular_values > singular_values[0] * max(rows.shape) * np.finfo(np.float64).eps).sum())
    if rank < dim:
        raise ValueError(
            f"dim={dim} is too large: the {rows.shape[0]:,} documents over {rows.shape[1]:,} terms have only {rank} "
            f"independent dimensions; choose dim={rank} or less"
        )
    term_vectors = svd.components_.T
    term_vectors[np.linalg.norm(term_vectors, axis=1) < NEGLIGIBLE] = 0
    return np.ascontiguousarray(term_vectors, dtype=np.float32), singular_values.astype(np.float32)
