"""Two low-rank models that learn by themselves, and the factor that mixes them (SSI paper, sections 2.2.3 and 4.1)."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_array

import pt_neural as pn
from pt_neural.models.bilinear_batches import Tuples
from pt_neural.models.bilinear_network import BilinearNetwork, rows_of
from pt_neural.models.bilinear_shape import Shape
from pt_neural.models.bilinear_steps import Texts
from pt_neural.models.mixing import train_mixed
from pt_neural.training.sampling import Batch

WORDS, FREQUENT = 7, 4
SHAPE = Shape(WORDS, WORDS, dim=3, embedded_terms=4, diagonal="identity", hashed_terms=FREQUENT, hashed_dim=2)
TABLES = ("query_vectors", "document_vectors", "hashed_query_vectors", "hashed_document_vectors")


def state(network: BilinearNetwork) -> dict[str, np.ndarray]:
    return {name: weight.numpy().copy() for name, weight in network.state_dict().items()}


class Trainer:
    """Stands for the training loop: makes one step, and keeps what the whole model was before and after it."""

    def __init__(self, whole: BilinearNetwork, batch: Batch, *, interrupted: int | None = None):
        self.whole, self.batch, self.interrupted = whole, batch, interrupted
        self.states, self.settings, self.networks = [state(whole)], [], []

    def __call__(self, network, batches, loss, training, *, history, origin):
        network.learn(self.batch, training)
        self.networks.append(network)
        self.settings.append(training)
        self.states.append(state(self.whole))
        history.append({"epoch": 1, "loss": 1.0})
        if len(self.networks) == self.interrupted:
            raise KeyboardInterrupt


def rows(count: int, terms: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    return (random.random((count, terms)) * (random.random((count, terms)) < 0.7)).astype("f4")


@pytest.fixture
def dense() -> list[np.ndarray]:
    """Queries, documents, and both after hashing."""
    return [rows(3, WORDS, 1), rows(5, WORDS, 2), rows(3, FREQUENT, 3), rows(5, FREQUENT, 4)]


@pytest.fixture
def batch(dense) -> Batch:
    texts = Texts(*(rows_of(csr_array(matrix)) for matrix in dense))
    inputs = Tuples(texts, np.array([0, 2, 1]), np.array([[0, 1, 4], [3, 2, 1], [2, 0, 3]]))
    return Batch(inputs, torch.zeros(3, 3), torch.ones(3, 3, dtype=torch.bool))


@pytest.fixture
def network() -> BilinearNetwork:
    torch.manual_seed(7)
    return BilinearNetwork(SHAPE)


TRAINING = pn.Training(epochs=9, learning_rate=0.3, margin=3.0)  # which all tuples violate


def mixed(trainer: Trainer) -> list[dict]:
    history = []
    train_mixed(trainer, trainer.whole, None, None, TRAINING, history=history, origin=str)
    return history


def test_each_stage_changes_its_own_weights(network, batch):
    trainer = Trainer(network, batch)
    history = mixed(trainer)
    start, words, hashed, factor = trainer.states
    stages = [(start, words, TABLES[:2]), (words, hashed, TABLES[2:]), (hashed, factor, ("mixing",))]
    for before, after, changed in stages:
        assert {name for name in TABLES if (before[name] != after[name]).any()} == set(changed) - {"mixing"}
    assert [float(seen["mixing"][0]) for seen in trainer.states[:3]] == [1, 0, 0]
    assert float(factor["mixing"][0]) not in (0, 1)
    assert float(network.identity) == 1
    assert [record["model"] for record in history] == ["words", "hashed", "mixing"]
    assert [settings.epochs for settings in trainer.settings] == [9, 9, 3]


def test_each_model_learns_as_if_it_were_alone(network, dense, batch):
    """Section 2.3.2: the hashed model knows neither the identity nor the scores of the other."""
    trainer = Trainer(network, batch)
    start = state(network)
    mixed(trainer)
    groups = zip(batch.inputs.queries, batch.inputs.documents, strict=True)
    tuples = [(query, group[0], one) for query, group in groups for one in group[1:]]
    for names, q, d, identity in ((TABLES[:2], *dense[:2], np.eye(WORDS)), (TABLES[2:], *dense[2:], 0)):
        width = FREQUENT  # of the words that have vectors
        U, V = (start[name].T.astype(float) for name in names)
        for query, good, bad in tuples:
            difference = d[good] - d[bad]
            score = (U @ q[query, :width]) @ (V @ difference[:width])
            score += 0 if np.isscalar(identity) else q[query] @ identity @ difference
            assert score < 3
            U, V = (
                U + 0.3 * np.outer(V @ difference[:width], q[query, :width]),
                V + 0.3 * np.outer(U @ q[query, :width], difference[:width]),
            )
        for name, expected in zip(names, (U, V), strict=True):
            np.testing.assert_allclose(state(network)[name].T, expected, atol=1e-5)


def test_the_factor_follows_the_gradient(network, dense, batch):
    trainer = Trainer(network, batch)
    mixed(trainer)
    u, v, hashed_u, hashed_v = (trainer.states[-1][name].astype(float) for name in TABLES)
    q, d, a, b = (matrix.astype(float) for matrix in dense)
    mixing = 1.0
    for query, group in zip(batch.inputs.queries, batch.inputs.documents, strict=True):
        for one in group[1:]:
            difference, of_hashed = d[group[0]] - d[one], b[group[0]] - b[one]
            words = (q[query, :4] @ u) @ (v.T @ difference[:4]) + q[query] @ difference
            hashed = (a[query] @ hashed_u) @ (hashed_v.T @ of_hashed)
            if 3 - words - mixing * hashed > 0:
                mixing += 0.3 * hashed
    assert float(network.mixing) == pytest.approx(mixing, abs=1e-5)


@pytest.mark.parametrize("stage", [1, 2])
def test_without_the_second_model_the_first_counts_alone(network, batch, stage):
    with pytest.raises(KeyboardInterrupt):
        mixed(Trainer(network, batch, interrupted=stage))
    assert float(network.mixing) == 0
    assert not network.learns_mixing


def test_after_an_interruption_the_vectors_may_learn_again(network, batch):
    with pytest.raises(KeyboardInterrupt):
        mixed(Trainer(network, batch, interrupted=3))
    assert not network.learns_mixing
    assert network.rates(0.3, 1.0)[:2] == (0.3, 0)


def test_the_first_model_is_that_of_frequent_words(corpus, topics):
    candidates = topics.merge(pd.DataFrame(corpus), how="cross")
    qrels = pd.DataFrame({"qid": ["q1", "q2", "q3"], "docno": ["d1", "d3", "d5"], "label": 1})
    options = {"dim": 3, "embedded_terms": 9, "training": pn.Training(epochs=4, learning_rate=0.2, verbose=False)}
    both = pn.SSI("correlated-hash", hashed_dim=5, **options).fit(candidates, qrels)
    one = pn.SSI("low-rank", **options).fit(candidates, qrels)
    for name in TABLES[:2]:
        np.testing.assert_array_equal(state(both.network)[name], state(one.network)[name])
    assert both.network.hashed_query_vectors.shape == (9, 5)
    assert both.history["model"].tolist() == ["words"] * 4 + ["hashed"] * 4 + ["mixing"] * 3
    losses = both.history.set_index("model")["loss"]
    assert losses["words"].tolist() == one.history["loss"].tolist()
