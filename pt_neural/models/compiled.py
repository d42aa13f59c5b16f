"""Loops that are compiled."""

from collections.abc import Callable

import numpy as np
from numba import njit
from scipy.sparse import csr_array

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


def loop_arrays(matrix: csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A sparse matrix as compiled loops take it, copied only where its numbers are of other kinds.

    Returns:
        Where each row starts, int64 of shape ``(rows + 1,)``; the columns of all entries, int32; their values.
    """
    return matrix.indptr.astype(np.int64, copy=False), matrix.indices.astype(np.int32, copy=False), matrix.data
