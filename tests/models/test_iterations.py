from itertools import pairwise

from pt_neural.models.iterations import Iteration, noted


def test_iterations_are_noted_with_their_own_seconds_and_shown(monkeypatch, capsys):
    clock = iter([0.0, 1.0, 5.0, 7.5, 9.0, 9.25])  # 4 seconds and 1.5 pass outside
    monkeypatch.setattr("pt_neural.models.iterations.perf_counter", lambda: next(clock))
    steps = [Iteration(number, {"likelihood": -number}, f"at {number}", object()) for number in (0, 1, 3)]
    history = []
    passed = []
    for step in noted(steps, history, total=3, desc="learning", verbose=True):
        passed.append(step)
        if step.number == 3:
            break
    assert passed == steps
    assert [record["seconds"] for record in history] == [1.0, 2.5, 0.25]
    assert [(record["iteration"], record["likelihood"]) for record in history] == [(0, 0), (1, -1), (3, -3)]
    shown = capsys.readouterr().err
    assert "learning" in shown
    assert "at 3" in shown


def test_nothing_is_shown_unless_asked_for(capsys):
    steps = [Iteration(number, {}, "", number) for number in range(3)]
    history = []
    found = [step.result for step in noted(steps, history, total=2, desc="learning", verbose=False)]
    assert found == [0, 1, 2]
    assert all(after["iteration"] == before["iteration"] + 1 for before, after in pairwise(history))
    assert capsys.readouterr().err == ""
