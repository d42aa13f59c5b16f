"""What is said of a training after its end."""

import pytest

from pt_neural.training import Training
from pt_neural.training.report import FitClock, Outcome, Report

TRAINING = Training(dev_measure="nDCG@10")
RANK_LOSS = Training(dev_measure="RankLoss")


def records(*values, name="nDCG@10"):
    return [{"epoch": epoch, f"dev {name}": value} for epoch, value in enumerate(values)]


@pytest.mark.parametrize(
    ("history", "training", "line"),
    [
        (
            records(0.3, 0.4, 0.5, 0.45),
            TRAINING,
            "epoch 2 of 3 was the best: dev nDCG@10 0.5000, before training 0.3000",
        ),
        (
            records(0.3, 0.4, 0.25),
            TRAINING,
            "epoch 1 of 2 was the best: dev nDCG@10 0.4000, before training 0.3000; training ended below its start, "
            "at 0.2500",
        ),
        (
            records(0.3, 0.1, 0.2),
            TRAINING,
            "none of 2 epochs was better than the start, so its weights were kept: dev nDCG@10 0.3000, after the last "
            "epoch 0.2000",
        ),
        (
            records(0.3, 0.1, 0.2, name="RankLoss"),
            RANK_LOSS,
            "epoch 1 of 2 was the best: dev RankLoss 0.1000, before training 0.3000",
        ),
        (
            records(0.1, 0.3) + records(0.2, 0.4, 0.3),  # two stages
            TRAINING,
            "epoch 1 of 2 was the best: dev nDCG@10 0.4000, before training 0.1000",
        ),
    ],
)
def test_the_outcome_is_compared_with_the_start(history, training, line):
    assert str(Outcome.of(history, training)) == line


def test_without_dev_there_is_no_outcome():
    assert Outcome.of([{"epoch": 1, "loss": 0.5}], TRAINING) is None
    assert Outcome.of([], TRAINING) is None


def test_where_the_time_went(monkeypatch, capsys):
    seconds = iter([0.0, 2.0, 5.0, 6.5, 12.0])
    monkeypatch.setattr("pt_neural.training.report.perf_counter", lambda: next(seconds))
    clock = FitClock()
    clock.prepared()
    assert clock.timed(lambda value: value + 1)(2) == 3
    report = Report(3, 5, 10, "random", recipe="few")
    assert str(report) == "training on 5 groups of 3 queries with random negatives, 10 documents, recipe 'few'"
    report = report.concluded(records(0.1, 0.2), Training(dev_measure="nDCG@10"), clock)
    assert report.seconds == {"preparation": 2.0, "training": 8.5, "dev evaluation": 1.5}
    line = "epoch 1 of 1 was the best: dev nDCG@10 0.2000, before training 0.1000; 2.0 s of preparation, 8.5 s of "
    assert capsys.readouterr().out == f"{line}training, 1.5 s of dev evaluation\n"
    assert str(report) == f"{report.data()}; {report.result()}"
