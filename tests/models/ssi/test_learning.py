"""How W is learned: groups of tuples, algorithm 2, two models and the factor that mixes them; against plain loops."""

import threading

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from pt_neural import Training
from pt_neural.models.ssi import learning
from pt_neural.models.ssi.learning import (
    MIXINGS,
    Learner,
    Task,
    keep_largest,
    pair_of_numbers,
    shrinking,
    told_if_slow,
)
from pt_neural.models.ssi.network import Network, Shape, no_rows, rows_of
from pt_neural.models.ssi.steps import Texts
from pt_neural.training.groups import Groups
from pt_neural.training.sampling import GroupBatches

TERMS, FREQUENT = 7, 4
SAME = {"query_terms": TERMS, "document_terms": TERMS}
LOW_RANK = {"dim": 3, "embedded_terms": 50}
SHAPES = {
    "I": Shape(**SAME, diagonal="identity"),
    "D": Shape(**SAME, diagonal="learned"),
    "W": Shape(**SAME, pairs=TERMS**2, starts_at_identity=True),
    "h + αI": Shape(**SAME, pairs=11, shared_pairs=True, diagonal="factor"),
    "U'V + I": Shape(**SAME, **LOW_RANK, diagonal="identity"),
    "U'U": Shape(**SAME, **LOW_RANK, symmetric=True),
}
MIXED = Shape(**SAME, dim=3, embedded_terms=4, diagonal="identity", hashed_terms=FREQUENT, hashed_dim=2)
TABLES = ("query_vectors", "document_vectors", "hashed_query_vectors", "hashed_document_vectors")


def network_of(shape: Shape) -> Network:
    return Network.start(shape, torch.Generator().manual_seed(7))


def rows(count: int, terms: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    return (random.random((count, terms)) * (random.random((count, terms)) < 0.7)).astype("f4")


# Queries, documents, and both after hashing.
DENSE = [rows(3, TERMS, 1), rows(5, TERMS, 2), rows(3, FREQUENT, 3), rows(5, FREQUENT, 4)]
TEXTS = Texts(*(rows_of(csr_array(matrix)) for matrix in DENSE))


def task_of(training: Training, texts: Texts = TEXTS) -> Task:
    """Four groups with random negatives."""
    positives = np.array([0, 3, 2, 1])
    groups = Groups(np.array([0, 2, 1, 1]), positives, np.ones(4, dtype="f4"), np.arange(0), num_documents=5)
    return Task(texts, GroupBatches(groups, training, pair_of_numbers))


def settings(**options) -> Training:
    usual = {"epochs": 2, "batch_size": 3, "learning_rate": 0.3, "margin": 3.0, "num_negatives": 2, "verbose": False}
    return Training(**{**usual, **options}).completed({"negatives": "random"})


def learner(training: Training | None = None, **options) -> Learner:
    training = training or settings()
    return Learner(task_of(training), training, [], **options)


def tuples_of(task: Task, epoch: int) -> list[tuple[int, int, int]]:
    """Query, relevant document and other one of an epoch, in order."""
    batches = [task.tuples(epoch, number) for number in range(len(task.batches))]
    groups = [group for batch in batches for group in zip(batch.queries, batch.documents, strict=True)]
    return [(query, documents[0], one) for query, documents in groups for one in documents[1:]]


def whole_w(network: Network) -> np.ndarray:
    """W, from the scores of single words."""
    words = csr_array(np.eye(TERMS, dtype="f4"))
    queries, documents = network.weigh_queries(words, None), network.weigh_documents(words, None)
    W = np.zeros((TERMS, TERMS))
    if queries.dense is not None:
        W += queries.dense @ documents.dense.T
    if queries.sparse is not None:
        W += queries.sparse if isinstance(queries.sparse, np.ndarray) else queries.sparse.toarray()
    return W


@pytest.mark.parametrize("kind", SHAPES)
def test_the_loss_of_an_epoch_is_the_mean_over_groups_of_the_mean_over_tuples(kind):
    network, slow = network_of(SHAPES[kind]), learner(settings(learning_rate=1e-12, epochs=1))
    W, (q, d, _, _) = whole_w(network), DENSE
    losses = [max(0, 3 - q[query] @ W @ (d[good] - d[bad])) for query, good, bad in tuples_of(slow.task, 0)]
    slow.learn(network)
    assert slow.history[0]["loss"] == pytest.approx(np.mean(losses), abs=1e-5)
    again, fast = network_of(SHAPES[kind]), learner(settings(learning_rate=0.02, epochs=30))
    fast.learn(again)
    if kind == "I":
        np.testing.assert_array_equal(whole_w(again), W)
    else:
        assert fast.history[-1]["loss"] < 0.95 * fast.history[0]["loss"]
    fixed = ["mixing"] if kind == "h + αI" else ["mixing", "identity"]
    assert [float(getattr(again, name)[0]) for name in fixed] == [1] * len(fixed)


def test_groups_are_those_of_the_sampler():
    training = settings()
    task = task_of(training)
    first = task.tuples(0, 0)
    assert [array.shape for array in first] == [(3,), (3, 3), (3, 3)]
    assert (first.queries.dtype, first.documents.dtype, first.valid.dtype) == (np.int64, np.int64, bool)
    again = task.tuples(0, 2)  # as many as there are, then again from the first
    np.testing.assert_array_equal(again.documents, first.documents)


# Algorithm 2


def test_each_round_keeps_the_same_share():
    cases = {(1000, 1, 3): [100, 10, 1], (900, 100, 1): [100], (900, 100, 2): [300, 100], (8, 1, 2): [3, 1]}
    for arguments, expected in cases.items():
        assert shrinking(*arguments) == expected


def test_the_largest_of_each_row_are_kept():
    W, active = np.array([[1.0, -3, 2, 0.5], [1, -1, 1, 1], [0, 0, 0, -7]]), np.ones((3, 4), dtype=bool)
    keep_largest(W, active, 2)
    assert W.tolist() == [[0, -3, 2, 0], [1, -1, 0, 0], [0, 0, 0, -7]]
    assert active.astype(int).tolist() == [[0, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 1]]


def test_what_was_dropped_is_never_kept_again():
    W, active = np.array([[4.0, 3, 2, 1]]), np.ones((1, 4), dtype=bool)
    keep_largest(W, active, 3)
    W[:] = [0.0, 0.1, -0.2, 0]  # training may take a kept weight to 0
    for count, expected in ((2, [0, 1, 1, 0]), (2, [0, 1, 1, 0]), (1, [0, 0, 1, 0])):
        keep_largest(W, active, count)
        assert active.astype(int).tolist() == [expected]
    assert W.tolist() == [[0, 0, -0.2, 0]]


def learned_by_loops(W: np.ndarray, active: np.ndarray, task: Task, epochs: int) -> np.ndarray:
    """Step 3 of algorithm 2 in float64."""
    (q, d, _, _), W = DENSE, W.copy()
    for epoch in range(epochs):
        for query, good, bad in tuples_of(task, epoch):
            if 3 - q[query] @ W @ (d[good] - d[bad]) > 0:
                W += 0.3 * np.outer(q[query], d[good] - d[bad]) * active
    return W


@pytest.mark.parametrize(
    ("nonzeros", "rounds", "counts"), [(1, 3, [7, 4, 2, 1]), (2, 2, [7, 4, 2]), (5, 5, [7, 6, 5]), (100, 2, [7])]
)
def test_algorithm_2(nonzeros, rounds, counts):
    """Rounds that would drop nothing are left out: nothing is to be trained anew where W is as sparse as wanted."""
    network, sparse = network_of(SHAPES["W"]), learner()
    sparse.learn_sparse(network, nonzeros, rounds)
    W, active = np.eye(TERMS), np.ones((TERMS, TERMS), dtype=bool)
    for count in counts:
        for row, kept in zip(W, active, strict=True):
            largest = sorted(np.flatnonzero(kept), key=lambda place, row=row: (-abs(row[place]), place))[:count]
            kept[:] = np.isin(np.arange(TERMS), largest)
            row[~kept] = 0  # step 2
        W = learned_by_loops(W, active, sparse.task, epochs=2)
    np.testing.assert_allclose(whole_w(network), W, atol=1e-5)
    assert [(record["nonzeros"], record["epoch"]) for record in sparse.history] == [
        (count, epoch) for count in counts for epoch in (1, 2)
    ]


# Two models and their mix


def arrays(network: Network) -> dict[str, np.ndarray]:
    return {name: array.copy() for name, array in network.arrays().items()}


class Stages:
    """Keeps what the whole model was before each stage; the stage that is told is interrupted."""

    def __init__(self, monkeypatch, network: Network, interrupted: int | None = None):
        self.network, self.interrupted, self.states, self.trainings = network, interrupted, [], []
        self.run = learning.run_epochs
        monkeypatch.setattr(learning, "run_epochs", self)

    def __call__(self, learn, state, training, **options):
        self.states.append(arrays(self.network))
        self.trainings.append(training)
        self.run(learn, state, training, **options)
        if len(self.states) == self.interrupted:
            raise KeyboardInterrupt


def test_each_stage_changes_its_own_weights(monkeypatch):
    network, mixed = network_of(MIXED), learner(settings(epochs=5, checkpoint_dir=None))
    stages = Stages(monkeypatch, network)
    mixed.learn_mixed(network)
    states = [*stages.states, arrays(network)]
    changed = [TABLES[:2], TABLES[2:], ()]
    for before, after, names in zip(states[:-1], states[1:], changed, strict=True):
        assert {name for name in TABLES if (before[name] != after[name]).any()} == set(names)
    assert [float(state["mixing"][0]) for state in states[:3]] == [0, 0, 1]
    assert float(network.mixing[0]) not in (0, 1)
    assert float(network.identity[0]) == 1
    assert [record["model"] for record in mixed.history] == ["words"] * 5 + ["hashed"] * 5 + ["mixing"] * 3
    assert [training.epochs for training in stages.trainings] == [5, 5, 3]


def test_each_model_learns_as_if_it_were_alone():
    """Section 2.3.2: the hashed model knows neither the identity nor the scores of the other."""
    network, mixed = network_of(MIXED), learner(settings(epochs=1))
    start = arrays(network)
    mixed.learn_mixed(network)
    tuples = tuples_of(mixed.task, 0)
    expected = {}
    for names, q, d, identity in ((TABLES[:2], *DENSE[:2], np.eye(TERMS)), (TABLES[2:], *DENSE[2:], 0 * np.eye(4))):
        U, V = (start[name].T.astype(float) for name in names)
        for query, good, bad in tuples:
            difference = d[good] - d[bad]
            score = (U @ q[query, :FREQUENT]) @ (V @ difference[:FREQUENT]) + q[query] @ identity @ difference
            if 3 - score > 0:
                U, V = (
                    U + 0.3 * np.outer(V @ difference[:FREQUENT], q[query, :FREQUENT]),
                    V + 0.3 * np.outer(U @ q[query, :FREQUENT], difference[:FREQUENT]),
                )
        for name, matrix in zip(names, (U, V), strict=True):
            np.testing.assert_allclose(getattr(network, name).T, matrix, atol=1e-5)
            expected[name] = matrix.T
    mixing, (q, d, a, b) = 1.0, DENSE  # which then follows the gradient, by itself
    u, v, hashed_u, hashed_v = (expected[name] for name in TABLES)
    for query, good, bad in tuples:
        difference, hashed_difference = d[good] - d[bad], b[good] - b[bad]
        words = (q[query, :4] @ u) @ (v.T @ difference[:4]) + q[query] @ difference
        hashed = (a[query] @ hashed_u) @ (hashed_v.T @ hashed_difference)
        if 3 - words - mixing * hashed > 0:
            mixing += 0.3 * hashed
    assert float(network.mixing[0]) == pytest.approx(mixing, abs=1e-5)


@pytest.mark.parametrize("stage", [1, 2])
def test_without_the_second_model_the_first_counts_alone(monkeypatch, stage):
    network, mixed = network_of(MIXED), learner()
    Stages(monkeypatch, network, interrupted=stage)
    with pytest.raises(KeyboardInterrupt):
        mixed.learn_mixed(network)
    assert float(network.mixing[0]) == 0
    assert [record["model"] for record in mixed.history] == ["words", "words", "hashed", "hashed"][: 2 * stage]


def test_stages_have_checkpoints_of_their_own_and_begin_where_those_before_them_ended(tmp_path):
    def mixed(epochs: int = 2) -> Network:
        network = network_of(MIXED)
        one = learner(settings(epochs=epochs, checkpoint_dir=str(tmp_path / "run")), origin=lambda: "data")
        one.learn_mixed(network)
        return network

    first = mixed()
    names = {"words-model", "hashed-model", "mixing-model"}
    assert {path.name for path in (tmp_path / "run").iterdir()} == names
    for name, array in arrays(mixed()).items():
        np.testing.assert_array_equal(array, getattr(first, name))
    with pytest.raises(ValueError, match="mixing-model holds checkpoints of another run"):
        mixed(epochs=3)


def test_all_stages_together_have_the_time(monkeypatch):
    """By the clock that max_time goes by, a batch takes 0.6 s; after two batches, each other stage learns from one."""
    now, learn = [0.0], learning.learn

    def slow(parts, texts, tuples, rates):
        now[0] += 0.6 * (len(tuples.queries) > 0)
        return learn(parts, texts, tuples, rates)

    monkeypatch.setattr(learning, "learn", slow)
    monkeypatch.setattr("pt_neural.training.run.monotonic", lambda: now[0])
    sparse = learner(settings(epochs=9, max_time="00:00:00:01"))
    sparse.learn_sparse(network_of(SHAPES["W"]), 1, 2)
    assert [record["nonzeros"] for record in sparse.history] == [7, 3, 1]
    assert now[0] == pytest.approx(4 * 0.6)


def test_with_more_time_a_run_goes_on_as_if_it_had_never_stopped(monkeypatch, tmp_path):
    now, learn = [0.0], learning.learn

    def slow(parts, texts, tuples, rates):
        now[0] += 0.6 * (len(tuples.queries) > 0)
        return learn(parts, texts, tuples, rates)

    def learned(**options) -> dict[str, np.ndarray]:
        network = network_of(SHAPES["W"])
        learner(settings(epochs=3, **options)).learn_sparse(network, 1, 2)
        return arrays(network)

    monkeypatch.setattr(learning, "learn", slow)
    monkeypatch.setattr("pt_neural.training.run.monotonic", lambda: now[0])
    whole, place = learned(), str(tmp_path / "run")
    for max_time in ("00:00:00:05", "00:00:00:05", None):  # enough for the first stage and a part of the second
        found = learned(max_time=max_time, checkpoint_dir=place)
    for name, array in whole.items():
        np.testing.assert_array_equal(found[name], array)


def test_the_dev_measure_is_that_of_the_model_that_learns():
    seen = []

    def evaluate(network: Network) -> float:
        seen.append((network.shape.dim, network.shape.hashed_dim))
        return float(len(seen))

    mixed = learner(settings(epochs=1, patience=9), evaluate=evaluate)
    mixed.learn_mixed(network_of(MIXED))
    assert seen == [(3, 0), (3, 0), (0, 2), (0, 2), *[(3, 2)] * len(MIXINGS)]  # two of them before and after
    assert [record["dev nDCG@10"] for record in mixed.history] == [1, 2, 3, 4, 5, len(seen)]
    assert [record["epoch"] for record in mixed.history] == [0, 1] * 3


@pytest.mark.parametrize(("measure", "best"), [("nDCG@10", 4), ("RankLoss", 0.25)])
def test_the_mix_is_the_best_on_dev_queries(measure, best):
    """Not what the training tuples ask for, which both models fit by then."""

    def evaluate(network: Network) -> float:
        factor = float(network.mixing[0])
        return {4: 0.9, 0.25: 0.1}.get(factor, 0.5) if network.shape.dim and network.shape.hashed_dim else 0.5

    mixed, network = learner(settings(epochs=2, dev_measure=measure), evaluate=evaluate), network_of(MIXED)
    mixed.learn_mixed(network)
    assert float(network.mixing[0]) == best
    records = [record for record in mixed.history if record["model"] == "mixing"]
    assert [(record["epoch"], record["mixing"]) for record in records] == [(0, 0), (1, best)]
    assert [record[f"dev {measure}"] for record in records] == [0.5, 0.9 if best == 4 else 0.1]


def test_an_interrupted_choice_keeps_the_best_mix_so_far():
    def evaluate(network: Network) -> float:
        if network.mixing[0] > 2 and network.shape.dim and network.shape.hashed_dim:
            raise KeyboardInterrupt
        return 1 - abs(float(network.mixing[0]) - 1)

    network = network_of(MIXED)
    with pytest.raises(KeyboardInterrupt):
        learner(evaluate=evaluate).learn_mixed(network)
    assert float(network.mixing[0]) == 1


# Two tasks


@pytest.mark.parametrize("own_queries", [False, True])
def test_another_task_shares_v_and_leaves_u_alone(own_queries):
    """Section 2.4.2; the steps themselves are tested beside the loops. The other task has fewer batches."""
    shape, empty = Shape(TERMS, TERMS, **LOW_RANK), no_rows(5)
    training, lists = settings(batch_size=1, margin=100.0), [rows_of(csr_array(DENSE[1]))] * 2
    other = task_of(settings(batch_size=2), Texts(*lists, empty, empty))
    silent = Texts(no_rows(3), TEXTS.documents, empty, empty)  # queries without words take no steps
    own = np.ones((TERMS, 3), dtype="f4") if own_queries else None
    network, start = network_of(shape), network_of(shape)
    Learner(
        task_of(training, silent), training, [], other_task=other, other_query_vectors=None if own is None else own
    ).learn(network)
    np.testing.assert_array_equal(network.query_vectors, start.query_vectors)
    assert (network.document_vectors != start.document_vectors).any()
    assert own is None or (own != 1).any()


# What is told


def test_only_what_is_slow_is_told(capsys, monkeypatch):
    def timers() -> list[threading.Timer]:
        threads = threading.enumerate()
        return [thread for thread in threads if isinstance(thread, threading.Timer) and not thread.finished.is_set()]

    monkeypatch.setattr(learning, "SOON", 3600)
    with told_if_slow("at once"):
        waiting = timers()
    with pytest.raises(ZeroDivisionError), told_if_slow("an error ends it"):
        waiting += timers()
        raise ZeroDivisionError
    assert len(waiting) == 2
    monkeypatch.setattr(learning, "SOON", 0.3)
    with told_if_slow(None):
        assert timers() == []
    with told_if_slow("compiling"):
        [slow] = timers()
        slow.join(60)
    assert capsys.readouterr().out == "compiling\n"


def test_the_steps_are_compiled_before_the_run(monkeypatch):
    monkeypatch.setattr(learning, "run_epochs", lambda *arguments, **options: None)
    before, network = whole_w(network_of(SHAPES["W"])), network_of(SHAPES["W"])
    learner().learn(network)
    assert learning.learn.signatures
    np.testing.assert_array_equal(whole_w(network), before)


def test_stages_are_told(capsys):
    learner(settings(verbose=True, epochs=1)).learn_mixed(network_of(MIXED))
    learner(settings(verbose=True, epochs=1)).learn_sparse(network_of(SHAPES["W"]), 3, 1)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("training ")]
    stages = ["the model of frequent words", "the model of hashed features", "the factor that mixes them"]
    assert lines == [f"training {stage}" for stage in [*stages, *(f"{n} weights in each row of W" for n in (7, 3))]]
