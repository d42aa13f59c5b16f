"""The CLSM without its max pooling, to see what that does."""

import torch
import torch.nn.functional as F
from torch import Tensor

import pt_neural as pn
from pt_neural.models.clsm.clsm import ConvolutionalTower
from pt_neural.models.clsm.layers import CosineTowers, window_rows
from pt_neural.rankers.readers.hashed_ngrams import HashedNgrams


class SummingTower(ConvolutionalTower):
    """A text as the sum of its windows; with windows of one word, a DSSM whose first layer is this one's."""

    def read(self, projections: Tensor, words: Tensor, offsets: Tensor) -> Tensor:
        """Vectors of texts whose words are projected already."""
        rows = window_rows(words, offsets, self.window, projections.shape[0] // self.window - 1)
        sums = F.embedding_bag(rows.view(-1), projections, offsets[:-1] * self.window, mode="sum")
        return torch.tanh(self.semantic(torch.tanh(sums)))


class SummingCLSM(pn.CLSM):
    """The CLSM with the sum over windows in the place of their maximum (section 3.4)."""

    artifact_format = "clsm-summing"

    def make_network(self, reader: HashedNgrams) -> CosineTowers:
        """Two new towers, or one."""
        return CosineTowers(SummingTower(len(reader.hashing), self.window, self.filters, self.dim), shared=self.shared)
