"""DRMMTKS, the top-k variant of DRMM that MatchZoo has (Fan, Pang, Hou, Guo, Lan and Cheng, 2017)."""

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import torch
from torch import Tensor, nn

from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.models.matching.layers import Interaction, WordVectors, gate_weights, largest, masked_log_softmax
from pt_neural.models.matching.lookups import Pairs, PooledNetwork, largest_of_pairs
from pt_neural.models.matching.ranker import TRAINED_VECTORS, Embeddings, MatchingRanker, for_few
from pt_neural.rankers.options import TrainedOptions
from pt_neural.rankers.readers.word_sequences import WordSequences, WordTexts


class DRMMTKS(MatchingRanker):
    """The k largest cosines of each query word in the place of DRMM's histograms.

    No paper describes it; MatchZoo does. For each query word i with the vector q_i, the k largest cosines with words of
    the document, in falling order, go through one network that all words share; a softmax weighs its outputs::

        z_i = w . tanh(W topk_j cos(q_i, d_j) + b) + c
        s = sum_i softmax(v . q)_i z_i

    Where a document has fewer than k words, zeros follow. MatchZoo takes padding for words with a cosine of 0, needs
    documents of at least k words, and multiplies the sum by one more weight. A query word without a vector has a
    cosine of 1 with itself and 0 with all others.

    The recipes for up to tens of thousands of queries train the word vectors, with a softmax over the documents of a
    query and a gamma of 10; of five settings, this ranked best without BM25 on the dev queries of two collections. They
    wait twelve epochs for an improvement instead of five: with five and frozen vectors, two of nine trainings hardly
    got beyond their start.

    Args:
        spaces: The word embeddings.
        space: Which of a word's two vectors to take, ``"in"`` or ``"out"``.
        embeddings: ``"frozen"``; or ``"trained"``, so that training starts from these vectors.
        top_k: How many cosines of each query word are read.
        hidden: Units of the hidden layer.
        query_terms: Number of words of a query that are read.
        document_terms: Number of words of a document that are read.

    Raises:
        TypeError: If an argument is of another kind than described.
        ValueError: If a size is out of range or a choice unknown.

    Example::

        drmmtks = pn.DRMMTKS(pn.EmbeddingSpaces.train(docs.get_corpus_iter()), top_k=20)
        (candidates >> drmmtks).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
        pn.explain(drmmtks, "pairwise distance", text).plot()
    """

    schematic = {"label": "DRMMTKS", "help_url": None}
    artifact_format = "drmm-tks"
    recipes: ClassVar[dict[str, dict[str, Any]]] = for_few(**TRAINED_VECTORS, epochs=100, patience=12)
    least: ClassVar[Mapping[str, int]] = {"top_k": 1, "hidden": 1}

    def __init__(
        self,
        spaces: EmbeddingSpaces,
        *,
        space: Space = "in",
        embeddings: Embeddings = "frozen",
        top_k: int = 10,
        hidden: int = 5,
        query_terms: int = 20,
        document_terms: int = 200,
        **options: Unpack[TrainedOptions],
    ):
        self.top_k, self.hidden = top_k, hidden
        sizes = {"query_terms": query_terms, "document_terms": document_terms}
        super().__init__(spaces, space=space, embeddings=embeddings, **sizes, **options)

    def make_network(self, reader: WordSequences) -> "DRMMTKSNetwork":
        """A new network."""
        return DRMMTKSNetwork(self.word_vectors(reader), self.top_k, self.hidden)


class DRMMTKSNetwork(PooledNetwork):
    """The largest cosines, one feed-forward network for all query words, and a gate.

    Args:
        vectors: The word vectors.
        top_k: Cosines of each query word.
        hidden: Units of the hidden layer.
    """

    def __init__(self, vectors: WordVectors, top_k: int, hidden: int):
        super().__init__(vectors)
        self.top_k = top_k
        self.dense, self.output = nn.Linear(top_k, hidden), nn.Linear(hidden, 1)
        self.gate = nn.Linear(vectors.dim, 1, bias=False)
        nn.init.zeros_(self.gate.weight)

    def query_features(self, queries: WordTexts, places: Tensor) -> Tensor:
        """The gate's output for each query word, before the softmax."""
        return gate_weights(self.gate, self.vectors, queries, places)

    def pool(self, interaction: Interaction) -> Tensor:
        """The largest cosines: (groups, documents, query words, k)."""
        return largest(interaction.cells, interaction.mask, self.top_k)

    def pool_pairs(self, table: Tensor, pairs: Pairs) -> Tensor:
        """The same from a table of cosines."""
        return largest_of_pairs(table, pairs, self.top_k)

    def score_pooled(self, pooled: Tensor, query_mask: Tensor, features: Tensor) -> Tensor:
        """Scores."""
        outputs = self.output(torch.tanh(self.dense(pooled))).squeeze(-1)  # (groups, documents, query words)
        gates = masked_log_softmax(features.squeeze(-1), query_mask).exp()
        return (outputs * gates[:, None]).sum(-1)
