"""Memory that is freed and soon asked for again."""

import ctypes
import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Of glibc's mallopt: its parameters, and what the first two are worth before and after.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_LARGEST, _USUAL = (2**31 - 1, 2**30), (2**26, 2**25)

_lock, _holders = threading.Lock(), 0


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Keep the memory that is freed within the block for what is asked for next.

    The C library of Linux otherwise gives blocks of more than 32 MB back at once, and the system has to map and clear
    every page of the next one: a third of the time of networks whose tensors are that large. The block holds for the
    whole process; it may be entered by several threads. Elsewhere it does nothing.
    """
    global _holders
    library = _c_library()
    if library is None:
        yield
        return
    with _lock:
        _holders += 1
        _set(library, _LARGEST)
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if not _holders:
                _set(library, _USUAL)
                library.malloc_trim(0)


@functools.cache
def _c_library() -> Any:
    """The C library if it is that of Linux, else None."""
    try:
        library = ctypes.CDLL(None)
        return library if library.mallopt and library.malloc_trim else None
    except (AttributeError, OSError, TypeError):
        return None


def _set(library: Any, thresholds: tuple[int, int]) -> None:
    for parameter, value in zip((_TRIM_THRESHOLD, _MMAP_THRESHOLD), thresholds, strict=True):
        library.mallopt(parameter, value)
