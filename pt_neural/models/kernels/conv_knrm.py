"""ConvKNRM, KNRM over n-grams that convolutions make (Dai, Xiong, Callan and Liu, 2018)."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.models.kernels.knrm import LOG_SCALE, MEANS, WIDTH
from pt_neural.models.matching.layers import (
    LEAST_COUNT,
    ContextNetwork,
    Interaction,
    KernelPooling,
    WindowSums,
    WordVectors,
)
from pt_neural.models.matching.ranker import FAST_RECIPES, Embeddings, MatchingRanker
from pt_neural.rankers.options import KeptInteractionOptions
from pt_neural.rankers.readers.word_sequences import WordSequences, WordTexts


class ConvKNRM(MatchingRanker):
    """Makes vectors of n-grams by convolutions, and counts soft matches of n-grams by kernels as KNRM does.

    The n-gram of h words that starts at word i has a vector of as many numbers as there are filters, with the same
    weights for queries and documents; n-grams of every length of the query are matched with those of every length of
    the document, and one linear layer reads the kernels of all pairs of lengths::

        g_i^h = relu(W^h [t_i; ...; t_(i+h-1)] + b^h)
        M^(a,b)_ij = cos(g_i^a of the query, g_j^b of the document)
        f(q, d) = tanh(w . [phi(M^(1,1)); ...; phi(M^(h,h))] + b)

    phi, the kernels and the score without its tanh are those of :class:`~pt_neural.KNRM`. Words beyond the end of a
    text are zeros, so that a text has as many n-grams of each length as words; padding is masked, unlike in MatchZoo.
    Words without a vector are zeros, too. Training is KNRM's. The recipes for up to tens of thousands of queries
    have a rate of 0.01, which did far better than 0.001 on the dev queries of three collections.

    :meth:`index` keeps the n-grams of documents: ``max_ngram * filters`` numbers for each word.

    Args:
        spaces: The word embeddings; 300 dimensions in the paper.
        space: Which of a word's two vectors to take, ``"in"`` or ``"out"``.
        embeddings: ``"trained"``, so that training starts from these vectors; or ``"frozen"``.
        max_ngram: Words of the longest n-grams.
        filters: Length of the vectors of n-grams.
        query_terms: Number of words of a query that are read.
        document_terms: Number of words of a document that are read.

    Raises:
        TypeError: If an argument is of another kind than described.
        ValueError: If a size is out of range or a choice unknown.

    Example::

        conv_knrm = pn.ConvKNRM(pn.EmbeddingSpaces.train(docs.get_corpus_iter()))
        (candidates >> conv_knrm).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
        conv_knrm.representations = conv_knrm.index("kept", docs.get_corpus_iter())
    """

    schematic = {"label": "ConvKNRM", "help_url": None}
    artifact_format = "conv-knrm"
    options_type: ClassVar[type] = KeptInteractionOptions
    small_sizes: ClassVar[dict[str, Any]] = {**MatchingRanker.small_sizes, "filters": 32}
    recipes: ClassVar[dict[str, dict[str, Any]]] = FAST_RECIPES
    least: ClassVar[Mapping[str, int]] = {"max_ngram": 1, "filters": 1}

    def __init__(
        self,
        spaces: EmbeddingSpaces,
        *,
        space: Space = "in",
        embeddings: Embeddings = "trained",
        max_ngram: int = 3,
        filters: int = 128,
        query_terms: int = 10,
        document_terms: int = 200,
        **options: Unpack[KeptInteractionOptions],
    ):
        self.max_ngram, self.filters = max_ngram, filters
        sizes = {"query_terms": query_terms, "document_terms": document_terms}
        super().__init__(spaces, space=space, embeddings=embeddings, **sizes, **options)

    def make_network(self, reader: WordSequences) -> "ConvKNRMNetwork":
        """A new network."""
        return ConvKNRMNetwork(self.word_vectors(reader), self.max_ngram, self.filters)


class ConvKNRMNetwork(ContextNetwork):
    """Convolutions over words, cosines of n-grams, kernels, and one linear layer.

    Args:
        vectors: The word vectors.
        max_ngram: Words of the longest n-grams.
        filters: Filters of each length.

    Attributes:
        parts: The words of the query's and of the document's n-grams, for each pair of lengths.
    """

    def __init__(self, vectors: WordVectors, max_ngram: int, filters: int):
        super().__init__(vectors)
        self.max_ngram, self.columns = max_ngram, max_ngram * filters
        self.windows = nn.ModuleList(WindowSums(vectors.dim, size + 1, filters) for size in range(max_ngram))
        self.pooling = KernelPooling(MEANS, WIDTH, exact=True)
        self.parts = [f"{one + 1}-{other + 1}" for one in range(max_ngram) for other in range(max_ngram)]
        self.dense = nn.Linear(max_ngram**2 * len(self.pooling), 1)

    def encode(self, side: Literal["query", "document"], texts: WordTexts) -> Tensor:
        """The unit vectors of the n-grams that start at each word: (words, lengths * filters)."""
        vectors = self.vectors(texts.ids)
        ngrams = [torch.relu(window(vectors, texts.words, texts.offsets)) for window in self.windows]
        return torch.cat([F.normalize(rows.float(), dim=-1) for rows in ngrams], dim=-1)

    def cells(self, queries: Tensor, documents: Tensor) -> Tensor:
        """Cosines of n-grams, a channel for each pair of lengths."""
        lengths = self.max_ngram
        left = queries.unflatten(-1, (lengths, -1)).transpose(1, 2).flatten(1, 2)  # (groups, lengths * words, filters)
        right = documents.unflatten(-1, (lengths, -1)).transpose(2, 3).flatten(2, 3)
        with torch.autocast(left.device.type, enabled=False):
            cosines = left[:, None].float() @ right.float().mT  # (groups, documents, lengths * words, lengths * words)
        cosines = cosines.unflatten(3, (lengths, -1)).unflatten(2, (lengths, -1))
        return cosines.transpose(3, 4).flatten(2, 3)  # (groups, documents, pairs of lengths, query words, words)

    def kernel_sums(self, interaction: Interaction) -> Tensor:
        """Logarithms of the counts of each pair of lengths, summed over query words; (..., pairs of lengths, kernels).

        They are divided by 100.
        """
        counts = self.pooling(interaction.cells, interaction.mask[:, :, None])  # (..., pairs, query words, kernels)
        logarithms = LOG_SCALE * counts.clamp(min=LEAST_COUNT).log()
        return (logarithms * interaction.query_mask[:, None, None, :, None]).sum(-2)

    def score_cells(self, interaction: Interaction) -> Tensor:
        """Scores; in training, after their tanh."""
        scores = self.dense(self.kernel_sums(interaction).flatten(2)).squeeze(-1)  # (groups, documents)
        return torch.tanh(scores) if self.training else scores

    def kernel_contributions(self, interaction: Interaction) -> Tensor:
        """What each kernel adds to the score: (groups, documents, parts, kernels)."""
        return self.dense.weight[0].view(len(self.parts), -1) * self.kernel_sums(interaction)
