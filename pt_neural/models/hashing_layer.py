"""The layer over letter n-grams that DSSM, CLSM and the Duet share."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pt_neural.rankers.hashed import HashedTexts


class HashingLayer(nn.Module):
    """Projects each distinct word of a batch: the sum of the weight rows of its letter n-grams.

    A dense bag of n-grams is never made, and a word costs its n-grams once, however often it occurs.

    Args:
        num_ngrams: Number of letter n-grams.
        units: Length of a word's projection.
        bound: First weights are drawn evenly from -bound to bound. A text has few of all n-grams, so that the number
            of inputs says little about the right scale.
    """

    def __init__(self, num_ngrams: int, units: int, *, bound: float):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_ngrams, units).uniform_(-bound, bound))

    def forward(self, texts: HashedTexts) -> Tensor:
        """Projections of shape (distinct words, units)."""
        return F.embedding_bag(
            texts.ngrams, self.weight, texts.bags, mode="sum", per_sample_weights=texts.counts, include_last_offset=True
        )
