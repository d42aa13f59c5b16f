"""That compiling makes no step, and that the user hears of it where it takes long."""

import threading

import numpy as np
import pandas as pd
import pytest

import pt_neural as pn
from pt_neural.models import compiling, ssi_ranker
from pt_neural.models.compiling import told_if_slow


@pytest.fixture
def candidates(corpus, topics) -> pd.DataFrame:
    return topics.merge(pd.DataFrame(corpus), how="cross")


@pytest.fixture
def qrels() -> pd.DataFrame:
    return pd.DataFrame({"qid": ["q1", "q2", "q3"], "docno": ["d1", "d3", "d5"], "label": 1})


@pytest.mark.parametrize("in_turn", [False, True])
def test_compiling_makes_no_step_and_the_training_compiles_no_more(candidates, qrels, monkeypatch, in_turn):
    from pt_neural.models.bilinear_steps import learn, learn_in_turn

    seen = []

    def compile_steps(network, batch, training):
        before = [weight.clone() for weight in network.parameters()]
        compiling.compile_steps(network, batch, training)
        pairs = zip(before, network.parameters(), strict=True)
        seen.append((all(bool((old == new).all()) for old, new in pairs), signatures()))

    def signatures():
        return len(learn.signatures), len(learn_in_turn.signatures)

    monkeypatch.setattr(ssi_ranker, "compile_steps", compile_steps)
    model = pn.SSI(dim=3, training=pn.Training(epochs=2, verbose=False))
    start = model.fit(candidates, qrels, monolingual=(candidates, qrels) if in_turn else None)
    assert seen == [(True, signatures())]
    assert signatures()[in_turn] >= 1
    assert np.isfinite(start.history["loss"]).all()


def test_only_what_is_slow_is_told(capsys, monkeypatch):
    monkeypatch.setattr(compiling, "SOON", 3600)
    with told_if_slow("at once"):
        waiting = timers()
    with pytest.raises(ZeroDivisionError), told_if_slow("an error ends it"):
        waiting += timers()
        raise ZeroDivisionError
    assert len(waiting) == 2
    monkeypatch.setattr(compiling, "SOON", 0.01)
    with told_if_slow(None):
        assert timers() == []
    with told_if_slow("compiling"):
        [slow] = timers()
        slow.join(60)
    assert capsys.readouterr().out == "compiling\n"


def timers() -> list[threading.Timer]:
    """Those that wait."""
    threads = threading.enumerate()
    return [thread for thread in threads if isinstance(thread, threading.Timer) and not thread.finished.is_set()]


def test_the_stages_of_a_training_are_told(candidates, qrels, capsys):
    options = {"dim": 3, "embedded_terms": 9, "nonzeros": 3, "rounds": 2}
    for kind, verbose in (("correlated-hash", True), ("sparse", True), ("sparse", False)):
        pn.SSI(kind, **options, training=pn.Training(epochs=1, verbose=verbose)).fit(candidates, qrels)
        told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("training ")]
        if kind == "correlated-hash":
            expected = ["the model of frequent words", "the model of hashed features", "the factor that mixes them"]
            assert told == [f"training {stage}" for stage in expected]
        elif verbose:
            assert len(told) == 3
            assert told[-1] == "training 3 weights in each row of W"
        else:
            assert told == []
