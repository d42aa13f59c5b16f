"""Inverse document frequencies as DRMM's gates take them."""

from collections.abc import Sequence

import numpy as np

from pt_neural.text import PackedSequences, Vocabulary
from pt_neural.text.counts import bag_of_words


def count_documents(documents: PackedSequences, vocabulary: Vocabulary) -> Vocabulary:
    """The vocabulary with the number of documents that have each term; as it is if its documents were counted.

    Args:
        documents: Documents as term ids.
        vocabulary: The terms.
    """
    if vocabulary.document_frequency is not None:
        return vocabulary
    bags = bag_of_words(documents, len(vocabulary))
    frequency = np.bincount(bags.indices, minlength=len(vocabulary))
    return Vocabulary(vocabulary.terms, vocabulary.collection_frequency, frequency, len(documents))


def idf(terms: Sequence[str], frequencies: Vocabulary) -> np.ndarray:
    """ln((N + 1) / df) of each term, float32; that of df = 1 for terms that no document has.

    Args:
        terms: The terms.
        frequencies: Terms with their document frequencies in N documents.

    Example::

        >>> idf(["a", "unseen"], Vocabulary.build([["a", "river"], ["a", "city"]]))
        array([0.4054651, 1.0986123], dtype=float32)
    """
    known = np.append(frequencies.document_frequency, 1)[frequencies.ids(terms)]
    return np.log((frequencies.num_documents + 1) / np.maximum(known, 1)).astype(np.float32)
