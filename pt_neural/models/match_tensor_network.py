"""The networks of Match-Tensor and its hybrids with SSM (Jaech et al., 2017, sections 3, 5.4 and 5.5)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pt_neural._arguments import checked_choice, checked_number
from pt_neural.models.match_filters import MatchFilters, Tensors
from pt_neural.models.text_encoders import ENCODERS, Encoder, TextEncoders, max_over_texts
from pt_neural.rankers.embedded import EmbeddedGroups, EmbeddedTexts
from pt_neural.rankers.pair_scores import Queries
from pt_neural.rankers.pairs import Matches

Channels = Literal["all", "exact"]
Pooling = Literal["per-word", "global"]


@dataclass(frozen=True)
class Shape:
    """Sizes of the networks (Table 2).

    Attributes:
        projection: Dimensions that word embeddings are projected to.
        document_units: Units of each direction of the document's encoder.
        query_units: Those of the query's.
        tensor_size: Channels of the match tensor beside that of exact matches (k).
        filters: Filters of the first layer, a third of them of each height.
        second_filters: Filters of the second layer.
        hidden: Units of the comparison layer.
        query_terms: Words of a query that are read.
        document_terms: Words of a document that are read, boundaries included.
        dropout: Share of the encoders' inputs and outputs that is dropped in training.
        encoder: Which encoder.
        channels: Whether the match tensor has all channels, or that of exact matches alone.
        pooling: Whether each query word has a largest value of its own, or the pair one of each filter.

    Raises:
        TypeError: If a size is no number.
        ValueError: If a size is out of range, or a choice unknown.
    """

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

    def __post_init__(self):
        for name in self.__annotations__:
            value = getattr(self, name)
            if name in _CHOICES:
                value = checked_choice(name, value, _CHOICES[name])
            elif name == "dropout":
                value = checked_number(name, value, float, least=0)
            else:
                value = checked_number(name, value, int, least=1)
            object.__setattr__(self, name, value)
        if self.dropout >= 1:
            raise ValueError(f"dropout must be below 1, not {self.dropout}")
        if self.filters % 3:
            raise ValueError(f"filters must be a multiple of 3, as many of each height, not {self.filters}")


_CHOICES = {"encoder": ENCODERS, "channels": ("all", "exact"), "pooling": ("per-word", "global")}


class MatchTensorNetwork(nn.Module):
    """From words to the score of a pair, before its sigmoid.

    Args:
        dim: Dimensions of the word embeddings.
        shape: Sizes.
        compares_wholes: Whether query and document are also compared as wholes, as SSM does (sections 5.4 and 5.5).
    """

    def __init__(self, dim: int, shape: Shape, *, compares_wholes: bool):
        super().__init__()
        self.shape, self.compares_wholes = shape, compares_wholes
        self.reads_words = compares_wholes or shape.channels == "all"
        query, document = 2 * shape.query_units, 2 * shape.document_units
        if self.reads_words:
            self.encoders = TextEncoders(
                dim, shape.projection, shape.query_units, shape.document_units, shape.encoder, shape.dropout
            )
        channels = shape.tensor_size if shape.channels == "all" else 0
        if channels:
            self.query_words, self.document_words = nn.Linear(query, channels), nn.Linear(document, channels)
        self.filters = MatchFilters(channels, shape.filters, shape.second_filters)
        pooled = shape.second_filters * (shape.query_terms if shape.pooling == "per-word" else 1)
        if compares_wholes:
            self.query_whole, self.document_whole = nn.Linear(query, shape.hidden), nn.Linear(document, shape.hidden)
            self.output = nn.Linear(pooled + shape.hidden, 1)
        else:
            self.hidden = nn.Linear(pooled, shape.hidden)
            self.output = nn.Linear(shape.hidden, 1)

    @property
    def columns(self) -> int:
        """Length of the rows that a document is kept as."""
        return self.filters.channels or 1

    @property
    def rows_of_whole(self) -> int:
        """Rows, after those of its words, that hold what a document has become as a whole."""
        return -(-self.shape.hidden // self.columns) if self.compares_wholes else 0

    def num_rows(self, lengths: np.ndarray) -> np.ndarray:
        """Rows of documents with so many words."""
        return lengths + self.rows_of_whole

    def read_queries(self, texts: EmbeddedTexts) -> Queries:
        """What is compared of queries."""
        lengths = texts.offsets.diff()
        most = max(1, int(lengths.max())) if len(lengths) else 1
        words = texts.vectors.new_zeros(len(lengths), most, self.filters.channels)
        if not self.reads_words:
            return Queries(words, lengths, None)
        states, whole = self.encoders("query", texts)
        if self.filters.channels:
            there = torch.arange(most, device=lengths.device) < lengths[:, None]
            projected = self.query_words(states)  # of fewer bits in mixed precision
            words = words.to(projected.dtype).masked_scatter(there[..., None], projected)
        return Queries(words, lengths, self.query_whole(whole) if self.compares_wholes else None)

    def read_documents(self, texts: EmbeddedTexts) -> tuple[Tensor, Tensor]:
        """What is compared of documents, which does not depend on the query.

        Returns:
            Rows, document after document, float32 of shape (rows, :attr:`columns`): one for each word, then
            :attr:`rows_of_whole`. And where each document starts, int64 of shape (documents + 1,).
        """
        if not self.reads_words:
            return texts.vectors.new_zeros(len(texts.words), self.columns), texts.offsets
        states, _ = self.encoders("document", texts)
        rows = self.document_words(states) if self.filters.channels else states.new_zeros(len(states), self.columns)
        if not self.compares_wholes:
            return rows, texts.offsets
        whole = self.document_whole(max_over_texts(states, texts.offsets))
        whole = F.pad(whole, (0, self.rows_of_whole * self.columns - self.shape.hidden)).view(-1, self.columns)
        numbers = torch.arange(len(texts.offsets), device=rows.device) * self.rows_of_whole
        offsets = texts.offsets + numbers
        order = torch.argsort(
            torch.cat([_owners(texts.offsets), torch.arange(len(whole), device=rows.device) // self.rows_of_whole]),
            stable=True,
        )
        return torch.cat([rows, whole])[order], offsets

    def match(self, queries: Queries, rows: Tensor, offsets: Tensor, document_rows: Tensor, matches: Matches) -> Tensor:
        """Scores of documents before the sigmoid.

        Args:
            queries: A query for each group.
            rows: What :meth:`read_documents` gives.
            offsets: Likewise.
            document_rows: Documents of each group, int64 of shape (groups, documents a group).
            matches: Exact matches of each pair, group after group.

        Returns:
            float32 of shape (groups, documents a group).
        """
        starts = offsets[:-1][document_rows]
        lengths = offsets.diff()[document_rows] - self.rows_of_whole
        pooled = self.filters(
            Tensors(queries.words, queries.lengths, rows, starts, lengths), matches, self.shape.pooling
        )
        compared = None
        if self.compares_wholes:
            places = (starts + lengths)[..., None] + torch.arange(self.rows_of_whole, device=rows.device)
            whole = rows[places].flatten(2)[..., : self.shape.hidden]
            compared = queries.whole[:, None] * whole
        return self.score(pooled, compared)

    def score(self, pooled: Tensor, compared: Tensor | None) -> Tensor:
        """Scores before the sigmoid from what the filters have found.

        Args:
            pooled: Of shape (..., query words or 1, second filters).
            compared: Products of query and document as wholes, of shape (..., hidden); None if they are not compared.

        Returns:
            float32 of shape (...).
        """
        if self.shape.pooling == "per-word":
            pooled = F.pad(pooled, (0, 0, 0, self.shape.query_terms - pooled.shape[-2]))
        units = pooled.flatten(-2)
        hidden = torch.relu(self.hidden(units)) if compared is None else torch.cat([units, compared], dim=-1)
        return self.output(hidden).squeeze(-1)

    def forward(self, inputs: EmbeddedGroups) -> Tensor:
        """Scores before the sigmoid, float32 of shape (groups, documents a group)."""
        queries = self.read_queries(inputs.queries)
        queries = queries.take(inputs.query_rows)
        rows, offsets = self.read_documents(inputs.documents)
        return self.match(queries, rows, offsets, inputs.document_rows, inputs.matches)


def _owners(offsets: Tensor) -> Tensor:
    """The text of each word."""
    return torch.repeat_interleave(torch.arange(len(offsets) - 1, device=offsets.device), offsets.diff())
