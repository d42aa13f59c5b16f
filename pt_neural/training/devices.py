"""Devices for networks, checked before use."""

import torch

from pt_neural._forks import without_lost_threads


def torch_device(name: str) -> torch.device:
    """The device to score on, if it is available; ``"auto"`` is a CUDA GPU if there is one, else the CPU."""
    without_lost_threads()
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = known_device(name)
    require_available(name, device.type, device.index or 0)
    return device


def accelerator(device: str) -> str:
    """Lightning's accelerator for the setting ``device``: for ``"auto"`` a CUDA GPU or the CPU, as for scoring.

    Lightning might choose Apple's GPU, which has no gradients of embedding bags before torch 2.10.
    """
    return torch_device("auto").type if device == "auto" else device


def known_device(name: str) -> torch.device:
    """The device of that name, available or not; ValueError if torch does not know the name."""
    try:
        return torch.device(name)
    except (RuntimeError, TypeError):
        raise ValueError(f"device must be 'auto', 'cpu', 'cuda' or 'mps', not {name!r:.80}") from None


def require_available(name: str, kind: str, index: int = 0) -> None:
    """Raise ValueError if the device that the user called ``name`` is not available.

    ``kind`` is ``"cuda"``, ``"mps"``, or ``"gpu"`` for either; anything else is left to torch and Lightning.
    """
    without_lost_threads()
    if kind == "cpu":
        return
    cuda = torch.cuda.is_available() and index < torch.cuda.device_count()
    mps = torch.backends.mps.is_available()
    if not {"cuda": cuda, "mps": mps, "gpu": cuda or mps}.get(kind, True):
        raise ValueError(f"device={name!r} is not available here; choose device='cpu', or 'auto' for what is available")
