"""What this machine can do at best."""

import time
from collections.abc import Callable

import torch


def machine_rates() -> tuple[float, float]:
    """Floating-point operations per second of matrix products, and bytes per second read."""
    return gemm_rate(), read_rate()


def print_machine(multiply: float, read: float) -> None:
    """Print these rates."""
    rates = f"GEMM {multiply / 1e9:.0f} GFLOP/s, read {read / 1e9:.0f} GB/s"
    print(f"this machine, {torch.get_num_threads()} threads: {rates}", flush=True)


def gemm_rate(size: int = 2048) -> float:
    """Floating-point operations per second of a float32 matrix product."""
    left, right = torch.randn(size, size), torch.randn(size, size)
    return 2 * size**3 / shortest(lambda: left @ right)


def read_rate(size: int = 2**28) -> float:
    """Bytes per second read from memory."""
    source = torch.ones(size // 4)
    return size / shortest(source.sum)


def shortest(work: Callable[[], object], repeats: int = 7) -> float:
    """The shortest time of the repeats, in seconds."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)
