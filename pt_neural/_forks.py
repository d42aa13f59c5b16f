"""Forked processes: torch's threads stay behind in the parent, and who waits for them in a child waits forever."""

import os
import sys
import warnings

_with_torch = False  # this process was forked from one that had loaded torch


def _note_torch() -> None:
    global _with_torch
    _with_torch = "torch" in sys.modules


def without_lost_threads() -> None:
    """Before torch computes: in a child forked from a process with torch, let it use one thread, and say so.

    A child cannot know whether torch's threads have run in its parent, so it never counts on them. Java, which does
    not survive a fork at all, refuses to run in a child; torch gives the same results with one thread, so it runs.
    """
    global _with_torch
    if _with_torch:
        import torch

        _with_torch = False
        if torch.get_num_threads() > 1:
            torch.set_num_threads(1)
            warnings.warn(
                "this process was forked from one that uses torch, whose threads do not survive a fork; it computes "
                "with one thread. Use threads, joblib's default backend (loky) or "
                "multiprocessing.get_context('spawn') to have more",
                RuntimeWarning,
                stacklevel=2,
            )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_torch)
