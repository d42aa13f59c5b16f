"""TK, the transformer-kernel ranking model (Hofstätter, Zlabinger and Hanbury, 2020)."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.models.kernels.knrm import LOG_SCALE
from pt_neural.models.matching.layers import LEAST_COUNT, ContextNetwork, Interaction, KernelPooling, WordVectors
from pt_neural.models.matching.ranker import FAST, TRAINING, Embeddings, MatchingRanker, for_few
from pt_neural.rankers.options import KeptInteractionOptions
from pt_neural.rankers.readers.word_sequences import WordSequences, WordTexts

MEANS = [round(-1 + 0.2 * number, 1) for number in range(11)]
WIDTH = 0.1
LONGEST_PERIOD = 10_000
SLOWER = 0.1  # learning rate of embeddings and layers, as a share of that of the other weights
SMALL = 0.014  # largest weight of a kernel before training, as in the authors' code


class TK(MatchingRanker):
    """Reads words in context by two small transformer layers, and counts soft matches by kernels.

    Query and document are read apart, by the same layers. A word's vector t_i becomes a mixture of itself and its state
    after the transformer, with a learned alpha; sines and cosines of its position are added to what the transformer
    reads. Kernels of width 0.1 over cosines from -1 to 1 count matches as in :class:`~pt_neural.KNRM`; their counts
    enter both as logarithms and divided by the document's length::

        t'_i = alpha t_i + (1 - alpha) transformer(t + p)_i
        K_k(i) = sum_j exp(-(cos(t'_i, t'_j) - mu_k)^2 / (2 sigma_k^2))
        s = beta W_log . sum_i log2 K(i) + gamma W_len . sum_i K(i) / |d|

    Both sums are divided by 100, 16 heads share 32 numbers for each word, and the weights of kernels start within 0.014
    of zero, as in the authors' code: counts pass through two linear layers, and with larger weights some trainings
    started from a ranking upside down and did not turn it. Words without a vector are zeros before their position is
    added. Capreolus' TK is another model: it has no sum by length, and its attention reads padding. Training is
    pairwise with a margin of 1 and Adam, at a rate of 0.001, and of a tenth of that for embeddings and transformer. The
    recipes for up to tens of thousands of queries have a rate of 0.01 and batches of 16, which did far better on the
    dev queries of two collections: at the paper's rate, a few hundred steps ranked worse than the untrained network.

    :meth:`index` keeps the vectors t' of documents: as many numbers as the embeddings have, for each word.

    Args:
        spaces: The word embeddings; 300 dimensions in the paper.
        space: Which of a word's two vectors to take, ``"in"`` or ``"out"``.
        embeddings: ``"trained"``, so that training starts from these vectors; or ``"frozen"``.
        num_layers: Transformer layers.
        heads: Attention heads of each layer.
        projection: Length of the queries, keys and values of all heads together, a multiple of their number.
        hidden: Units of the feed-forward part of each layer.
        query_terms: Number of words of a query that are read.
        document_terms: Number of words of a document that are read.

    Raises:
        TypeError: If an argument is of another kind than described.
        ValueError: If a size is out of range or a choice unknown.

    Example::

        tk = pn.TK(pn.EmbeddingSpaces.train(docs.get_corpus_iter()))
        (candidates >> tk).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
        tk.representations = tk.index("kept", docs.get_corpus_iter())
    """

    schematic = {"label": "TK", "help_url": None}
    artifact_format = "tk"
    options_type: ClassVar[type] = KeptInteractionOptions
    own_training: ClassVar[dict[str, Any]] = {**TRAINING, "batch_size": 32}
    small_sizes: ClassVar[dict[str, Any]] = {**MatchingRanker.small_sizes, "num_layers": 1}
    recipes: ClassVar[dict[str, dict[str, Any]]] = for_few(**FAST, batch_size=16)
    least: ClassVar[Mapping[str, int]] = {"num_layers": 1, "heads": 1, "projection": 1, "hidden": 1}

    def __init__(
        self,
        spaces: EmbeddingSpaces,
        *,
        space: Space = "in",
        embeddings: Embeddings = "trained",
        num_layers: int = 2,
        heads: int = 16,
        projection: int = 32,
        hidden: int = 100,
        query_terms: int = 30,
        document_terms: int = 200,
        **options: Unpack[KeptInteractionOptions],
    ):
        self.num_layers, self.heads, self.projection, self.hidden = num_layers, heads, projection, hidden
        sizes = {"query_terms": query_terms, "document_terms": document_terms}
        super().__init__(spaces, space=space, embeddings=embeddings, **sizes, **options)

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.projection % self.heads:
            raise ValueError(f"projection must be a multiple of heads, {self.heads}, not {self.projection}")

    def make_network(self, reader: WordSequences) -> "TKNetwork":
        """A new network."""
        return TKNetwork(self.word_vectors(reader), self.num_layers, self.heads, self.projection, self.hidden)


class TKNetwork(ContextNetwork):
    """Transformer layers, cosines, kernels, and two linear layers.

    Args:
        vectors: The word vectors.
        num_layers: Transformer layers.
        heads: Attention heads of each layer.
        projection: Length of the queries, keys and values of all heads together.
        hidden: Units of the feed-forward part of each layer.

    Attributes:
        parts: Names of the two sums of counts.
    """

    def __init__(self, vectors: WordVectors, num_layers: int, heads: int, projection: int, hidden: int):
        super().__init__(vectors)
        self.columns = vectors.dim
        self.layers = nn.ModuleList(TransformerLayer(vectors.dim, heads, projection, hidden) for _ in range(num_layers))
        self.alpha = nn.Parameter(torch.tensor(0.5))
        self.pooling, self.parts = KernelPooling(MEANS, WIDTH, exact=False), ["logarithm", "length"]
        self.by_logarithm = nn.Linear(len(MEANS), 1, bias=False)
        self.by_length = nn.Linear(len(MEANS), 1, bias=False)
        self.both = nn.Linear(2, 1, bias=False)  # beta and gamma
        for layer in (self.by_logarithm, self.by_length):
            nn.init.uniform_(layer.weight, -SMALL, SMALL)

    def rate_factors(self) -> list[tuple[nn.Parameter, float]]:
        """Embeddings and layers, which learn at a tenth of the rate of the weights of kernels."""
        fast = {id(layer.weight) for layer in (self.by_logarithm, self.by_length, self.both)}
        return [(weight, SLOWER) for weight in self.parameters() if id(weight) not in fast]

    def encode(self, side: Literal["query", "document"], texts: WordTexts) -> Tensor:
        """Unit vectors of words in context: (words, dimensions)."""
        places, is_word = texts.padded()  # (texts, words)
        words = F.embedding(places, F.pad(self.vectors(texts.ids), (0, 0, 0, 1)))  # (texts, words, dimensions)
        states = words + positions(*words.shape[1:], device=words.device)
        seen = is_word | ~is_word.any(1, keepdim=True)  # an empty text must attend to something
        for layer in self.layers:
            states = layer(states, seen)
        mixed = self.alpha * words + (1 - self.alpha) * states
        return F.normalize(mixed[is_word].float(), dim=-1)

    def cells(self, queries: Tensor, documents: Tensor) -> Tensor:
        """Cosines."""
        with torch.autocast(queries.device.type, enabled=False):
            return queries[:, None].float() @ documents.float().mT

    def kernel_sums(self, interaction: Interaction) -> Tensor:
        """Sums over query words, divided by 100: of logarithms of counts, then of counts by length; (..., 2, 11)."""
        counts = self.pooling(interaction.cells, interaction.mask)  # (groups, documents, query words, kernels)
        logarithms = counts.clamp(min=LEAST_COUNT).log2()
        shares = counts / interaction.lengths.clamp(min=1)[..., None, None]
        both = torch.stack([logarithms, shares], dim=2) * interaction.query_mask[:, None, None, :, None]
        return LOG_SCALE * both.sum(-2)

    def score_cells(self, interaction: Interaction) -> Tensor:
        """Scores."""
        logarithms, shares = self.kernel_sums(interaction).unbind(2)  # (groups, documents, kernels)
        parts = torch.cat([self.by_logarithm(logarithms), self.by_length(shares)], dim=-1)
        return self.both(parts).squeeze(-1)

    def kernel_contributions(self, interaction: Interaction) -> Tensor:
        """What each kernel adds to the score: (groups, documents, parts, kernels)."""
        weights = torch.cat([self.by_logarithm.weight, self.by_length.weight])  # (2, kernels)
        return self.both.weight[0, :, None] * weights * self.kernel_sums(interaction)


class TransformerLayer(nn.Module):
    """Self-attention and a feed-forward part, each added to its input and normalised (Vaswani et al., 2017).

    Args:
        dim: Length of the states.
        heads: Attention heads.
        projection: Length of the queries, keys and values of all heads together.
        hidden: Units of the feed-forward part.
    """

    def __init__(self, dim: int, heads: int, projection: int, hidden: int):
        super().__init__()
        self.heads = heads
        self.attended = nn.Linear(dim, 3 * projection)
        self.joined = nn.Linear(projection, dim)
        self.hidden, self.output = nn.Linear(dim, hidden), nn.Linear(hidden, dim)
        self.first_norm, self.second_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def forward(self, states: Tensor, is_word: Tensor) -> Tensor:
        """New states, of shape (texts, words, dim); words attend to words only."""
        projected = self.attended(states).unflatten(-1, (3, self.heads, -1))  # (texts, words, 3, heads, size)
        queries, keys, values = projected.permute(2, 0, 3, 1, 4)  # (texts, heads, words, size) each
        attended = F.scaled_dot_product_attention(queries, keys, values, attn_mask=is_word[:, None, None])
        states = self.first_norm(states + self.joined(attended.transpose(1, 2).flatten(2)))
        return self.second_norm(states + self.output(torch.relu(self.hidden(states))))


def positions(words: int, dim: int, *, device: torch.device) -> Tensor:
    """Sines, then cosines, of each position at periods from 2 pi to 10,000 times that: (words, dim)."""
    half = dim // 2
    steps = torch.arange(half, device=device) / max(1, half - 1)
    angles = torch.arange(words, device=device)[:, None] * torch.exp(-math.log(LONGEST_PERIOD) * steps)
    return F.pad(torch.cat([angles.sin(), angles.cos()], dim=1), (0, dim - 2 * half))
