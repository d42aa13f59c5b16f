"""aNMM, the attention-based neural matching model (Yang, Ai, Guo and Croft, 2016)."""

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.models.matching.layers import (
    Interaction,
    SimilarityNetwork,
    WordVectors,
    masked_log_softmax,
    query_vectors,
)
from pt_neural.models.matching.ranker import TRAINING, Embeddings, MatchingRanker
from pt_neural.rankers.options import TrainedOptions
from pt_neural.rankers.readers.word_sequences import WordSequences, WordTexts


class ANMM(MatchingRanker):
    """Similarities are weighted by their value, not by their place, and query words by attention.

    The cosines of query word j with the words of the document are added up in bins of equal width; those of 1 have a
    bin of their own. With x_jk the sum of bin k, the score of aNMM-1 is::

        h_j = sigmoid(sum_k w_k x_jk)
        y = sum_j softmax(v . q)_j h_j

    With ``nodes`` above 1, aNMM-2 has several sets of weights, whose sigmoids another one weighs::

        h_j = sigmoid(sum_t r_t sigmoid(sum_k w_kt x_jk))

    The network is trained on 2y - 1; the score is atanh(2y - 1), computed so that it ranks as y does, without ties
    where sigmoids are flat. Words without a vector have a cosine of 1 with themselves and 0 with all others. MatchZoo's
    aNMM is another model: its hidden layers have ReLU, and padding falls into the bin of 0.

    Args:
        spaces: The word embeddings; 700 dimensions in the paper.
        space: Which of a word's two vectors to take, ``"in"`` or ``"out"``.
        embeddings: ``"frozen"``; or ``"trained"``, so that training starts from these vectors.
        bins: Bins, including that of cosines of 1; 21 are 0.1 wide. The paper chose 600 on its dev questions.
        nodes: Sets of weights: 1 for aNMM-1, more for aNMM-2.
        query_terms: Number of words of a query that are read.
        document_terms: Number of words of a document that are read.

    Raises:
        TypeError: If an argument is of another kind than described.
        ValueError: If a size is out of range or a choice unknown.

    Example::

        anmm = pn.ANMM(pn.EmbeddingSpaces.train(docs.get_corpus_iter()), bins=200)
        (candidates >> anmm).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
        pn.explain(anmm, "pairwise distance", text).plot()
    """

    schematic = {"label": "ANMM", "help_url": None}
    artifact_format = "anmm"
    own_training: ClassVar[dict[str, Any]] = {**TRAINING, "learning_rate": 1e-2}
    least: ClassVar[Mapping[str, int]] = {"bins": 2, "nodes": 1}

    def __init__(
        self,
        spaces: EmbeddingSpaces,
        *,
        space: Space = "in",
        embeddings: Embeddings = "frozen",
        bins: int = 21,
        nodes: int = 1,
        query_terms: int = 20,
        document_terms: int = 200,
        **options: Unpack[TrainedOptions],
    ):
        self.bins, self.nodes = bins, nodes
        sizes = {"query_terms": query_terms, "document_terms": document_terms}
        super().__init__(spaces, space=space, embeddings=embeddings, **sizes, **options)

    def make_network(self, reader: WordSequences) -> "ANMMNetwork":
        """A new network."""
        return ANMMNetwork(self.word_vectors(reader), self.bins, self.nodes)


class ANMMNetwork(SimilarityNetwork):
    """Sums of cosines by value, weights for each value, and a gate.

    Args:
        vectors: The word vectors.
        bins: Bins, including that of cosines of 1.
        nodes: Sets of weights.
    """

    def __init__(self, vectors: WordVectors, bins: int, nodes: int):
        super().__init__(vectors)
        self.bins = bins
        self.values = nn.Linear(bins, nodes, bias=False)
        self.joined = nn.Linear(nodes, 1, bias=False) if nodes > 1 else None
        self.gate = nn.Linear(vectors.dim, 1, bias=False)
        nn.init.zeros_(self.gate.weight)

    def query_features(self, queries: WordTexts, places: Tensor) -> Tensor:
        """The vectors of query words."""
        return query_vectors(self.vectors, queries, places)

    def sums(self, interaction: Interaction) -> Tensor:
        """x, the sum of the cosines in each bin: (groups, documents, query words, bins)."""
        cells = interaction.cells.float() * interaction.mask
        equal_width = ((cells.detach() + 1) / 2 * (self.bins - 1)).long().clamp(0, self.bins - 2)
        bins = torch.where(cells.detach() > 1 - 1e-6, self.bins - 1, equal_width)
        return cells.new_zeros(*cells.shape[:-1], self.bins).scatter_add(-1, bins, cells)

    def score_cells(self, interaction: Interaction) -> Tensor:
        """Scores; in training, 2y - 1."""
        outputs = self.values(self.sums(interaction))  # (groups, documents, query words, nodes)
        if self.joined is not None:
            outputs = self.joined(torch.sigmoid(outputs))
        outputs = outputs.squeeze(-1).float()  # (groups, documents, query words)
        gates = masked_log_softmax(self.gate(interaction.features).squeeze(-1), interaction.query_mask)[:, None]
        if self.training:
            return 2 * (gates.exp() * torch.sigmoid(outputs)).sum(-1) - 1
        above, below = gates + F.logsigmoid(outputs), gates + F.logsigmoid(-outputs)
        return (above.logsumexp(-1) - below.logsumexp(-1)) / 2
