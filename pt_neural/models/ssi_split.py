"""What each word of a text adds to its vectors, so that a score of SSI can be told as a sum over pairs of words."""

from typing import Literal, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from pt_neural.models.correlated_hashing import CorrelatedHashing
from pt_neural.models.ssi_features import Features, Vectors
from pt_neural.text import PackedSequences, Vocabulary, tokenise_packed


class TextParts(NamedTuple):
    """The words of a text, and its 2-grams where they are hashed.

    Attributes:
        names: The distinct known words, and then the 2-grams, such as ``"pearl harbor"``.
        weights: The tf-idf of each in the text, float32 of shape ``(parts,)``.
        vectors: What each adds to the vectors of the text, one row a part; the rows sum to them.
    """

    names: list[str]
    weights: np.ndarray
    vectors: Vectors


def split_text(features: Features, side: Literal["query", "document"], text: str) -> TextParts:
    """Take the vectors of a text apart.

    Args:
        features: What turns texts into vectors.
        side: Whether the text is a query or a document.
        text: The text.

    Example::

        parts = split_text(ssi.features, "document", "the harbor of Honolulu")
        dict(zip(parts.names, parts.weights))
        ssi.network.weigh_documents(*parts.vectors)
    """
    queries = side == "query"
    vocabulary = (features.queries if queries else features.documents).vocabulary
    terms, hashed = (features.of_queries if queries else features.of_documents)([text])
    names = [vocabulary.terms[number] for number in terms.indices]
    if hashed is None:
        return TextParts(names, terms.data, (_word_rows(terms), None))
    pairs, pair_weights = _bigrams(features.hashing, text, vocabulary)
    names += [" ".join(vocabulary.terms[number] for number in pair) for pair in pairs]
    rows = _word_rows(terms, len(pairs))
    sequences = PackedSequences.from_lists([*terms.indices[:, None].tolist(), *pairs])
    parts = features.hashing.features(rows, sequences)  # where a 2-gram alone has weight 1
    shares = np.append(np.ones(terms.nnz, dtype=np.float32), pair_weights)
    parts.data *= np.repeat(shares, np.diff(parts.indptr))
    parts *= hashed.sum() / max(parts.sum(), np.finfo(np.float32).tiny)  # hashed features are scaled by text
    return TextParts(names, np.append(terms.data, pair_weights), (rows, parts))


def _word_rows(terms: csr_array, others: int = 0) -> csr_array:
    """A row for each word of one text, with its weight, and then rows of other parts, which have no words."""
    starts = np.append(np.arange(terms.nnz + 1), np.full(others, terms.nnz))
    return csr_array((terms.data, terms.indices, starts), shape=(terms.nnz + others, terms.shape[1]))


def _bigrams(hashing: CorrelatedHashing, text: str, vocabulary: Vocabulary) -> tuple[list[list[int]], np.ndarray]:
    """The numbers of the words of each distinct 2-gram of a text, and their tf-idf; none where words are hashed."""
    if hashing.bigrams is None:
        return [], np.zeros(0, dtype=np.float32)
    bigrams = hashing.bigrams.vocabulary
    found = hashing.bigrams.of_sequences(bigrams.sequences(tokenise_packed([text], vocabulary)))
    pairs = np.stack(np.divmod(bigrams.keys[found.indices], bigrams.num_terms), axis=1)
    return pairs.tolist(), found.data
