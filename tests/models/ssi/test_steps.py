"""Gradient steps for f(q, d) = q'Wd against the updates of the SSI paper, and against the gradient of equation 8."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from pt_neural.models.ssi.network import PRIME, Network, Shape, no_rows, random_vectors, rows_of
from pt_neural.models.ssi.steps import (
    Parts,
    Rates,
    Texts,
    Tuples,
    learn,
    learn_in_turn,
    pair_rows,
    pair_score,
    step_pairs,
)

RATE, MARGIN, WORDS, FREQUENT = 0.3, 1.0, 7, 4
ONE_VOCABULARY = {"query_terms": WORDS, "document_terms": WORDS}
TWO_VOCABULARIES = {"query_terms": 5, "document_terms": WORDS}
LOW_RANK = {"dim": 3, "embedded_terms": 100}
HASHED = {"hashed_terms": FREQUENT, "hashed_dim": 2}
SHAPES = {
    "diagonal": Shape(**ONE_VOCABULARY, diagonal="learned"),
    "full": Shape(**ONE_VOCABULARY, pairs=WORDS**2, starts_at_identity=True),
    "full across languages": Shape(**TWO_VOCABULARIES, pairs=5 * WORDS),
    "sparse": Shape(**ONE_VOCABULARY, pairs=WORDS**2),
    "low rank": Shape(**ONE_VOCABULARY, **LOW_RANK, diagonal="identity"),
    "low rank without identity": Shape(**ONE_VOCABULARY, **LOW_RANK),
    "low rank of frequent words": Shape(**ONE_VOCABULARY, dim=3, embedded_terms=4, diagonal="identity"),
    "low rank across languages": Shape(**TWO_VOCABULARIES, **LOW_RANK),
    "low rank and diagonal": Shape(**ONE_VOCABULARY, **LOW_RANK, diagonal="learned"),
    "symmetric": Shape(**ONE_VOCABULARY, **LOW_RANK, symmetric=True, diagonal="identity"),
    "hash": Shape(**ONE_VOCABULARY, pairs=11, shared_pairs=True),
    "hash and factor": Shape(**ONE_VOCABULARY, pairs=11, shared_pairs=True, diagonal="factor"),
    "correlated": Shape(**ONE_VOCABULARY, dim=3, embedded_terms=FREQUENT, diagonal="identity", **HASHED),
}


@dataclass
class Dense:
    """Queries and documents as dense rows, and the same after correlated feature hashing."""

    q: np.ndarray
    d: np.ndarray
    a: np.ndarray
    b: np.ndarray

    def texts(self) -> Texts:
        """The same, as the loops take them."""
        return Texts(*(rows_of(csr_array(rows.astype("f4"))) for rows in (self.q, self.d, self.a, self.b)))


def dense_texts(shape: Shape, seed: int = 3) -> Dense:
    random = np.random.default_rng(seed)

    def rows(count: int, terms: int) -> np.ndarray:
        drawn = random.random((count, terms)) * (random.random((count, terms)) < 0.5)
        drawn[:, 0] += 0.1
        return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype("f4").astype(float)

    return Dense(rows(6, shape.query_terms), rows(9, shape.document_terms), rows(6, FREQUENT), rows(9, FREQUENT))


def network_of(name: str) -> Network:
    """A network of one kind with random weights."""
    network, random = Network.start(SHAPES[name], torch.Generator()), np.random.default_rng(1)
    for part in (*vectors_of(network), network.diagonal, network.identity, network.pairs, network.mixing):
        part[:] = random.normal(scale=0.4, size=part.shape)
    if network.shape.diagonal != "factor":
        network.identity[:] = 1
    if name == "sparse":
        network.pairs[~ACTIVE] = 0
    return network


ACTIVE = np.random.default_rng(1).random(WORDS**2) < 0.5  # of the weights of a sparse model
VECTORS = ["query_vectors", "document_vectors", "hashed_query_vectors", "hashed_document_vectors"]
LEARNED = {"learned": ["diagonal"], "factor": ["identity"]}  # parts that only some kinds learn


def vectors_of(network: Network) -> list[np.ndarray]:
    """U and V, and those over hashed features."""
    return [getattr(network, name) for name in VECTORS]


def active_of(name: str) -> np.ndarray | None:
    return ACTIVE if name == "sparse" else None


def rates_of(shape: Shape, margin: float = MARGIN) -> Rates:
    """All parts learn at once, which SSI lets learn one after the other."""
    kind = shape.diagonal
    mixing, diagonal, identity = shape.hashed_dim > 0, kind == "learned", kind == "factor"
    return Rates(RATE, RATE * mixing, RATE * diagonal, RATE * identity, margin)


class Paper:
    """The model and its updates as the paper has them, with N by D matrices and word vectors as columns."""

    def __init__(self, network: Network, active: np.ndarray | None = None):
        self.shape = shape = network.shape
        u, v, hashed_u, hashed_v = (table.T.astype(float) for table in vectors_of(network))
        self.U = np.pad(u, [(0, 0), (0, shape.query_terms - u.shape[1])])
        self.V = self.U if shape.symmetric else np.pad(v, [(0, 0), (0, shape.document_terms - v.shape[1])])
        self.embedded = np.arange(WORDS) < shape.embedded_terms
        self.hashed_U, self.hashed_V = hashed_u, hashed_v
        self.mixing, self.alpha = float(network.mixing[0]), float(network.identity[0])
        self.D = network.diagonal.astype(float) if shape.diagonal == "learned" else np.ones(WORDS)
        self.w = network.pairs.astype(float)
        self.active = np.ones(len(self.w), dtype=bool) if active is None else active

    def h(self, s: int, t: int) -> int:
        """Which weight the words s and t have."""
        if self.shape.shared_pairs:
            return (s * PRIME + t) % len(self.w)
        return s * self.shape.document_terms + t

    def diagonal_score(self, q, d) -> float:
        return 0.0 if self.shape.diagonal == "none" else float((q * self.D * d).sum())

    def hashed_score(self, a, b) -> float:
        return float((self.hashed_U @ a) @ (self.hashed_V @ b)) if self.shape.hashed_dim else 0.0

    def f(self, q, d, a, b) -> float:
        """The sum of q_s W_st d_t of all parts."""
        score = (self.U @ q) @ (self.V @ d) if self.shape.dim else 0.0
        score += self.alpha * self.diagonal_score(q, d) + self.mixing * self.hashed_score(a, b)
        if len(self.w):
            score += sum(q[s] * self.w[self.h(s, t)] * d[t] for s in range(len(q)) for t in range(len(d)))
        return score

    def step(self, q, good, bad, a, good_b, bad_b, margin=MARGIN) -> float:
        """One tuple; gives its loss."""
        loss = margin - self.f(q, good, a, good_b) + self.f(q, bad, a, bad_b)
        if loss <= 0:
            return 0.0
        d, b = good - bad, good_b - bad_b
        alpha_step = self.diagonal_score(q, d) if self.shape.diagonal == "factor" else 0.0
        if self.shape.symmetric:
            self.U += RATE * (np.outer(self.U @ d, q) + np.outer(self.U @ q, d)) * self.embedded
        elif self.shape.dim:
            of_U, of_V = np.outer(self.V @ d, q), np.outer(self.U @ q, d)  # section 2.3.2
            self.U += RATE * of_U * self.embedded[: len(q)]
            self.V += RATE * of_V * self.embedded
        if self.shape.hashed_dim:
            of_U, of_V = np.outer(self.hashed_V @ b, a), np.outer(self.hashed_U @ a, b)
            of_mixing = self.hashed_score(a, b)
            self.hashed_U += RATE * self.mixing * of_U
            self.hashed_V += RATE * self.mixing * of_V
            self.mixing += RATE * of_mixing
        if self.shape.diagonal == "learned":
            self.D += RATE * self.alpha * q * d
        self.alpha += RATE * alpha_step
        for s in range(len(q) if len(self.w) else 0):  # section 2.3.1, and what equation 5 makes of it
            for t in range(len(d)):
                self.w[self.h(s, t)] += RATE * q[s] * d[t] * self.active[self.h(s, t)]
        return loss

    def learn(self, dense: Dense, queries, documents) -> list[float]:
        """All tuples one after the other; gives their losses."""
        return [
            self.step(dense.q[query], dense.d[group[0]], dense.d[one], dense.a[query], dense.b[group[0]], dense.b[one])
            for query, group in zip(queries, documents, strict=True)
            for one in group[1:]
        ]


def learned(name: str, network: Network, texts: Texts, queries, documents, *, valid=None, margin=MARGIN):
    """What the compiled loop gives for some groups."""
    valid = np.ones(np.shape(documents), dtype=bool) if valid is None else np.array(valid)
    tuples = Tuples(np.array(queries, dtype=np.int64), np.array(documents, dtype=np.int64), valid)
    return learn(network.parts(active_of(name)), texts, tuples, rates_of(network.shape, margin))


def check_equal(network: Network, paper: Paper) -> None:
    again = Paper(network)
    for name in ("U", "V", "hashed_U", "hashed_V", "mixing", "D", "alpha", "w"):
        np.testing.assert_allclose(getattr(again, name), getattr(paper, name), atol=3e-6, err_msg=name)


def weights(network: Network) -> list[np.ndarray]:
    return [array.copy() for array in network.arrays().values()]


def changed(network: Network, before: list[np.ndarray]) -> bool:
    return any((now != then).any() for now, then in zip(weights(network), before, strict=True))


GROUPS = [[4, 7, 3], [0, 1, 2], [3, 4, 5], [1, 6, 0], [8, 7, 2], [0, 1, 2]], [2, 0, 1, 2, 3, 0]
EACH = pytest.mark.parametrize("name", SHAPES)
SOME = ["sparse", "low rank and diagonal", "hash and factor", "correlated"]


@EACH
def test_tuples_are_the_updates_of_the_paper_one_after_the_other(name):
    network = network_of(name)
    dense, paper, before = dense_texts(network.shape), Paper(network, active_of(name)), weights(network)
    total, count = learned(name, network, dense.texts(), [2], [[4, 7]])
    loss = paper.learn(dense, [2], [[4, 7]])[0]
    assert (total, count) == (pytest.approx(loss, abs=1e-6), 1)
    assert loss > 0
    check_equal(network, paper)
    assert changed(network, before)
    total, count = learned(name, network, dense.texts(), GROUPS[1], GROUPS[0])
    losses = paper.learn(dense, GROUPS[1], GROUPS[0])
    assert (total, count) == (pytest.approx(sum(losses), abs=1e-5), 12)
    check_equal(network, paper)


@EACH
def test_steps_follow_the_gradient_of_the_margin_ranking_loss(name):
    """Equation 8 in torch, whose gradient knows nothing of how the paper wrote its updates down."""
    network, shape = network_of(name), SHAPES[name]
    dense, parts = dense_texts(shape), [*LEARNED.get(shape.diagonal, []), *VECTORS, "mixing", "pairs"]
    q, d, a, b = map(torch.from_numpy, (dense.q, dense.d, dense.a, dense.b))
    own = {part: torch.from_numpy(getattr(network, part).astype(float)).requires_grad_() for part in parts}
    diagonal = own.get("diagonal", torch.full((WORDS,), float(shape.diagonal != "none"), dtype=torch.float64))
    paper = Paper(network)
    table = torch.tensor([[paper.h(s, t) for t in range(WORDS)] for s in range(shape.query_terms)])

    def score(query: int, document: int) -> torch.Tensor:
        u, v = own["query_vectors"], own["query_vectors" if shape.symmetric else "document_vectors"]
        total = (q[query, : len(u)] @ u) @ (d[document, : len(v)] @ v)
        if shape.hashed_dim:
            hashed = a[query] @ own["hashed_query_vectors"], b[document] @ own["hashed_document_vectors"]
            total = total + own["mixing"][0] * (hashed[0] @ hashed[1])
        if shape.diagonal != "none":
            total = total + own.get("identity", torch.ones(1))[0] * (q[query] * diagonal * d[document]).sum()
        return total + (q[query] @ own["pairs"][table] @ d[document] if shape.pairs else 0)

    learned(name, network, dense.texts(), GROUPS[1], GROUPS[0])
    for group, query in zip(*GROUPS, strict=True):
        for one in group[1:]:
            loss = torch.relu(MARGIN - score(query, group[0]) + score(query, one))
            gradients = torch.autograd.grad(loss, list(own.values()), materialize_grads=True, allow_unused=True)
            for (part, weight), gradient in zip(own.items(), gradients, strict=True):
                if part == "pairs" and name == "sparse":
                    gradient = gradient * torch.from_numpy(ACTIVE)
                weight.data -= RATE * gradient
    for part, expected in own.items():
        np.testing.assert_allclose(getattr(network, part), expected.detach(), atol=3e-6, err_msg=part)


def test_a_step_is_made_where_the_margin_is_violated():
    for name in SOME:
        for more in (-1e-3, 1e-3):
            network = network_of(name)
            dense, paper, before = dense_texts(network.shape), Paper(network), weights(network)
            scores = [paper.f(dense.q[2], dense.d[one], dense.a[2], dense.b[one]) for one in (4, 7)]
            total, count = learned(name, network, dense.texts(), [2], [[4, 7]], margin=scores[0] - scores[1] + more)
            assert (total, count) == (pytest.approx(max(0, more), abs=1e-6), 1)
            assert changed(network, before) == (more > 0)


def test_invalid_negatives_are_passed_over():
    for name in SOME:
        network, without = network_of(name), network_of(name)
        texts = dense_texts(network.shape).texts()
        nowhere = 10**9
        valid = [[True, False, True], [True, False, False], [True, True, True]]
        found = learned(name, network, texts, [2, 0, 1], [[4, nowhere, 7], [3, nowhere, 1], [5, 6, 8]], valid=valid)
        first = learned(name, without, texts, [2], [[4, 7]])
        second = learned(name, without, texts, [1], [[5, 6, 8]])
        assert found == (pytest.approx(first[0] + second[0], abs=1e-6), 3)
        assert not changed(network, weights(without))


def test_texts_without_terms_and_weights_that_are_no_numbers():
    for name in SOME:
        network, none = network_of(name), no_rows(9)
        before = weights(network)
        empty = Texts(none, none, none, none)
        assert learned(name, network, empty, [0, 1], [[1, 2, 3], [4, 5, 6]]) == (4 * MARGIN, 4)
        assert not changed(network, before)
        for weight in (*vectors_of(network), network.diagonal, network.pairs):
            weight[:] = np.nan
        assert np.isnan(learned(name, network, dense_texts(network.shape).texts(), [2], [[4, 7]])[0])


def other_parts(parts: Parts, query_vectors: np.ndarray) -> Parts:
    return parts._replace(query_vectors=query_vectors, diagonal=np.zeros(0, dtype="f4"))


@pytest.mark.parametrize("own_queries", [False, True])
def test_tasks_in_turn_share_the_vectors_of_documents(own_queries):
    """Section 2.4.2: a step for equation 9, then one for equation 10, or for U_E'V_E; the second has fewer groups."""
    shape, generator = SHAPES["low rank across languages"], torch.Generator().manual_seed(4)
    network = Network.start(shape, generator)
    other_queries = random_vectors(WORDS, 3, None, generator) if own_queries else network.document_vectors
    dense, other = dense_texts(shape), dense_texts(SHAPES["low rank"], seed=8)
    U, V, U_E = (table.T.astype(float) for table in (*vectors_of(network)[:2], other_queries))
    groups, other_groups = [[4, 7, 2], [3, 1, 0], [5, 6, 8]], [[2, 0, 3], [8, 4, 1]]
    tuples = Tuples(np.array([2, 0, 1]), np.array(groups), np.ones((3, 3), dtype=bool))
    others = Tuples(np.array([5, 3]), np.array(other_groups), np.ones((2, 3), dtype=bool))
    of_other = other_parts(network.parts(), other_queries), other.texts(), others
    total, count = learn_in_turn(network.parts(), dense.texts(), tuples, *of_other, rates_of(shape))

    expected = 0.0
    for turn, group in enumerate(groups):
        for one in group[1:]:
            q, difference = dense.q[tuples.queries[turn]], dense.d[group[0]] - dense.d[one]
            loss = MARGIN - (U @ q) @ (V @ difference)
            expected += max(0, loss)
            if loss > 0:
                U, V = U + RATE * np.outer(V @ difference, q), V + RATE * np.outer(U @ q, difference)
        for one in other_groups[turn][1:] if turn < 2 else []:
            q, difference = other.q[others.queries[turn]], other.d[other_groups[turn][0]] - other.d[one]
            if own_queries and MARGIN - (U_E @ q) @ (V @ difference) > 0:
                U_E, V = U_E + RATE * np.outer(V @ difference, q), V + RATE * np.outer(U_E @ q, difference)
            elif not own_queries and MARGIN - (V @ q) @ (V @ difference) > 0:
                V = V + RATE * (np.outer(V @ difference, q) + np.outer(V @ q, difference))
    assert (total, count) == (pytest.approx(expected, abs=1e-5), 6)
    np.testing.assert_allclose(network.query_vectors.T, U, atol=3e-6)
    np.testing.assert_allclose(network.document_vectors.T, V, atol=3e-6)
    np.testing.assert_allclose(other_queries.T, U_E if own_queries else V, atol=3e-6)


@pytest.mark.parametrize("kind", ["full", "full across languages", "hash"])
def test_rows_of_pairs_are_added_to_a_matrix(kind):
    network = network_of(kind)
    dense, paper = dense_texts(network.shape), Paper(network)
    W = np.array([[paper.w[paper.h(s, t)] for t in range(WORDS)] for s in range(network.shape.query_terms)])
    result = np.ones((6, WORDS), dtype=np.float32)
    pair_rows(network.parts(), dense.texts().queries, result)
    np.testing.assert_allclose(result, 1 + dense.q @ W, atol=1e-6)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("size", [3, 25, 1000])
@pytest.mark.parametrize("terms", range(10))
def test_pairs_of_a_text_of_any_length_whether_rows_wrap_around_or_not(terms, size, masked):
    random = np.random.default_rng(terms)
    active = random.random(size) < 0.5 if masked else np.zeros(0, dtype=bool)
    shape = Shape(query_terms=20, document_terms=20, pairs=size, shared_pairs=True)
    network = Network.start(shape, torch.Generator())
    network.pairs[:] = random.normal(size=size)
    q, d = np.zeros((1, 20)), random.random((2, 20)) * (random.random((2, 20)) < 0.6)
    q[0, random.permutation(20)[:terms]], d[1] = random.normal(size=terms), 0
    queries, documents = (rows_of(csr_array(rows.astype("f4"))) for rows in (q, d))
    parts, texts = network.parts(active), Texts(queries, documents, no_rows(1), no_rows(2))
    table = (np.arange(20)[:, None] * PRIME + np.arange(20)) % size
    assert pair_score(parts, texts, 0, 0) == pytest.approx(q[0] @ network.pairs[table] @ d[0], abs=1e-5)
    assert pair_score(parts, texts, 0, 1) == 0
    expected, step = network.pairs.astype(float), RATE * np.outer(q[0], d[0])
    np.add.at(expected, table, np.where(active[table], step, 0) if masked else step)
    step_pairs(parts, texts, 0, 0, RATE)
    step_pairs(parts, texts, 0, 1, RATE)
    np.testing.assert_allclose(network.pairs, expected, atol=1e-5)
