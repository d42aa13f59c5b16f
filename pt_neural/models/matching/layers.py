"""Layers that the later classics share: word vectors, matrices of similarities, and what pools them."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from pt_neural.models.matching.encoders import Queries, RowLinear
from pt_neural.rankers.readers.word_pairs import Matches
from pt_neural.rankers.readers.word_sequences import WordGroups, WordTexts

Similarity = Literal["cosine", "dot", "exact"]

FREQUENT = 20_000  # most frequent words, whose vectors set the scale
EXACT_WIDTH = 1e-3  # of the kernel of exact matches
TABLE_COSTS_LESS = 5  # than gathering the vectors of all words of all documents, for so many times the products
LEAST_LENGTH = 1e-12  # of a vector, before it divides
LEAST_EXPONENT = -80.0  # exponentials that underflow take ten times as long
LEAST_COUNT = 1e-10  # of a kernel, before its logarithm


class WordVectors(nn.Module):
    """The vectors of words by their ids; zeros for unknown words.

    They are multiplied by a constant, so that the components of frequent words have a mean square of 1, however the
    embeddings were trained.

    Args:
        vectors: The vectors of the known words, of shape (known words, dimensions).
        trained: Whether they are weights, trained and saved with the network, or fixed.
    """

    def __init__(self, vectors: np.ndarray, *, trained: bool):
        super().__init__()
        self.num_known, self.dim = vectors.shape
        self.scale = float(1 / max(np.sqrt(np.mean(np.square(vectors[:FREQUENT]))), 1e-12))
        table = torch.from_numpy(np.concatenate([vectors, np.zeros((1, self.dim), dtype=np.float32)]))
        if trained:
            self.table, self.scales = nn.Parameter(table), None
        else:
            self.register_buffer("table", table, persistent=False)
            self.register_buffer("scales", _unit_scales(table), persistent=False)  # computed once

    def forward(self, ids: Tensor) -> Tensor:
        """Vectors of shape (words, dimensions) for ids of shape (words,)."""
        unknown = self.num_known
        return self.scale * F.embedding(ids.clamp(max=unknown), self.table, padding_idx=unknown)

    def cosines(self, queries: Tensor, documents: Tensor) -> Tensor:
        """Cosines of words by their ids, float32 of shape (query words, document words); 1 for equal ids."""
        return _Cosines.apply(self.table, self.scales, queries, documents)


class _Cosines(torch.autograd.Function):
    """Products of rows of a table, divided by their lengths; no other row is read, nor any unit vector kept.

    With the cosine c of the rows q and d, of which the last row of the table is not a word's, dc/dd is
    (q/|q| - c d/|d|) / |d|, and dc/dq is the same with q and d exchanged.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, scales: Tensor | None, queries: Tensor, documents: Tensor) -> Tensor:
        last = len(table) - 1
        rows = queries.clamp(max=last), documents.clamp(max=last)
        left, right = (table.index_select(0, one) for one in rows)
        if scales is None:
            scales = [_unit_scales(one) for one in (left, right)]
        else:
            scales = [scales.index_select(0, one) for one in rows]
        left *= scales[0][:, None]
        places, is_there = _places(queries, documents)
        cosines = _set_cells((left @ right.T).mul_(scales[1]), places, is_there, 1.0)
        ctx.save_for_backward(cosines, places, is_there, left, right, *scales, *rows)
        ctx.shape = table.shape
        return cosines

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        cosines, places, is_there, left, right, left_scale, right_scale, queries, documents = ctx.saved_tensors
        gradient = _set_cells(gradient.clone(), places, is_there, 0.0)
        shares = gradient * cosines
        gradient *= right_scale
        of_right = gradient.T @ left
        of_right.addcmul_(right, (shares.sum(0) * right_scale.square())[:, None], value=-1)
        of_left = gradient @ right
        of_left.addcmul_(left, shares.sum(1)[:, None], value=-1).mul_(left_scale[:, None])
        total = gradient.new_zeros(ctx.shape)
        total.index_add_(0, documents, of_right).index_add_(0, queries, of_left)
        total[-1] = 0
        return total, None, None, None


def _unit_scales(rows: Tensor) -> Tensor:
    """The factor that makes each row a unit vector."""
    return 1 / rows.norm(dim=1).clamp(min=LEAST_LENGTH)


def _places(queries: Tensor, documents: Tensor) -> tuple[Tensor, Tensor]:
    """Where each distinct query word is among the distinct document words, and whether it is there at all."""
    if not len(documents):
        return queries.new_empty(len(queries), 0), queries.new_empty(len(queries), 0, dtype=torch.bool)
    ids, order = documents.sort()
    found = torch.searchsorted(ids, queries[:, None]).clamp(max=len(ids) - 1)
    return order[found], ids[found] == queries[:, None]


def _set_cells(table: Tensor, places: Tensor, is_there: Tensor, value: float) -> Tensor:
    """Set a cell of each row of a table where ``is_there``, in place."""
    return table.scatter_(1, places, table.gather(1, places).masked_fill(is_there, value))


class Interaction(NamedTuple):
    """What a network sees of pairs of a query and a document.

    Attributes:
        cells: A number for each query word and each document word, or one for each channel, float32 of shape (groups,
            documents, query words, document words) or (groups, documents, channels, query words, document words).
        mask: Whether there is a pair of words, bool of shape (groups, documents, query words, document words).
        query_mask: Whether there is a query word, bool of shape (groups, query words).
        lengths: Number of words of each document, int64 of shape (groups, documents).
        features: What else is known of each query word, float32 of shape (groups, query words, features), or None.
    """

    cells: Tensor
    mask: Tensor
    query_mask: Tensor
    lengths: Tensor
    features: Tensor | None = None


class MatchingNetwork(nn.Module, ABC):
    """Base of the networks whose score is a function of an :class:`Interaction`.

    Attributes:
        piecewise_linear: Whether the score is piecewise linear in the cells, so that an explanation can divide it.
    """

    piecewise_linear = False

    @abstractmethod
    def score_cells(self, interaction: Interaction) -> Tensor:
        """Scores, float32 of shape (groups, documents); cells that the mask leaves out make no difference."""


class SimilarityNetwork(MatchingNetwork):
    """Base of the networks over similarities of word vectors, which do not depend on the words around them.

    Args:
        vectors: The word vectors.
        similarity: ``"cosine"``, ``"dot"`` (the mean product of components) or ``"exact"`` (1 for equal words).
    """

    def __init__(self, vectors: WordVectors, similarity: Similarity = "cosine"):
        super().__init__()
        self.vectors, self.similarity = vectors, similarity

    def forward(self, groups: WordGroups) -> Tensor:
        """Scores, float32 of shape (groups, documents)."""
        return self.score_cells(self.interaction(groups))

    def interaction(self, groups: WordGroups) -> Interaction:
        """The similarity of each query word and document word."""
        queries, documents = groups.queries, groups.documents
        query_places, query_mask = queries.padded()  # (queries, query words)
        document_places, document_mask = documents.padded()  # (documents, document words)
        document_places = document_places[groups.document_rows]  # (groups, documents, document words)
        document_mask = document_mask[groups.document_rows]
        of_groups = query_places[groups.query_rows], query_mask[groups.query_rows]  # (groups, query words)
        pays = self.table_pays(groups, of_groups[0].shape[1] * document_places.numel())
        compared = self._looked_up if pays else self._of_pairs
        cells = compared(queries.ids, documents.ids, of_groups[0], document_places)
        return Interaction(
            cells,
            of_groups[1][:, None, :, None] & document_mask[:, :, None],
            of_groups[1],
            document_mask.sum(-1),
            self.query_features(queries, of_groups[0]),
        )

    def table_pays(self, groups: WordGroups, products: int) -> bool:
        """Whether it costs less to compare all distinct words once than the words of each pair.

        Args:
            groups: The texts.
            products: Similarities of the words of all pairs, padding included.
        """
        return len(groups.queries.ids) * len(groups.documents.ids) <= TABLE_COSTS_LESS * products

    def _looked_up(self, queries: Tensor, documents: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """Cells, each distinct query word compared with each distinct document word once.

        Args:
            queries: Ids of the distinct query words.
            documents: Ids of the distinct document words.
            rows: The places of the query words of each group among them, of shape (groups, query words).
            columns: The places of the words of each group's documents, of shape (groups, documents, document words).

        Returns:
            Shape (groups, documents, query words, document words).
        """
        table = F.pad(self.similarities(queries, documents), (0, 1, 0, 1))  # (query words + 1, document words + 1)
        places = rows[:, None, :, None] * table.shape[1] + columns[:, :, None]
        return table.flatten().index_select(0, places.flatten()).view(places.shape)

    def _of_pairs(self, queries: Tensor, documents: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """The same, each pair compared by itself."""
        query_ids, document_ids = F.pad(queries, (0, 1), value=-1)[rows], F.pad(documents, (0, 1), value=-2)[columns]
        same = query_ids[:, None, :, None] == document_ids[:, :, None]
        if self.similarity == "exact":
            return same.float()
        with torch.autocast(queries.device.type, enabled=False):
            left, right = self._compared(queries), self._compared(documents)
            left = F.embedding(rows, F.pad(left, (0, 0, 0, 1)))  # (groups, query words, dimensions)
            right = F.embedding(columns.flatten(1), F.pad(right, (0, 0, 0, 1)))  # (groups, documents * words, ..)
            cells = (left @ right.mT).unflatten(-1, columns.shape[1:]).transpose(1, 2)
        return cells if self.similarity == "dot" else torch.where(same, 1.0, cells)

    def query_features(self, queries: WordTexts, places: Tensor) -> Tensor | None:
        """Features of query words, from the distinct words and their places (groups, query words); None for none."""
        return None

    def similarities(self, queries: Tensor, documents: Tensor) -> Tensor:
        """Similarities of words by their ids, float32 of shape (query words, document words).

        Equal words have a cosine of 1, unknown words too, and unknown words have 0 with all others.
        """
        if self.similarity == "exact":
            return (queries[:, None] == documents).float()
        with torch.autocast(queries.device.type, enabled=False):  # a kernel tells 0.999 from 1
            if self.similarity == "cosine":
                return self.vectors.cosines(queries, documents)
            return self._compared(queries) @ self._compared(documents).T

    def _compared(self, ids: Tensor) -> Tensor:
        """Vectors whose products are the similarities of different words."""
        vectors = self.vectors(ids)
        return vectors / self.vectors.dim**0.5 if self.similarity == "dot" else F.normalize(vectors, dim=-1)


class EncodingNetwork(nn.Module, ABC):
    """Base of the networks that read each text by itself before they match two texts.

    Documents are read without the query: they can be read once for all queries, and kept.

    Args:
        vectors: The word vectors.

    Attributes:
        columns: Length of each row that represents a document.
    """

    columns: int

    def __init__(self, vectors: WordVectors):
        super().__init__()
        self.vectors = vectors

    @abstractmethod
    def num_rows(self, lengths: np.ndarray) -> np.ndarray:
        """Number of rows that represent documents of these lengths in words."""

    @abstractmethod
    def read_queries(self, texts: WordTexts) -> Queries:
        """The queries as they are matched with documents."""

    @abstractmethod
    def read_documents(self, texts: WordTexts) -> tuple[Tensor, Tensor]:
        """Rows, document after document, and where each document starts."""

    @abstractmethod
    def match(
        self, queries: Queries, rows: Tensor, offsets: Tensor, document_rows: Tensor, matches: Matches | None
    ) -> Tensor:
        """Scores of documents, float32 of shape (groups, documents).

        Args:
            queries: The query of each group.
            rows: The rows that :meth:`read_documents` returned.
            offsets: Where each document's rows start.
            document_rows: Documents of each group, int64 of shape (groups, documents).
            matches: Exact matches of each pair, group after group; None for a network that does not use them.
        """

    def forward(self, groups: WordGroups) -> Tensor:
        """Scores, float32 of shape (groups, documents)."""
        queries = self.read_queries(groups.queries).take(groups.query_rows)
        return self.match(queries, *self.read_documents(groups.documents), groups.document_rows, None)


class ContextNetwork(EncodingNetwork, MatchingNetwork):
    """Base of the networks that read the words of a text in their context, and match each two words of two texts."""

    @abstractmethod
    def encode(self, side: Literal["query", "document"], texts: WordTexts) -> Tensor:
        """A row for each word of each text, of shape (words, columns)."""

    @abstractmethod
    def cells(self, queries: Tensor, documents: Tensor) -> Tensor:
        """Cells of (groups, query words, columns) with (groups, documents, document words, columns)."""

    def num_rows(self, lengths: np.ndarray) -> np.ndarray:
        """One for each word."""
        return lengths

    def read_queries(self, texts: WordTexts) -> Queries:
        """The queries as they are matched with documents."""
        rows = self.encode("query", texts)  # (words, columns)
        lengths = texts.offsets.diff()
        is_word = texts.padded()[1]
        words = rows.new_zeros(*is_word.shape, rows.shape[1]).masked_scatter(is_word[..., None], rows)
        return Queries(words, lengths, None)

    def read_documents(self, texts: WordTexts) -> tuple[Tensor, Tensor]:
        """A row for each word, document after document, and where each document starts."""
        return self.encode("document", texts), texts.offsets

    def match(
        self, queries: Queries, rows: Tensor, offsets: Tensor, document_rows: Tensor, matches: Matches | None
    ) -> Tensor:
        """Scores of documents; see :meth:`EncodingNetwork.match`."""
        return self.score_cells(self.pair(queries, rows, offsets, document_rows))

    def pair(self, queries: Queries, rows: Tensor, offsets: Tensor, document_rows: Tensor) -> Interaction:
        """The interaction of queries with documents; arguments as for :meth:`match`."""
        lengths = offsets.diff()[document_rows]  # (groups, documents)
        steps = torch.arange(max(1, int(lengths.max())), device=rows.device)
        document_mask = steps < lengths[..., None]
        places = (offsets[:-1][document_rows][..., None] + steps) * document_mask
        # Padding is any row, since cells that the mask leaves out make no difference.
        documents = F.embedding(places, rows if len(rows) else rows.new_zeros(1, rows.shape[1]))
        words = torch.arange(queries.words.shape[1], device=rows.device)
        query_mask = words < queries.lengths[:, None]  # (groups, query words)
        mask = query_mask[:, None, :, None] & document_mask[:, :, None]
        return Interaction(self.cells(queries.words, documents), mask, query_mask, lengths)

    def interaction(self, groups: WordGroups) -> Interaction:
        """What the network sees of each pair of a batch."""
        queries = self.read_queries(groups.queries).take(groups.query_rows)
        rows = self.encode("document", groups.documents)  # for each word, also where documents are kept pooled
        return self.pair(queries, rows, groups.documents.offsets, groups.document_rows)


class WindowSums(nn.Module):
    """A convolution over words: for each word, linear functions of it and the words that follow it.

    Each distinct word is projected once; a window adds up the projections of its words. Words beyond the end of a text
    are zeros.

    Args:
        inputs: Length of the word vectors.
        size: Words of a window.
        outputs: Filters.
    """

    def __init__(self, inputs: int, size: int, outputs: int):
        super().__init__()
        self.size, self.outputs = size, outputs
        self.projection = RowLinear(inputs, size * outputs, bias=False)
        nn.init.uniform_(self.projection.weight, -((size * inputs) ** -0.5), (size * inputs) ** -0.5)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, vectors: Tensor, words: Tensor | None, offsets: Tensor) -> Tensor:
        """One row for each word of each text.

        Args:
            vectors: Vectors of the distinct words, float32 of shape (distinct words, inputs).
            words: The texts, one after another, as places among the distinct words; None if the vectors are those of
                the words of the texts, one after another.
            offsets: Where each text starts, int64 of shape (texts + 1,).

        Returns:
            Shape (words, outputs).
        """
        projected = self.projection(vectors).view(-1, self.size, self.outputs)
        number = len(vectors) if words is None else len(words)
        places = torch.arange(number, device=vectors.device)[:, None]
        following = places + torch.arange(self.size, device=vectors.device)  # (words, size)
        is_word = following < torch.repeat_interleave(offsets[1:], offsets.diff())[:, None]
        if words is None:
            sums = _SumsInOrder.apply(projected, is_word)
        else:
            ends = is_word.sum(1).cumsum(0)
            rows = F.pad(words, (0, self.size))[following] * self.size + following - places
            bags = {"offsets": F.pad(ends, (1, 0)), "include_last_offset": True, "mode": "sum"}
            sums = F.embedding_bag(rows[is_word], projected.flatten(0, 1), **bags)
        return sums + self.bias.to(projected.dtype)


class _SumsInOrder(torch.autograd.Function):
    """Row i of part 0, plus row i + 1 of part 1, and so on, as far as each is a word of the same text."""

    @staticmethod
    def forward(ctx: Any, projected: Tensor, is_word: Tensor) -> Tensor:
        number, size, _ = projected.shape
        is_word = is_word.to(projected.dtype)
        ctx.save_for_backward(is_word)
        sums = projected[:, 0].clone()
        for step in range(1, min(size, number)):
            left = number - step
            sums[:left].addcmul_(projected[step:, step], is_word[:left, step, None])
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (is_word,) = ctx.saved_tensors
        number, size = is_word.shape
        total = gradient.new_empty(number, size, gradient.shape[1])
        for step in range(size):
            total[:step, step] = 0
            left = max(0, number - step)
            torch.mul(gradient[:left], is_word[:left, step, None], out=total[step:, step])
        return total, None


class KernelPooling(nn.Module):
    """Soft counts: how many similarities lie near the mean of each kernel, exp(-(s - mu)^2 / (2 sigma^2)).

    Args:
        means: The means of the kernels, equally far apart.
        width: The standard deviation of these kernels.
        exact: Whether there is one more kernel, the first, for similarities of 1, with a standard deviation of 0.001.

    Attributes:
        means: The mean of each kernel.
        widths: The standard deviation of each kernel.
    """

    def __init__(self, means: list[float], width: float, *, exact: bool):
        super().__init__()
        self.series, self.exact = (means, width), exact
        self.means = [1.0, *means] if exact else means
        self.widths = [EXACT_WIDTH, *len(means) * [width]] if exact else len(means) * [width]

    def __len__(self) -> int:
        return len(self.means)

    def forward(self, cells: Tensor, mask: Tensor) -> Tensor:
        """Counts over the last dimension of the cells where the mask is true: from (..., words) to (..., kernels)."""
        return _KernelCounts.apply(cells.float(), mask, *self.series, self.exact)


class _KernelCounts(torch.autograd.Function):
    """One kernel after another, computed again for the gradient, so that memory holds cells, not cells by kernels.

    An exponential takes longer than all else, so the kernels of a series follow from the middle one. With the means mu
    and mu + n d, and the ratio r = exp((s - mu) d / w^2 - d^2 / 2w^2), ::

        exp(-(s - mu - n d)^2 / 2w^2) = exp(-(s - mu)^2 / 2w^2) r^n exp(-n (n - 1) d^2 / 2w^2)

    The last factor is the same for all cells.
    """

    @staticmethod
    def forward(ctx: Any, cells: Tensor, mask: Tensor, means: list[float], width: float, exact: bool) -> Tensor:
        ctx.save_for_backward(cells, mask)
        ctx.kernels = means, width, exact
        cells = cells.masked_fill(~mask, 0.0)
        counts = cells.new_empty(*cells.shape[:-1], len(means) + exact)
        if exact:
            torch.sum(_exact_kernel(cells, mask), dim=-1, out=counts[..., 0])
        for number, _, factor, values in _series(cells, mask, means, width):
            torch.sum(values, dim=-1, out=counts[..., number + exact]).mul_(factor)
        return counts

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None, None]:
        cells, mask = ctx.saved_tensors
        means, width, exact = ctx.kernels
        cells = cells.masked_fill(~mask, 0.0)
        sums, moments = torch.zeros_like(cells), torch.zeros_like(cells)  # of g_n K_n and of g_n mu_n K_n
        for number, mean, factor, values in _series(cells, mask, means, width):
            weights = gradient[..., number + exact, None]
            sums.addcmul_(values, weights, value=factor)
            moments.addcmul_(values, weights, value=factor * mean)
        slopes = moments.addcmul_(cells, sums, value=-1).mul_(width**-2)
        if exact:
            kernel = _exact_kernel(cells, mask).mul_(1 - cells)
            slopes.addcmul_(kernel, gradient[..., 0, None], value=EXACT_WIDTH**-2)
        return slopes, None, None, None, None


def _exact_kernel(cells: Tensor, mask: Tensor) -> Tensor:
    exponents = (cells - 1).square_().mul_(-0.5 / EXACT_WIDTH**2).clamp_(min=LEAST_EXPONENT)
    return exponents.exp_().mul_(mask)


def _series(
    cells: Tensor, mask: Tensor, means: list[float], width: float
) -> Iterator[tuple[int, float, float, Tensor]]:
    """The number of each kernel, its mean, a factor, and its values without this factor, 0 where the mask is false."""
    middle = len(means) // 2
    first = (cells - means[middle]).square_().mul_(-0.5 / width**2).exp_().mul_(mask)
    yield middle, means[middle], 1.0, first
    for numbers in (range(middle + 1, len(means)), range(middle - 1, -1, -1)):
        if numbers:
            step = means[numbers[0]] - means[middle]
            ratio = (cells - (means[middle] + step / 2)).mul_(step / width**2).exp_()
            values = first.clone()
            for n, number in enumerate(numbers):
                yield number, means[number], math.exp(-n * (n + 1) / 2 * (step / width) ** 2), values.mul_(ratio)


def largest(values: Tensor, mask: Tensor, count: int) -> Tensor:
    """The largest values along the last dimension where the mask is true, in falling order; zeros if there are fewer.

    From (..., values) to (..., count).
    """
    lowest = torch.finfo(values.dtype).min
    found = values.masked_fill(~mask, lowest).topk(min(count, values.shape[-1]), dim=-1).values
    return F.pad(found.masked_fill(found == lowest, 0), (0, count - found.shape[-1]))


def masked_log_softmax(weights: Tensor, mask: Tensor) -> Tensor:
    """Log of a softmax over the last dimension where the mask is true, -inf elsewhere; uniform without any word."""
    weights = weights.float().masked_fill(~mask, -torch.inf)
    first = torch.arange(mask.shape[-1], device=mask.device) == 0
    empty = ~mask.any(-1, keepdim=True)
    return weights.masked_fill(empty & first, 0.0).log_softmax(-1)


def gate_weights(gate: nn.Linear, vectors: WordVectors, queries: WordTexts, places: Tensor) -> Tensor:
    """A gate's output for each word of queries, from their places: (groups, query words, 1)."""
    return F.pad(gate(vectors(queries.ids)), (0, 0, 0, 1))[places]
