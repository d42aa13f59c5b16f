"""Pairs of texts whose similarities are looked up in a table, so that compiled loops read them without padding."""

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pt_neural.models.matching.layers import Interaction, SimilarityNetwork
from pt_neural.rankers.readers.word_sequences import WordGroups
from pt_neural.text.compiled import compiled
from pt_neural.text.packed import offsets_of, ranges


class Pairs(NamedTuple):
    """Which rows and columns of a table of similarities belong to each pair of a query and a document; all int64.

    Attributes:
        rows: The rows of the words of queries, query after query.
        row_starts: Where each query starts, of shape (queries + 1,).
        columns: The columns of the words of documents, document after document.
        column_starts: Where each document starts, of shape (documents + 1,).
        queries: The query of each group, of shape (groups,).
        documents: The documents of each group, of shape (groups, documents per group).
    """

    rows: np.ndarray
    row_starts: np.ndarray
    columns: np.ndarray
    column_starts: np.ndarray
    queries: np.ndarray
    documents: np.ndarray

    @classmethod
    def of(cls, groups: WordGroups) -> "Pairs":
        """The pairs of a batch; the table is that of its distinct words."""
        queries, documents = groups.queries, groups.documents
        arrays = queries.words, queries.offsets, documents.words, documents.offsets, groups.query_rows
        return cls(*(array.numpy() for array in (*arrays, groups.document_rows)))

    @classmethod
    def of_cells(cls, query_lengths: Tensor, lengths: Tensor, height: int) -> "Pairs":
        """Pairs whose cells are stacked in the table, one pair below the other; each pair is a group of its own.

        Args:
            query_lengths: Words of the query of each pair, int64 of shape (pairs,).
            lengths: Words of its document.
            height: Rows of each pair.
        """
        numbers = np.arange(len(lengths))
        row_lengths, column_lengths = query_lengths.numpy(), lengths.numpy()
        rows = ranges(numbers * height, row_lengths)
        columns = ranges(np.zeros_like(numbers), column_lengths)
        return cls(rows, offsets_of(row_lengths), columns, offsets_of(column_lengths), numbers, numbers[:, None])

    @property
    def query_words(self) -> int:
        """Words of the longest query, at least 1."""
        return max(1, int(np.diff(self.row_starts).max(initial=0)))

    @property
    def document_words(self) -> int:
        """Words of the longest document, at least 1."""
        return max(1, int(np.diff(self.column_starts).max(initial=0)))


class PooledNetwork(SimilarityNetwork):
    """Base of the networks for which, on a CPU, one loop looks up the similarities of each pair and pools them.

    It looks them up in a table of those of distinct words, where making the table takes less work than all pairs.
    """

    def forward(self, groups: WordGroups) -> Tensor:
        """Scores, float32 of shape (groups, documents)."""
        queries, documents = groups.queries, groups.documents
        if groups.query_rows.device.type != "cpu":
            return self.score_cells(self.interaction(groups))
        pairs = Pairs.of(groups)
        if not self.table_pays(groups, groups.document_rows.numel() * pairs.query_words * pairs.document_words):
            return self.score_cells(self.interaction(groups))
        places, is_word = (one[groups.query_rows] for one in queries.padded())
        pooled = self.pool_pairs(self.similarities(queries.ids, documents.ids), pairs)
        return self.score_pooled(pooled, is_word, self.query_features(queries, places))

    def score_cells(self, interaction: Interaction) -> Tensor:
        """Scores, float32 of shape (groups, documents)."""
        return self.score_pooled(self.pool(interaction), interaction.query_mask, interaction.features)

    @abstractmethod
    def pool(self, interaction: Interaction) -> Tensor:
        """The pooled cells, of shape (groups, documents, ...); cells that the mask leaves out do not count."""

    @abstractmethod
    def pool_pairs(self, table: Tensor, pairs: Pairs) -> Tensor:
        """The same on a CPU, from a table of similarities, float32."""

    @abstractmethod
    def score_pooled(self, pooled: Tensor, query_mask: Tensor, features: Tensor | None) -> Tensor:
        """Scores, float32 of shape (groups, documents).

        Args:
            pooled: What :meth:`pool` returns.
            query_mask: Whether there is a query word, bool of shape (groups, query words).
            features: What :meth:`query_features` returns.
        """


def largest_of_pairs(table: Tensor, pairs: Pairs, count: int) -> Tensor:
    """The largest similarities of each query word with words of each document, in falling order; zeros if fewer.

    Args:
        table: Similarities, float32.
        pairs: Rows and columns of each pair.
        count: How many.

    Returns:
        Shape (groups, documents, words of the longest query, count).
    """
    return _Largest.apply(table, pairs, count)


class _Largest(torch.autograd.Function):
    """See :func:`largest_of_pairs`."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, pairs: Pairs, count: int) -> Tensor:
        words = pairs.query_words, pairs.document_words
        values, columns = _largest(table.detach().contiguous().numpy(), *pairs, *words, count)
        ctx.pairs, ctx.columns, ctx.shape = pairs, columns, table.shape
        return torch.from_numpy(values)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        total = gradient.new_zeros(ctx.shape)
        _add_to_cells(total.numpy(), gradient.contiguous().numpy(), ctx.columns, *ctx.pairs)
        return total, None, None


@compiled
def _largest(
    table: np.ndarray,
    rows: np.ndarray,
    row_starts: np.ndarray,
    columns: np.ndarray,
    column_starts: np.ndarray,
    queries: np.ndarray,
    documents: np.ndarray,
    query_words: int,
    document_words: int,
    count: int,
) -> tuple[np.ndarray, np.ndarray]:
    """The largest values, and the column of each, int32; -1 where there are fewer."""
    shape = (*documents.shape, query_words, count)
    values, places = np.zeros(shape, dtype=np.float32), np.full(shape, -1, dtype=np.int32)
    line = np.empty(document_words, dtype=np.float32)
    for group, number in np.ndindex(documents.shape):
        query, document = queries[group], documents[group, number]
        first, start = row_starts[query], column_starts[document]
        width = column_starts[document + 1] - start
        for word in range(row_starts[query + 1] - first):
            of_row = table[rows[first + word]]
            for place in range(width):
                line[place] = of_row[columns[start + place]]
            best, best_columns = values[group, number, word], places[group, number, word]
            least, found = -np.inf, 0
            for place in range(width):
                value = line[place]
                if found < count:
                    found += 1
                elif not (value > least or value != value):  # nothing is above NaN, so it stays
                    continue
                last = found - 1
                while last > 0 and (value > best[last - 1] or value != value):
                    best[last], best_columns[last] = best[last - 1], best_columns[last - 1]
                    last -= 1
                best[last], best_columns[last] = value, columns[start + place]
                least = best[count - 1]
    return values, places


@compiled
def _add_to_cells(
    total: np.ndarray,
    gradient: np.ndarray,
    places: np.ndarray,
    rows: np.ndarray,
    row_starts: np.ndarray,
    columns: np.ndarray,
    column_starts: np.ndarray,
    queries: np.ndarray,
    documents: np.ndarray,
) -> None:
    """Add the gradients of the largest values to those of the table."""
    for group, number in np.ndindex(documents.shape):
        first, last = row_starts[queries[group]], row_starts[queries[group] + 1]
        for word in range(last - first):
            of_row = total[rows[first + word]]
            for rank in range(places.shape[3]):
                column = places[group, number, word, rank]
                if column >= 0:
                    of_row[column] += gradient[group, number, word, rank]
