import contextlib
import json
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from lightning.pytorch import Trainer

from pt_neural.training import loop
from pt_neural.training.lightning import GroupTraining
from pt_neural.training.sampling import GroupBatches

OPTIMISERS = ["adam", "adamw", "adagrad", "sgd"]

# Fits a table of conftest.py again and again, each fit being sent a signal in the middle of an epoch.
SIGNALS = """
import json, os, runpy, signal, sys
from pt_neural.training.sampling import GroupBatches

conftest, batch = runpy.run_path(sys.argv[1]), GroupBatches.__getitem__
for name, place, settings in json.loads(sys.argv[2]):
    def ending(batches, key):
        if key == tuple(place):
            os.kill(os.getpid(), getattr(signal, name))
        return batch(batches, key)

    GroupBatches.__getitem__ = ending
    history, dropout = [], settings.pop("dropout", 0.0)
    try:
        conftest["train_table"](conftest["table_training"](**settings), dropout=dropout, history=history)
    except KeyboardInterrupt:
        usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        print("interrupted after", len(history), "epochs, handler", "as before" if usual else "changed", flush=True)
    except SystemExit as end:
        print("ends with", end.code, flush=True)
"""


def weights(network):
    return {name: weight.numpy().copy() for name, weight in network.state_dict().items()}


def assert_equal(first, second):
    for name, weight in weights(first).items():
        np.testing.assert_array_equal(weight, weights(second)[name])


def differ(first, second):
    return any((weight != weights(second)[name]).any() for name, weight in weights(first).items())


@contextlib.contextmanager
def seen_batches(monkeypatch):
    """The (epoch, number) of each batch that is asked for."""
    seen, batch = [], GroupBatches.__getitem__

    def asked(batches, key):
        seen.append(key)
        return batch(batches, key)

    with monkeypatch.context() as patch:
        patch.setattr(GroupBatches, "__getitem__", asked)
        yield seen


class Scripted:
    """A dev measure with values that are given, and the weights at each evaluation."""

    def __init__(self, *values):
        self.values, self.weights = values, []

    def __call__(self, network):
        assert not network.training
        self.weights.append(weights(network))
        return self.values[len(self.weights) - 1]


def test_the_loss_falls(fit_table):
    history = []
    fit_table(epochs=20, history=history)
    assert [record["epoch"] for record in history] == list(range(1, 21))
    assert history[-1]["loss"] < 0.4 * history[0]["loss"]
    assert all(record["seconds"] > 0 for record in history)


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_each_optimiser_takes_the_steps_that_torch_takes(fit_table, optimiser, monkeypatch):
    """One batch an epoch, against a loop of a few lines."""
    history = []
    settings = {"epochs": 3, "batch_size": 16, "learning_rate": 0.05, "weight_decay": 0.01, "gradient_clip": 0.3}
    with monkeypatch.context() as patch:
        batches, batch = [], GroupBatches.__getitem__
        patch.setattr(GroupBatches, "__getitem__", lambda *args: batches.append(batch(*args)) or batches[-1])
        trained = fit_table(optimiser=optimiser, history=history, **settings)
    reference = type(trained)()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        reference = type(trained)()
    kind = {"adam": "Adam", "adamw": "AdamW", "adagrad": "Adagrad", "sgd": "SGD"}[optimiser]
    steps = getattr(torch.optim, kind)(reference.parameters(), lr=0.05, weight_decay=0.01)
    losses = []
    for inputs, _, valid in batches:
        scores = reference(inputs).masked_fill(~valid, -torch.inf)
        loss = torch.nn.functional.cross_entropy(scores, torch.zeros(16, dtype=torch.int64))
        steps.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(reference.parameters(), 0.3)
        steps.step()
        losses.append(loss.item())
    np.testing.assert_allclose([record["loss"] for record in history], losses, rtol=1e-5)
    for name, weight in weights(reference).items():
        np.testing.assert_allclose(weights(trained)[name], weight, rtol=1e-5, atol=1e-7)


def test_the_weights_of_the_best_epoch_are_kept(fit_table):
    measure, history = Scripted(0.0, 0.1, 0.5, 0.5, 0.3, 0.2), []
    network = fit_table(evaluate=measure, history=history, patience=None)
    assert [record["dev nDCG@10"] for record in history] == [0.0, 0.1, 0.5, 0.5, 0.3, 0.2]
    assert list(history[0]) == ["epoch", "loss", "seconds", "dev nDCG@10"]
    for name, weight in weights(network).items():
        np.testing.assert_array_equal(weight, measure.weights[2][name])  # the first of equals
        assert (weight != measure.weights[3][name]).any()
    assert not network.training


def test_the_start_is_epoch_0_and_may_be_the_best(fit_table):
    measure, history = Scripted(0.5, 0.1, 0.2, 0.3, 0.4, 0.3), []
    network = fit_table(evaluate=measure, history=history, patience=1)
    assert [record["epoch"] for record in history] == [0, 1, 2, 3, 4, 5]  # patience is for the epochs of training
    assert history[0] == {"epoch": 0, "loss": None, "seconds": 0.0, "dev nDCG@10": 0.5}
    for name, weight in weights(network).items():
        np.testing.assert_array_equal(weight, measure.weights[0][name])


def test_the_smallest_rank_loss_is_the_best(fit_table):
    measure, history = Scripted(0.6, 0.5, 0.2, 0.2, 0.4, 0.1), []
    network = fit_table(evaluate=measure, history=history, patience=2, dev_measure="RankLoss")
    assert [record["dev RankLoss"] for record in history] == [0.6, 0.5, 0.2, 0.2, 0.4]
    for name, weight in weights(network).items():
        np.testing.assert_array_equal(weight, measure.weights[2][name])


def test_without_dev_the_last_weights_are_kept(fit_table):
    two, three = fit_table(epochs=2), fit_table(epochs=3)
    assert differ(two, three)
    measure = Scripted(0.0, 0.1, 0.2, 0.3)
    assert_equal(three, fit_table(epochs=3, evaluate=measure))


def test_training_stops_after_so_many_epochs_without_a_better_measure(fit_table):
    for values, patience, epochs in [
        ((0.1, 0.5, 0.4, 0.5, 0.6, 0.5), 1, 3),
        ((0.1, 0.5, 0.4, 0.5, 0.6, 0.5), 3, 6),
        ((0.5, 0.4, 0.3), None, 3),
        ((0.0, 0.0, 0.0, 0.0), 2, 3),
    ]:
        history = []
        fit_table(epochs=len(values), patience=patience, evaluate=Scripted(0.0, *values), history=history)
        assert history[-1]["epoch"] == epochs


def test_same_seed_same_weights(fit_table):
    first = fit_table(dropout=0.3, epochs=2)
    assert_equal(first, fit_table(dropout=0.3, epochs=2))
    assert differ(first, fit_table(dropout=0.3, epochs=2, seed=14))


def test_the_random_numbers_of_the_user_stay_as_they_are(fit_table):
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    expected = torch.rand(3), np.random.rand(3)  # noqa: NPY002
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    fit_table(dropout=0.3, epochs=1)
    found = torch.rand(3), np.random.rand(3)  # noqa: NPY002
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.long
def test_signals(fit_table, tmp_path, monkeypatch):
    """Ctrl-C raises Python's exception, SIGTERM is not taken for success, and killed fits resume to the same weights.

    At (4, 3), the very last batch, Lightning no longer looks for signals.
    """
    directories = [str(tmp_path / name) for name in ("terminated", "late", "killed")]
    fits = [
        ("SIGINT", (2, 2), {}),
        ("SIGTERM", (2, 2), {"checkpoint_dir": directories[0]}),
        ("SIGTERM", (4, 3), {"checkpoint_dir": directories[1]}),
        ("SIGKILL", (2, 2), {"checkpoint_dir": directories[2], "dropout": 0.3}),
    ]
    command = [sys.executable, "-c", SIGNALS, Path(__file__).with_name("conftest.py"), json.dumps(fits)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600)
    expected = "interrupted after 2 epochs, handler as before\nends with 143\nends with 143\n"
    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, expected), ended.stderr
    for directory, dropout in zip(directories, (0, 0, 0.3), strict=True):
        history, whole = [], []
        with seen_batches(monkeypatch) as seen:
            resumed = fit_table(dropout=dropout, history=history, checkpoint_dir=directory)
        assert seen[:1] == ([] if "late" in directory else [(2, 0)])
        assert_equal(resumed, fit_table(dropout=dropout, history=whole))
        assert [record["loss"] for record in history] == [record["loss"] for record in whole]
        assert [record["epoch"] for record in history] == [1, 2, 3, 4, 5]


def test_an_interrupt_leaves_the_best_weights_so_far(fit_table):
    measure, history, handler = Scripted(0.2, 0.3, 0.5, 0.4), [], signal.getsignal(signal.SIGINT)
    networks = []

    def evaluate(network):
        networks.append(network)
        if len(networks) == 5:
            raise KeyboardInterrupt
        return measure(network)

    with pytest.raises(KeyboardInterrupt):
        fit_table(evaluate=evaluate, history=history)
    assert signal.getsignal(signal.SIGINT) is handler
    assert [record["dev nDCG@10"] for record in history] == [0.2, 0.3, 0.5, 0.4]
    for name, weight in weights(networks[0]).items():
        np.testing.assert_array_equal(weight, measure.weights[2][name])


class BrokenError(Exception):
    pass


def fail_at(fit_table, epoch, **settings):
    """A fit that fails while the epoch is evaluated; the start has 0, and its epochs 1, 1/2, 1/3."""
    calls = []

    def evaluate(network):
        calls.append(network)
        epochs = len(calls) - 1
        if epochs == epoch:
            raise BrokenError
        return 1 / epochs if epochs else 0.0

    with pytest.raises(BrokenError):
        fit_table(evaluate=evaluate, **settings)


@pytest.mark.parametrize("optimiser", ["adam", "adagrad"])
def test_a_fit_that_failed_goes_on_to_the_same_weights(fit_table, tmp_path, optimiser):
    settings = {"optimiser": optimiser, "dropout": 0.3, "patience": None}
    fail_at(fit_table, 3, checkpoint_dir=tmp_path, **settings)
    measure, whole = Scripted(0.9, 0.8, 0.7), Scripted(0, 1, 0.5, 0.9, 0.8, 0.7)
    history = []
    resumed = fit_table(evaluate=measure, checkpoint_dir=tmp_path, history=history, **settings)
    assert_equal(resumed, fit_table(evaluate=whole, **settings))
    assert [record["dev nDCG@10"] for record in history] == [0, 1, 0.5, 0.9, 0.8, 0.7]
    for name, weight in measure.weights[-1].items():
        np.testing.assert_array_equal(weight, whole.weights[-1][name])


def test_patience_counts_on_after_an_interruption(fit_table, tmp_path):
    fail_at(fit_table, 3, checkpoint_dir=tmp_path, patience=2)  # 1, 0.5, interrupted
    history = []
    fit_table(evaluate=Scripted(0.4), checkpoint_dir=tmp_path, patience=2, history=history)
    assert [record["epoch"] for record in history] == [0, 1, 2, 3]


def test_it_is_said_where_a_fit_goes_on(fit_table, tmp_path, capfd):
    fail_at(fit_table, 3, checkpoint_dir=tmp_path, verbose=True)
    assert capfd.readouterr().out == ""
    fit_table(evaluate=Scripted(0.3, 0.2), epochs=4, checkpoint_dir=tmp_path, verbose=True, patience=2)
    assert capfd.readouterr().out == f"resuming after epoch 2 of {tmp_path}\n"
    for settings in ({"epochs": 3}, {"epochs": 9, "patience": 2}):
        fit_table(evaluate=Scripted(), checkpoint_dir=tmp_path, verbose=True, **settings)
        assert capfd.readouterr().out == f"finished after epoch 3 of {tmp_path}\n"


def test_fewer_epochs_than_were_done_are_refused(fit_table, tmp_path):
    fit_table(epochs=3, checkpoint_dir=tmp_path)
    with pytest.raises(ValueError, match=r"checkpoints of 3 epochs, more than epochs=2: ask for 3 or more"):
        fit_table(epochs=2, checkpoint_dir=tmp_path)
    fit_table(epochs=3, checkpoint_dir=tmp_path)


def test_more_epochs_go_on_where_fewer_ended(fit_table, tmp_path, monkeypatch):
    fit_table(epochs=2, checkpoint_dir=tmp_path, dropout=0.3)
    history = []
    with seen_batches(monkeypatch) as seen:
        longer = fit_table(epochs=5, checkpoint_dir=tmp_path, dropout=0.3, history=history)
    assert (seen[0], len(seen), len(history)) == ((2, 0), 12, 5)
    assert_equal(longer, fit_table(epochs=5, dropout=0.3))


@pytest.mark.parametrize("stopped_early", [False, True])
def test_a_finished_fit_is_not_repeated(fit_table, tmp_path, monkeypatch, stopped_early):
    settings = {"checkpoint_dir": tmp_path, "patience": 2 if stopped_early else 4}
    first_history, history = [], []
    first = fit_table(evaluate=Scripted(0.1, 0.5, 0.9, 0.4, 0.3, 0.2), history=first_history, **settings)
    assert first_history[-1]["epoch"] == (4 if stopped_early else 5)
    with seen_batches(monkeypatch) as seen:
        second = fit_table(evaluate=Scripted(), history=history, **settings)
    assert not seen
    assert history == first_history
    assert_equal(first, second)


def test_another_patience_goes_on_where_the_first_ended(fit_table, tmp_path):
    fit_table(epochs=9, patience=1, checkpoint_dir=tmp_path, evaluate=Scripted(0.6, 0.5, 0.4))
    history = []
    fit_table(epochs=9, patience=3, checkpoint_dir=tmp_path, evaluate=Scripted(0.3, 0.2), history=history)
    assert [record["dev nDCG@10"] for record in history] == [0.6, 0.5, 0.4, 0.3, 0.2]


def test_patience_counts_the_epochs_of_a_run_that_had_none(fit_table, tmp_path, capfd, monkeypatch):
    settings = {"checkpoint_dir": tmp_path, "verbose": True}
    first = fit_table(epochs=4, patience=None, evaluate=Scripted(0.95, 0.9, 0.5, 0.4, 0.3), **settings)
    history = []
    with seen_batches(monkeypatch) as seen:
        second = fit_table(epochs=9, patience=3, evaluate=Scripted(), history=history, **settings)
    assert not seen
    assert capfd.readouterr().out == f"finished after epoch 4 of {tmp_path}\n"
    assert [record["epoch"] for record in history] == [0, 1, 2, 3, 4]
    assert_equal(first, second)
    fit_table(epochs=9, patience=5, evaluate=Scripted(0.2, 0.1), history=history, **settings)
    assert [record["epoch"] for record in history] == [0, 1, 2, 3, 4, 5, 6]


def test_checkpoints_of_another_run_are_refused(fit_table, tmp_path):
    fit_table(epochs=1, checkpoint_dir=tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for changed in (
        {"learning_rate": 0.2},
        {"batch_size": 8},
        {"negatives": "in-batch"},
        {"epochs": 2, "evaluate": Scripted(0.5)},
    ):
        with pytest.raises(ValueError, match="checkpoints of another run"):
            fit_table(**{"epochs": 1, "checkpoint_dir": tmp_path, **changed})
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


def test_a_directory_of_something_else_is_left_alone(fit_table, tmp_path):
    (tmp_path / "thesis.tex").write_text("...")
    with pytest.raises(ValueError, match="other files than checkpoints"):
        fit_table(checkpoint_dir=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(ValueError, match=r"thesis\.tex is a file"):
        fit_table(checkpoint_dir=tmp_path / "thesis.tex")


class Touch:
    """Unpickling it leaves a trace."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_damaged_checkpoint_is_named_and_nothing_is_unpickled(fit_table, tmp_path):
    directory, trace = tmp_path / "run", tmp_path / "trace"
    fit_table(epochs=1, checkpoint_dir=directory)
    torch.save(Touch(trace), tmp_path / "pickle")
    for name in ("last.ckpt", "best-1.pt", "run.json"):
        content = (directory / name).read_bytes()
        for damage in (content[:-30], (tmp_path / "pickle").read_bytes(), b""):
            (directory / name).write_bytes(damage)
            with pytest.raises(ValueError, match=f"{name} is damaged"):
                fit_table(epochs=1, checkpoint_dir=directory)
        (directory / name).write_bytes(content)
    history = []
    (directory / "history.json").write_bytes((tmp_path / "pickle").read_bytes())
    fit_table(epochs=1, checkpoint_dir=directory, history=history)
    assert [record["epoch"] for record in history] == [1]  # from last.ckpt
    assert not trace.exists()


def test_checkpoints_are_whole_or_not_there(fit_table, tmp_path, monkeypatch):
    """A failure while a checkpoint is written leaves the one before."""
    best = []

    def failing_write(path, content):
        best.append(path)
        if len(best) == 2:
            write(path, b"half")
            raise OSError("the disk is full")
        return write(path, content)

    write = Path.write_bytes
    monkeypatch.setattr("pathlib.Path.write_bytes", failing_write)
    with pytest.raises(OSError, match="disk is full"):
        fit_table(checkpoint_dir=tmp_path)
    monkeypatch.undo()
    assert not list(tmp_path.glob("*.tmp"))
    history = []
    resumed = fit_table(checkpoint_dir=tmp_path, history=history)
    assert len(history) == 5
    assert_equal(resumed, fit_table())


def test_nothing_stays_behind_without_a_checkpoint_directory(fit_table, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.chdir(tmp_path)
    fit_table(evaluate=Scripted(0.0, 0.1, 0.2, 0.3, 0.4, 0.5))
    assert [path.name for path in tmp_path.rglob("*")] == ["temporary"]


def test_a_loss_or_weights_that_are_not_finite(fit_table):
    with pytest.raises(FloatingPointError, match=r"epoch 1, batch \d: lower learning_rate \(now 1e\+38\)"):
        fit_table(learning_rate=1e38, optimiser="sgd")
    with pytest.raises(FloatingPointError, match=r"weights became infinite in epoch 1: lower learning_rate"):
        fit_table(learning_rate=1e38, weight_decay=1e10, optimiser="sgd", epochs=1, batch_size=16)


@pytest.fixture
def slow_batches(monkeypatch):
    """By the clock that max_time goes by, a batch takes 0.15 s, and nothing else takes any."""
    now, batch = [0.0], GroupBatches.__getitem__

    def slow(batches, key):
        now[0] += 0.15
        return batch(batches, key)

    monkeypatch.setattr(GroupBatches, "__getitem__", slow)
    monkeypatch.setattr("lightning.pytorch.callbacks.timer.time", SimpleNamespace(monotonic=lambda: now[0]))


@pytest.mark.usefixtures("slow_batches")
def test_max_time_ends_within_an_epoch(fit_table, tmp_path):
    history = []
    fit_table(max_time="00:00:00:01", checkpoint_dir=tmp_path, history=history, epochs=2, batch_size=2)
    assert len(history) == 1
    assert not (tmp_path / "last.ckpt").exists()  # there is no whole epoch to go on from
    resumed = fit_table(checkpoint_dir=tmp_path, history=history, epochs=2, batch_size=2)
    assert [record["epoch"] for record in history] == [1, 2]
    assert_equal(resumed, fit_table(epochs=2, batch_size=2))


@pytest.mark.usefixtures("slow_batches")
def test_a_fit_that_goes_on_has_all_of_max_time(fit_table, tmp_path):
    """An epoch of four batches takes 0.6 s: the second is cut short, and is the first of the next fit."""
    lengths = []
    for _ in range(2):
        history = []
        fit_table(max_time="00:00:00:01", checkpoint_dir=tmp_path, history=history, epochs=20)
        lengths.append(len(history))
    assert lengths == [2, 3]


@pytest.mark.usefixtures("slow_batches")
@pytest.mark.parametrize("epochs", [1, 5])
def test_an_epoch_that_was_cut_short_is_only_the_best_where_it_is(fit_table, tmp_path, epochs):
    """An epoch takes 0.6 s: the second is cut short, and is in no later run, which may ask for fewer epochs."""
    settings = {"checkpoint_dir": tmp_path, "patience": 9}
    cut, history = Scripted(0.1, 0.5, 0.9), []
    first = fit_table(max_time="00:00:00:01", evaluate=cut, history=history, **settings)
    assert [record["dev nDCG@10"] for record in history] == [0.1, 0.5, 0.9]
    for name, weight in weights(first).items():
        np.testing.assert_array_equal(weight, cut.weights[2][name])
    second = fit_table(epochs=epochs, evaluate=Scripted(0.4, 0.3, 0.2, 0.1), history=history, **settings)
    assert [record["dev nDCG@10"] for record in history] == [0.1, 0.5, 0.4, 0.3, 0.2, 0.1][: epochs + 1]
    for name, weight in weights(second).items():
        np.testing.assert_array_equal(weight, cut.weights[1][name])


def test_an_epoch_whose_checkpoint_was_not_written_is_not_the_best(fit_table, tmp_path, monkeypatch):
    """As when a run is killed between its files, and the next one, on other devices, finds another dev measure."""
    calls, save = [], Trainer.save_checkpoint

    def failing_save(trainer, path):
        calls.append(path)
        if len(calls) == 2:
            raise BrokenError
        save(trainer, path)

    monkeypatch.setattr(Trainer, "save_checkpoint", failing_save)
    first, history = Scripted(0.1, 0.5, 0.9), []
    with pytest.raises(BrokenError):
        fit_table(checkpoint_dir=tmp_path, evaluate=first)
    second = fit_table(checkpoint_dir=tmp_path, evaluate=Scripted(0.4, 0.3, 0.2), history=history)
    assert [record["dev nDCG@10"] for record in history] == [0.1, 0.5, 0.4, 0.3, 0.2]
    for name, weight in weights(second).items():
        np.testing.assert_array_equal(weight, first.weights[1][name])
    assert {path.name for path in tmp_path.iterdir()} == {"run.json", "history.json", "last.ckpt", "best-1.pt"}


def test_mixed_precision_is_passed_on(fit_table):
    history = []
    network = fit_table(precision="bf16-mixed", history=history, epochs=6)
    assert history[-1]["loss"] < 0.9 * history[0]["loss"]
    assert next(network.parameters()).dtype == torch.float32
    assert differ(network, fit_table(epochs=6))


@pytest.mark.parametrize("pays", [True, False])
def test_a_trial_chooses_the_precision_and_a_resumed_run_keeps_it(fit_table, tmp_path, monkeypatch, pays):
    trials = []
    monkeypatch.setattr(GroupTraining, "_bf16_pays", lambda self, batch: trials.append(batch) or pays)
    chosen = fit_table(precision="auto", epochs=6)
    assert_equal(chosen, fit_table(precision="bf16-mixed" if pays else "32-true", epochs=6))
    fit_table(precision="auto", epochs=3, checkpoint_dir=tmp_path)
    monkeypatch.setattr(GroupTraining, "_bf16_pays", lambda self, batch: not pays)
    assert_equal(chosen, fit_table(precision="auto", epochs=6, checkpoint_dir=tmp_path))
    assert len(trials) == 2


def test_a_trial_of_precision_changes_nothing(fit_table, monkeypatch):
    tried = []
    pays = GroupTraining._bf16_pays
    monkeypatch.setattr(GroupTraining, "_bf16_pays", lambda self, batch: tried.append(pays(self, batch)) is not None)
    assert_equal(fit_table(precision="auto", dropout=0.5), fit_table(dropout=0.5))
    assert len(tried) == 1


def test_in_a_thread(fit_table):
    found = []
    thread = threading.Thread(target=lambda: found.append(fit_table()))
    thread.start()
    thread.join()
    assert_equal(found[0], fit_table())


def test_silence(fit_table, capfd, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for settings in ({}, {"checkpoint_dir": tmp_path}, {"checkpoint_dir": tmp_path, "epochs": 6}):
            fit_table(evaluate=Scripted(*range(9)), max_time="00:01:00:00", gradient_clip=1.0, **settings)
    assert capfd.readouterr() == ("", "")


def test_one_line_an_epoch(fit_table, capfd):
    history = []
    fit_table(evaluate=Scripted(0.0, 0.25, 0.5, 0.125), epochs=3, verbose=True, history=history)
    out, err = capfd.readouterr()
    assert out == ""
    lines = [line.split("\r")[-1] for line in err.strip().split("\n")]
    assert len(lines) == 3
    for line, record in zip(lines, history[1:], strict=True):
        assert line.startswith(f"Epoch {record['epoch']}/3: 100%|")
        assert f"loss {record['loss']:.4f}, dev nDCG@10 {record['dev nDCG@10']:.4f}]" in line


def test_a_failure_ends_the_line(fit_table, capfd):
    fail_at(fit_table, 1, verbose=True)
    assert capfd.readouterr().err.endswith("\n")


def test_unknown_strategies_and_devices_are_refused_by_lightning(fit_table):
    with pytest.raises(ValueError, match="teamwork"):
        fit_table(strategy="teamwork")


def test_no_gpu_but_cuda_is_taken_unasked(fit_table, monkeypatch):
    """Apple's lacks what DSSM and CLSM are made of before torch 2.10."""
    taken = []
    trainer_for = loop.trainer_for
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("lightning.fabric.accelerators.MPSAccelerator.is_available", lambda: True)
    monkeypatch.setattr(loop, "trainer_for", lambda *args, **kw: taken.append(trainer_for(*args, **kw)) or taken[-1])
    fit_table(device="auto", epochs=1)
    assert type(taken[0].accelerator).__name__ == "CPUAccelerator"


# Fits a table on two devices, then on one, then on two again; the strategy "ddp" runs the script once more.
# In a process of its own, since a fork of one whose threads have computed before may wait for them forever.
SEVERAL_FITS = """
import json, os, runpy, sys
import torch
from pt_neural.training.sampling import GroupBatches

conftest, strategy, place = runpy.run_path(sys.argv[1]), sys.argv[2], os.environ.get("LOCAL_RANK", "0")
seen, batch = [], GroupBatches.__getitem__
GroupBatches.__getitem__ = lambda batches, key: seen.append(key) or batch(batches, key)
two, losses, weights = {"devices": 2, "strategy": strategy}, [], []
for settings in (two, {}, two):
    seen.clear()
    history, values = [], iter((0.0, 0.1, 0.2, 0.3))
    training = conftest["table_training"](epochs=3, **settings)
    table = conftest["train_table"](training, history=history, evaluate=lambda table: next(values))
    numbers = sorted(number for epoch, number in seen if epoch == 0)
    losses.append([record["loss"] for record in history[1:]])
    weights.append(torch.cat([weight.flatten() for weight in table.state_dict().values()]).tolist())
    line = f"{place} {numbers} {len(history)} {torch.distributed.is_initialized()}"
    os.write(1, f"{line}\\n".encode())  # whole, which print does not promise to two processes
if place == "0":
    os.write(1, (json.dumps([losses, weights]) + "\\n").encode())
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="forks after torch has been imported")
@pytest.mark.parametrize("strategy", ["ddp", "ddp_fork"])
def test_devices_share_the_batches_and_a_later_fit_has_those_that_it_asks_for(strategy, tmp_path):
    (tmp_path / "script.py").write_text(SEVERAL_FITS)
    command = [sys.executable, tmp_path / "script.py", Path(__file__).with_name("conftest.py"), strategy]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr
    results, lines = [], []
    for line in ended.stdout.splitlines():
        (results if line.startswith("[") else lines).append(line)
    shared, alone = ("[0, 2]", "[1, 3]"), "[0, 1, 2, 3]"
    if strategy == "ddp":
        expected = [
            f"{place} {batches} 4 True" for place in (0, 1) for batches in (shared[place], alone, shared[place])
        ]
    else:  # the batches of two devices are read in processes that are gone
        expected = [f"0 {batches} 4 False" for batches in ("[]", alone, "[]")]
    assert sorted(lines) == sorted(expected)
    losses, weights = json.loads(results[0])
    assert losses[0] == losses[2]
    assert losses[0][-1] < losses[0][0]
    assert weights[0] == weights[2]
    assert weights[0] != weights[1]
