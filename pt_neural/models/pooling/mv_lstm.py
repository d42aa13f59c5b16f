"""MV-LSTM, matching with multiple positional sentence representations (Wan, Lan, Guo, Xu, Pang and Cheng, 2016)."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.models.matching.encoders import RecurrentEncoder
from pt_neural.models.matching.layers import LEAST_LENGTH, ContextNetwork, Interaction, WordVectors, largest
from pt_neural.models.matching.ranker import Embeddings, MatchingRanker
from pt_neural.rankers.options import KeptInteractionOptions
from pt_neural.rankers.readers.word_sequences import WordSequences, WordTexts

StateSimilarity = Literal["cosine", "bilinear", "tensor"]


class MVLSTM(MatchingRanker):
    """Each word in its context by a bi-directional LSTM, and the k strongest matches of such words.

    The states u_i of query words and v_j of document words are compared by cosine, by a bilinear form, or by a tensor
    layer, which gives several similarities::

        cosine:   S_ij = cos(u_i, v_j)
        bilinear: S_ij = u_i . M v_j + b
        tensor:   S_ijc = relu(u_i . M_c v_j + W_c . [u_i; v_j] + b_c)

    The k largest similarities of all pairs of words, of each slice c, in falling order, go through a hidden layer::

        s = W_s relu(W_r kmax(S) + b_r) + b_s

    Query and document have an LSTM each, those of Match-Tensor. Words without a vector are zeros. Where there are fewer
    than k pairs, zeros follow; MatchZoo's MV-LSTM, which has cosines only, also reads padding. Training is pairwise
    with a margin of 1.

    :meth:`index` keeps the states of documents: ``2 * units`` numbers for each word.

    Args:
        spaces: The word embeddings.
        space: Which of a word's two vectors to take, ``"in"`` or ``"out"``.
        embeddings: ``"frozen"``; or ``"trained"``, so that training starts from these vectors.
        similarity: ``"tensor"``, the best in the paper; ``"bilinear"`` or ``"cosine"``.
        slices: Slices of the tensor layer.
        units: Units of each direction of the LSTMs; 50 in the paper.
        top_k: How many similarities of each slice are read.
        hidden: Units of the hidden layer.
        query_terms: Number of words of a query that are read.
        document_terms: Number of words of a document that are read.

    Raises:
        TypeError: If an argument is of another kind than described.
        ValueError: If a size is out of range or a choice unknown.

    Example::

        mv_lstm = pn.MVLSTM(pn.EmbeddingSpaces.train(docs.get_corpus_iter()), similarity="cosine")
        (candidates >> mv_lstm).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
        mv_lstm.representations = mv_lstm.index("kept", docs.get_corpus_iter())
    """

    schematic = {"label": "MVLSTM", "help_url": None}
    artifact_format = "mv-lstm"
    options_type: ClassVar[type] = KeptInteractionOptions
    small_sizes: ClassVar[dict[str, Any]] = {**MatchingRanker.small_sizes, "units": 20, "slices": 1}
    least: ClassVar[Mapping[str, int]] = {"slices": 1, "units": 1, "top_k": 1, "hidden": 1}
    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {"similarity": ("cosine", "bilinear", "tensor")}

    def __init__(
        self,
        spaces: EmbeddingSpaces,
        *,
        space: Space = "in",
        embeddings: Embeddings = "frozen",
        similarity: StateSimilarity = "tensor",
        slices: int = 4,
        units: int = 50,
        top_k: int = 10,
        hidden: int = 20,
        query_terms: int = 10,
        document_terms: int = 200,
        **options: Unpack[KeptInteractionOptions],
    ):
        self.similarity, self.slices, self.units, self.top_k, self.hidden = similarity, slices, units, top_k, hidden
        sizes = {"query_terms": query_terms, "document_terms": document_terms}
        super().__init__(spaces, space=space, embeddings=embeddings, **sizes, **options)

    def make_network(self, reader: WordSequences) -> "MVLSTMNetwork":
        """A new network."""
        slices = self.slices if self.similarity == "tensor" else 1
        return MVLSTMNetwork(self.word_vectors(reader), self.similarity, slices, self.units, self.top_k, self.hidden)


class MVLSTMNetwork(ContextNetwork):
    """Two encoders, similarities of states, the strongest of them, and a hidden layer.

    Args:
        vectors: The word vectors.
        similarity: How states are compared.
        slices: How many similarities each pair of states has.
        units: Units of each direction of the LSTMs.
        top_k: Similarities of each slice that are read.
        hidden: Units of the hidden layer.
    """

    piecewise_linear = True

    def __init__(
        self, vectors: WordVectors, similarity: StateSimilarity, slices: int, units: int, top_k: int, hidden: int
    ):
        super().__init__(vectors)
        self.similarity, self.top_k, self.columns = similarity, top_k, 2 * units
        self.query, self.document = (RecurrentEncoder(vectors.dim, units, dropout=0) for _ in range(2))
        if similarity != "cosine":
            bound = self.columns**-0.5
            self.bilinear = nn.Parameter(torch.empty(slices, self.columns, self.columns).uniform_(-bound, bound))
            self.bias = nn.Parameter(torch.zeros(slices))
        if similarity == "tensor":
            self.query_part = nn.Linear(self.columns, slices, bias=False)
            self.document_part = nn.Linear(self.columns, slices, bias=False)
        self.hidden, self.output = nn.Linear(slices * top_k, hidden), nn.Linear(hidden, 1)

    def encode(self, side: Literal["query", "document"], texts: WordTexts) -> Tensor:
        """The state of each word: (words, 2 * units)."""
        vectors = self.vectors(texts.ids)
        with torch.autocast(vectors.device.type, enabled=False):  # which PyTorch's LSTM of a CPU lacks
            return getattr(self, side).lstm.of_distinct(vectors, texts.words, texts.offsets)

    def cells(self, queries: Tensor, documents: Tensor) -> Tensor:
        """Similarities of states: (groups, documents, slices, query words, document words)."""
        if self.similarity == "cosine":
            lengths = documents.norm(dim=-1).clamp(min=LEAST_LENGTH)  # divide products, which are fewer than components
            return (F.normalize(queries, dim=-1)[:, None] @ documents.mT / lengths[:, :, None])[:, :, None]
        turned = queries[:, None] @ self.bilinear  # (groups, slices, query words, columns)
        cells = turned[:, None] @ documents[:, :, None].mT + self.bias[:, None, None]
        if self.similarity == "bilinear":
            return cells
        by_query = self.query_part(queries).mT[:, None, :, :, None]  # (groups, 1, slices, query words, 1)
        by_document = self.document_part(documents).mT[:, :, :, None]  # (groups, documents, slices, 1, words)
        return torch.relu(cells + by_query + by_document)

    def score_cells(self, interaction: Interaction) -> Tensor:
        """Scores."""
        cells, mask = interaction.cells.flatten(-2), interaction.mask.flatten(-2)[:, :, None]
        strongest = largest(cells, mask, self.top_k).flatten(2)  # (groups, documents, slices * k)
        return self.output(torch.relu(self.hidden(strongest))).squeeze(-1)
