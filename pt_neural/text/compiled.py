"""Compiled loops over the terms of texts."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.sparse import csr_array

# Sums may be taken in any order, as vector instructions take them; but NaN must stay NaN, to be noticed.
_MATH = {"reassoc", "contract", "nsz", "arcp"}


def compiled(function: Callable, *, exact: bool = False) -> Callable:
    """Compile a function when it is first called, and keep the result on disk where possible.

    With ``exact``, sums are taken in the order given, and rounded as NumPy rounds them. The function must not call
    compiled functions of other files: a change there would not reach the result on disk.
    """
    options = {"nogil": True, "fastmath": set() if exact else _MATH, "error_model": "numpy"}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # neither the package nor the user's cache can be written to
        return njit(**options)(function)


class Rows(NamedTuple):
    """Sparse rows of texts as compiled loops read them."""

    starts: np.ndarray  # where each text starts, int64 of shape (texts + 1,)
    terms: np.ndarray  # terms of all texts, int32
    weights: np.ndarray  # their weights


def loop_arrays(matrix: csr_array) -> Rows:
    """The rows of a sparse matrix, copied only where the integers are of other types."""
    return Rows(matrix.indptr.astype(np.int64, copy=False), matrix.indices.astype(np.int32, copy=False), matrix.data)
