"""Truncated singular value decompositions of one tf-idf matrix: ours, scikit-learn's, and gensim's.

Ours is scikit-learn's, whose power iterations are normalised by QR, where its own choice is LU: that is faster, and
needs more stack than a running Java leaves.
"""

import time
from typing import Any

import numpy as np
from gensim.matutils import Sparse2Corpus
from gensim.models import LsiModel
from parts.collection import Collection
from parts.rates import line, spread
from scipy.sparse import csr_array, csr_matrix
from sklearn.decomposition import TruncatedSVD

from pt_neural.models.clsm.lsa import decompose
from pt_neural.text import TfIdf

DOCUMENTS = 10_000
DIM = 100


def print_decompositions(collection: Collection, rounds: int, seed: int) -> None:
    """A line for each."""
    weights = tf_idf_matrix(collection)
    documents, terms = weights.shape
    print(f"\nLSA, {DIM} dimensions of {documents:,} documents by {terms:,} terms, seconds")
    for name, one in measure(weights, DIM, rounds, seed).items():
        print(f"{line(name, one['seconds'])}   energy {one['energy']:,.1f}", flush=True)


def measure(weights: csr_array, dim: int, rounds: int, seed: int) -> dict[str, Any]:
    """Seconds of processor time of each, and the energy that it keeps: the sum of squared singular values."""
    peers = {
        "as pn.LSA decomposes": lambda: decompose(weights, dim, seed)[1],
        "scikit-learn TruncatedSVD": lambda: scikit_learn(weights, dim, seed),
        "gensim LsiModel": lambda: gensim(weights, dim, seed),
    }
    found: dict[str, Any] = {name: {"seconds": [], "energy": 0.0} for name in peers}
    for _ in range(rounds):
        for name, work in peers.items():
            started = time.process_time()
            values = work()
            found[name]["seconds"].append(time.process_time() - started)
            found[name]["energy"] = float(np.square(values, dtype=np.float64).sum())
    for one in found.values():
        one["seconds"] = spread(one["seconds"])
    return found


def tf_idf_matrix(collection: Collection) -> csr_array:
    """The first documents by terms, rows of length 1."""
    documents = collection.documents
    some = documents.all().take(np.arange(min(DOCUMENTS, len(documents))))
    return TfIdf(documents.vocabulary, sublinear_tf=True).of_sequences(some)


def scikit_learn(weights: csr_array, dim: int, seed: int) -> np.ndarray:
    """Singular values by its own settings."""
    return TruncatedSVD(dim, random_state=seed).fit(weights.astype(np.float64)).singular_values_


def gensim(weights: csr_array, dim: int, seed: int) -> np.ndarray:
    """Singular values by its own settings."""
    corpus = Sparse2Corpus(csr_matrix(weights), documents_columns=False)
    return LsiModel(corpus, num_topics=dim, random_seed=seed).projection.s
