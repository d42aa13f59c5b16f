import json
from dataclasses import FrozenInstanceError
from pathlib import Path

import ir_measures
import numpy as np
import pytest
from ir_measures import AP, RR, nDCG

import pt_neural as pn
from pt_neural.training.settings import Training, divided

WRONG_VALUES = [
    ("epochs", 0),
    ("epochs", -3),
    ("batch_size", 0),
    ("optimiser", "adamm"),
    ("learning_rate", 0),
    ("learning_rate", float("nan")),
    ("learning_rate", float("inf")),
    ("weight_decay", -0.1),
    ("weight_decay", float("nan")),
    ("weight_decay", float("inf")),
    ("loss", "hinge"),
    ("gamma", 0.0),
    ("margin", -1),
    ("negatives", "hard"),
    ("num_negatives", 0),
    ("grades", {}),
    ("grades", {2: [2]}),
    ("grades", {2: [0, 3]}),
    ("grades", {2: []}),
    ("grades", {2: 0}),
    ("grades", {0: [-1]}),
    ("grades", {"high": [0]}),
    ("grades", [3, 1]),
    ("patience", 0),
    ("dev_measure", "goodness@10"),
    ("dev_queries", 0),
    ("max_groups", 0),
    ("max_time", "soon"),
    ("max_time", "10:00"),
    ("gradient_clip", 0),
    ("seed", -1),
    ("seed", 2**32),
    ("device", "quantum"),
    ("devices", 0),
    ("devices", -2),
    ("devices", []),
    ("devices", "some"),
    ("devices", True),
    ("precision", "8-mixed"),
    ("precision", "16-true"),
    ("strategy", "ddp_spawn"),
    ("verbose", "yes"),
]
WRONG_TYPES = [
    ("epochs", 2.5),
    ("epochs", "3"),
    ("epochs", True),
    ("epochs", None),
    ("batch_size", 2.5),
    ("learning_rate", "0.1"),
    ("weight_decay", None),
    ("gamma", "10"),
    ("num_negatives", 1.5),
    ("patience", "never"),
    ("dev_measure", 10),
    ("gradient_clip", "1"),
    ("seed", None),
    ("seed", 1.0),
    ("strategy", 3),
    ("checkpoint_dir", 7),
    ("start", 7),
]


def test_a_wrong_value_or_type_is_named():
    for error, wrong in ((ValueError, WRONG_VALUES), (TypeError, WRONG_TYPES)):
        for name, value in wrong:
            with pytest.raises(error, match="goodness@10" if value == "goodness@10" else name):
                pn.Training(**{name: value})


def test_in_batch_negatives_need_other_groups():
    with pytest.raises(ValueError, match="batch_size must be at least 2"):
        pn.Training(negatives="in-batch", batch_size=1)


def test_settings_are_frozen_and_named():
    training = pn.Training()
    with pytest.raises(FrozenInstanceError):
        training.epochs = 7
    with pytest.raises(TypeError):
        pn.Training(5)


def test_json_keeps_everything():
    for training in (
        pn.Training(),
        pn.Training(grades={3: [1, 0], 2: [0]}, dev_measure="AP", max_time="00:01:00:00", devices=[0, 1]),
        pn.Training(epochs=np.int64(4), learning_rate=np.float32(0.5), seed=np.int32(3), gamma=5),
        pn.Training(loss="margin", negatives="judged", checkpoint_dir=Path("runs") / "one", precision="bf16-mixed"),
    ):
        assert pn.Training.from_json(json.loads(json.dumps(training.to_json()))) == training


def test_measures_by_name():
    for name, measure in [("nDCG@10", nDCG @ 10), ("RR@5", RR @ 5), (AP @ 100, AP @ 100)]:
        assert pn.Training(dev_measure=name).dev_measure == measure


def test_a_model_completes_what_is_none():
    given = pn.Training(loss="margin", epochs=3)
    completed = given.completed({"loss": "softmax", "gamma": 10.0, "negatives": "random", "batch_size": 8})
    assert (completed.loss, completed.gamma, completed.negatives, completed.epochs) == ("margin", 10.0, "random", 3)
    assert completed.batch_size == 8
    assert (given.gamma, given.negatives, given.batch_size, given.learning_rate) == (None, None, None, None)
    assert pn.Training(batch_size=5, learning_rate=0.5).completed({"batch_size": 8, "learning_rate": 1.0}) == (
        pn.Training(
            batch_size=5,
            learning_rate=0.5,
            margin=1.0,
            optimiser="adam",
            shared_groups=0,
            dev_measure="nDCG@10",
            positives="all",
        )
    )
    assert pn.Training().completed({"negatives": "retrieved"}).positives == "retrieved"
    assert pn.Training(positives="all").completed({"negatives": "retrieved"}).positives == "all"
    assert given.completed({"margin": 0.1}).margin == 0.1
    assert given.completed({"dev_measure": "AP"}).dev_measure == ir_measures.AP
    assert given.completed({"optimiser": "sgd"}).optimiser == "sgd"
    assert pn.Training(optimiser="adagrad").completed({"optimiser": "sgd"}).optimiser == "adagrad"


def test_in_batch_negatives_are_shared_already():
    with pytest.raises(ValueError, match="in-batch negatives are shared already"):
        pn.Training(negatives="in-batch", shared_groups=1)


def test_what_a_model_brings_is_checked_as_well():
    with pytest.raises(ValueError, match="batch_size must be at least 2"):
        pn.Training(batch_size=1).completed({"negatives": "in-batch"})


def test_nodes_and_ray():
    assert Training(nodes=2, devices=2, strategy="ddp").nodes == 2
    with pytest.raises(ValueError, match="nodes must be"):
        Training(nodes=0)
    for settings in ({"nodes": 2}, {"devices": 2}):
        with pytest.raises(ValueError, match="Ray Train's ScalingConfig says how many workers train"):
            Training(strategy="ray", **settings)


def test_settings_of_a_training_and_others():
    assert divided({"dim": 3, "epochs": 2, "shared": True}) == ({"epochs": 2}, {"dim": 3, "shared": True})
