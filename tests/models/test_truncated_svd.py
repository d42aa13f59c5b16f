import inspect
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

from pt_neural.models.truncated_svd import decompose


def test_vectors_and_values_are_numpys_on_rows_of_length_1():
    matrix = np.random.default_rng(2).poisson(0.5, size=(30, 12)).astype(float) + np.eye(30, 12)
    matrix[7] = 0
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    _, values, vectors = np.linalg.svd(matrix / np.where(lengths > 0, lengths, 1))
    found_vectors, found_values = decompose(csr_array(matrix), 5, seed=1)
    np.testing.assert_allclose(found_values, values[:5], rtol=1e-5)
    np.testing.assert_allclose(np.abs(found_vectors), np.abs(vectors[:5].T), atol=1e-5)
    assert found_vectors.dtype == found_values.dtype == np.float32
    assert found_vectors.flags.c_contiguous


def test_a_term_outside_the_kept_dimensions_is_exactly_zero():
    vectors, _ = decompose(csr_array([[1.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]]), 1, seed=1)
    assert vectors[2].tolist() == [0]
    assert np.abs(vectors[:2]).min() > 0.1


@pytest.mark.parametrize("dim", [3, 9])
def test_the_error_names_the_rank(dim):
    twins = csr_array([[1.0, 1.0, 0.0, 2.0], [1.0, 1.0, 0.0, 2.0], [0.0, 0.0, 1.0, 0.0]])
    with pytest.raises(ValueError, match=f"dim={dim} is too large.* choose dim=2 or less"):
        decompose(twins, dim, seed=1)


def test_works_beside_a_running_java():
    code = """
        import numpy as np, scipy.sparse
        from pt_neural.lucene import start_java
        from pt_neural.models.truncated_svd import decompose
        start_java()
        decompose(scipy.sparse.random_array((4000, 2000), density=0.01, format="csr", rng=1), 200, seed=1)
    """
    # In a process of its own: what fails here is the process.
    done = subprocess.run([sys.executable, "-c", inspect.cleandoc(code)], env={**os.environ, "OMP_NUM_THREADS": "2"})
    assert done.returncode == 0
