"""The network of DRMM: from histograms to scores."""

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pt_neural.rankers.histograms import HistogramInputs

Histogram = Literal["log-count", "count", "normalised"]
FIRST_IDF_WEIGHT = 1.0


class DRMMNetwork(nn.Module):
    """One feed-forward network for all query terms, and a gate that weighs them (Guo et al. 2016).

    Args:
        bins: Bins of a histogram.
        hidden: Units of the hidden layer.
        features: Inputs of the gate for each term: 1 for its idf, or as many as its vector has.
        histogram: What the counts of a histogram become.
    """

    def __init__(self, bins: int, hidden: int, features: int, histogram: Histogram):
        super().__init__()
        self.histogram = histogram
        self.dense = nn.Linear(bins, hidden)
        self.output = nn.Linear(hidden, 1)
        self.gate = nn.Linear(features, 1, bias=False)
        nn.init.constant_(self.gate.weight, FIRST_IDF_WEIGHT if features == 1 else 0.0)

    def forward(self, inputs: HistogramInputs) -> Tensor:
        """Scores between -1 and 1, of the shape of the pairs: the sum of gate times tanh over the query's terms."""
        return (self.log_gates(inputs).exp() * torch.tanh(self.term_outputs(inputs.counts))).sum(-1)

    def scores(self, inputs: HistogramInputs) -> Tensor:
        """``atanh`` of what :meth:`forward` gives, computed without it, so that it does not tie where tanh is flat.

        For a query of one term this is the output before its tanh.

        Returns:
            float64 of the shape of the pairs.
        """
        # 1 + tanh(a) = 2 sigmoid(2a), 1 - tanh(a) = 2 sigmoid(-2a), and the gates of a query sum to 1.
        outputs, gates = self.term_outputs(inputs.counts).double(), self.log_gates(inputs).double()
        nearness, distance = gates + F.logsigmoid(2 * outputs), gates + F.logsigmoid(-2 * outputs)
        return (nearness.logsumexp(-1) - distance.logsumexp(-1)) / 2

    def term_outputs(self, counts: Tensor) -> Tensor:
        """The output of each term before its tanh, shape (*pairs, terms)."""
        return self.output(torch.tanh(self.dense(self.transformed(counts)))).squeeze(-1)

    def transformed(self, counts: Tensor) -> Tensor:
        """Counts as the network takes them, float32 of the same shape."""
        counts = counts.to(self.dense.weight.dtype)
        if self.histogram == "log-count":
            return torch.log1p(counts) / math.log(10)
        if self.histogram == "normalised":
            return counts / counts.sum(-1, keepdim=True).clamp(min=1)
        return counts

    def log_gates(self, inputs: HistogramInputs) -> Tensor:
        """Logarithms of the gates of each pair's terms, shape (*pairs, terms); -inf where a query has fewer terms.

        A query without terms is weighed as if it had one, whose histogram is empty.
        """
        weights = self.gate(inputs.gates).squeeze(-1)
        places = torch.arange(weights.shape[1], device=weights.device)
        absent = places >= inputs.lengths.clamp(min=1)[:, None]
        return weights.masked_fill(absent, -torch.inf).log_softmax(-1)[inputs.queries]
