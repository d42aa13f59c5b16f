"""The network of Match-Tensor and its hybrids with SSM (Jaech et al., 2017, sections 3, 5.4 and 5.5)."""

from typing import Any, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from pt_neural.models.matching.encoders import Encoder, Queries, TextEncoders, max_over_texts
from pt_neural.rankers.readers.embedded_words import EmbeddedGroups, EmbeddedTexts
from pt_neural.rankers.readers.word_pairs import Matches

Channels = Literal["all", "exact"]
Pooling = Literal["per-word", "global"]

WIDTH = 3  # query words that a filter spans
HEIGHTS = (3, 4, 5)  # document words that filters span
SHIFTS = max(HEIGHTS)
BEFORE = (SHIFTS - 1) // 2  # document words of a window before its middle


class MatchTensorSizes(NamedTuple):
    """Sizes of the network (Table 2), each described at :class:`~pt_neural.MatchTensor`."""

    projection: int
    document_units: int
    query_units: int
    tensor_size: int
    filters: int
    second_filters: int
    hidden: int
    query_terms: int
    document_terms: int
    dropout: float
    encoder: Encoder
    channels: Channels
    pooling: Pooling


class MatchTensorNetwork(nn.Module):
    """From words to the score of a pair, before its sigmoid.

    Args:
        dim: Dimensions of the word embeddings.
        sizes: Sizes.
        compares_wholes: Whether query and document are also compared as wholes, as in SSM (sections 5.4 and 5.5).
    """

    def __init__(self, dim: int, sizes: MatchTensorSizes, *, compares_wholes: bool):
        super().__init__()
        self.sizes, self.compares_wholes = sizes, compares_wholes
        self.reads_words = compares_wholes or sizes.channels == "all"
        query, document = 2 * sizes.query_units, 2 * sizes.document_units
        if self.reads_words:
            self.encoders = TextEncoders(
                dim, sizes.projection, sizes.query_units, sizes.document_units, sizes.encoder, sizes.dropout
            )
        channels = sizes.tensor_size if sizes.channels == "all" else 0
        if channels:
            self.query_words, self.document_words = nn.Linear(query, channels), nn.Linear(document, channels)
        self.filters = MatchFilters(channels, sizes.filters, sizes.second_filters)
        pooled = sizes.second_filters * (sizes.query_terms if sizes.pooling == "per-word" else 1)
        if compares_wholes:
            self.query_whole, self.document_whole = nn.Linear(query, sizes.hidden), nn.Linear(document, sizes.hidden)
            self.output = nn.Linear(pooled + sizes.hidden, 1)
        else:
            self.hidden = nn.Linear(pooled, sizes.hidden)
            self.output = nn.Linear(sizes.hidden, 1)

    @property
    def columns(self) -> int:
        """Length of each row that represents a document."""
        return self.filters.channels or 1

    @property
    def whole_rows(self) -> int:
        """Number of rows, after those of its words, that represent a document as a whole."""
        return -(-self.sizes.hidden // self.columns) if self.compares_wholes else 0

    def num_rows(self, lengths: np.ndarray) -> np.ndarray:
        """Number of rows that represent documents of these lengths in words."""
        return lengths + self.whole_rows

    def read_queries(self, texts: EmbeddedTexts) -> Queries:
        """The queries as they are matched with documents."""
        lengths = texts.offsets.diff()
        longest = max(1, int(lengths.max())) if len(lengths) else 1
        words = texts.vectors.new_zeros(len(lengths), longest, self.filters.channels)
        if not self.reads_words:
            return Queries(words, lengths, None)
        states, whole = self.encoders("query", texts)  # (words, 2 * units), (queries, 2 * units)
        if self.filters.channels:
            is_word = torch.arange(longest, device=lengths.device) < lengths[:, None]
            projected = self.query_words(states)  # with fewer bits in mixed precision
            words = words.to(projected.dtype).masked_scatter(is_word[..., None], projected)
        return Queries(words, lengths, self.query_whole(whole) if self.compares_wholes else None)

    def read_documents(self, texts: EmbeddedTexts) -> tuple[Tensor, Tensor]:
        """The document's side, which does not depend on the query.

        Returns:
            Rows, document after document, float32 of shape (rows, :attr:`columns`): one for each word, then
            :attr:`whole_rows` for the document as a whole; and where each document starts, int64 of shape
            (documents + 1,).
        """
        if not self.reads_words:
            return texts.vectors.new_zeros(len(texts.words), self.columns), texts.offsets
        states, _ = self.encoders("document", texts)  # (words, 2 * units)
        rows = self.document_words(states) if self.filters.channels else states.new_zeros(len(states), self.columns)
        if not self.compares_wholes:
            return rows, texts.offsets
        whole = self.document_whole(max_over_texts(states, texts.offsets))  # (documents, hidden)
        whole = F.pad(whole, (0, self.whole_rows * self.columns - self.sizes.hidden)).view(-1, self.columns)
        numbers = torch.arange(len(texts.offsets), device=rows.device)
        owners = torch.repeat_interleave(numbers[:-1], texts.offsets.diff())  # the document of each word
        whole_owners = torch.arange(len(whole), device=rows.device) // self.whole_rows
        order = torch.argsort(torch.cat([owners, whole_owners]), stable=True)
        return torch.cat([rows, whole])[order], texts.offsets + numbers * self.whole_rows

    def match(self, queries: Queries, rows: Tensor, offsets: Tensor, document_rows: Tensor, matches: Matches) -> Tensor:
        """Scores of documents before the sigmoid.

        Args:
            queries: The query of each group.
            rows: The rows that :meth:`read_documents` returned.
            offsets: Where each document's rows start.
            document_rows: Documents of each group, int64 of shape (groups, documents).
            matches: Exact matches of each pair, group after group.

        Returns:
            float32 of shape (groups, documents).
        """
        starts = offsets[:-1][document_rows]  # (groups, documents)
        lengths = offsets.diff()[document_rows] - self.whole_rows
        pooled = self.filters(
            Factors(queries.words, queries.lengths, rows, starts, lengths), matches, self.sizes.pooling
        )  # (groups, documents, query words or 1, second filters)
        products = None
        if self.compares_wholes:
            places = (starts + lengths)[..., None] + torch.arange(self.whole_rows, device=rows.device)
            products = queries.whole[:, None] * rows[places].flatten(2)[..., : self.sizes.hidden]
        return self.score(pooled, products)

    def score(self, pooled: Tensor, products: Tensor | None) -> Tensor:
        """Scores before the sigmoid, from the pooled values of the filters.

        Args:
            pooled: Shape (..., query words or 1, second filters).
            products: Products of query and document as wholes, shape (..., hidden); None if they are not compared.

        Returns:
            float32 of shape (...).
        """
        if self.sizes.pooling == "per-word":
            pooled = F.pad(pooled, (0, 0, 0, self.sizes.query_terms - pooled.shape[-2]))
        units = pooled.flatten(-2)
        hidden = torch.relu(self.hidden(units)) if products is None else torch.cat([units, products], dim=-1)
        return self.output(hidden).squeeze(-1)

    def forward(self, groups: EmbeddedGroups) -> Tensor:
        """Scores before the sigmoid, float32 of shape (groups, documents)."""
        queries = self.read_queries(groups.queries).take(groups.query_rows)
        rows, offsets = self.read_documents(groups.documents)
        return self.match(queries, rows, offsets, groups.document_rows, groups.matches)


class Factors(NamedTuple):
    """The factors of match tensors: for each group, the words of one query and of several documents.

    Attributes:
        queries: Words of each query, float32 of shape (groups, most query words, channels).
        query_lengths: Number of words of each query, int64.
        rows: Words of the documents, document after document, float32 of shape (rows, channels).
        starts: Where the documents of each group start in ``rows``, int64 of shape (groups, documents).
        lengths: Number of words of each document, of the same shape.
    """

    queries: Tensor
    query_lengths: Tensor
    rows: Tensor
    starts: Tensor
    lengths: Tensor


class MatchFilters(nn.Module):
    """Filters of 3 query words by 3, 4 and 5 document words over all channels, ReLU, 1 x 1 filters, max pooling.

    The match tensor (section 3.2) is never built. Its channels are products of a query word and a document word, so for
    a given query, a filter over them is a filter over the document's words alone: with the query folded into the
    filters, the first layer is a convolution over the document, with a third of the arithmetic. Exact matches are few,
    and are added one by one.

    Args:
        channels: Channels of products, k, not counting the one of exact matches.
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
        """The first layer's filters, padded to equal height: (filters, query words, shifts, channels + 1)."""
        padded = []
        for height, weights in zip(HEIGHTS, self.first, strict=True):
            before = BEFORE - (height - 1) // 2
            padded.append(F.pad(weights, (0, 0, before, SHIFTS - height - before)))
        return torch.cat(padded)

    def forward(self, factors: Factors, matches: Matches, pooling: Pooling) -> Tensor:
        """Filter the match tensor of each pair, and pool the second layer's values.

        Args:
            factors: The factors of the pairs' match tensors.
            matches: The exact matches, pair after pair.
            pooling: ``"per-word"``: over the document's words; ``"global"``: over the query's as well.

        Returns:
            float32 of shape (groups, documents, most query words or 1, second filters); zero for the padding of
            queries, and for empty documents.
        """
        values = self._first_layer(factors, matches)  # (groups, documents, stride, query words, filters)
        return self._pool(values, factors, pooling)

    def _first_layer(self, factors: Factors, matches: Matches) -> Tensor:
        """Values before the ReLU, of shape (groups, documents, stride, query words, filters).

        The stride, the same for all documents, is the longest document's length plus the zeros between two documents.
        """
        groups, documents = factors.starts.shape
        words = factors.queries.shape[1]
        stride = max(1, int(factors.lengths.max())) + SHIFTS - 1
        weights = self._weights()
        bias = self.first_bias.repeat(words)
        if self.channels:
            rows = self._laid_out(factors, stride)  # (groups, documents * stride + shifts - 1, channels)
            values = shifted_products(rows, self._folded(factors.queries, weights[..., :-1]))
            values = values.add_(bias).flatten(0, 1)  # (groups * documents * stride, query words * filters)
        else:
            values = bias.repeat(groups * documents * stride, 1)
        rows, additions = _reached(matches, groups * documents, stride, words)
        exact = self._exact(weights[..., -1], words).to(values.dtype)  # fewer bits in mixed precision
        values = values.index_add_(0, rows, exact[additions])
        return values.view(groups, documents, stride, words, self.num_filters)

    def _laid_out(self, factors: Factors, stride: int) -> Tensor:
        """The documents of each group, one after the other, separated by zeros: (groups, rows, channels)."""
        groups = len(factors.starts)
        steps = torch.arange(stride, device=factors.rows.device) - BEFORE
        is_word = (steps >= 0) & (steps < factors.lengths[..., None])  # (groups, documents, stride)
        places = (factors.starts[..., None] + steps).where(is_word, 0)
        places, is_word = (F.pad(part.view(groups, -1), (0, SHIFTS - 1)) for part in (places, is_word))
        rows = factors.rows if len(factors.rows) else factors.rows.new_zeros(1, self.channels)
        return F.embedding(places, rows).masked_fill_(~is_word[..., None], 0)

    def _folded(self, queries: Tensor, weights: Tensor) -> Tensor:
        """Each query's own filters over document words: (groups, shifts, channels, query words * filters)."""
        groups, words, channels = queries.shape
        windows = F.pad(queries, (0, 0, WIDTH // 2, WIDTH // 2)).unfold(1, WIDTH, 1)  # (groups, words, channels, width)
        by_channel = windows.permute(2, 0, 1, 3).reshape(channels, groups * words, WIDTH)
        filters = weights.permute(3, 1, 2, 0).reshape(channels, WIDTH, -1)  # (channels, width, shifts * filters)
        folded = torch.bmm(by_channel, filters).view(channels, groups, words, SHIFTS, self.num_filters)
        return folded.permute(1, 3, 0, 2, 4).reshape(groups, SHIFTS, channels, words * self.num_filters)

    def _exact(self, weights: Tensor, words: int) -> Tensor:
        """What an exact match adds to the values around it: (shifts * query words, query words * filters)."""
        table = weights.new_zeros(SHIFTS, words, words, self.num_filters)
        for place in range(WIDTH):
            offset = WIDTH // 2 - place  # from the matching word to the middle of the window
            first, last = max(0, -offset), min(words, words - offset)
            matching = torch.arange(first, last, device=weights.device)
            table[:, matching, matching + offset] = weights[:, place].T[:, None].expand(-1, len(matching), -1)
        return self.alpha * table.view(SHIFTS * words, -1)

    def _pool(self, values: Tensor, factors: Factors, pooling: Pooling) -> Tensor:
        groups, documents, stride, words, filters = values.shape
        learns = torch.is_grad_enabled()
        is_word = torch.arange(stride, device=values.device) < factors.lengths[..., None]  # (groups, documents, stride)
        with torch.no_grad():  # the bias, the same everywhere, is added to the largest values only
            second = F.linear(torch.relu(values), self.second.weight).masked_fill_(
                ~is_word[..., None, None], -torch.inf
            )
            if not learns:
                largest = second.amax(dim=2)  # (groups, documents, query words, second filters)
            else:
                winners = second.argmax(dim=2)
        if learns:  # only the winners have gradients, so only they are computed again
            first = torch.arange(groups * documents, device=values.device).view(groups, documents, 1, 1) * stride
            places = (first + winners) * words + torch.arange(words, device=values.device)[:, None]
            chosen = torch.relu(F.embedding(places, values.view(-1, filters)))  # (*winners, filters)
            largest = (chosen * self.second.weight).sum(dim=-1)
        largest = largest + self.second.bias
        filled = torch.arange(words, device=values.device) < factors.query_lengths[:, None]
        filled = filled[:, None, :, None] & (factors.lengths > 0)[..., None, None]  # (groups, documents, words, 1)
        if pooling == "global":
            largest = largest.masked_fill(~filled, -torch.inf).amax(dim=2, keepdim=True)
            filled = filled.any(dim=2, keepdim=True)
        return torch.where(filled, largest, 0.0)


def _reached(matches: Matches, pairs: int, stride: int, words: int) -> tuple[Tensor, Tensor]:
    """The rows of the first layer's values that exact matches change, and the rows of ``_exact`` to add to them.

    Args:
        matches: The exact matches.
        pairs: Number of pairs.
        stride: Rows of a document.
        words: Most words of a query.
    """
    bags, device = len(matches.offsets) - 1, matches.offsets.device
    owners = torch.repeat_interleave(torch.arange(bags, device=device), matches.offsets.diff())  # (matches,)
    width = max(1, bags // max(1, pairs))
    shifts = torch.arange(SHIFTS, device=device)
    steps = matches.positions[:, None] + BEFORE - shifts  # (matches, shifts)
    rows = (owners // width * stride)[:, None] + steps
    additions = shifts * words + (owners % width)[:, None]
    return rows[steps >= 0], additions[steps >= 0]


def shifted_products(rows: Tensor, filters: Tensor) -> Tensor:
    """``sum over s of rows[:, t + s] @ filters[:, s]`` for each row t that enough rows follow.

    This is a convolution whose filters differ from group to group, as a sum of matrix products: windows are never
    copied.

    Args:
        rows: Shape (groups, rows, channels).
        filters: Shape (groups, shifts, channels, columns).

    Returns:
        Shape (groups, rows - shifts + 1, columns).
    """
    return _ShiftedProducts.apply(rows, filters)


class _ShiftedProducts(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, filters: Tensor) -> Tensor:
        ctx.save_for_backward(rows, filters)
        count = rows.shape[1] - filters.shape[1] + 1
        result = torch.bmm(rows[:, :count], filters[:, 0])
        for shift in range(1, filters.shape[1]):
            result.baddbmm_(rows[:, shift : shift + count], filters[:, shift])
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        rows, filters = ctx.saved_tensors
        count, gradient = gradient.shape[1], gradient.contiguous()
        rows_gradient, filters_gradient = torch.zeros_like(rows), torch.empty_like(filters)
        for shift in range(filters.shape[1]):
            rows_gradient[:, shift : shift + count].baddbmm_(gradient, filters[:, shift].transpose(1, 2))
            torch.bmm(rows[:, shift : shift + count].transpose(1, 2), gradient, out=filters_gradient[:, shift])
        return rows_gradient, filters_gradient
