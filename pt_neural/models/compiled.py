"""Loops that are compiled."""

from collections.abc import Callable

from numba import njit

# Sums may be taken in any order, as vector instructions do; what is not a number must stay so, to be noticed.
_MATH = {"reassoc", "contract", "nsz", "arcp"}


def compiled(function: Callable) -> Callable:
    """Compile a function when it is first called, and keep the result on disk where there is a place for it.

    It must call no compiled function of another file: a change there would not reach what is kept of it.
    """
    options = {"nogil": True, "fastmath": _MATH, "error_model": "numpy"}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # neither the package nor the user's cache can be written to
        return njit(**options)(function)
