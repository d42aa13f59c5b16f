"""The network of SSM, query and document embeddings from their words in context (Jaech et al., 2017, section 5.3)."""

from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from pt_neural.models.text_encoders import TextEncoders, max_over_texts
from pt_neural.rankers.embedded import EmbeddedGroups, EmbeddedTexts
from pt_neural.rankers.pair_scores import Queries
from pt_neural.rankers.pairs import Matches

DocumentPooling = Literal["max", "attention"]


class SSMNetwork(nn.Module):
    """The dot product of a query's and a document's embedding, before its sigmoid.

    Args:
        encoders: What reads the words of both sides.
        query_width: Length of what the query's encoder gives.
        document_width: Length of what the documents' gives.
        hidden: Length of the embeddings.
        pooling: How the words of a document become one vector: the largest value of each unit, or an average with
            weights that depend on the query (section 5.7).
    """

    def __init__(
        self, encoders: TextEncoders, query_width: int, document_width: int, hidden: int, pooling: DocumentPooling
    ):
        super().__init__()
        self.encoders, self.pooling = encoders, pooling
        self.query_whole, self.document_whole = nn.Linear(query_width, hidden), nn.Linear(document_width, hidden)
        if pooling == "attention":
            self.query_attention = nn.Linear(query_width, hidden)
            self.document_attention = nn.Linear(document_width, hidden)

    def num_rows(self, lengths: np.ndarray) -> np.ndarray:
        """Rows of documents with so many words."""
        return lengths if self.pooling == "attention" else np.ones_like(lengths)

    def read_queries(self, texts: EmbeddedTexts) -> Queries:
        """Query embeddings; with attention, and what each query looks for beside them as its only word."""
        _, whole = self.encoders("query", texts)
        sought = whole.new_zeros(len(whole), 1, 0)
        if self.pooling == "attention":
            sought = torch.relu(self.query_attention(whole))[:, None]
        return Queries(sought, torch.ones_like(texts.offsets[1:]), self.query_whole(whole))

    def read_documents(self, texts: EmbeddedTexts) -> tuple[Tensor, Tensor]:
        """What of documents does not depend on the query, and where each starts.

        Returns:
            Document embeddings, float32 of shape (documents, hidden); with attention, the state of each word. And
            where each document starts, int64 of shape (documents + 1,).
        """
        states, _ = self.encoders("document", texts)
        if self.pooling == "attention":
            return states, texts.offsets
        vectors = self.document_whole(max_over_texts(states, texts.offsets))
        return vectors, torch.arange(len(vectors) + 1, device=vectors.device)

    def match(
        self, queries: Queries, rows: Tensor, offsets: Tensor, document_rows: Tensor, matches: Matches | None
    ) -> Tensor:
        """Scores of documents before the sigmoid.

        Args:
            queries: A query for each group.
            rows: What :meth:`read_documents` gives.
            offsets: Likewise.
            document_rows: Documents of each group, int64 of shape (groups, documents a group).
            matches: Not looked at.

        Returns:
            float32 of shape (groups, documents a group).
        """
        if self.pooling == "attention":
            vectors = self.document_whole(self._attended(queries.words, rows, offsets, document_rows))
        else:
            vectors = rows[document_rows]
        return (vectors @ queries.whole[..., None]).squeeze(2)

    def _attended(self, sought: Tensor, states: Tensor, offsets: Tensor, document_rows: Tensor) -> Tensor:
        """Averages of the states of documents, weighted by a softmax of their likeness to what a query looks for."""
        lengths = offsets.diff()[document_rows][..., None]
        steps = torch.arange(max(1, int(lengths.max())), device=states.device)
        places = torch.where(steps < lengths, offsets[:-1][document_rows][..., None] + steps, len(states))
        padded = nn.functional.pad(states, (0, 0, 0, 1))
        offered = torch.relu(self.document_attention(padded))
        likeness = (nn.functional.embedding(places, offered) @ sought[:, None].transpose(2, 3)).squeeze(3)
        weights = torch.softmax(likeness.masked_fill(steps >= lengths, -1e9), dim=2)  # an empty text averages zeros
        return (weights[:, :, None] @ nn.functional.embedding(places, padded)).squeeze(2)

    def encode(self, side: Literal["query", "document"], texts: EmbeddedTexts) -> Tensor:
        """Embeddings of texts, float32 of shape (texts, hidden); zero for texts without any known word."""
        if side == "query":
            vectors = self.read_queries(texts).whole
        else:
            vectors, _ = self.read_documents(texts)
        return vectors * texts.known[:, None]

    def forward(self, inputs: EmbeddedGroups) -> Tensor:
        """Scores before the sigmoid, float32 of shape (groups, documents a group)."""
        queries = self.read_queries(inputs.queries).take(inputs.query_rows)
        rows, offsets = self.read_documents(inputs.documents)
        return self.match(queries, rows, offsets, inputs.document_rows, inputs.matches)
