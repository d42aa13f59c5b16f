"""MatchPyramid, text matching as image recognition (Pang, Lan, Guo, Xu, Wan and Cheng, 2016)."""

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.models.matching.layers import Interaction, Similarity, WordVectors
from pt_neural.models.matching.lookups import Pairs, PooledNetwork
from pt_neural.models.matching.ranker import FAST, TRAINED_VECTORS, Embeddings, MatchingRanker, for_few
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

    The recipes for up to tens of thousands of queries train the word vectors, with a softmax over the documents of a
    query and a rate of 0.01, which did best of eight settings on the dev queries of two collections.

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
    recipes: ClassVar[dict[str, dict[str, Any]]] = for_few(**FAST, **TRAINED_VECTORS)
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


class MatchPyramidNetwork(PooledNetwork):
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

    def pool(self, interaction: Interaction) -> Tensor:
        """The largest value of each filter in each field: (groups, documents, filters * fields)."""
        cells = (interaction.cells * interaction.mask).flatten(0, 1)  # (pairs, query words, document words)
        query_lengths = interaction.query_mask.sum(-1).repeat_interleave(interaction.lengths.shape[1])
        if cells.device.type == "cpu":
            pairs = Pairs.of_cells(query_lengths, interaction.lengths.flatten(), cells.shape[1])
            return self.pool_pairs(cells.flatten(0, 1).float(), pairs).view(*interaction.lengths.shape, -1)
        cells = same_size(cells[:, None], self.convolution.kernel_size[0]).to(memory_format=torch.channels_last)
        values = dynamic_max(self.convolution(cells), query_lengths, interaction.lengths.flatten(), self.grid)
        return values.view(*interaction.lengths.shape, -1)

    def pool_pairs(self, table: Tensor, pairs: Pairs) -> Tensor:
        """The same from a table of similarities."""
        weight, bias = self.convolution.weight[:, 0].float(), self.convolution.bias[:, None, None]
        return (largest_of_windows(table, pairs, weight, self.grid) + bias).flatten(2)

    def score_pooled(self, pooled: Tensor, query_mask: Tensor, features: Tensor | None) -> Tensor:
        """Scores."""
        hidden = torch.relu(self.hidden(torch.relu(pooled)))  # the largest of ReLUs is that of the largest
        return self.output(hidden).squeeze(-1)


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


def largest_of_windows(table: Tensor, pairs: Pairs, weight: Tensor, grid: tuple[int, int]) -> Tensor:
    """A convolution and :func:`dynamic_max` in one loop; only the window of each largest value has a gradient.

    Args:
        table: Similarities, float32.
        pairs: Rows and columns of each pair; a text without words counts as one word.
        weight: The filters, float32 of shape (filters, window, window).
        grid: Number of fields of queries and of documents.

    Returns:
        Shape (groups, documents, filters, document fields, query fields).
    """
    return _LargestOfWindows.apply(table, pairs, weight, grid)


class _LargestOfWindows(torch.autograd.Function):
    """See :func:`largest_of_windows`."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, pairs: Pairs, weight: Tensor, grid: tuple[int, int]) -> Tensor:
        arrays = (one.detach().contiguous().numpy() for one in (table, weight))
        words = pairs.query_words, pairs.document_words
        values, rows, columns = _largest_windows(*arrays, *pairs, *words, *grid)
        ctx.save_for_backward(table, weight)
        ctx.pairs, ctx.places = pairs, (rows, columns)
        return torch.from_numpy(values)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, None, Tensor, None]:
        table, weight = (one.detach().contiguous() for one in ctx.saved_tensors)
        of_weight = torch.zeros_like(weight)
        of_table = torch.zeros_like(table) if ctx.needs_input_grad[0] else table.new_empty(0, 0)
        arrays = (one.numpy() for one in (table, weight, gradient.contiguous(), of_table, of_weight))
        _add_gradients(*arrays, *ctx.places, *ctx.pairs)
        return of_table if ctx.needs_input_grad[0] else None, None, of_weight, None


@compiled
def _largest_windows(
    table: np.ndarray,
    weight: np.ndarray,
    rows: np.ndarray,
    row_starts: np.ndarray,
    columns: np.ndarray,
    column_starts: np.ndarray,
    queries: np.ndarray,
    documents: np.ndarray,
    query_words: int,
    document_words: int,
    query_fields: int,
    document_fields: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The largest values, and the query word and document word in the middle of the window of each, int32."""
    filters, window = weight.shape[0], weight.shape[1]
    threes = window // 3 * 3  # columns of a filter that are taken three at a time
    before = (window - 1) // 2  # zeros before the first word
    shape = (*documents.shape, filters, document_fields, query_fields)
    values = np.empty(shape, dtype=np.float32)
    best_words, best_places = np.empty(shape, dtype=np.int32), np.empty(shape, dtype=np.int32)
    cells = np.empty((query_words + window - 1, document_words + window - 1), dtype=np.float32)
    sums = np.empty((query_words, document_words), dtype=np.float32)
    best = np.empty(document_words, dtype=np.float32)  # in each column, over the rows of a query field
    lefts, ends = np.empty(document_fields, dtype=np.int64), np.empty(document_fields, dtype=np.int64)
    for group, number in np.ndindex(documents.shape):
        query, document = queries[group], documents[group, number]
        first, start = row_starts[query], column_starts[document]
        height, width = row_starts[query + 1] - first, column_starts[document + 1] - start
        cells[: max(1, height) + window - 1, : max(1, width) + window - 1] = 0
        for row in range(height):
            of_row, line = table[rows[first + row]], cells[row + before, before:]
            for column in range(width):
                line[column] = of_row[columns[start + column]]
        height, width = max(1, height), max(1, width)
        for field in range(document_fields):  # once, since divisions of integers are slow
            lefts[field], ends[field] = field * width // document_fields, -(-(field + 1) * width // document_fields)
        for one_filter in range(filters):
            for row in range(height):
                of_row = sums[row]
                if window == 3:  # so that sums are written once for nine products
                    a, b, c, weights = cells[row], cells[row + 1], cells[row + 2], weight[one_filter]
                    a_0, a_1, a_2 = weights[0, 0], weights[0, 1], weights[0, 2]
                    b_0, b_1, b_2 = weights[1, 0], weights[1, 1], weights[1, 2]
                    c_0, c_1, c_2 = weights[2, 0], weights[2, 1], weights[2, 2]
                    for column in range(width):
                        of_a = a_0 * a[column] + a_1 * a[column + 1] + a_2 * a[column + 2]
                        of_b = b_0 * b[column] + b_1 * b[column + 1] + b_2 * b[column + 2]
                        of_c = c_0 * c[column] + c_1 * c[column + 1] + c_2 * c[column + 2]
                        of_row[column] = of_a + of_b + of_c
                    continue
                of_row[:width] = 0
                for step in range(window):
                    line, factors = cells[row + step], weight[one_filter, step]
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
                top, bottom = query_field * height // query_fields, -(-(query_field + 1) * height // query_fields)
                of_row = sums[top]
                for column in range(width):
                    best[column] = of_row[column]
                for row in range(top + 1, bottom):
                    of_row = sums[row]
                    for column in range(width):
                        best[column] = np.maximum(best[column], of_row[column])  # NaN stays
                has_nan = np.isnan(best[:width].sum())
                for field in range(document_fields):
                    left, end = lefts[field], ends[field]
                    place, value = left, best[left]
                    for column in range(left + 1, end):
                        if best[column] > value:
                            place, value = column, best[column]
                    if has_nan:  # only then: to look every time would take longer than all the rest
                        for column in range(left, end):
                            if np.isnan(best[column]):
                                place = column
                    row, value = top, sums[top, place]
                    for below in range(top + 1, bottom):  # without a branch that the processor would have to guess
                        larger = sums[below, place] > value
                        row = below if larger else row
                        value = max(value, sums[below, place])
                    values[group, number, one_filter, field, query_field] = best[place]
                    best_words[group, number, one_filter, field, query_field] = row
                    best_places[group, number, one_filter, field, query_field] = place
    return values, best_words, best_places


@compiled
def _add_gradients(
    table: np.ndarray,
    weight: np.ndarray,
    gradient: np.ndarray,
    of_table: np.ndarray,
    of_weight: np.ndarray,
    best_words: np.ndarray,
    best_places: np.ndarray,
    rows: np.ndarray,
    row_starts: np.ndarray,
    columns: np.ndarray,
    column_starts: np.ndarray,
    queries: np.ndarray,
    documents: np.ndarray,
) -> None:
    """Add to the gradients of the filters and, unless it is empty, of the table, from those of the largest values."""
    window = weight.shape[1]
    before = (window - 1) // 2
    for group, number in np.ndindex(documents.shape):
        query, document = queries[group], documents[group, number]
        first, start = row_starts[query], column_starts[document]
        height, width = row_starts[query + 1] - first, column_starts[document + 1] - start
        for one_filter, field, query_field in np.ndindex(gradient.shape[2:]):
            factor = gradient[group, number, one_filter, field, query_field]
            if factor == 0:
                continue
            top = best_words[group, number, one_filter, field, query_field] - before
            left = best_places[group, number, one_filter, field, query_field] - before
            for step in range(max(0, -top), min(window, height - top)):  # beyond the words, cells are 0
                row = rows[first + top + step]
                for shift in range(max(0, -left), min(window, width - left)):
                    column = columns[start + left + shift]
                    of_weight[one_filter, step, shift] += factor * table[row, column]
                    if len(of_table):
                        of_table[row, column] += factor * weight[one_filter, step, shift]
