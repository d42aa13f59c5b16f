"""POSIT-DRMM, a relevance matching model of pooled similarities (McDonald, Brokos and Androutsopoulos, 2018)."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pt_neural._arguments import checked_number
from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.models.matching.encoders import ByteDropout, Queries, TextLSTM
from pt_neural.models.matching.layers import ContextNetwork, Interaction, WordVectors, largest, masked_log_softmax
from pt_neural.models.matching.ranker import RECIPES, TRAINING, Embeddings, MatchingRanker
from pt_neural.rankers.options import KeptInteractionOptions
from pt_neural.rankers.readers.word_pairs import Matches
from pt_neural.rankers.readers.word_sequences import WordGroups, WordSequences, WordTexts

VIEWS = 3  # words in context, words alone, exact matches
OVERLAPS = 4  # shares of the query's words and pairs of words, each plain and weighted by idf
LEAK = 0.1  # slope of the leaky ReLU below 0
SLOWER = {"learning_rate": 0.003, "num_negatives": 4, "batch_size": 16}


class POSITDRMM(MatchingRanker):
    """The strongest matches of each query word, of words in context, of words alone, and exact ones.

    Two layers of bi-directional LSTMs, the same for query and document, read the word vectors e; a word in context
    is the sum of its vector and its state. There are three views: cosines of words in context, cosines of word
    vectors, and exact matches. In each, a query word keeps its largest value and the mean of its k largest (zeros
    where there are fewer). These six numbers give the word's score, and gates weigh the words by their vectors in
    context and their idf. The last layer reads the sum, and which shares of the query's words and of its pairs of
    neighbouring words the document has, plain and weighted by idf::

        c_i = e_i + BiLSTM(e)_i
        P_i = [max_j S_ij, mean of kmax_j S_ij] for S = cos(c_i, c_j), cos(e_i, e_j), [q_i = d_j]
        s(q, d) = w_s . [sum_i softmax_i(w_g . [c_i; idf_i]) (w_o . lrelu(W P_i + b)); overlaps]

    This is the multi-view model ("MV") of the authors' code. That code differs in four ways: it skips words without
    a vector, which are zeros here and can still match exactly; it puts a learned vector before and after each text;
    its shares count a repeated query word once, and pair the first word with the start; and its last layer also
    reads BM25's score, for which there is :class:`~pt_neural.Mixture` here. Capreolus' POSITDRMM is another model:
    one layer in place of two for the six numbers, gates of idf alone, and LSTMs that read padding.

    Training is pairwise with a margin of 1, with Adam at a rate of 0.01, one other document for each relevant one, and
    batches of 64, as in that code. The recipes have four other documents, batches of 16 and a rate of 0.003, which did
    as well in half of the epochs on the dev queries of two collections.

    :meth:`index` keeps both vectors of the words of documents: twice as many numbers as the embeddings have, for each
    word.

    Args:
        spaces: The word embeddings; 30 dimensions in the authors' code.
        space: Which of a word's two vectors to take, ``"in"`` or ``"out"``.
        embeddings: ``"frozen"``; or ``"trained"``, so that training starts from these vectors.
        num_layers: Layers of LSTMs; each direction has half as many units as the embeddings have dimensions.
        top_k: How many of the largest values enter the mean.
        hidden: Units of the hidden layer of a word's score.
        dropout: Share of the LSTMs' inputs and outputs that is dropped in training.
        query_terms: Number of words of a query that are read.
        document_terms: Number of words of a document that are read.

    Raises:
        TypeError: If an argument is of another kind than described.
        ValueError: If a size is out of range or a choice unknown.

    Example::

        posit = pn.POSITDRMM(pn.EmbeddingSpaces.train(docs.get_corpus_iter()))
        (candidates >> posit).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
        posit.representations = posit.index("kept", docs.get_corpus_iter())
    """

    schematic = {"label": "POSITDRMM", "help_url": None}
    artifact_format = "posit-drmm"
    options_type: ClassVar[type] = KeptInteractionOptions
    own_training: ClassVar[dict[str, Any]] = {**TRAINING, "num_negatives": 1, "batch_size": 64, "learning_rate": 0.01}
    small_sizes: ClassVar[dict[str, Any]] = {**MatchingRanker.small_sizes, "num_layers": 1}
    recipes: ClassVar[dict[str, dict[str, Any]]] = {name: {**recipe, **SLOWER} for name, recipe in RECIPES.items()}
    least: ClassVar[Mapping[str, int]] = {"num_layers": 1, "top_k": 1, "hidden": 1}
    reads_idf: ClassVar[bool] = True
    reads_matches: ClassVar[bool] = True

    def __init__(
        self,
        spaces: EmbeddingSpaces,
        *,
        space: Space = "in",
        embeddings: Embeddings = "frozen",
        num_layers: int = 2,
        top_k: int = 5,
        hidden: int = 8,
        dropout: float = 0.3,
        query_terms: int = 20,
        document_terms: int = 200,
        **options: Unpack[KeptInteractionOptions],
    ):
        self.num_layers, self.top_k, self.hidden, self.dropout = num_layers, top_k, hidden, dropout
        sizes = {"query_terms": query_terms, "document_terms": document_terms}
        super().__init__(spaces, space=space, embeddings=embeddings, **sizes, **options)

    def _check_settings(self) -> None:
        super()._check_settings()
        self.dropout = checked_number("dropout", self.dropout, float, least=0)
        if self.dropout >= 1:
            raise ValueError(f"dropout must be below 1, not {self.dropout!r}")

    def make_network(self, reader: WordSequences) -> "POSITDRMMNetwork":
        """A new network."""
        return POSITDRMMNetwork(self.word_vectors(reader), self.num_layers, self.top_k, self.hidden, self.dropout)


class POSITDRMMNetwork(ContextNetwork):
    """Layers of LSTMs, three views of each pair of words, the strongest matches, gates, and a last layer.

    Args:
        vectors: The word vectors.
        num_layers: Layers of LSTMs.
        top_k: How many of the largest values enter the mean.
        hidden: Units of the hidden layer of a word's score.
        dropout: Share of the LSTMs' inputs and outputs that is dropped in training.
    """

    piecewise_linear = True

    def __init__(self, vectors: WordVectors, num_layers: int, top_k: int, hidden: int, dropout: float):
        super().__init__(vectors)
        self.columns, self.top_k = 2 * vectors.dim, top_k
        units = -(-vectors.dim // 2)  # of each direction
        inputs = [vectors.dim, *[2 * units] * (num_layers - 1)]
        self.lstms, self.dropout = nn.ModuleList(TextLSTM(size, units) for size in inputs), ByteDropout(dropout)
        self.hidden, self.output = nn.Linear(2 * VIEWS, hidden), nn.Linear(hidden, 1, bias=False)
        self.gate = nn.Linear(vectors.dim + 1, 1, bias=False)
        self.joined = nn.Linear(1 + OVERLAPS, 1, bias=False)

    def encode(self, side: Literal["query", "document"], texts: WordTexts) -> Tensor:
        """Each word's vector in context and its own vector, unit vectors for documents: (words, 2 * dimensions)."""
        words = F.embedding(texts.words, self.vectors(texts.ids))
        with torch.autocast(words.device.type, enabled=False):  # which PyTorch's LSTM of a CPU lacks
            states = self.dropout(words.float())
            for lstm in self.lstms:
                states = self.dropout(lstm(states, texts.offsets)[0])
            both = words + states[:, : self.vectors.dim], words
        return torch.cat([F.normalize(part, dim=-1) for part in both] if side == "document" else both, dim=-1)

    def read_queries(self, texts: WordTexts) -> Queries:
        """The queries as they are matched with documents; the last number of each word is its idf."""
        queries, (places, _) = super().read_queries(texts), texts.padded()
        idf = F.pad(texts.idf, (0, 1))[places][..., None]
        return queries._replace(words=torch.cat([queries.words, idf], dim=-1))

    def cells(self, queries: Tensor, documents: Tensor) -> Tensor:
        """Cosines of words in context, then of words: (groups, documents, 2, query words, document words)."""
        with torch.autocast(queries.device.type, enabled=False):
            dim, queries, documents = self.vectors.dim, queries.float(), documents.float()
            views = [
                F.normalize(queries[..., first : first + dim], dim=-1)[:, None] @ documents[..., first : first + dim].mT
                for first in (0, dim)
            ]
            return torch.stack(views, dim=2)

    def interaction(self, groups: WordGroups) -> Interaction:
        """What the network sees of each pair of a batch."""
        queries = self.read_queries(groups.queries).take(groups.query_rows)
        pairs = self.pair(queries, *self.read_documents(groups.documents), groups.document_rows)
        query_ids, document_ids = (F.pad(texts.ids, (0, 1))[texts.padded()[0]] for texts in groups[:2])
        exact = query_ids[groups.query_rows][:, None, :, None] == document_ids[groups.document_rows][:, :, None]
        return self._with_exact(pairs, queries, exact)

    def forward(self, groups: WordGroups) -> Tensor:
        """Scores, float32 of shape (groups, documents)."""
        return self.score_cells(self.interaction(groups))

    def match(
        self, queries: Queries, rows: Tensor, offsets: Tensor, document_rows: Tensor, matches: Matches | None
    ) -> Tensor:
        """Scores of documents; see :meth:`~pt_neural.models.matching.layers.EncodingNetwork.match`."""
        pairs = self.pair(queries, rows, offsets, document_rows)
        query_words, document_words = pairs.mask.shape[2:]
        counts = matches.offsets.diff()  # of each query word of each pair, as many as the longest query has
        exact = pairs.mask.new_zeros(len(counts), document_words)
        exact[torch.repeat_interleave(counts), matches.positions] = True
        exact = exact.view(*document_rows.shape, -1, document_words)
        exact = F.pad(exact, (0, 0, 0, max(0, query_words - exact.shape[2])))[:, :, :query_words]
        return self.score_cells(self._with_exact(pairs, queries, exact))

    def _with_exact(self, pairs: Interaction, queries: Queries, exact: Tensor) -> Interaction:
        """Pairs with the view of exact matches, and what the gates read of query words."""
        cells = torch.cat([pairs.cells, (exact & pairs.mask)[:, :, None].to(pairs.cells.dtype)], dim=2)
        context, idf = queries.words[..., : self.vectors.dim], queries.words[..., -1:]
        return pairs._replace(cells=cells, features=torch.cat([context, idf], dim=-1))

    def score_cells(self, interaction: Interaction) -> Tensor:
        """Scores."""
        cells, mask = interaction.cells, interaction.mask[:, :, None]
        lowest = torch.finfo(cells.dtype).min
        first = cells.masked_fill(~mask, lowest).amax(-1)  # (groups, documents, views, query words)
        first = first.masked_fill(first == lowest, 0)
        pooled = torch.stack([first, largest(cells, mask, self.top_k).mean(-1)], dim=-1)
        pooled = pooled.transpose(2, 3).flatten(3)  # (groups, documents, query words, 2 * views)
        words = self.output(F.leaky_relu(self.hidden(pooled), LEAK)).squeeze(-1)
        gates = masked_log_softmax(self.gate(interaction.features).squeeze(-1), interaction.query_mask).exp()
        score = (words * gates[:, None]).sum(-1, keepdim=True)  # (groups, documents, 1)
        return self.joined(torch.cat([score, *self.overlaps(interaction)], dim=-1)).squeeze(-1)

    def overlaps(self, interaction: Interaction) -> list[Tensor]:
        """Shares of a query's words that a document has, plain and by idf, and of its pairs of neighbours.

        Each is of shape (groups, documents, 1).
        """
        exact = interaction.cells[:, :, -1].masked_fill(~interaction.mask, 0)  # (groups, documents, words, words)
        following = F.pad(exact, (0, 1, 0, 1))[..., 1:, 1:]
        is_word, idf = interaction.query_mask.float(), interaction.features[..., -1]  # (groups, query words)
        pair_mask = is_word * F.pad(is_word, (0, 1))[:, 1:]
        pair_idf = pair_mask * idf * F.pad(idf, (0, 1))[:, 1:]
        found, pairs = exact.amax(-1), torch.minimum(exact, following).amax(-1)
        weighted = ((found, is_word), (found, is_word * idf), (pairs, pair_mask), (pairs, pair_idf))
        return [_share(values, weights[:, None]) for values, weights in weighted]


def _share(values: Tensor, weights: Tensor) -> Tensor:
    """The weighted mean of the last dimension, which is kept; 0 without any weight."""
    total = weights.sum(-1, keepdim=True)
    return (values * weights).sum(-1, keepdim=True) / total.masked_fill(total == 0, 1)
