import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfTransformer

from pt_neural.text import Vocabulary
from pt_neural.text.tf_idf import inverse_document_frequency, tf_idf


@pytest.mark.parametrize("sublinear_tf", [False, True])
def test_weights_are_scikit_learns(sublinear_tf):
    counts = csr_array(np.random.default_rng(5).poisson(0.7, size=(20, 8)).astype(float))
    frequency = (counts.toarray() > 0).sum(axis=0)
    vocabulary = Vocabulary(list("abcdefgh"), frequency, frequency, num_documents=20)
    expected = TfidfTransformer(norm=None, sublinear_tf=sublinear_tf).fit_transform(counts)
    weights = tf_idf(counts, inverse_document_frequency(vocabulary), sublinear_tf=sublinear_tf)
    np.testing.assert_allclose(weights.toarray(), expected.toarray(), rtol=1e-6)


def test_a_vocabulary_must_be_counted():
    with pytest.raises(ValueError, match="no document frequencies"):
        inverse_document_frequency(Vocabulary(["a"]))
