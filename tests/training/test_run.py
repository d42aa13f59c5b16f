"""The run around steps of one's own: history, dev measure, best state, early stopping, time, checkpoints."""

import json
import warnings
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from pt_neural.training import Training
from pt_neural.training.run import Iteration, run_epochs, run_iterations

BATCHES = 4
KEYS = [(epoch, number) for epoch in range(9) for number in range(BATCHES)]


class Counter:
    """A state that counts its steps, a step of which is the batch after the last; stops where it is told to."""

    def __init__(self, *measures, stop=None, loss=lambda epoch, number: 1 / (1 + epoch)):
        self.state = {"steps": np.zeros(2, dtype=np.float32), "square": np.zeros((1, 1))}
        self.measures, self.stop, self.loss = list(measures), stop, loss
        self.seen, self.history = [], []

    def learn(self, epoch, number):
        self.seen.append((epoch, number))
        if (epoch, number) == self.stop:
            raise KeyboardInterrupt
        self.state["steps"] += 1
        self.state["square"][:] = self.state["steps"][0] ** 2
        return self.loss(epoch, number), 2 if number < BATCHES - 1 else 1

    def evaluate(self):
        value = self.measures.pop(0)
        if isinstance(value, BaseException):
            raise value
        return value

    def run(self, **settings):
        training = Training(**{"epochs": 5, "verbose": False, "learning_rate": 0.1, **settings}).completed({})
        options = {"num_batches": BATCHES, "history": self.history, "origin": lambda: "data"}
        evaluate = self.evaluate if self.measures or settings.get("patience") else None
        run_epochs(self.learn, self.state, training, evaluate=evaluate, **options)
        return self

    @property
    def epochs(self):
        """After how many epochs the state is."""
        assert self.state["square"].item() == self.state["steps"][0] ** 2
        return self.state["steps"][0] / BATCHES


def test_all_batches_of_all_epochs_are_learned_and_noted():
    counter = Counter(loss=lambda epoch, number: epoch + number).run(epochs=3)
    assert counter.seen == KEYS[: 3 * BATCHES]
    assert [list(record) for record in counter.history] == [["epoch", "loss", "seconds"]] * 3
    assert [record["epoch"] for record in counter.history] == [1, 2, 3]
    mean = (0 * 2 + 1 * 2 + 2 * 2 + 3 * 1) / 7  # over groups, of which the last batch has one
    assert [record["loss"] for record in counter.history] == pytest.approx([mean, 1 + mean, 2 + mean])
    assert counter.epochs == 3


@pytest.mark.parametrize(
    ("measure", "values", "best"),
    [
        ("nDCG@10", (0, 0.1, 0.5, 0.5, 0.3, 0.2), 2),
        ("RankLoss", (0.6, 0.5, 0.3, 0.2, 0.2, 0.4), 3),
        ("AP", (0, 0, 1, 2, 3, 4), 5),
        ("nDCG@10", (0.5, 0.1, 0.5, 0.3, 0.2, 0.1), 0),
    ],
)
def test_the_first_of_the_best_epochs_is_kept(measure, values, best):
    counter = Counter(*values).run(patience=None, dev_measure=measure)
    assert [record[f"dev {measure}"] for record in counter.history] == list(values)
    assert counter.history[0] == {"epoch": 0, "loss": None, "seconds": 0.0, f"dev {measure}": values[0]}
    assert list(counter.history[1]) == list(counter.history[0])
    assert counter.epochs == best


@pytest.mark.parametrize(("patience", "epochs"), [(1, 3), (2, 4), (3, 7), (None, 7)])
def test_it_stops_after_so_many_epochs_without_a_better_measure(patience, epochs):
    for start in (0.0, 0.9):  # even the best start is no reason to stop
        counter = Counter(start, 0.1, 0.5, 0.4, 0.5, 0.6, 0.5, 0.4).run(epochs=7, patience=patience)
        assert counter.history[-1]["epoch"] == epochs


def test_an_interrupt_leaves_the_best_state_so_far():
    during_learning = Counter(0.2, 0.3, 0.5, 0.4, stop=(3, 2))
    during_evaluation = Counter(0.2, 0.3, 0.5, 0.4, KeyboardInterrupt())
    for counter in (during_learning, during_evaluation):
        with pytest.raises(KeyboardInterrupt):
            counter.run()
        assert [record["dev nDCG@10"] for record in counter.history] == [0.2, 0.3, 0.5, 0.4]
        assert counter.epochs == 2
    without_dev = Counter(stop=(1, 1))
    with pytest.raises(KeyboardInterrupt):
        without_dev.run()
    assert (without_dev.epochs, len(without_dev.history)) == (1, 1)
    at_once = Counter(stop=(0, 1))
    with pytest.raises(KeyboardInterrupt):
        at_once.run()
    assert at_once.history == []


def test_an_interrupt_while_the_best_state_is_copied(monkeypatch):
    copy, calls = np.copyto, count()

    def interrupted(target, source):
        copy(target, source)
        if next(calls) == 2:  # the first of two arrays after the second epoch
            raise KeyboardInterrupt

    monkeypatch.setattr("pt_neural.training.run.np.copyto", interrupted)
    counter = Counter(0.2, 0.3, 0.5)
    with pytest.raises(KeyboardInterrupt):
        counter.run()
    assert counter.epochs == 2


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_is_said_with_advice(value):
    counter = Counter(loss=lambda epoch, number: value if (epoch, number) == (1, 2) else 1.0)
    with pytest.raises(FloatingPointError, match=rf"became {value} in epoch 2, batch 3: lower learning_rate \(now 0.1"):
        counter.run()
    counter = Counter()
    counter.state["other"] = np.array([value])
    with pytest.raises(FloatingPointError, match="weights became infinite in epoch 1: lower learning_rate"):
        counter.run()


# Time


@pytest.fixture
def clock(monkeypatch):
    """By the clock that max_time goes by a batch takes 0.15 s, and nothing else takes any."""
    now, learn = [0.0], Counter.learn

    def slow(counter, epoch, number):
        now[0] += 0.15
        return learn(counter, epoch, number)

    monkeypatch.setattr(Counter, "learn", slow)
    monkeypatch.setattr("pt_neural.training.run.monotonic", lambda: now[0])


@pytest.mark.usefixtures("clock")
def test_max_time_ends_within_an_epoch_that_is_none_to_go_on_from(tmp_path):
    """An epoch takes 0.6 s: the second is cut short, and is the first of the next run, which has all of the time."""
    lengths = []
    for _ in range(2):
        counter = Counter().run(max_time="00:00:00:01", checkpoint_dir=tmp_path, epochs=9)
        lengths.append((len(counter.history), counter.epochs))
    assert lengths == [(2, 1.75), (3, 2.75)]
    rest = Counter().run(checkpoint_dir=tmp_path, epochs=5)
    assert rest.seen == KEYS[2 * BATCHES : 5 * BATCHES]
    assert rest.epochs == 5
    assert len(Counter().run(max_time="00:00:00:00").seen) == 1


@pytest.mark.usefixtures("clock")
def test_an_epoch_that_was_cut_short_is_only_the_best_where_it_is(tmp_path):
    settings = {"checkpoint_dir": tmp_path, "patience": 9}
    cut = Counter(0.1, 0.5, 0.9).run(max_time="00:00:00:01", **settings)
    assert cut.epochs == 1.75
    again = Counter(0.4, 0.3, 0.2, 0.1).run(**settings)
    assert [record["dev nDCG@10"] for record in again.history] == [0.1, 0.5, 0.4, 0.3, 0.2, 0.1]
    assert again.epochs == 1


# Checkpoints


@pytest.mark.parametrize("stop", [{"stop": (3, 2)}, {}])
def test_an_interrupted_run_goes_on_as_if_nothing_had_happened(tmp_path, stop):
    values = (0.2, 0.3, 0.5, 0.4, 0.3, 0.2)
    settings = {"checkpoint_dir": tmp_path / "run", "patience": None}
    first = Counter(*values[:4], KeyboardInterrupt(), **stop)
    with pytest.raises(KeyboardInterrupt):
        first.run(**settings)
    resumed, whole = Counter(*values[4:]), Counter(*values)
    resumed.run(**settings)
    whole.run(patience=None)
    assert resumed.seen == KEYS[3 * BATCHES : 5 * BATCHES]
    assert resumed.epochs == whole.epochs == 2
    without_time = [{**record, "seconds": 0} for record in resumed.history]
    assert without_time == [{**record, "seconds": 0} for record in whole.history]
    names = {"run.json", "epoch-2", "epoch-5"}  # the best and the last
    assert {path.name for path in (tmp_path / "run").iterdir()} == names


def test_patience_and_epochs_may_differ_in_the_next_run(tmp_path, capsys):
    settings = {"checkpoint_dir": tmp_path, "verbose": True}
    Counter(0.1, 0.5, 0.4).run(patience=1, epochs=9, **settings)
    assert capsys.readouterr().out == ""
    finished = Counter().run(patience=1, epochs=9, **settings)
    assert capsys.readouterr().out == f"finished after epoch 2 of {tmp_path}\n"
    assert (finished.seen, finished.epochs, len(finished.history)) == ([], 1, 3)
    longer = Counter(0.3, 0.2).run(patience=3, epochs=9, **settings)
    assert capsys.readouterr().out == f"resuming after epoch 2 of {tmp_path}\n"
    assert (len(longer.history), longer.epochs) == (5, 1)
    with pytest.raises(ValueError, match=r"checkpoints of 4 epochs, more than epochs=3: ask for 4 or more"):
        Counter().run(patience=3, epochs=3, **settings)


def test_checkpoints_of_another_run_and_other_files_are_left_alone(tmp_path):
    directory = tmp_path / "run"
    Counter().run(checkpoint_dir=directory)
    before = {path: path.read_bytes() for path in directory.rglob("*.*")}
    other = Counter()
    other.state["more"] = np.zeros(1)
    for counter, changed in ((Counter(), {"learning_rate": 0.2}), (other, {}), (Counter(0.5), {"patience": 1})):
        with pytest.raises(ValueError, match="run holds checkpoints of another run"):
            counter.run(checkpoint_dir=directory, **changed)
    assert before == {path: path.read_bytes() for path in directory.rglob("*.*")}
    (tmp_path / "thesis.tex").write_text("...")
    with pytest.raises(ValueError, match="other files than checkpoints"):
        Counter().run(checkpoint_dir=tmp_path)
    with pytest.raises(ValueError, match=r"thesis\.tex is a file; name a directory"):
        Counter().run(checkpoint_dir=tmp_path / "thesis.tex")


@pytest.mark.parametrize("damage", ["truncated", "pickle", "missing"])
def test_damaged_checkpoints_are_named_and_nothing_is_unpickled(tmp_path, damage):
    directory, trace = tmp_path / "run", tmp_path / "trace"
    settings = {"checkpoint_dir": directory, "epochs": 2, "patience": 5}
    Counter(0.1, 0.5, 0.4).run(**settings)
    names = ["run.json", "epoch-2/state.safetensors", "epoch-2/history.json", "epoch-1/state.safetensors"]
    for name in names[damage == "missing" :]:  # without run.json there are other files than checkpoints
        damaged = directory / name
        whole = damaged.read_bytes()
        if damage == "truncated":
            damaged.write_bytes(whole[:-3])
        elif damage == "pickle":
            damaged.write_bytes(b"cpathlib\nPath.touch\n(cpathlib\nPath\n(V" + str(trace).encode() + b"\ntRtR.")
        else:
            damaged.unlink()
        with pytest.raises(ValueError, match=f"{damaged.name} is (damaged|missing)"):
            Counter().run(**settings)
        assert not trace.exists()
        damaged.write_bytes(whole)
    assert Counter().run(**settings).epochs == 1


def test_states_of_other_shapes_are_no_checkpoints(tmp_path):
    Counter().run(checkpoint_dir=tmp_path, epochs=1)
    from pt_neural._files import write_tensors

    write_tensors(tmp_path / "epoch-1" / "state.safetensors", {"steps": np.zeros(1, dtype="f4"), "square": np.eye(1)})
    with pytest.raises(ValueError, match=r"its steps is not of shape \(2,\); delete .* to begin anew"):
        Counter().run(checkpoint_dir=tmp_path)
    (tmp_path / "epoch-1" / "history.json").write_text(json.dumps([{}, {}]))
    with pytest.raises(ValueError, match=r"history\.json is damaged: not the records of 1 epochs"):
        Counter().run(checkpoint_dir=tmp_path)


def test_checkpoints_are_whole_or_not_there(tmp_path, monkeypatch):
    from pt_neural.training import run

    write, calls = run.write_tensors, count()

    def failing(path, arrays):
        if next(calls) == 2:
            Path(path).write_bytes(b"half")
            raise OSError("the disk is full")
        write(path, arrays)

    monkeypatch.setattr(run, "write_tensors", failing)
    with pytest.raises(OSError, match="disk is full"):
        Counter().run(checkpoint_dir=tmp_path)
    resumed = Counter().run(checkpoint_dir=tmp_path)
    assert (len(resumed.seen), resumed.epochs, len(resumed.history)) == (3 * BATCHES, 5, 5)


# What is shown


def test_one_line_an_epoch(capfd):
    counter = Counter(0.0, 0.25, 0.5, 0.125).run(epochs=3, verbose=True)
    out, err = capfd.readouterr()
    assert out == ""
    lines = [line.split("\r")[-1] for line in err.strip().split("\n")]
    assert len(lines) == 3
    for line, record in zip(lines, counter.history[1:], strict=True):
        assert line.startswith(f"Epoch {record['epoch']}/3: 100%|")
        assert f"loss {record['loss']:.4f}, dev nDCG@10 {record['dev nDCG@10']:.4f}]" in line
    with pytest.raises(ZeroDivisionError):
        Counter(0.0, ZeroDivisionError()).run(verbose=True)
    assert capfd.readouterr().err.endswith("\n")


def test_silence(tmp_path, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for epochs in (3, 4):
            Counter(*range(9)).run(max_time="00:01:00:00", checkpoint_dir=tmp_path, epochs=epochs)
    assert capfd.readouterr() == ("", "")


# Iterations


def test_iterations_are_noted_with_their_own_seconds_and_shown(monkeypatch, capsys):
    clock = iter([0.0, 1.0, 5.0, 7.5, 9.0, 9.25])  # 4 seconds and 1.5 pass outside
    monkeypatch.setattr("pt_neural.training.run.perf_counter", lambda: next(clock))
    steps = [Iteration(number, {"likelihood": -number}, f"at {number}", object()) for number in (0, 1, 3)]
    history, passed = [], []
    for step in run_iterations(steps, history, total=3, desc="learning", verbose=True):
        passed.append(step)
        if step.number == 3:
            break
    assert passed == steps
    assert [record["seconds"] for record in history] == [1.0, 2.5, 0.25]
    assert [(record["iteration"], record["likelihood"]) for record in history] == [(0, 0), (1, -1), (3, -3)]
    shown = capsys.readouterr().err
    assert "learning" in shown
    assert "at 3" in shown
    monkeypatch.undo()
    assert len(list(run_iterations(steps, history, total=3, desc="learning", verbose=False))) == 3
    assert capsys.readouterr().err == ""
