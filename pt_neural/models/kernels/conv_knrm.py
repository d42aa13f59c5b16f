"""ConvKNRM, KNRM over n-grams that convolutions make (Dai, Xiong, Callan and Liu, 2018)."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Unpack

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.models.kernels.knrm import MEANS, WIDTH
from pt_neural.models.matching.layers import (
    LEAST_COUNT,
    LEAST_LENGTH,
    ContextNetwork,
    Interaction,
    KernelPooling,
    WindowSums,
    WordVectors,
)
from pt_neural.models.matching.ranker import Embeddings, MatchingRanker
from pt_neural.rankers.options import KeptInteractionOptions
from pt_neural.rankers.readers.word_sequences import WordSequences, WordTexts

LOG_SCALE = 0.1  # of the logarithms
SMALL = 0.1  # of the first weights of kernels, for scores where tanh is steep


class ConvKNRM(MatchingRanker):
    """Makes vectors of n-grams by convolutions, and counts soft matches of n-grams by kernels as KNRM does.

    The n-gram of h words that starts at word i has a vector of as many numbers as there are filters, with the same
    weights for queries and documents; n-grams of every length of the query are matched with those of every length of
    the document, and one linear layer reads the kernels of all pairs of lengths::

        g_i^h = relu(W^h [t_i; ...; t_(i+h-1)] + b^h)
        M^(a,b)_ij = cos(g_i^a of the query, g_j^b of the document)
        f(q, d) = tanh(w . [phi(M^(1,1)); ...; phi(M^(h,h))] + b)

    phi, the kernels and the score without its tanh are those of :class:`~pt_neural.KNRM`. Words beyond the end of a
    text are zeros, so that a text has as many n-grams of each length as words; padding is masked. MatchZoo does not
    mask it, adds 1 to the counts before the logarithm, and has no tanh. Words without a vector are zeros, too.
    Training is KNRM's, at the paper's rate of 0.001 for any number of queries. The logarithms are divided by 10 and
    the first weights are small, so that the linear layer learns as fast as the n-grams: divided by 100, as in the code
    of KNRM's authors, they did far worse on the dev queries of two collections.

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
        with torch.no_grad():
            self.dense.weight *= SMALL

    def encode(self, side: Literal["query", "document"], texts: WordTexts) -> Tensor:
        """The unit vectors of the n-grams that start at each word: (words, lengths * filters)."""
        vectors = self.vectors(texts.ids)
        return _UnitRows.apply(*(window(vectors, texts.words, texts.offsets) for window in self.windows))

    def cells(self, queries: Tensor, documents: Tensor) -> Tensor:
        """Cosines of n-grams, a channel for each pair of lengths."""
        lengths, words = self.max_ngram, documents.shape[1:3]
        left = queries.unflatten(-1, (lengths, -1)).transpose(1, 2)  # (groups, lengths, query words, filters)
        shape = left.shape[1:3]
        with torch.autocast(left.device.type, enabled=False):
            left = left.flatten(1, 2).float()
            rights = documents.flatten(1, 2).float().chunk(lengths, dim=-1)  # (groups, documents * words, filters)
            cosines = torch.stack([(left @ right.mT).unflatten(1, shape) for right in rights], dim=2)
        # from (groups, pairs of lengths, query words, documents, words), of which nothing is copied
        return cosines.flatten(1, 2).unflatten(-1, words).permute(0, 3, 1, 2, 4)

    def kernel_sums(self, interaction: Interaction) -> Tensor:
        """Logarithms of the counts of each pair of lengths, summed over query words; (..., pairs of lengths, kernels).

        They are divided by 10.
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


class _UnitRows(torch.autograd.Function):
    """The positive parts of rows, divided by their lengths; those of several tables stand side by side.

    With y = relu(x) / |relu(x)|, the gradient of x is (g - (g . y) y) / |relu(x)| where x is positive.
    """

    @staticmethod
    def forward(ctx: Any, *tables: Tensor) -> Tensor:
        units = torch.cat(tables, dim=1).float().relu_().unflatten(1, (len(tables), -1))  # (rows, tables, columns)
        scales = 1 / units.norm(dim=2, keepdim=True).clamp(min=LEAST_LENGTH)
        units *= scales
        ctx.save_for_backward(units, scales)
        ctx.dtype = tables[0].dtype
        return units.flatten(1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        units, scales = ctx.saved_tensors
        gradient = gradient.view_as(units)
        along = torch.linalg.vecdot(gradient, units)[..., None]
        slopes = torch.addcmul(gradient, units, along, value=-1).mul_(scales).mul_(units > 0)
        return tuple(slopes.to(ctx.dtype).unbind(1))
