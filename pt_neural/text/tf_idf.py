"""Term weights: tf-idf."""

import numpy as np
from scipy.sparse import csr_array

from pt_neural.text.vocabulary import Vocabulary


def inverse_document_frequency(vocabulary: Vocabulary) -> np.ndarray:
    """ln((1 + N) / (1 + df)) + 1 for each term, as scikit-learn's ``TfidfTransformer`` has it; float32.

    Args:
        vocabulary: Terms with their document frequencies in N documents.

    Raises:
        ValueError: If the vocabulary has no document frequencies.

    Example::

        >>> inverse_document_frequency(Vocabulary.build([["a", "river"], ["a", "city"]]))
        array([1.       , 1.4054651, 1.4054651], dtype=float32)
    """
    if vocabulary.document_frequency is None:
        raise ValueError(f"{vocabulary!r} has no document frequencies; count it with Vocabulary.build")
    return (np.log((1 + vocabulary.num_documents) / (1 + vocabulary.document_frequency)) + 1).astype(np.float32)


def tf_idf(counts: csr_array, idf: np.ndarray, *, sublinear_tf: bool = False) -> csr_array:
    """Weigh each count by its term's idf.

    Args:
        counts: Counts above 0, of shape ``(texts, terms)``.
        idf: Inverse document frequencies, of shape ``(terms,)``.
        sublinear_tf: Take 1 + ln tf instead of the count tf.

    Example::

        >>> tf_idf(csr_array([[2.0, 0.0], [1.0, 3.0]]), np.array([1.0, 0.5])).toarray()
        array([[2. , 0. ],
               [1. , 1.5]])
    """
    tf = 1 + np.log(counts.data) if sublinear_tf else counts.data
    return csr_array((tf * idf[counts.indices], counts.indices, counts.indptr), shape=counts.shape)
