"""A lock whose threads take turns."""

import threading
from collections import deque
from typing import Self


class Turns:
    """A lock that threads get in the order in which they ask for it; the one that has it may take it again.

    With Python's own locks, a thread that lets go and asks again at once gets the lock before those that wait.
    """

    def __init__(self):
        self._guard = threading.Lock()  # held for a moment, while the two below change
        self._owner: int | None = None
        self._waiting: deque[tuple[int, threading.Lock]] = deque()  # each thread, and what it waits for
        self.depth = 0  # how often the owner has taken it

    def __enter__(self) -> Self:
        thread = threading.get_ident()
        if self._owner != thread:
            self._wait(thread)
        self.depth += 1
        return self

    def _wait(self, thread: int) -> None:
        with self._guard:
            if self._owner is None:
                self._owner = thread
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append((thread, turn))
        try:
            turn.acquire()
        except BaseException:  # Ctrl-C
            with self._guard:
                if self._owner == thread:
                    self._pass_on()
                else:
                    self._waiting.remove((thread, turn))
            raise

    def __exit__(self, *_: object) -> None:
        self.depth -= 1
        if self.depth == 0:
            with self._guard:
                self._pass_on()

    def _pass_on(self) -> None:
        if self._waiting:
            self._owner, turn = self._waiting.popleft()
            turn.release()
        else:
            self._owner = None
