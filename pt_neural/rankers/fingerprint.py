"""What tells one fitted model from another."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np


def fingerprint(settings: Any, arrays: Mapping[str, np.ndarray], *parts: bytes) -> str:
    """A string that differs where anything differs that a model is made of.

    Args:
        settings: What JSON can hold.
        arrays: Weights by name, of any shapes and dtypes; about a second for each gigabyte.
        *parts: All else, such as a vocabulary.

    Returns:
        64 hexadecimal digits.

    Example::

        >>> fingerprint({"dim": 2}, {"weight": np.zeros((3, 2))})[:8]
        'b7473b7e'
    """
    total = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        total.update(f"{name} {array.dtype} {array.shape}".encode())
        total.update(np.ascontiguousarray(array))
    for part in parts:
        total.update(f"{len(part)} bytes".encode())
        total.update(part)
    return total.hexdigest()
