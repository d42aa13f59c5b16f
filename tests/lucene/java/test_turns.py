import os
import signal
import threading
import time

import pytest

from pt_neural.lucene.java.turns import Turns


def waiting(turns, number):
    while len(turns._waiting) < number:
        time.sleep(0.001)


def test_threads_get_their_turns_in_the_order_in_which_they_came():
    turns, seen, threads = Turns(), [], []

    def work(name):
        for _ in range(3):
            with turns, turns:
                seen.append(name)
                assert turns.depth == 2

    with turns:
        for i, name in enumerate("abc"):
            threads.append(threading.Thread(target=work, args=(name,)))
            threads[-1].start()
            waiting(turns, i + 1)
    for thread in threads:
        thread.join()
    assert seen[:3] == ["a", "b", "c"]
    assert sorted(seen) == sorted("abc" * 3)
    assert (turns._owner, turns.depth, len(turns._waiting)) == (None, 0, 0)


def test_a_thread_that_asks_again_comes_after_those_that_wait():
    turns, seen, stop = Turns(), [], threading.Event()

    def busy():
        while not stop.is_set():
            with turns:
                seen.append("busy")
                time.sleep(0.001)

    thread = threading.Thread(target=busy)
    thread.start()
    for _ in range(20):
        with turns:
            seen.append("own")
    stop.set()
    thread.join()
    assert "own busy busy busy own" not in " ".join(seen)


def test_ctrl_c_leaves_the_queue():
    turns, held, leave = Turns(), threading.Event(), threading.Event()

    def hold():
        with turns:
            held.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt), turns:
        pass
    assert len(turns._waiting) == 0
    leave.set()
    thread.join()
    with turns:
        assert turns.depth == 1


def test_errors_pass_the_turn_on():
    turns = Turns()
    with pytest.raises(ZeroDivisionError), turns, turns:
        raise ZeroDivisionError
    assert (turns._owner, turns.depth) == (None, 0)
