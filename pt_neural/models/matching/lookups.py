"""Pairs of texts whose similarities are looked up in a table, so that compiled loops read them without padding."""

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pt_neural.models.matching.layers import LEAST_LENGTH, Interaction, SimilarityNetwork, WordVectors
from pt_neural.rankers.readers.word_sequences import WordGroups
from pt_neural.text.compiled import compiled
from pt_neural.text.packed import offsets_of, ranges

LOOP_COSTS_LESS = 2  # than the table by a matrix product, for so many times its cosines; with one thread


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
    def cells(self) -> int:
        """Similarities of all pairs, equal words of a text counted apart."""
        lengths, others = np.diff(self.row_starts), np.diff(self.column_starts)
        return int((lengths[self.queries][:, None] * others[self.documents]).sum())

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
        if self.loop_pays(groups, pairs):
            table = cosines_of_pairs(self.vectors, queries.ids, documents.ids, pairs)
        else:
            table = self.similarities(queries.ids, documents.ids)
        return self.score_pooled(self.pool_pairs(table, pairs), is_word, self.query_features(queries, places))

    def loop_pays(self, groups: WordGroups, pairs: Pairs) -> bool:
        """Whether a loop over the cosines that are read takes less time than a matrix product, which has all threads.

        Args:
            groups: The texts.
            pairs: Their pairs.
        """
        table = len(groups.queries.ids) * len(groups.documents.ids)
        few = pairs.cells * torch.get_num_threads() <= LOOP_COSTS_LESS * table
        return self.similarity == "cosine" and few and self.vectors.table.dtype == torch.float32

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


def cosines_of_pairs(vectors: WordVectors, queries: Tensor, documents: Tensor, pairs: Pairs) -> Tensor:
    """Cosines as :meth:`WordVectors.cosines` computes them, but only for words of the same pair; 0 for others.

    Args:
        vectors: The word vectors, float32.
        queries: Ids of the distinct query words.
        documents: Ids of the distinct document words.
        pairs: Which of them belong together.

    Returns:
        Shape (query words, document words).
    """
    return _CosinesOfPairs.apply(vectors.table, vectors.scales, queries, documents, pairs)


class _CosinesOfPairs(torch.autograd.Function):
    """See :func:`cosines_of_pairs`; the derivatives are those of :meth:`WordVectors.cosines`."""

    @staticmethod
    def forward(
        ctx: Any, table: Tensor, scales: Tensor | None, queries: Tensor, documents: Tensor, pairs: Pairs
    ) -> Tensor:
        ids = queries.numpy(), documents.numpy()
        rows = [np.minimum(one, len(table) - 1) for one in ids]  # the last one is not a word's
        vectors = table.detach().numpy()
        of_words = [_unit_scales(vectors, one) if scales is None else scales.numpy()[one] for one in rows]
        units = vectors[rows[0]] * of_words[0][:, None]
        cosines = _cosines(vectors, units, rows[1], of_words[1], *ids, *pairs)
        ctx.save_for_backward(table)
        ctx.parts = cosines, units, *rows, *of_words, *ids
        return torch.from_numpy(cosines)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None, None]:
        table = ctx.saved_tensors[0].detach()
        total = torch.zeros_like(table)
        _add_to_vectors(total.numpy(), gradient.contiguous().numpy(), table.numpy(), *ctx.parts)
        total[-1] = 0
        return total, None, None, None, None


@compiled
def _unit_scales(vectors: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The factors that make unit vectors of these rows."""
    scales = np.empty(len(rows), dtype=np.float32)
    for number, row in enumerate(rows):
        vector, square = vectors[row], np.float32(0)
        for component in range(len(vector)):
            square += vector[component] * vector[component]
        scales[number] = 1 / max(np.sqrt(square), LEAST_LENGTH)
    return scales


@compiled
def _cosines(
    vectors: np.ndarray,
    units: np.ndarray,
    document_rows: np.ndarray,
    document_scales: np.ndarray,
    query_ids: np.ndarray,
    document_ids: np.ndarray,
    rows: np.ndarray,
    row_starts: np.ndarray,
    columns: np.ndarray,
    column_starts: np.ndarray,
    queries: np.ndarray,
    documents: np.ndarray,
) -> np.ndarray:
    """The cosines of words of the same pair, each once for a group; 0 elsewhere."""
    cosines = np.zeros((len(query_ids), len(document_ids)), dtype=np.float32)
    seen = np.full(len(document_ids), -1, dtype=np.int64)  # the last group that had each document word
    for group, number in np.ndindex(documents.shape):
        query, document = queries[group], documents[group, number]
        for position in range(column_starts[document], column_starts[document + 1]):
            column = columns[position]
            if seen[column] == group:
                continue
            seen[column] = group
            vector, scale = vectors[document_rows[column]], document_scales[column]
            last = row_starts[query + 1] - 1
            for word in range(row_starts[query], last + 1, 4):  # four at a time, so that a vector is read for all
                row = rows[word], rows[min(word + 1, last)], rows[min(word + 2, last)], rows[min(word + 3, last)]
                unit_0, unit_1, unit_2, unit_3 = units[row[0]], units[row[1]], units[row[2]], units[row[3]]
                of_0 = of_1 = of_2 = of_3 = np.float32(0)
                for component in range(len(vector)):
                    value = vector[component]
                    of_0 += unit_0[component] * value
                    of_1 += unit_1[component] * value
                    of_2 += unit_2[component] * value
                    of_3 += unit_3[component] * value
                products = of_0, of_1, of_2, of_3
                for place in range(4):
                    is_same = query_ids[row[place]] == document_ids[column]
                    cosines[row[place], column] = 1 if is_same else products[place] * scale
    return cosines


@compiled
def _add_to_vectors(
    total: np.ndarray,
    gradient: np.ndarray,
    vectors: np.ndarray,
    cosines: np.ndarray,
    units: np.ndarray,
    query_rows: np.ndarray,
    document_rows: np.ndarray,
    query_scales: np.ndarray,
    document_scales: np.ndarray,
    query_ids: np.ndarray,
    document_ids: np.ndarray,
) -> None:
    """Add the gradients of cosines, most of which are 0, to those of the vectors."""
    of_units, shares = np.zeros_like(units), np.zeros(len(units), dtype=np.float32)
    for column in range(len(document_ids)):  # so that the vector of a document's word is read once
        vector, of_vector = vectors[document_rows[column]], total[document_rows[column]]
        scale, share = document_scales[column], np.float32(0)
        for row in range(len(query_ids)):
            factor = gradient[row, column]
            if factor == 0 or query_ids[row] == document_ids[column]:
                continue
            shares[row] += factor * cosines[row, column]
            share += factor * cosines[row, column]
            factor *= scale
            unit, of_unit = units[row], of_units[row]
            for component in range(len(vector)):
                of_vector[component] += factor * unit[component]
                of_unit[component] += factor * vector[component]
        if share != 0:
            for component in range(len(vector)):
                of_vector[component] -= share * scale * scale * vector[component]
    for row in range(len(query_ids)):
        of_vector, scale = total[query_rows[row]], query_scales[row]
        for component in range(len(of_vector)):
            of_vector[component] += scale * (of_units[row, component] - shares[row] * units[row, component])


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
