"""What each number of a match tensor adds to the score of its pair (Match-Tensor paper, sections 3.2 and 3.3).

After the tensor, Match-Tensor has filters, ReLU, maxima and linear layers: the score is piecewise linear in the
tensor. In the piece where a pair lies, the score is a constant, which the biases make, plus each number of the tensor
times the score's derivative by it. These products are the contributions; they leave nothing out.
"""

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pt_neural.models.match_filters import HEIGHTS, WIDTH, MatchFilters
from pt_neural.models.match_tensor_network import MatchTensorNetwork
from pt_neural.rankers.embedded import EmbeddedGroups
from pt_neural.rankers.pairs import Matches


class Pair(NamedTuple):
    """What is compared of one query and one document.

    Attributes:
        tensor: The match tensor, the channel of exact matches last: float32 of shape (query words, document words,
            channels + 1).
        wholes: Products of what query and document have become as wholes, float32 of shape (hidden,); None if the
            network does not compare them.
    """

    tensor: Tensor
    wholes: Tensor | None


class Contributions(NamedTuple):
    """What a score is made of; the sum of all is the score.

    Attributes:
        cells: What each number of the match tensor adds, float64 of shape (query words, document words, channels + 1).
        wholes: What the comparison of query and document as wholes adds.
        biases: What biases add.
    """

    cells: np.ndarray
    wholes: float
    biases: float


def contributions(network: MatchTensorNetwork, inputs: EmbeddedGroups) -> Contributions:
    """Tell what each number of a pair's match tensor adds to its score.

    Args:
        network: The network.
        inputs: One query and one document.
    """
    pair = read_pair(network, inputs)
    tensor = pair.tensor.requires_grad_()
    with torch.enable_grad():
        score = pair_score(network, Pair(tensor, pair.wholes))
        (slopes,) = torch.autograd.grad(score, tensor, materialize_grads=True)
    cells = (slopes * tensor).detach().cpu().numpy().astype(np.float64)
    wholes = float(_of_wholes(network) @ pair.wholes) if network.compares_wholes else 0.0
    return Contributions(cells, wholes, score.item() - cells.sum() - wholes)


@torch.no_grad()
def read_pair(network: MatchTensorNetwork, inputs: EmbeddedGroups) -> Pair:
    """Make the match tensor of one query and one document.

    Args:
        network: The network.
        inputs: One query and one document.
    """
    queries = network.read_queries(inputs.queries)
    rows, _ = network.read_documents(inputs.documents)
    query = queries.words[0, : int(queries.lengths[0])]
    words = len(inputs.documents.words)
    products = query[:, None] * rows[:words, : network.filters.channels]
    exact = network.filters.alpha * _indicators(inputs.matches, len(query), words)
    tensor = torch.cat([products, exact[..., None]], dim=2)
    if not network.compares_wholes:
        return Pair(tensor, None)
    return Pair(tensor, queries.whole[0] * rows[words:].flatten()[: network.shape.hidden])


def _indicators(matches: Matches, query_words: int, words: int) -> Tensor:
    """1 where a query word and a document word are the same, else 0: (query words, document words)."""
    found = torch.zeros(query_words, words, device=matches.positions.device)
    found[torch.repeat_interleave(matches.offsets.diff()), matches.positions] = 1
    return found


def pair_score(network: MatchTensorNetwork, pair: Pair) -> Tensor:
    """The score of a pair before its sigmoid, from its match tensor on, with gradients.

    Args:
        network: The network.
        pair: What is compared.
    """
    per_word = network.shape.pooling == "per-word"
    pooled = pair.tensor.new_zeros(len(pair.tensor) if per_word else 1, network.shape.second_filters)
    if pair.tensor.shape[0] and pair.tensor.shape[1]:
        pooled = _filtered(network.filters, pair.tensor).amax(dim=1)
        pooled = pooled if per_word else pooled.amax(dim=0, keepdim=True)
    return network.score(pooled, pair.wholes)


def _filtered(filters: MatchFilters, tensor: Tensor) -> Tensor:
    """Both layers of filters over a match tensor: (query words, document words, second filters)."""
    channels_first = tensor.movedim(2, 0)
    first = []
    for height, weights in zip(HEIGHTS, filters.first, strict=True):
        before, beside = (height - 1) // 2, WIDTH // 2
        padded = F.pad(channels_first, (before, height - 1 - before, beside, beside))
        first.append(F.conv2d(padded[None], weights.movedim(3, 1))[0])
    values = torch.cat(first).movedim(0, 2) + filters.first_bias
    return filters.second(torch.relu(values))


def _of_wholes(network: MatchTensorNetwork) -> Tensor:
    """Weights of the products of wholes in the score."""
    return network.output.weight[0, -network.shape.hidden :].detach()
