"""The peers of topic and translation models, each with its own settings."""

import time

import numpy as np
from gensim.matutils import Sparse2Corpus
from gensim.models import LdaModel
from nltk.translate import AlignedSent, IBMModel1
from parts.collection import Collection
from scipy.sparse import csr_array, csr_matrix
from sklearn.decomposition import NMF


def nltk_model_1(collection: Collection, iterations: int = 2) -> float:
    """Seconds per iteration of nltk's IBM Model 1 from documents to queries."""
    terms, documents = np.array(collection.documents.vocabulary.terms, dtype=object), collection.documents
    sequences = documents.sequences(collection.pairs["docno"])
    queries = collection.pairs["query"].str.split()
    pairs = [AlignedSent(query, list(terms[words])) for query, words in zip(queries, sequences, strict=True)]

    def timed(count: int) -> float:
        started = time.perf_counter()
        IBMModel1(pairs, count)
        return time.perf_counter() - started

    return (timed(2 * iterations) - timed(iterations)) / iterations  # without what is done once


def scikit_learn_plsa(counts: csr_array, topics: int, iterations: int, seed: int) -> float:
    """Seconds per iteration of non-negative matrix factorisation with the Kullback-Leibler divergence."""
    settings = {"beta_loss": "kullback-leibler", "solver": "mu", "init": "random", "tol": 0, "random_state": seed}

    def timed(count: int) -> float:
        started = time.perf_counter()
        NMF(topics, max_iter=count, **settings).fit_transform(csr_matrix(counts))
        return time.perf_counter() - started

    return (timed(2 * iterations) - timed(iterations)) / iterations


def gensim_lda(counts: csr_array, topics: int, seed: int) -> float:
    """Seconds of one pass of gensim's LDA over the documents."""
    corpus = Sparse2Corpus(csr_matrix(counts), documents_columns=False)
    started = time.perf_counter()
    LdaModel(corpus, num_topics=topics, random_state=seed)
    return time.perf_counter() - started
