"""W as the sum of its parts against the explicit matrix, and what a sparse W keeps."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

import pt_neural as pn
from pt_neural.models.bilinear_batches import Tuples
from pt_neural.models.bilinear_network import BilinearNetwork, no_rows, rows_of
from pt_neural.models.bilinear_shape import PRIME, Shape, pair_places
from pt_neural.models.bilinear_steps import Texts
from pt_neural.rankers.weighed import products
from pt_neural.training.sampling import Batch

Q, D = 5, 7  # words of queries and of documents, where they are not the same
SAME = {"query_terms": D, "document_terms": D}
TWO = {"query_terms": Q, "document_terms": D}


def padded(vectors: torch.Tensor, terms: int) -> np.ndarray:
    """N by D, with zeros for the words that have no vector."""
    matrix = vectors.numpy().T
    return np.pad(matrix, [(0, 0), (0, terms - matrix.shape[1])])


def low_rank(network: BilinearNetwork) -> np.ndarray:
    shape = network.shape
    return padded(network.query_vectors, shape.query_terms).T @ padded(network.document_vectors, shape.document_terms)


def symmetric(network: BilinearNetwork) -> np.ndarray:
    U = padded(network.query_vectors, D)
    return U.T @ U


def table(network: BilinearNetwork) -> np.ndarray:
    """The matrix that equation 5 makes of a hash table."""
    w, W = network.pairs.tolist(), np.zeros((network.shape.query_terms, D))
    for s in range(len(W)):
        for t in range(D):
            W[s, t] = w[(s * PRIME + t) % len(w)]
    return W


def whole(network: BilinearNetwork) -> np.ndarray:
    return network.pairs.numpy().reshape(network.shape.query_terms, D)


def sparse(network: BilinearNetwork) -> np.ndarray:
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
    "U'U": (Shape(**SAME, **VECTORS, symmetric=True), symmetric),
    "U'V + I": (Shape(**SAME, **VECTORS, diagonal="identity"), lambda n: low_rank(n) + np.eye(D)),
    "U'V": (Shape(**SAME, **VECTORS), low_rank),
    "U'V + D": (Shape(**SAME, **VECTORS, diagonal="learned"), lambda n: low_rank(n) + np.diag(n.diagonal)),
    "(U'V)_4 + I": (
        Shape(**SAME, dim=3, embedded_terms=4, diagonal="identity"),
        lambda n: low_rank(n) * np.outer(np.arange(D) < 4, np.arange(D) < 4) + np.eye(D),
    ),
    "U_F'V_E": (Shape(**TWO, **VECTORS), low_rank),
    "W": (Shape(**SAME, pairs=D * D, starts_at_identity=True), whole),
    "W_FE": (Shape(**TWO, pairs=Q * D), whole),
    "h": (Shape(**SAME, pairs=11, shared_pairs=True), table),
    "h_FE": (Shape(**TWO, pairs=11, shared_pairs=True), table),
    "h of few": (Shape(**SAME, pairs=3, shared_pairs=True), table),
    "h of many": (Shape(**SAME, pairs=1000, shared_pairs=True), table),
    "h + αI": (
        Shape(**SAME, pairs=11, shared_pairs=True, diagonal="factor"),
        lambda n: table(n) + float(n.identity) * np.eye(D),
    ),
    "sparse": (Shape(**SAME, nonzeros=9), sparse),
}


def drawn(shape: Shape) -> BilinearNetwork:
    """A network with random weights."""
    network, random = BilinearNetwork(shape), np.random.default_rng(2)
    for name in ("query_vectors", "document_vectors", "diagonal", "pairs", "sparse_values"):
        weight = getattr(network, name)
        weight.copy_(torch.from_numpy(random.normal(size=weight.shape)))
    if shape.diagonal == "factor":
        network.identity.fill_(0.7)
    if shape.nonzeros:
        network.sparse_starts.copy_(torch.tensor([0, 2, 2, 3, 5, 7, 8, 9]))
        network.sparse_columns.copy_(torch.tensor([0, 4, 6, 1, 2, 0, 5, 3, 6]))
    return network


def vectors(count: int, terms: int, seed: int) -> csr_array:
    random = np.random.default_rng(seed)
    return csr_array((random.random((count, terms)) * (random.random((count, terms)) < 0.6)).astype("f4"))


@pytest.fixture(params=KINDS)
def kind(request) -> str:
    return request.param


def test_weighed_queries_and_documents_give_q_w_d(kind):
    shape, W = KINDS[kind]
    network = drawn(shape)
    q, d = vectors(4, shape.query_terms, 5), vectors(6, D, 6)
    rows, columns = (axis.ravel() for axis in np.indices((4, 6)))
    found = products(network.weigh_queries(q, None), rows, network.weigh_documents(d, None), columns)
    assert np.linalg.matrix_rank(W(network)) > 1
    np.testing.assert_allclose(found.reshape(4, 6), q.toarray() @ W(network) @ d.toarray().T, atol=1e-5)


def test_weights_go_through_their_state(kind):
    shape, W = KINDS[kind]
    network, again = drawn(shape), BilinearNetwork(Shape(**shape.to_json()))
    again.load_state_dict(network.state_dict())
    np.testing.assert_array_equal(W(again), W(network))


def test_hashed_features_are_added_by_the_mixing_factor():
    network = drawn(Shape(**SAME, dim=3, embedded_terms=4, diagonal="identity", hashed_terms=4, hashed_dim=2))
    network.mixing.fill_(0.3)
    q, d, a, b = (vectors(5, terms, seed) for seed, terms in enumerate((D, D, 4, 4)))
    rows = np.arange(5)
    found = products(network.weigh_queries(q, a), rows, network.weigh_documents(d, b), rows)
    W = low_rank(network) + np.eye(D)
    hashed_W = network.hashed_query_vectors.numpy() @ network.hashed_document_vectors.numpy().T
    q, d, a, b = (matrix.toarray() for matrix in (q, d, a, b))
    expected = [q[row] @ W @ d[row] + 0.3 * a[row] @ hashed_W @ b[row] for row in rows]
    np.testing.assert_allclose(found, expected, atol=1e-5)


# What W is at first


@pytest.mark.parametrize("kind", ["D", "W"])
def test_w_starts_at_the_identity(kind):
    shape, W = KINDS[kind]
    np.testing.assert_array_equal(W(BilinearNetwork(shape)), np.eye(D))


def test_w_starts_at_zero_without_an_identity():
    for kind in ("W_FE", "h"):
        shape, W = KINDS[kind]
        assert not W(BilinearNetwork(shape)).any()
    shape, W = KINDS["h + αI"]
    np.testing.assert_array_equal(W(BilinearNetwork(shape)), np.eye(D))


@pytest.mark.parametrize(("deviation", "expected"), [(None, 0.1), (1.0, 1.0), (0.02, 0.02)])
def test_vectors_start_with_a_normal_distribution(deviation, expected):
    shape = Shape(query_terms=400, document_terms=300, dim=100, embedded_terms=500, hashed_terms=200, hashed_dim=100)
    torch.manual_seed(3)
    network = BilinearNetwork(shape, deviation=deviation, other_queries=True)
    sizes = {"query": 400, "document": 300, "other_query": 300, "hashed_query": 200, "hashed_document": 200}
    drawn_before = set()
    for name, size in sizes.items():
        table = getattr(network, f"{name}_vectors").numpy()
        assert table.shape == (size, 100)
        assert table.std() == pytest.approx(expected, rel=0.03)
        assert abs(table.mean()) < 0.03 * expected
        assert abs((np.abs(table) < expected).mean() - 0.683) < 0.01
        drawn_before.add(float(table[0, 0]))
    assert len(drawn_before) == len(sizes)


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


# What a sparse W keeps


def test_the_largest_of_each_row_are_kept():
    network = BilinearNetwork(Shape(query_terms=3, document_terms=4, pairs=12))
    network.pairs.copy_(torch.tensor([1.0, -3, 2, 0.5, 1, -1, 1, 1, 0, 0, 0, -7]))
    network.keep_largest(2)
    assert whole_of(network) == [[0, -3, 2, 0], [1, -1, 0, 0], [0, 0, 0, -7]]
    assert active_of(network) == [[0, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 1]]


def test_what_was_dropped_is_never_kept_again():
    network = BilinearNetwork(Shape(query_terms=1, document_terms=4, pairs=4))
    network.pairs.copy_(torch.tensor([4.0, 3, 2, 1]))
    network.keep_largest(3)
    network.pairs.copy_(torch.tensor([0.0, 0.1, -0.2, 0]))  # training may take a kept weight to 0
    network.keep_largest(2)
    assert active_of(network) == [[0, 1, 1, 0]]
    network.keep_largest(2)
    assert active_of(network) == [[0, 1, 1, 0]]
    network.keep_largest(1)
    assert (active_of(network), whole_of(network)) == ([[0, 0, 1, 0]], [[0, 0, pytest.approx(-0.2), 0]])


def whole_of(network: BilinearNetwork) -> list[list[float]]:
    return network.pairs.view(network.shape.query_terms, network.shape.document_terms).tolist()


def active_of(network: BilinearNetwork) -> list[list[int]]:
    return network.active.reshape(network.shape.query_terms, -1).astype(int).tolist()


def test_a_compressed_w_is_the_same():
    network = drawn(KINDS["W"][0])
    network.keep_largest(2)
    small = network.compressed()
    assert (small.shape.pairs, small.shape.nonzeros, len(small.pairs)) == (0, 2 * D, 0)
    np.testing.assert_array_equal(small.sparse().toarray(), whole(network))
    q, d = vectors(4, D, 5), vectors(6, D, 6).toarray()
    np.testing.assert_allclose(
        small.weigh_queries(q, None).terms @ d.T, network.weigh_queries(q, None).terms @ d.T, atol=1e-5
    )


def test_a_w_of_zeros_can_be_compressed():
    small = BilinearNetwork(KINDS["W_FE"][0]).compressed()
    assert not small.sparse().toarray().any()
    assert small.weigh_queries(vectors(4, Q, 5), None).terms.nnz == 0


# Learning


def batch(shape: Shape, seed: int = 4) -> Batch:
    random = np.random.default_rng(seed)
    texts = Texts(
        rows_of(vectors(5, shape.query_terms, seed)), rows_of(vectors(8, D, seed + 1)), no_rows(5), no_rows(8)
    )
    documents = np.stack([random.permutation(8)[:4] for _ in range(6)])
    valid = torch.ones(6, 4, dtype=torch.bool)
    valid[2, 2] = False
    return Batch(Tuples(texts, random.integers(5, size=6), documents), torch.zeros(6, 4), valid)


TRAINED = [kind for kind in KINDS if kind != "sparse"]  # which is what is left after training


@pytest.mark.parametrize("kind", TRAINED)
def test_the_loss_of_a_batch_is_the_mean_over_tuples(kind):
    shape, W = KINDS[kind]
    network, one = drawn(shape), batch(shape)
    W = W(network)
    texts, documents, valid = one.inputs.texts, one.inputs.documents, one.valid.numpy()
    q, d = (
        csr_array((rows.weights, rows.terms, rows.starts), shape=(len(rows.starts) - 1, terms)).toarray()
        for rows, terms in ((texts.queries, shape.query_terms), (texts.documents, D))
    )
    scores = np.einsum("gs,st,gnt->gn", q[one.inputs.queries], W, d[documents])
    losses = np.maximum(0, 2 - scores[:, :1] + scores[:, 1:])[valid[:, 1:]]
    slow = pn.Training(learning_rate=1e-12, margin=2.0)
    assert network.learn(one, slow) == pytest.approx(losses.mean(), abs=1e-5)
    assert len(losses) == 17


@pytest.mark.parametrize("kind", TRAINED[1:])
def test_learning_lowers_the_loss(kind):
    network = BilinearNetwork(KINDS[kind][0])
    training = pn.Training(learning_rate=0.05, margin=1.0)
    losses = [network.learn(batch(network.shape), training) for _ in range(60)]
    assert losses[-1] < 0.95 * losses[0]


def test_the_identity_is_not_learned():
    for kind in ("I", "U'V + I"):
        network = BilinearNetwork(KINDS[kind][0])
        for _ in range(5):
            network.learn(batch(network.shape), pn.Training(learning_rate=0.5, margin=1.0))
        assert float(network.identity) == float(network.mixing) == 1


def test_what_only_training_needs_is_dropped():
    network = BilinearNetwork(KINDS["U_F'V_E"][0], other_queries=True)
    assert network.other_query_vectors.shape == (D, 3)
    network.forget_other_task()
    state = network.state_dict()
    assert state["other_query_vectors"].shape == (0, 3)
    BilinearNetwork(network.shape).load_state_dict(state)
