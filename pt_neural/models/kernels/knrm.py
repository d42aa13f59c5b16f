"""KNRM, the kernel-based neural ranking model (Xiong, Dai, Callan, Liu and Power, 2017)."""

from typing import Any, ClassVar, Unpack

import torch
from torch import Tensor, nn

from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.models.matching.layers import LEAST_COUNT, Interaction, KernelPooling, SimilarityNetwork, WordVectors
from pt_neural.models.matching.ranker import FAST, Embeddings, MatchingRanker, for_few
from pt_neural.rankers.options import TrainedOptions
from pt_neural.rankers.readers.word_sequences import WordSequences

MEANS = [0.9, 0.7, 0.5, 0.3, 0.1, -0.1, -0.3, -0.5, -0.7, -0.9]
WIDTH = 0.1
LOG_SCALE = 0.01  # of the logarithms, as in the authors' code, so that a tanh can learn from sums of them


class KNRM(MatchingRanker):
    """Counts the words of a document by their similarity to each word of the query, and learns the similarity.

    With M_ij the cosine of query word i and document word j, kernel k softly counts the document words whose cosine is
    near mu_k; the logarithms of the counts are summed over the query words, and a linear layer makes the score::

        K_k(M_i) = sum_j exp(-(M_ij - mu_k)^2 / (2 sigma_k^2))
        phi_k = sum_i log K_k(M_i)
        f(q, d) = tanh(w . phi + b)

    One kernel counts exact matches (mu 1, sigma 0.001), ten more are spread evenly over cosines from 0.9 to -0.9
    (sigma 0.1). The kernels are differentiable, and with ``embeddings="trained"``, as in the paper, training moves
    word vectors through them. Words without a vector match only themselves. The logarithms are divided by 100, as in
    the authors' code. The network is trained on f; the score is the value before the tanh, which ranks alike, without
    ties where tanh is flat. MatchZoo adds 1 to the counts before the logarithm, has no tanh, and counts padding as
    words with a cosine of 0.

    Training is the paper's: the margin loss of a relevant document and each other one with a margin of 1, Adam with a
    rate of 0.001, batches of 16. That rate is too slow for fewer training queries: the recipes for up to tens of
    thousands have 0.01, which did far better on the dev queries of two collections.

    Args:
        spaces: The word embeddings; 300 dimensions in the paper.
        space: Which of a word's two vectors to take, ``"in"`` or ``"out"``.
        embeddings: ``"trained"``, so that training starts from these vectors; or ``"frozen"``.
        query_terms: Number of words of a query that are read.
        document_terms: Number of words of a document that are read.

    Raises:
        TypeError: If an argument is of another kind than described.
        ValueError: If a size is out of range or a choice unknown.

    Example::

        knrm = pn.KNRM(pn.EmbeddingSpaces.train(docs.get_corpus_iter()))
        (candidates >> knrm).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
        pn.explain(knrm, "pairwise distance", text).kernels()
    """

    schematic = {"label": "KNRM", "help_url": None}
    artifact_format = "knrm"
    recipes: ClassVar[dict[str, dict[str, Any]]] = for_few(**FAST)

    def __init__(
        self,
        spaces: EmbeddingSpaces,
        *,
        space: Space = "in",
        embeddings: Embeddings = "trained",
        query_terms: int = 10,
        document_terms: int = 200,
        **options: Unpack[TrainedOptions],
    ):
        sizes = {"query_terms": query_terms, "document_terms": document_terms}
        super().__init__(spaces, space=space, embeddings=embeddings, **sizes, **options)

    def make_network(self, reader: WordSequences) -> "KNRMNetwork":
        """A new network."""
        return KNRMNetwork(self.word_vectors(reader))


class KNRMNetwork(SimilarityNetwork):
    """Kernels over cosines, and one linear layer.

    Args:
        vectors: The word vectors.

    Attributes:
        parts: Names of the groups of kernels.
    """

    def __init__(self, vectors: WordVectors):
        super().__init__(vectors)
        self.pooling, self.parts = KernelPooling(MEANS, WIDTH, exact=True), [""]
        self.dense = nn.Linear(len(self.pooling), 1)

    def kernel_sums(self, interaction: Interaction) -> Tensor:
        """phi, the logarithms of each kernel's counts, summed over query words and divided by 100; (..., kernels)."""
        counts = self.pooling(interaction.cells, interaction.mask)  # (groups, documents, query words, kernels)
        logarithms = LOG_SCALE * counts.clamp(min=LEAST_COUNT).log()
        return (logarithms * interaction.query_mask[:, None, :, None]).sum(-2)

    def score_cells(self, interaction: Interaction) -> Tensor:
        """Scores; in training, after their tanh."""
        scores = self.dense(self.kernel_sums(interaction)).squeeze(-1)  # (groups, documents)
        return torch.tanh(scores) if self.training else scores

    def kernel_contributions(self, interaction: Interaction) -> Tensor:
        """What each kernel adds to the score: (groups, documents, parts, kernels)."""
        return (self.dense.weight[0] * self.kernel_sums(interaction))[:, :, None]
