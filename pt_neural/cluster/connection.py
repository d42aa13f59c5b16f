"""The connection to Ray, without which nothing here starts a process."""

import ctypes
import ctypes.util
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

# Java gets these from the processor when it runs into a guarded page, and goes on; without its handlers it dies.
_JAVA_SIGNALS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL")
_SIZE_OF_SIGACTION = 256  # more than any system needs


def connect(address: str | None = None, **options: Any) -> None:
    """Connect this process to Ray; what needs Ray does it by itself, with the defaults, if you have not.

    ``ray.init`` replaces handlers of signals that Java cannot live without, so a process whose Java has started must
    connect by this function.

    Args:
        address: ``"auto"`` for the cluster that ``ray start`` has started on this machine, or another address as
            ``ray.init`` takes it. Default: the cluster that the environment variable ``RAY_ADDRESS`` names or that runs
            on this machine, or else a new one of this machine alone, which ends with the process.
        **options: Other arguments of ``ray.init``. Messages of workers are not shown unless ``log_to_driver=True``;
            their errors are raised here.

    Raises:
        ImportError: If Ray is not installed.
        ConnectionError: If there is no cluster at the address.

    Example::

        pn.cluster.connect("auto")
        fast = pn.on_ray(bm25 >> dssm, workers=8)
    """
    ray = import_ray()
    if ray.is_initialized() and address is None and not options:
        return
    with _handlers_kept():
        ray.init(address, **{"log_to_driver": False, "logging_level": "warning", **options})


def disconnect() -> None:
    """End the connection; a cluster that :func:`connect` started ends with it."""
    ray = import_ray()
    with _handlers_kept():
        ray.shutdown()


def connected_ray() -> ModuleType:
    """Ray, connected with the defaults if it is not yet."""
    connect()
    return import_ray()


def import_ray() -> ModuleType:
    """Ray; ImportError in one line if it is not installed."""
    try:
        import ray
    except ImportError:
        raise ImportError("several machines need Ray: pip install 'pt-neural[ray]'") from None
    return ray


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """Put the handlers of Java's signals back after the block, whoever has set them."""
    name = ctypes.util.find_library("c")
    sigaction = getattr(ctypes.CDLL(name), "sigaction", None) if name else None
    kept = {}
    for number in (getattr(signal, name, None) for name in _JAVA_SIGNALS):
        if sigaction is not None and number is not None:
            kept[number] = ctypes.create_string_buffer(_SIZE_OF_SIGACTION)
            sigaction(number, None, kept[number])
    try:
        yield
    finally:
        for number, action in kept.items():
            sigaction(number, action, None)
