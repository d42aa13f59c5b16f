"""MatchPyramid, text matching as image recognition (Pang, Lan, Guo, Xu, Wan and Cheng, 2016)."""

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.models.matching.layers import Interaction, Similarity, SimilarityNetwork, WordVectors
from pt_neural.models.matching.ranker import Embeddings, MatchingRanker
from pt_neural.rankers.options import TrainedOptions
from pt_neural.rankers.readers.word_sequences import WordSequences
from pt_neural.text.compiled import compiled


class MatchPyramid(MatchingRanker):
    """Reads the matrix of similarities of query words and document words as an image.

    A layer of square filters with ReLU goes over the matrix; the largest value of each filter is taken in each field of
    a grid that divides the query and the document, however long, into equal parts (dynamic pooling); a hidden layer
    makes the score::

        z_fij = relu(sum_st w_fst M_(i+s, j+t) + b_f)
        s = W_2 relu(W_1 dynamic-max(z) + b_1) + b_2

    M is the cosine, the dot product or the indicator of equal words; the dot product is the mean of the products of
    components, which differs from the paper's by one factor. Fields of a text that is shorter than the grid overlap.
    The grid divides the words that a text has; in MatchZoo and OpenNIR it divides the padding as well. Words without a
    vector have a cosine of 1 with themselves, and a dot product of 0. Training is pairwise with a margin of 1 and Adam,
    as in the authors' study of ad-hoc retrieval (2016).

    Args:
        spaces: The word embeddings.
        space: Which of a word's two vectors to take, ``"in"`` or ``"out"``.
        embeddings: ``"frozen"``; or ``"trained"``, so that training starts from these vectors.
        similarity: ``"cosine"``, ``"dot"`` or ``"exact"``, the indicator.
        filters: Filters.
        window: Words of the query, and of the document, that a filter spans.
        query_fields: Into how many parts the grid divides the query.
        document_fields: Into how many parts the grid divides the document.
        hidden: Units of the hidden layer.
        query_terms: Number of words of a query that are read.
        document_terms: Number of words of a document that are read.

    Raises:
        TypeError: If an argument is of another kind than described.
        ValueError: If a size is out of range or a choice unknown.

    Example::

        match_pyramid = pn.MatchPyramid(pn.EmbeddingSpaces.train(docs.get_corpus_iter()))
        (candidates >> match_pyramid).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
        pn.explain(match_pyramid, "pairwise distance", text).plot()
    """

    schematic = {"label": "MatchPyramid", "help_url": None}
    artifact_format = "match-pyramid"
    least: ClassVar[Mapping[str, int]] = {
        "filters": 1,
        "window": 1,
        "query_fields": 1,
        "document_fields": 1,
        "hidden": 1,
    }
    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {"similarity": ("cosine", "dot", "exact")}

    def __init__(
        self,
        spaces: EmbeddingSpaces,
        *,
        space: Space = "in",
        embeddings: Embeddings = "frozen",
        similarity: Similarity = "cosine",
        filters: int = 8,
        window: int = 3,
        query_fields: int = 3,
        document_fields: int = 10,
        hidden: int = 128,
        query_terms: int = 10,
        document_terms: int = 200,
        **options: Unpack[TrainedOptions],
    ):
        self.similarity, self.filters, self.window = similarity, filters, window
        self.query_fields, self.document_fields, self.hidden = query_fields, document_fields, hidden
        sizes = {"query_terms": query_terms, "document_terms": document_terms}
        super().__init__(spaces, space=space, embeddings=embeddings, **sizes, **options)

    def make_network(self, reader: WordSequences) -> "MatchPyramidNetwork":
        """A new network."""
        grid = self.query_fields, self.document_fields
        vectors = self.word_vectors(reader)
        return MatchPyramidNetwork(vectors, self.similarity, self.filters, self.window, grid, self.hidden)


class MatchPyramidNetwork(SimilarityNetwork):
    """Filters over similarities, dynamic pooling, and a hidden layer.

    Args:
        vectors: The word vectors.
        similarity: How words are compared.
        filters: Filters.
        window: Words that a filter spans.
        grid: Into how many parts the query and the document are divided.
        hidden: Units of the hidden layer.
    """

    piecewise_linear = True

    def __init__(
        self,
        vectors: WordVectors,
        similarity: Similarity,
        filters: int,
        window: int,
        grid: tuple[int, int],
        hidden: int,
    ):
        super().__init__(vectors, similarity)
        self.grid = grid
        self.convolution = nn.Conv2d(1, filters, window)
        self.hidden, self.output = nn.Linear(filters * grid[0] * grid[1], hidden), nn.Linear(hidden, 1)

    def score_cells(self, interaction: Interaction) -> Tensor:
        """Scores."""
        groups, documents = interaction.lengths.shape
        cells = (interaction.cells * interaction.mask).flatten(0, 1)[:, None]  # (pairs, 1, query words, words)
        cells = same_size(cells, self.convolution.kernel_size[0])
        query_lengths = interaction.query_mask.sum(-1).repeat_interleave(documents)
        pooled = self.largest(cells, query_lengths, interaction.lengths.flatten())
        hidden = torch.relu(self.hidden(torch.relu(pooled).flatten(1)))  # the largest of ReLUs is that of the largest
        return self.output(hidden).view(groups, documents)

    def largest(self, cells: Tensor, query_lengths: Tensor, lengths: Tensor) -> Tensor:
        """The largest value of each filter in each field: (pairs, filters, document fields, query fields)."""
        if cells.device.type == "cpu":
            weight, bias = self.convolution.weight[:, 0].float(), self.convolution.bias[:, None, None]
            return largest_on_cpu(cells[:, 0].float(), weight, query_lengths, lengths, self.grid) + bias
        values = self.convolution(cells.to(memory_format=torch.channels_last))
        return dynamic_max(values, query_lengths, lengths, self.grid)


def same_size(cells: Tensor, window: int) -> Tensor:
    """Zeros around the last two dimensions, so that filters of this width give as many values."""
    before, after = (window - 1) // 2, window // 2
    return F.pad(cells, (before, after, before, after))


def dynamic_max(values: Tensor, query_lengths: Tensor, lengths: Tensor, grid: tuple[int, int]) -> Tensor:
    """The largest value in each field of a grid that divides the words of a query and of a document.

    Args:
        values: Shape (pairs, filters, query words, document words), which is read fastest with channels last.
        query_lengths: Words of each query, int64; a text without words counts as one word.
        lengths: Words of each document.
        grid: Number of fields of queries and of documents.

    Returns:
        Shape (pairs, filters, document fields, query fields).
    """
    pairs, filters, height, width = values.shape
    rows, columns = fields_of(query_lengths, grid[0]), fields_of(lengths, grid[1])  # (pairs, fields, words)
    rows = rows + torch.arange(pairs, device=rows.device)[:, None, None] * height
    places = rows[:, :, None, :, None] * width + columns[:, None, :, None]  # (pairs, fields, fields, words, words)
    values = values.permute(0, 2, 3, 1).reshape(-1, filters).float()
    largest = F.embedding_bag(places.flatten(3).flatten(0, 2), values, mode="max")
    return largest.view(pairs, *grid, filters).permute(0, 3, 2, 1)


def fields_of(lengths: Tensor, fields: int) -> Tensor:
    """The words of each of several fields of equal size that divide a text, the last one repeated in shorter fields.

    Args:
        lengths: Words of each text, int64; a text without words counts as one word.
        fields: Number of fields.

    Returns:
        int64 of shape (texts, fields, words of the longest field).
    """
    numbers, lengths = torch.arange(fields, device=lengths.device), lengths.clamp(min=1)[:, None]
    starts = numbers * lengths // fields  # (texts, fields)
    sizes = -(-(numbers + 1) * lengths // fields) - starts  # at least 1
    steps = torch.arange(int(sizes.max()), device=lengths.device)
    return starts[..., None] + torch.minimum(steps, sizes[..., None] - 1)


def largest_on_cpu(
    cells: Tensor, weight: Tensor, query_lengths: Tensor, lengths: Tensor, grid: tuple[int, int]
) -> Tensor:
    """A convolution and :func:`dynamic_max` in one loop; only the window of each largest value has a gradient.

    Args:
        cells: Padded by :func:`same_size`, float32 of shape (pairs, words + window - 1, document words + window - 1).
        weight: The filters, float32 of shape (filters, window, window).
        query_lengths: Words of each query, int64; a text without words counts as one word.
        lengths: Words of each document.
        grid: Number of fields of queries and of documents.

    Returns:
        Shape (pairs, filters, document fields, query fields).
    """
    return _LargestOnCPU.apply(cells, weight, query_lengths, lengths, grid)


class _LargestOnCPU(torch.autograd.Function):
    """See :func:`largest_on_cpu`."""

    @staticmethod
    def forward(
        ctx: Any, cells: Tensor, weight: Tensor, query_lengths: Tensor, lengths: Tensor, grid: tuple[int, int]
    ) -> Tensor:
        arrays = (one.detach().numpy() for one in (cells.contiguous(), weight.contiguous(), query_lengths, lengths))
        values, rows, columns = _largest_windows(*arrays, *grid)
        ctx.save_for_backward(cells, weight)
        ctx.places = rows, columns
        return torch.from_numpy(values)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, None, None, None]:
        cells, weight = (one.contiguous() for one in ctx.saved_tensors)
        of_weight = torch.zeros_like(weight)
        of_cells = torch.zeros_like(cells) if ctx.needs_input_grad[0] else cells.new_empty(0, 0, 0)
        arrays = (one.detach().numpy() for one in (cells, weight, gradient.contiguous(), of_cells, of_weight))
        _add_gradients(*arrays, *ctx.places)
        return of_cells if ctx.needs_input_grad[0] else None, of_weight, None, None, None


@compiled
def _largest_windows(
    cells: np.ndarray,
    weight: np.ndarray,
    query_lengths: np.ndarray,
    lengths: np.ndarray,
    query_fields: int,
    document_fields: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The largest values, and the row and the column where the window of each starts, int32 of the same shape."""
    filters, window = weight.shape[0], weight.shape[1]
    threes = window // 3 * 3  # columns of a filter that are taken three at a time
    shape = (len(cells), filters, document_fields, query_fields)
    values = np.empty(shape, dtype=np.float32)
    rows, columns = np.empty(shape, dtype=np.int32), np.empty(shape, dtype=np.int32)
    sums = np.empty((cells.shape[1] - window + 1, cells.shape[2] - window + 1), dtype=np.float32)
    best = np.empty_like(sums[0])  # in each column, over the rows of a query field
    best_rows = np.empty(len(best), dtype=np.int32)
    for pair in range(len(cells)):
        height, width = max(1, query_lengths[pair]), max(1, lengths[pair])
        for number in range(filters):
            for row in range(height):
                of_row = sums[row]
                of_row[:width] = 0
                for step in range(window):
                    line, factors = cells[pair, row + step], weight[number, step]
                    for shift in range(0, threes, 3):  # so that sums are read and written once for three products
                        one, two, three = line[shift:], line[shift + 1 :], line[shift + 2 :]
                        by_one, by_two, by_three = factors[shift], factors[shift + 1], factors[shift + 2]
                        for column in range(width):
                            of_row[column] += by_one * one[column] + by_two * two[column] + by_three * three[column]
                    for shift in range(threes, window):
                        one, by_one = line[shift:], factors[shift]
                        for column in range(width):
                            of_row[column] += by_one * one[column]
            for query_field in range(query_fields):
                first = query_field * height // query_fields
                best[:width] = sums[first, :width]
                best_rows[:width] = first
                for row in range(first + 1, -(-(query_field + 1) * height // query_fields)):
                    of_row = sums[row]
                    for column in range(width):
                        value = of_row[column]
                        replaces = value > best[column] or value != value  # nothing is above NaN, so it stays
                        best[column] = value if replaces else best[column]
                        best_rows[column] = row if replaces else best_rows[column]
                has_nan = np.isnan(best[:width].sum())
                for field in range(document_fields):
                    start, end = field * width // document_fields, -(-(field + 1) * width // document_fields)
                    place, value = start, best[start]
                    for column in range(start + 1, end):
                        if best[column] > value:
                            place, value = column, best[column]
                    if has_nan:  # only then: to look every time would take longer than all the rest
                        for column in range(start, end):
                            if np.isnan(best[column]):
                                place = column
                    values[pair, number, field, query_field] = best[place]
                    rows[pair, number, field, query_field] = best_rows[place]
                    columns[pair, number, field, query_field] = place
    return values, rows, columns


@compiled
def _add_gradients(
    cells: np.ndarray,
    weight: np.ndarray,
    gradient: np.ndarray,
    of_cells: np.ndarray,
    of_weight: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
) -> None:
    """Add to the gradients of filters and, unless theirs is empty, of cells; from those of the largest values."""
    window = weight.shape[1]
    for pair, number, field, query_field in np.ndindex(gradient.shape):
        factor = gradient[pair, number, field, query_field]
        if factor != 0:
            row, column = rows[pair, number, field, query_field], columns[pair, number, field, query_field]
            for step in range(window):
                for shift in range(window):
                    of_weight[number, step, shift] += factor * cells[pair, row + step, column + shift]
                    if len(of_cells):
                        of_cells[pair, row + step, column + shift] += factor * weight[number, step, shift]
