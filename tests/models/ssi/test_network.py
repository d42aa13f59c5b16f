"""W as the sum of its parts against the explicit matrix, and what it starts as."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from pt_neural.models.ssi.network import PRIME, Network, Shape, pair_places, random_vectors
from pt_neural.rankers.vectors import products

Q, D = 5, 7  # words of queries and of documents, where they are not the same
SAME = {"query_terms": D, "document_terms": D}
TWO = {"query_terms": Q, "document_terms": D}


def padded(vectors: np.ndarray, terms: int) -> np.ndarray:
    """N by D, with zeros for the words that have no vector."""
    matrix = vectors.T
    return np.pad(matrix, [(0, 0), (0, terms - matrix.shape[1])])


def low_rank(network: Network) -> np.ndarray:
    shape = network.shape
    return padded(network.query_vectors, shape.query_terms).T @ padded(network.document_vectors, shape.document_terms)


def symmetric(network: Network) -> np.ndarray:
    U = padded(network.query_vectors, D)
    return U.T @ U


def table(network: Network) -> np.ndarray:
    """The matrix that equation 5 makes of a hash table."""
    w, W = network.pairs.tolist(), np.zeros((network.shape.query_terms, D))
    for s in range(len(W)):
        for t in range(D):
            W[s, t] = w[(s * PRIME + t) % len(w)]
    return W


def whole(network: Network) -> np.ndarray:
    return network.pairs.reshape(network.shape.query_terms, D)


def sparse(network: Network) -> np.ndarray:
    W, starts = np.zeros((D, D)), network.sparse_starts.tolist()
    for s in range(D):
        for place in range(starts[s], starts[s + 1]):
            W[s, network.sparse_columns[place]] = network.sparse_values[place]
    return W


VECTORS = {"dim": 3, "embedded_terms": 50}
KINDS = {
    "I": (Shape(**SAME, diagonal="identity"), lambda n: np.eye(D)),
    "D": (Shape(**SAME, diagonal="learned"), lambda n: np.diag(n.diagonal)),
    "U'U + I": (Shape(**SAME, **VECTORS, symmetric=True, diagonal="identity"), lambda n: symmetric(n) + np.eye(D)),
    "U'V": (Shape(**SAME, **VECTORS), low_rank),
    "U'V + D": (Shape(**SAME, **VECTORS, diagonal="learned"), lambda n: low_rank(n) + np.diag(n.diagonal)),
    "(U'V)_4 + I": (
        Shape(**SAME, dim=3, embedded_terms=4, diagonal="identity"),
        lambda n: low_rank(n) * np.outer(np.arange(D) < 4, np.arange(D) < 4) + np.eye(D),
    ),
    "U_F'V_E": (Shape(**TWO, **VECTORS), low_rank),
    "W": (Shape(**SAME, pairs=D * D, starts_at_identity=True), whole),
    "W_FE": (Shape(**TWO, pairs=Q * D), whole),
    "h_FE": (Shape(**TWO, pairs=11, shared_pairs=True), table),
    "h of few": (Shape(**SAME, pairs=3, shared_pairs=True), table),
    "h of many": (Shape(**SAME, pairs=1000, shared_pairs=True), table),
    "h + αI": (
        Shape(**SAME, pairs=11, shared_pairs=True, diagonal="factor"),
        lambda n: table(n) + n.identity[0] * np.eye(D),
    ),
    "sparse": (Shape(**SAME, nonzeros=9), sparse),
}


def start(shape: Shape, seed: int = 3, **options) -> Network:
    return Network.start(shape, torch.Generator().manual_seed(seed), **options)


def drawn(shape: Shape) -> Network:
    """A network with random weights."""
    network, random = start(shape), np.random.default_rng(2)
    for name in ("query_vectors", "document_vectors", "diagonal", "pairs", "sparse_values"):
        array = getattr(network, name)
        array[:] = random.normal(size=array.shape)
    if shape.diagonal == "factor":
        network.identity[:] = 0.7
    if shape.nonzeros:
        network.sparse_starts[:] = [0, 2, 2, 3, 5, 7, 8, 9]
        network.sparse_columns[:] = [0, 4, 6, 1, 2, 0, 5, 3, 6]
    return network


def vectors(count: int, terms: int, seed: int) -> csr_array:
    random = np.random.default_rng(seed)
    return csr_array((random.random((count, terms)) * (random.random((count, terms)) < 0.6)).astype("f4"))


@pytest.mark.parametrize("kind", KINDS)
def test_weighed_queries_and_documents_give_q_w_d(kind):
    shape, W = KINDS[kind]
    network = drawn(shape)
    q, d = vectors(4, shape.query_terms, 5), vectors(6, D, 6)
    rows, columns = (axis.ravel() for axis in np.indices((4, 6)))
    assert np.linalg.matrix_rank(W(network)) > 1
    for one in (network, Network.from_arrays(shape, network.arrays())):
        found = products(one.weigh_queries(q, None), rows, one.weigh_documents(d, None), columns)
        np.testing.assert_allclose(found.reshape(4, 6), q.toarray() @ W(network) @ d.toarray().T, atol=1e-5)


def test_arrays_that_do_not_fit_are_refused():
    arrays = drawn(KINDS["U'V + D"][0]).arrays()
    for name, wrong in (("diagonal", arrays["diagonal"][:3]), ("query_vectors", arrays["query_vectors"].astype("f8"))):
        with pytest.raises(ValueError, match=f"{name} must be of shape"):
            Network.from_arrays(KINDS["U'V + D"][0], {**arrays, name: wrong})
    del arrays["mixing"]
    with pytest.raises(ValueError, match=r"mixing must be of shape \(1,\) and type float32"):
        Network.from_arrays(KINDS["U'V + D"][0], arrays)


MIXED = Shape(**SAME, dim=3, embedded_terms=4, diagonal="identity", hashed_terms=4, hashed_dim=2)


def test_hashed_features_are_added_by_the_mixing_factor():
    network = drawn(MIXED)
    network.mixing[:] = 0.3
    q, d, a, b = (vectors(5, terms, seed) for seed, terms in enumerate((D, D, 4, 4)))
    W, hashed_W = low_rank(network) + np.eye(D), network.hashed_query_vectors @ network.hashed_document_vectors.T
    rows = np.arange(5)
    dense = [matrix.toarray() for matrix in (q, d, a, b)]
    words = np.array([q @ W @ d for q, d, _, _ in zip(*dense, strict=True)])
    hashed = np.array([a @ hashed_W @ b for _, _, a, b in zip(*dense, strict=True)])
    parts = (network, words + 0.3 * hashed), (network.words_only(), words), (network.hashed_only(), hashed)
    for part, expected in parts:
        found = products(part.weigh_queries(q, a), rows, part.weigh_documents(d, b), rows)
        np.testing.assert_allclose(found, expected, atol=1e-5)
    network.words_only().query_vectors[:] = 0
    network.hashed_only().hashed_query_vectors[:] = 0
    assert not network.query_vectors.any()
    assert not network.hashed_query_vectors.any()


# What W is at first


def test_w_starts_at_the_identity_or_at_zero():
    for kind in ("D", "W", "h + αI"):
        shape, W = KINDS[kind]
        np.testing.assert_array_equal(W(start(shape)), np.eye(D))
    for kind in ("W_FE", "h_FE"):
        shape, W = KINDS[kind]
        assert not W(start(shape)).any()


@pytest.mark.parametrize(("deviation", "expected"), [(None, 0.1), (1.0, 1.0), (0.02, 0.02)])
def test_vectors_start_with_a_normal_distribution(deviation, expected):
    shape = Shape(query_terms=400, document_terms=300, dim=100, embedded_terms=500, hashed_terms=200, hashed_dim=100)
    network = start(shape, deviation=deviation)
    tables = {name: table for name, table in network.arrays().items() if name.endswith("_vectors")}
    assert [len(table) for table in tables.values()] == [400, 300, 200, 200]
    for table in tables.values():
        assert table.std() == pytest.approx(expected, rel=0.03)
        assert abs(table.mean()) < 0.03 * expected
        assert abs((np.abs(table) < expected).mean() - 0.683) < 0.01
    assert len({float(table[0, 0]) for table in tables.values()}) == len(tables)


def test_the_seed_decides_and_u_and_v_may_start_alike():
    shape = Shape(**SAME, **VECTORS, hashed_terms=4, hashed_dim=2)
    one, again, other, alike = start(shape), start(shape), start(shape, seed=4), start(shape, alike=True)
    np.testing.assert_array_equal(one.document_vectors, again.document_vectors)
    assert (one.query_vectors != other.query_vectors).all()
    np.testing.assert_array_equal(alike.query_vectors, alike.document_vectors)
    np.testing.assert_array_equal(alike.hashed_query_vectors, alike.hashed_document_vectors)
    np.testing.assert_array_equal(alike.query_vectors, one.query_vectors)
    assert random_vectors(0, 3, None, torch.Generator()).shape == (0, 3)


# Places of pairs


def test_hashed_places_are_the_paper_s():
    """h(s, t) = mod(sP + t, H) up to a shift of the whole table, since the paper counts words from 1."""
    shape = Shape(query_terms=40_000, document_terms=50_000, pairs=1_000, shared_pairs=True)
    of_queries = pair_places(shape)
    shift = (1 * PRIME + 1) % 1_000
    random = np.random.default_rng(0)
    for s, t in zip(
        random.integers(40_000, size=200).tolist(), random.integers(50_000, size=200).tolist(), strict=True
    ):
        paper = ((s + 1) * PRIME + (t + 1)) % 1_000
        assert (of_queries[s] + t) % 1_000 == (paper - shift) % 1_000


def test_the_factor_of_the_hash_function_is_prime_and_far_from_powers_of_two():
    assert all(PRIME % divisor for divisor in range(2, int(PRIME**0.5) + 1))
    for size in (2**power for power in range(10, 31)):  # else pairs of equal words would share one weight
        assert 1 < PRIME % size < size - 1


def test_every_pair_has_a_weight_of_its_own_unless_hashed():
    places = np.add.outer(pair_places(KINDS["W_FE"][0]), np.arange(D))
    assert places.tolist() == np.arange(Q * D).reshape(Q, D).tolist()


# A sparse W


def test_a_compressed_w_is_the_same():
    network = drawn(KINDS["W"][0])
    network.pairs[np.random.default_rng(1).random(D * D) < 0.7] = 0
    small = network.compressed()
    assert (small.shape.pairs, small.shape.nonzeros, len(small.pairs)) == (0, np.count_nonzero(network.pairs), 0)
    np.testing.assert_array_equal(small.sparse().toarray(), whole(network))
    q, d = vectors(4, D, 5), vectors(6, D, 6).toarray()
    np.testing.assert_allclose(
        small.weigh_queries(q, None).sparse @ d.T, network.weigh_queries(q, None).sparse @ d.T, atol=1e-5
    )
    Network.from_arrays(small.shape, small.arrays())


def test_a_w_of_zeros_can_be_compressed():
    small = start(KINDS["W_FE"][0]).compressed()
    assert not small.sparse().toarray().any()
    assert small.weigh_queries(vectors(4, Q, 5), None).sparse.nnz == 0
    assert small.shape.lexical


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("sparse_columns", 0, 2_000_000_000),
        ("sparse_columns", 1, -1),
        ("sparse_starts", 1, 2**62),
        ("sparse_starts", 1, -5),
        ("sparse_starts", 0, 1),
        ("sparse_starts", -1, 9999),
        ("sparse_values", 0, np.nan),
    ],
)
def test_a_sparse_w_that_is_none_is_refused(name, place, value):
    network = Network.start(Shape(**SAME, pairs=D * D, starts_at_identity=True), torch.Generator()).compressed()
    arrays = {key: array.copy() for key, array in network.arrays().items()}
    assert Network.from_arrays(network.shape, arrays).sparse().nnz == D
    arrays[name][place] = value
    with pytest.raises(ValueError, match=f"{name} (must|holds)"):
        Network.from_arrays(network.shape, arrays)
