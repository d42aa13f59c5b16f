"""Dropout that draws one byte a unit: torch draws a float, which takes longer than the layers around it."""

import torch
from torch import Tensor, nn


class ByteDropout(nn.Module):
    """Sets units to zero at random in training, and scales the others so that the mean stays.

    Args:
        share: Share of units that is dropped, rounded to a 256th.
    """

    def __init__(self, share: float):
        super().__init__()
        self.dropped = min(255, round(256 * share))

    def forward(self, units: Tensor) -> Tensor:
        """Drop some of the units."""
        if not self.training or not self.dropped:
            return units
        words = torch.empty(-(-units.numel() // 8), dtype=torch.int64, device=units.device).random_(-(2**63), None)
        kept = words.view(torch.uint8)[: units.numel()].view(units.shape) >= self.dropped
        return units * kept.to(units.dtype).mul_(256 / (256 - self.dropped))
