"""aNMM, the attention-based neural matching model (Yang, Ai, Guo and Croft, 2016)."""

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Unpack

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.models.matching.layers import Interaction, WordVectors, gate_weights, masked_log_softmax
from pt_neural.models.matching.lookups import Pairs, PooledNetwork
from pt_neural.models.matching.ranker import TRAINED_VECTORS, TRAINING, Embeddings, MatchingRanker, for_few
from pt_neural.rankers.options import TrainedOptions
from pt_neural.rankers.readers.word_sequences import WordSequences, WordTexts
from pt_neural.text.compiled import compiled

EXACT = np.float32(1 - 1e-6)  # cosines above count as 1


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
    aNMM is another model: its hidden layers have ReLU, and padding falls into the bin of 0. A cosine at the edge of two
    bins may fall into either of them, depending on what is computed with it; with 600 bins, one score in a hundred then
    differs in the fourth digit from batch to batch. Training is pairwise with a margin of 1 and a rate of 0.01, ten
    times that of the other rankers over similarities.

    The recipes for up to tens of thousands of queries train the word vectors, with a softmax over the documents of a
    query, a rate of 0.001 and up to 100 epochs; this did best of four settings on the dev queries of two collections.

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
    recipes: ClassVar[dict[str, dict[str, Any]]] = for_few(**TRAINED_VECTORS, epochs=100, learning_rate=1e-3)
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


class ANMMNetwork(PooledNetwork):
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
        """The gate's output for each query word, before the softmax."""
        return gate_weights(self.gate, self.vectors, queries, places)

    def pool(self, interaction: Interaction) -> Tensor:
        """x, the sum of the cosines in each bin: (groups, documents, query words, bins)."""
        cells = interaction.cells.float() * interaction.mask
        equal_width = ((cells.detach() + 1) / 2 * (self.bins - 1)).long().clamp(0, self.bins - 2)
        bins = torch.where(cells.detach() > EXACT, self.bins - 1, equal_width)
        return cells.new_zeros(*cells.shape[:-1], self.bins).scatter_add(-1, bins, cells)

    def pool_pairs(self, table: Tensor, pairs: Pairs) -> Tensor:
        """The same from a table of cosines."""
        return _Sums.apply(table, pairs, self.bins)

    def score_pooled(self, pooled: Tensor, query_mask: Tensor, features: Tensor) -> Tensor:
        """Scores; in training, 2y - 1."""
        outputs = self.values(pooled)  # (groups, documents, query words, nodes)
        if self.joined is not None:
            outputs = self.joined(torch.sigmoid(outputs))
        outputs = outputs.squeeze(-1).float()  # (groups, documents, query words)
        gates = masked_log_softmax(features.squeeze(-1), query_mask)[:, None]
        if self.training:
            return 2 * (gates.exp() * torch.sigmoid(outputs)).sum(-1) - 1
        above, below = gates + F.logsigmoid(outputs), gates + F.logsigmoid(-outputs)
        return (above.logsumexp(-1) - below.logsumexp(-1)) / 2


class _Sums(torch.autograd.Function):
    """The sums of the cosines of each query word with the words of each document, by bin."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, pairs: Pairs, bins: int) -> Tensor:
        ctx.save_for_backward(table)
        ctx.pairs = pairs
        sums = table.new_zeros(*pairs.documents.shape, pairs.query_words, bins)
        _add_up(table.detach().contiguous().numpy(), sums.numpy(), *pairs)
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        table = ctx.saved_tensors[0].detach().contiguous()
        total = torch.zeros_like(table)
        _add_gradients(table.numpy(), gradient.contiguous().numpy(), total.numpy(), *ctx.pairs)
        return total, None, None


compiled_exactly = partial(compiled, exact=True)  # so that bins are those of PyTorch's operations


@compiled_exactly
def _bin_of(cosine: float, bins: int) -> int:
    if cosine > EXACT:
        return bins - 1
    if cosine >= -1:
        return min(int((cosine + np.float32(1)) / np.float32(2) * np.float32(bins - 1)), bins - 2)
    return 0  # also NaN


@compiled_exactly
def _add_up(
    table: np.ndarray,
    sums: np.ndarray,
    rows: np.ndarray,
    row_starts: np.ndarray,
    columns: np.ndarray,
    column_starts: np.ndarray,
    queries: np.ndarray,
    documents: np.ndarray,
) -> None:
    """Add each cosine to the sum of its bin."""
    for group, number in np.ndindex(documents.shape):
        query, document = queries[group], documents[group, number]
        first = row_starts[query]
        for word in range(row_starts[query + 1] - first):
            of_row, of_word = table[rows[first + word]], sums[group, number, word]
            for place in range(column_starts[document], column_starts[document + 1]):
                cosine = of_row[columns[place]]
                of_word[_bin_of(cosine, len(of_word))] += cosine


@compiled_exactly
def _add_gradients(
    table: np.ndarray,
    gradient: np.ndarray,
    total: np.ndarray,
    rows: np.ndarray,
    row_starts: np.ndarray,
    columns: np.ndarray,
    column_starts: np.ndarray,
    queries: np.ndarray,
    documents: np.ndarray,
) -> None:
    """Add to the gradient of each cosine that of its bin's sum."""
    for group, number in np.ndindex(documents.shape):
        query, document = queries[group], documents[group, number]
        first = row_starts[query]
        for word in range(row_starts[query + 1] - first):
            row, of_word = rows[first + word], gradient[group, number, word]
            for place in range(column_starts[document], column_starts[document + 1]):
                column = columns[place]
                total[row, column] += of_word[_bin_of(table[row, column], len(of_word))]
