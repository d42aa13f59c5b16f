"""From the match tensor to one vector a pair: two layers of filters and max pooling (Match-Tensor paper, section 3.3).

The tensor itself is never made. Its channels are products of a query word and a document word, so that a filter over
them is, for one query, a filter over the document's words alone: with the query folded into the filters, the first
layer is a convolution of the document, a third of the arithmetic. Exact matches are few, and are added one by one.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pt_neural.models.shifted_products import shifted_products
from pt_neural.rankers.pairs import Matches

WIDTH = 3  # query words that a filter spans
HEIGHTS = (3, 4, 5)  # document words
SHIFTS = max(HEIGHTS)
BEFORE = (SHIFTS - 1) // 2  # document words before the one that a filter stands at


class Tensors(NamedTuple):
    """Groups of pairs of one query and several documents, of which the match tensors are products.

    Attributes:
        queries: Words of each query, float32 of shape (groups, most words, channels).
        query_lengths: Words of each query, int64.
        rows: Words of the documents, one after the other, float32 of shape (rows, channels).
        starts: Where the documents of each group start in ``rows``, int64 of shape (groups, documents a group).
        lengths: Their words, likewise.
    """

    queries: Tensor
    query_lengths: Tensor
    rows: Tensor
    starts: Tensor
    lengths: Tensor


class MatchFilters(nn.Module):
    """Filters of 3 query words by 3, 4 and 5 document words over all channels, ReLU, 1 x 1 filters, max pooling.

    Args:
        channels: Channels of products, k; the channel of exact matches is one more.
        filters: Filters of the first layer, a third of them of each height.
        second_filters: Filters of the second layer.
    """

    def __init__(self, channels: int, filters: int, second_filters: int):
        super().__init__()
        self.channels, self.num_filters = channels, filters
        self.alpha = nn.Parameter(torch.ones(()))
        self.first = nn.ParameterList()
        for height in HEIGHTS:
            bound = (WIDTH * height * (channels + 1)) ** -0.5
            weights = torch.empty(filters // len(HEIGHTS), WIDTH, height, channels + 1)
            self.first.append(nn.Parameter(weights.uniform_(-bound, bound)))
        self.first_bias = nn.Parameter(torch.zeros(filters))
        self.second = nn.Linear(filters, second_filters)

    def _weights(self) -> Tensor:
        """The first layer's filters in windows of equal height: (filters, query words, shifts, channels + 1)."""
        padded = []
        for height, weights in zip(HEIGHTS, self.first, strict=True):
            before = BEFORE - (height - 1) // 2
            padded.append(F.pad(weights, (0, 0, before, SHIFTS - height - before)))
        return torch.cat(padded)

    def forward(self, tensors: Tensors, matches: Matches, pooling: str) -> Tensor:
        """Pool the second layer's values of each pair.

        Args:
            tensors: The pairs.
            matches: Their exact matches, pair after pair.
            pooling: ``"per-word"``, over the document's words; ``"global"``, over the query's as well.

        Returns:
            float32 of shape (groups, documents a group, most query words or 1, second filters); zero for query words
            that there are not, and for empty documents.
        """
        values = self._first_layer(tensors, matches)
        return self._pool(values, tensors, pooling)

    def _first_layer(self, tensors: Tensors, matches: Matches) -> Tensor:
        """Before the ReLU: (groups, documents a group, rows a document, most query words, filters).

        A document has as many rows as the longest has words, and those between it and the next.
        """
        groups, per_group = tensors.starts.shape
        words = tensors.queries.shape[1]
        stride = max(1, int(tensors.lengths.max())) + SHIFTS - 1
        weights = self._weights()
        bias = self.first_bias.repeat(words)
        if self.channels:
            rows = self._laid_out(tensors, stride)
            values = shifted_products(rows, self._folded(tensors.queries, weights[..., :-1]))
            values = values.add_(bias).flatten(0, 1)
        else:
            values = bias.repeat(groups * per_group * stride, 1)
        rows, contributions = _reached(matches, groups * per_group, stride, words)
        exact = self._exact(weights[..., -1], words).to(values.dtype)  # of fewer bits in mixed precision
        values = values.index_add_(0, rows, exact[contributions])
        return values.view(groups, per_group, stride, words, self.num_filters)

    def _laid_out(self, tensors: Tensors, stride: int) -> Tensor:
        """The documents of each group, one after the other, with zeros between them: (groups, rows, channels)."""
        groups = len(tensors.starts)
        steps = torch.arange(stride, device=tensors.rows.device) - BEFORE
        there = (steps >= 0) & (steps < tensors.lengths[..., None])
        places = (tensors.starts[..., None] + steps).where(there, 0)
        places, there = (F.pad(part.view(groups, -1), (0, SHIFTS - 1)) for part in (places, there))
        rows = tensors.rows if len(tensors.rows) else tensors.rows.new_zeros(1, self.channels)
        return F.embedding(places, rows).masked_fill_(~there[..., None], 0)

    def _folded(self, queries: Tensor, weights: Tensor) -> Tensor:
        """Filters over a document's words that a query makes: (groups, shifts, channels, words * filters)."""
        groups, words, channels = queries.shape
        windows = F.pad(queries, (0, 0, WIDTH // 2, WIDTH // 2)).unfold(1, WIDTH, 1)  # groups, words, channels, width
        by_channel = windows.permute(2, 0, 1, 3).reshape(channels, groups * words, WIDTH)
        filters = weights.permute(3, 1, 2, 0).reshape(channels, WIDTH, -1)
        folded = torch.bmm(by_channel, filters).view(channels, groups, words, SHIFTS, self.num_filters)
        return folded.permute(1, 3, 0, 2, 4).reshape(groups, SHIFTS, channels, words * self.num_filters)

    def _exact(self, weights: Tensor, words: int) -> Tensor:
        """What an exact match adds around it, by shift and query word: (shifts * words, words * filters)."""
        table = weights.new_zeros(SHIFTS, words, words, self.num_filters)
        for place in range(WIDTH):
            offset = WIDTH // 2 - place  # of the window's middle from the word that matches
            first, last = max(0, -offset), min(words, words - offset)
            at = torch.arange(first, last, device=weights.device)
            table[:, at, at + offset] = weights[:, place].T[:, None].expand(-1, len(at), -1)
        return self.alpha * table.view(SHIFTS * words, -1)

    def _pool(self, values: Tensor, tensors: Tensors, pooling: str) -> Tensor:
        groups, per_group, stride, words, filters = values.shape
        there = torch.arange(stride, device=values.device) < tensors.lengths[..., None]
        with torch.no_grad():
            second = self.second(torch.relu(values)).masked_fill_(~there[..., None, None], -torch.inf)
            largest, winners = second.max(dim=2)  # over the document's words
        if torch.is_grad_enabled():  # what was not largest has no gradient: only winners are computed with one
            first = torch.arange(groups * per_group, device=values.device).view(groups, per_group, 1, 1) * stride
            places = (first + winners) * words + torch.arange(words, device=values.device)[:, None]
            chosen = torch.relu(F.embedding(places, values.view(-1, filters)))
            largest = (chosen * self.second.weight).sum(dim=-1) + self.second.bias
        known = torch.arange(words, device=values.device) < tensors.query_lengths[:, None]
        known = known[:, None, :, None] & (tensors.lengths > 0)[..., None, None]
        if pooling == "global":
            largest = largest.masked_fill(~known, -torch.inf).amax(dim=2, keepdim=True)
            known = known.any(dim=2, keepdim=True)
        return torch.where(known, largest, 0.0)


def _reached(matches: Matches, pairs: int, stride: int, words: int) -> tuple[Tensor, Tensor]:
    """Which values exact matches reach.

    Args:
        matches: Of each pair.
        pairs: Number of pairs.
        stride: Rows a document.
        words: Most words of a query.

    Returns:
        Rows of the first layer's values, and rows of what :meth:`MatchFilters._exact` gives, which are added there.
    """
    bags, device = len(matches.offsets) - 1, matches.offsets.device
    of_match = torch.repeat_interleave(torch.arange(bags, device=device), matches.offsets.diff())
    width = max(1, bags // max(1, pairs))
    shifts = torch.arange(SHIFTS, device=device)
    steps = matches.positions[:, None] + BEFORE - shifts
    rows = (of_match // width * stride)[:, None] + steps
    contributions = shifts * words + (of_match % width)[:, None]
    return rows[steps >= 0], contributions[steps >= 0]
