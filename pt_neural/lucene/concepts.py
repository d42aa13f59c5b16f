"""Latent concept expansion as arithmetic: how likely each term of the feedback documents is, given the query.

Metzler & Croft, SIGIR 2007, with single terms as concepts.
"""

import numpy as np

SHORTEST, LONGEST, MOST_DOCUMENTS = 2, 20, 0.1  # Anserini's, of the terms that RM3 may add


def concept_probabilities(
    log_likelihoods: np.ndarray,
    counts: np.ndarray,
    lengths: np.ndarray,
    frequencies: np.ndarray,
    *,
    smoothing: float,
    document_weight: float,
    collection_weight: float,
) -> np.ndarray:
    """P(e|Q) of each term e, up to a factor that all terms share.

    The sum over feedback documents D of ``exp(score(Q, D) + document_weight * log p(e|D) - collection_weight *
    log p(e|C))``, with ``p(e|D) = (1 - smoothing) tf / |D| + smoothing * p(e|C)``.

    Args:
        log_likelihoods: score(Q, D) of each document, float64 of shape ``(documents,)``; a constant added to all
            of them changes nothing.
        counts: tf of each term in each document, of shape ``(documents, terms)``.
        lengths: the length of each document, of shape ``(documents,)``, above 0.
        frequencies: p(e|C), how often each term occurs in the collection as a share of all occurrences, of shape
            ``(terms,)``, above 0.
        smoothing: Weight of the collection against the document, from 0 to 1.
        document_weight: Above 0.
        collection_weight: At least 0; with 0, and ``document_weight`` 1, this is the relevance model RM1.

    Returns:
        float64 of shape ``(terms,)``.
    """
    weights = np.exp(log_likelihoods - log_likelihoods.max())
    in_documents = (1 - smoothing) * counts / lengths[:, None] + smoothing * frequencies
    # Row by row, so that terms with equal counts come out equal to the last bit, and tie.
    in_feedback = (weights[:, None] * in_documents**document_weight).sum(axis=0)
    return in_feedback * frequencies**-collection_weight


def missing_from_query_likelihood(
    counts: np.ndarray, lengths: np.ndarray, frequencies: np.ndarray, weights: np.ndarray, mu: float
) -> np.ndarray:
    """What Lucene's query likelihood leaves out of the logarithm of P(Q|D), up to a constant.

    A term of the query adds ``log(1 + tf / (mu p)) + log(mu / (|D| + mu))`` to the log-likelihood of a document with
    Dirichlet smoothing (Zhai & Lafferty 2004). Lucene drops the terms where that is negative: those
    that the document lacks, and those that it has less often than the collection.

    Args:
        counts: tf of each query term in each document, of shape ``(documents, terms)``.
        lengths: the length of each document, of shape ``(documents,)``.
        frequencies: p, the share of each query term in the collection, above 0.
        weights: How much each query term counts.
        mu: Weight of the collection against the document.

    Returns:
        float64 of shape ``(documents,)``, none above 0.
    """
    parts = np.log1p(counts / (mu * frequencies)) + np.log(mu / (lengths + mu))[:, None]
    return np.minimum(parts, 0) @ weights


def usual_terms(terms: np.ndarray, document_frequencies: np.ndarray, documents: int) -> np.ndarray:
    """Which terms Anserini's RM3 would add to a query, as booleans.

    Those of 2 to 20 letters and digits that at most a tenth of all documents have. (Anserini takes ASCII only.)
    """
    fine = [SHORTEST <= len(term) <= LONGEST and term.isalnum() for term in terms]
    return np.array(fine, dtype=bool) & (document_frequencies <= MOST_DOCUMENTS * documents)


def most_probable(terms: np.ndarray, probabilities: np.ndarray, number: int) -> dict[str, float]:
    """The best terms, most probable first and equal ones in ascending order; their weights add up to 1.

    Args:
        terms: In ascending order.
        probabilities: Up to a factor; terms with 0 are left out.
        number: Greatest number of terms.
    """
    best = np.argsort(-probabilities, kind="stable")[:number]
    best = best[probabilities[best] > 0]
    shares = probabilities[best] / probabilities[best].sum()
    return dict(zip(terms[best].tolist(), shares.tolist(), strict=True))
