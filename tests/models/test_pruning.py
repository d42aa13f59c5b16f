"""Algorithm 2 of the SSI paper step by step: train, drop the smallest weights of each row, train again."""

import numpy as np
import pandas as pd
import pytest

import pt_neural as pn
from pt_neural.models.bilinear_network import BilinearNetwork
from pt_neural.models.bilinear_shape import Shape
from pt_neural.models.pruning import steps, train_sparse
from pt_neural.training.loop import train

TERMS = 8


@pytest.mark.parametrize(
    ("first", "last", "rounds", "expected"),
    [
        (1000, 1, 3, [100, 10, 1]),
        (900, 100, 1, [100]),
        (900, 100, 2, [300, 100]),
        (64, 8, 3, [32, 16, 8]),
        (8, 1, 2, [3, 1]),
    ],
)
def test_each_round_keeps_the_same_share(first, last, rounds, expected):
    assert steps(first, last, rounds) == expected


class Trainer:
    """Stands for the training loop: adds a matrix to the weights that may change, as gradient steps would."""

    def __init__(self, seed: int = 1):
        random = np.random.default_rng(seed)
        self.changes = random.normal(size=(10, TERMS, TERMS)).astype("f4")
        self.before: list[np.ndarray] = []
        self.settings: list[pn.Training] = []

    def __call__(self, network, batches, loss, training, *, history, origin):
        change = self.changes[len(self.before)].ravel().copy()
        if len(network.active):
            change[~network.active] = 0
        self.before.append(network.pairs.numpy().reshape(TERMS, TERMS).copy())
        self.settings.append(training)
        network.pairs += network.pairs.new_tensor(change)
        history += [{"epoch": epoch, "loss": 1.0} for epoch in (1, 2)]


def pruned(trainer, *, nonzeros: int, rounds: int, training: pn.Training | None = None):
    network = BilinearNetwork(Shape(TERMS, TERMS, pairs=TERMS**2, starts_at_identity=True))
    history = []
    options = {"nonzeros": nonzeros, "rounds": rounds, "history": history, "origin": str}
    train_sparse(trainer, network, None, None, training or pn.Training(), **options)
    return network.pairs.numpy().reshape(TERMS, TERMS), history


def largest(row: np.ndarray, active: list[int], count: int) -> list[int]:
    return sorted(active, key=lambda place: (-abs(row[place]), place))[:count]


@pytest.mark.parametrize(("nonzeros", "rounds", "counts"), [(1, 3, [4, 2, 1]), (2, 2, [4, 2]), (3, 1, [3])])
def test_algorithm_2(nonzeros, rounds, counts):
    trainer = Trainer()
    found, _ = pruned(trainer, nonzeros=nonzeros, rounds=rounds)
    W, active = np.eye(TERMS, dtype="f4"), [list(range(TERMS)) for _ in range(TERMS)]
    for number, count in enumerate([None, *counts]):
        if count is not None:
            active = [largest(row, places, count) for row, places in zip(W, active, strict=True)]
        for i, places in enumerate(active):
            W[i, [j for j in range(TERMS) if j not in places]] = 0  # step 2
        np.testing.assert_array_equal(trainer.before[number], W)
        for i, places in enumerate(active):
            W[i, places] += trainer.changes[number, i, places]  # step 3
    np.testing.assert_array_equal(found, W)
    assert (np.count_nonzero(found, axis=1) == nonzeros).all()


def test_the_history_tells_the_trainings_apart():
    _, history = pruned(Trainer(), nonzeros=1, rounds=3)
    assert [(record["nonzeros"], record["epoch"]) for record in history] == [
        (count, epoch) for count in (8, 4, 2, 1) for epoch in (1, 2)
    ]


@pytest.mark.parametrize(("nonzeros", "rounds", "counts"), [(6, 5, [8, 7, 6]), (8, 3, [8]), (100, 2, [8])])
def test_a_round_that_drops_nothing_is_left_out(nonzeros, rounds, counts):
    """Nothing is to be trained anew where W is as sparse as wanted."""
    trainer = Trainer()
    _, history = pruned(trainer, nonzeros=nonzeros, rounds=rounds)
    assert [record["nonzeros"] for record in history[::2]] == counts
    assert len(trainer.before) == len(counts)


def test_each_training_has_checkpoints_of_its_own(tmp_path):
    trainer, training = Trainer(), pn.Training(checkpoint_dir=str(tmp_path / "run"), learning_rate=0.3)
    pruned(trainer, nonzeros=2, rounds=2, training=training)
    assert [settings.checkpoint_dir for settings in trainer.settings] == [
        str(tmp_path / "run" / f"{count}-nonzeros") for count in (8, 4, 2)
    ]
    assert {settings.learning_rate for settings in trainer.settings} == {0.3}


def test_what_an_interrupted_training_did_is_in_the_history():
    class Interrupted(Trainer):
        def __call__(self, *arguments, history, **options):
            super().__call__(*arguments, history=history, **options)
            if len(self.before) == 2:
                raise KeyboardInterrupt

    network, history = BilinearNetwork(Shape(TERMS, TERMS, pairs=TERMS**2)), []
    with pytest.raises(KeyboardInterrupt):
        options = {"nonzeros": 1, "rounds": 3, "history": history, "origin": str}
        train_sparse(Interrupted(), network, None, None, pn.Training(), **options)
    assert [record["nonzeros"] for record in history] == [8, 8, 4, 4]


# The ranker


WORDS = [f"{letter}{number}" for letter in "qd" for number in range(12)]
TRAINING = {"epochs": 3, "num_negatives": 3, "verbose": False}


def pairs() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Query q_i is about document words d_i and d_i+1; all words are in the collection."""
    random = np.random.default_rng(0)
    topics = pd.DataFrame({"qid": [str(i) for i in range(12)], "query": [f"q{i} q{i}" for i in range(12)]})
    texts = [" ".join([f"d{i}", f"d{(i + 1) % 12}", *random.choice(WORDS, 5)]) for i in range(12)]
    documents = pd.DataFrame({"docno": [f"doc{i}" for i in range(12)], "text": texts})
    documents.loc[12] = ["all", " ".join(WORDS)]
    return topics.merge(documents, how="cross"), pd.DataFrame(
        {"qid": topics["qid"], "docno": documents["docno"][:12], "label": 1}
    )


def fitted(**options) -> pn.SSI:
    training = pn.Training(**{**TRAINING, **options.pop("training", {})})
    return pn.SSI("sparse", training=training, **options).fit(*pairs())


def test_rows_of_a_fitted_model_are_as_sparse_as_wanted():
    model = fitted(nonzeros=2, rounds=2)
    W = model.word_weights()
    assert W.shape == (24, 24)
    assert ((W != 0).sum(axis=1) <= 2).all()
    assert (W.loc[[word for word in WORDS if word[0] == "q"]] != 0).sum().sum() > 12
    assert model.history["nonzeros"].tolist() == [24] * 3 + [7] * 3 + [2] * 3
    assert model.history["epoch"].tolist() == [1, 2, 3] * 3
    assert model.network.shape.nonzeros == (W != 0).sum().sum()
    assert model.network.shape.pairs == 0


def test_training_a_fitted_model_is_algorithm_2_on_the_full_model(monkeypatch):
    """Epoch by epoch: the first training is that of kind="full", and what it drops is its smallest weights."""
    seen = []

    def spy(network, *arguments, **options):
        seen.append(network.pairs.numpy().reshape(24, 24).copy())
        train(network, *arguments, **options)
        seen.append(network.pairs.numpy().reshape(24, 24).copy())

    monkeypatch.setattr("pt_neural.training.loop.train", spy)
    model = fitted(nonzeros=5, rounds=1)
    full = pn.SSI("full", training=pn.Training(**TRAINING)).fit(*pairs())
    start, dense, dropped, end = seen[:4]
    np.testing.assert_array_equal(start, np.eye(24))
    np.testing.assert_array_equal(dense, full.word_weights())
    for before, after in zip(dense, dropped, strict=True):
        kept = largest(before, list(range(24)), 5)
        np.testing.assert_array_equal(after, [before[j] if j in kept else 0 for j in range(24)])
    assert (end[dropped != 0] != dropped[dropped != 0]).any()
    dropped_places = [(i, j) for i in range(24) for j in range(24) if j not in largest(dense[i], list(range(24)), 5)]
    assert all(end[place] == 0 for place in dropped_places)
    np.testing.assert_array_equal(model.word_weights(), end)


@pytest.mark.parametrize("nonzeros", [2, 24, 500])
def test_checkpoints_change_nothing(tmp_path, nonzeros):
    plain = fitted(nonzeros=nonzeros, rounds=2)
    for _ in range(2):  # the second finds all trainings finished
        kept = fitted(nonzeros=nonzeros, rounds=2, training={"checkpoint_dir": str(tmp_path / "run")})
        pd.testing.assert_frame_equal(kept.word_weights(), plain.word_weights())
        pd.testing.assert_frame_equal(kept.history.drop(columns="seconds"), plain.history.drop(columns="seconds"))
