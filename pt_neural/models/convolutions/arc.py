"""ARC-I and ARC-II, convolutional matching of sentences (Hu, Lu, Li and Chen, 2014)."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Literal, Unpack

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from pt_neural._arguments import checked_integers
from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.models.matching.encoders import Queries, RowLinear
from pt_neural.models.matching.layers import ContextNetwork, EncodingNetwork, Interaction, WindowSums, WordVectors
from pt_neural.models.matching.ranker import Embeddings, MatchingRanker
from pt_neural.rankers.options import KeptInteractionOptions
from pt_neural.rankers.readers.word_pairs import Matches
from pt_neural.rankers.readers.word_sequences import WordSequences, WordTexts

IMAGES_AT_ONCE = 24  # that are read together, at least, if there are so many


class ARCI(MatchingRanker):
    """Two convolutional networks turn query and document into a vector each, which a network with a hidden layer reads.

    Each layer has filters over three words with ReLU and takes the larger value of each two neighbours; what the last
    layer gives for the words of a text, up to the longest text that is read, is its vector (the paper's sections 2 and
    3.1)::

        z_i = relu(W [z_i; z_(i+1); z_(i+2)] + b), where there is a word at i, else 0
        z'_i = max(z_(2i-1), z_(2i))
        s = w . relu(W_q z_q + W_d z_d + b_1) + b_2

    Values beyond the end of a text are 0, as the paper's gate makes them; MatchZoo has no gate, so that they depend on
    b, and drops the last of an odd number of values. Words without a vector are zeros. Training is pairwise with a
    margin of 1. The paper has 200 to 500 filters.

    Only the product W_d z_d is needed of a document, and :meth:`index` keeps it: ``hidden`` numbers.

    Args:
        spaces: The word embeddings; 50 dimensions in the paper.
        space: Which of a word's two vectors to take, ``"in"`` or ``"out"``.
        embeddings: ``"frozen"``; or ``"trained"``, so that training starts from these vectors.
        layers: Filters of each layer.
        window: Words that a filter spans.
        hidden: Units of the hidden layer.
        query_terms: Number of words of a query that are read.
        document_terms: Number of words of a document that are read.

    Raises:
        TypeError: If an argument is of another kind than described.
        ValueError: If a size is out of range or a choice unknown.

    Example::

        arc_i = pn.ARCI(pn.EmbeddingSpaces.train(docs.get_corpus_iter()))
        (candidates >> arc_i).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
        arc_i.representations = arc_i.index("kept", docs.get_corpus_iter())
    """

    schematic = {"label": "ARCI", "help_url": None}
    artifact_format = "arc-i"
    options_type: ClassVar[type] = KeptInteractionOptions
    small_sizes: ClassVar[dict[str, Any]] = {"layers": (50, 50), "hidden": 50}
    least: ClassVar[Mapping[str, int]] = {"window": 1, "hidden": 1}

    def __init__(
        self,
        spaces: EmbeddingSpaces,
        *,
        space: Space = "in",
        embeddings: Embeddings = "frozen",
        layers: Sequence[int] = (200, 200),
        window: int = 3,
        hidden: int = 200,
        query_terms: int = 10,
        document_terms: int = 100,
        **options: Unpack[KeptInteractionOptions],
    ):
        self.layers, self.window, self.hidden = layers, window, hidden
        sizes = {"query_terms": query_terms, "document_terms": document_terms}
        super().__init__(spaces, space=space, embeddings=embeddings, **sizes, **options)

    def _check_settings(self) -> None:
        super()._check_settings()
        self.layers = checked_integers("layers", self.layers, least=1)

    def make_network(self, reader: WordSequences) -> "ARCINetwork":
        """A new network."""
        lengths = self.query_terms, self.document_terms
        return ARCINetwork(self.word_vectors(reader), self.layers, self.window, self.hidden, lengths)


class ARCII(MatchingRanker):
    """Filters over three words of the query and three of the document at once, then an image of such matches.

    The first layer sees every window of the query with every window of the document; further layers have filters of
    3 x 3 windows. After each, the largest of each 2 x 2 values is taken. A hidden layer reads the values of the last
    layer, up to the longest texts that are read (the paper's section 3.2)::

        z_ij = relu(W_q [q_i; q_(i+1); q_(i+2)] + W_d [d_j; d_(j+1); d_(j+2)] + b), where there are words, else 0
        z'_ij = max(z_(2i-1,2j-1), z_(2i-1,2j), z_(2i,2j-1), z_(2i,2j))

    Values beyond the end of a text are 0, as the paper's gate makes them. MatchZoo has no gate, neither ReLU nor
    pooling after the first layer, and no hidden layer. Words without a vector are zeros. Training is pairwise with a
    margin of 1. The paper has 200 to 500 filters for single sentences; here there are 64, since every pair of a query
    word and a document word needs them.

    :meth:`index` keeps the document's part of the first layer, pooled: as many numbers as it has filters, for each two
    words.

    Args:
        spaces: The word embeddings; 50 dimensions in the paper.
        space: Which of a word's two vectors to take, ``"in"`` or ``"out"``.
        embeddings: ``"frozen"``; or ``"trained"``, so that training starts from these vectors.
        layers: Filters of each layer.
        window: Words of each text that a filter of the first layer spans; values that the others span.
        hidden: Units of the hidden layer.
        query_terms: Number of words of a query that are read.
        document_terms: Number of words of a document that are read.

    Raises:
        TypeError: If an argument is of another kind than described.
        ValueError: If a size is out of range or a choice unknown.

    Example::

        arc_ii = pn.ARCII(pn.EmbeddingSpaces.train(docs.get_corpus_iter()))
        (candidates >> arc_ii).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
        pn.explain(arc_ii, "pairwise distance", text).plot()
    """

    schematic = {"label": "ARCII", "help_url": None}
    artifact_format = "arc-ii"
    options_type: ClassVar[type] = KeptInteractionOptions
    small_sizes: ClassVar[dict[str, Any]] = {"layers": (16, 16), "hidden": 16}
    least: ClassVar[Mapping[str, int]] = {"window": 1, "hidden": 1}

    def __init__(
        self,
        spaces: EmbeddingSpaces,
        *,
        space: Space = "in",
        embeddings: Embeddings = "frozen",
        layers: Sequence[int] = (64, 64),
        window: int = 3,
        hidden: int = 64,
        query_terms: int = 10,
        document_terms: int = 100,
        **options: Unpack[KeptInteractionOptions],
    ):
        self.layers, self.window, self.hidden = layers, window, hidden
        sizes = {"query_terms": query_terms, "document_terms": document_terms}
        super().__init__(spaces, space=space, embeddings=embeddings, **sizes, **options)

    def _check_settings(self) -> None:
        super()._check_settings()
        self.layers = checked_integers("layers", self.layers, least=1)

    def _identity_parts(self) -> tuple[dict[str, np.ndarray], list[bytes]]:
        arrays, parts = super()._identity_parts()
        return arrays, [*parts, b"pooled"]  # as documents that were kept at first were not

    def make_network(self, reader: WordSequences) -> "ARCIINetwork":
        """A new network."""
        lengths = self.query_terms, self.document_terms
        return ARCIINetwork(self.word_vectors(reader), self.layers, self.window, self.hidden, lengths)


class ARCINetwork(EncodingNetwork):
    """Convolutions and pooling for each side, and a hidden layer over both.

    Args:
        vectors: The word vectors.
        layers: Filters of each layer.
        window: Words that a filter spans.
        hidden: Units of the hidden layer.
        lengths: Most words of a query, and of a document.
    """

    def __init__(self, vectors: WordVectors, layers: Sequence[int], window: int, hidden: int, lengths: tuple[int, int]):
        super().__init__(vectors)
        self.columns = hidden
        self.query = SentenceVector(vectors.dim, layers, window, lengths[0], hidden)
        self.document = SentenceVector(vectors.dim, layers, window, lengths[1], hidden)
        self.bias, self.output = nn.Parameter(torch.zeros(hidden)), nn.Linear(hidden, 1)

    def num_rows(self, lengths: np.ndarray) -> np.ndarray:
        """One for each document."""
        return np.ones_like(lengths)

    def encode(self, side: Literal["query", "document"], texts: WordTexts) -> Tensor:
        """W z of each text: (texts, hidden)."""
        return getattr(self, side)(self.vectors(texts.ids), texts)

    def read_queries(self, texts: WordTexts) -> Queries:
        """The queries as they are matched with documents: one vector each."""
        whole = self.encode("query", texts)
        return Queries(whole[:, None], torch.ones_like(texts.offsets[1:]), whole)

    def read_documents(self, texts: WordTexts) -> tuple[Tensor, Tensor]:
        """A row for each document, and where each document's row is."""
        rows = self.encode("document", texts)
        return rows, torch.arange(len(rows) + 1, device=rows.device)

    def match(
        self, queries: Queries, rows: Tensor, offsets: Tensor, document_rows: Tensor, matches: Matches | None
    ) -> Tensor:
        """Scores of documents; see :meth:`EncodingNetwork.match`."""
        return self.compare(queries.whole[:, None], rows[offsets[document_rows]])  # (groups, documents)

    def compare(self, queries: Tensor, documents: Tensor) -> Tensor:
        """Scores from W z of queries and documents, of shape (.., hidden)."""
        return self.output(torch.relu(queries + documents + self.bias)).squeeze(-1)


class SentenceVector(nn.Module):
    """Layers of convolutions over words, each followed by pooling, and a linear layer over what they give.

    Args:
        inputs: Length of the word vectors.
        layers: Filters of each layer.
        window: Words that a filter spans.
        max_words: Most words of a text.
        outputs: Length of the result.
    """

    def __init__(self, inputs: int, layers: Sequence[int], window: int, max_words: int, outputs: int):
        super().__init__()
        self.layers = nn.ModuleList(WindowSums(before, window, after) for before, after in pairwise((inputs, *layers)))
        self.max_places = places_left(max_words, len(layers))
        self.linear = RowLinear(self.max_places * layers[-1], outputs, bias=False)

    def forward(self, vectors: Tensor, texts: WordTexts) -> Tensor:
        """From vectors of the distinct words and the texts to (texts, outputs)."""
        rows, words, offsets = vectors, texts.words, texts.offsets
        for layer in self.layers:
            if words is None and takes_fewer_products(layer, rows):
                rows, offsets = larger_of_two_windows(layer, rows, offsets)
            else:
                rows, offsets = larger_of_two(layer(rows, words, offsets), offsets)
            rows, words = torch.relu(rows), None  # the larger of two ReLUs is that of the larger
        steps = torch.arange(self.max_places, device=rows.device)
        places = torch.where(steps < offsets.diff()[:, None], offsets[:-1, None] + steps, len(rows))
        values = F.embedding(places, F.pad(rows, (0, 0, 0, 1)))  # (texts, most places, filters)
        return self.linear(values.flatten(1))


class ARCIINetwork(ContextNetwork):
    """A layer over windows of both texts, layers over images of these, and a hidden layer.

    Args:
        vectors: The word vectors.
        layers: Filters of each layer.
        window: Words, or values, that a filter spans.
        hidden: Units of the hidden layer.
        lengths: Most words of a query, and of a document.
    """

    piecewise_linear = True

    def __init__(self, vectors: WordVectors, layers: Sequence[int], window: int, hidden: int, lengths: tuple[int, int]):
        super().__init__(vectors)
        self.columns, self.window = layers[0], window
        self.query, self.document = (WindowSums(vectors.dim, window, layers[0]) for _ in range(2))
        self.further = nn.ModuleList(nn.Conv2d(before, after, window) for before, after in pairwise(layers))
        self.most = tuple(places_left(length, len(layers)) for length in lengths)
        self.hidden = nn.Linear(layers[-1] * self.most[0] * self.most[1], hidden)
        self.output = nn.Linear(hidden, 1)

    def encode(self, side: Literal["query", "document"], texts: WordTexts) -> Tensor:
        """One side's part of the first layer: (words, filters)."""
        return getattr(self, side)(self.vectors(texts.ids), texts.words, texts.offsets)

    def cells(self, queries: Tensor, documents: Tensor) -> Tensor:
        """Values of the first layer before ReLU: (groups, documents, filters, query words, document words)."""
        return queries.mT[:, None, :, :, None] + documents.mT[:, :, :, None]

    def num_rows(self, lengths: np.ndarray) -> np.ndarray:
        """One for each two words."""
        return (lengths + 1) // 2

    def read_documents(self, texts: WordTexts) -> tuple[Tensor, Tensor]:
        """The larger value of each two neighbours, document after document, and where each document starts.

        The largest of 2 x 2 sums is the sum of the larger value of each side, so each side is pooled by itself.
        """
        return larger_of_two(*super().read_documents(texts))

    def match(
        self, queries: Queries, rows: Tensor, offsets: Tensor, document_rows: Tensor, matches: Matches | None
    ) -> Tensor:
        """Scores of documents; see :meth:`EncodingNetwork.match`.

        Images of similar length are read together, so that little of them is padding.
        """
        queries, documents, scores = self._pooled_queries(queries), document_rows.flatten(), []
        order = offsets.diff()[documents].argsort()
        for pairs in order.chunk(max(1, len(order) // IMAGES_AT_ONCE)):
            of_pairs = queries.take(pairs // document_rows.shape[1])
            interaction = self.pair(of_pairs, rows, offsets, documents[pairs, None])
            scores.append(self._score_values(torch.relu(interaction.cells), interaction.mask))
        return torch.cat(scores)[order.argsort()].view(document_rows.shape)

    def score_cells(self, interaction: Interaction) -> Tensor:
        """Scores."""
        mask = interaction.mask[:, :, None]  # (groups, documents, 1, query words, document words)
        values = F.max_pool2d((torch.relu(interaction.cells) * mask).flatten(0, 1), 2, ceil_mode=True)
        return self._score_values(values.unflatten(0, mask.shape[:2]), interaction.mask[..., ::2, ::2])

    @staticmethod
    def _pooled_queries(queries: Queries) -> Queries:
        """The larger value of each two neighbours."""
        odd = queries.words.shape[1] % 2
        words = torch.arange(queries.words.shape[1], device=queries.words.device)
        padding = words >= queries.lengths[:, None]
        values = F.pad(queries.words.masked_fill(padding[..., None], -torch.inf), (0, 0, 0, odd), value=-torch.inf)
        return Queries(torch.maximum(values[:, ::2], values[:, 1::2]), (queries.lengths + 1) // 2, None)

    def _score_values(self, values: Tensor, mask: Tensor) -> Tensor:
        """Scores from the pooled values of the first layer, of shape (groups, documents, filters, .., ..)."""
        pairs = values.shape[:2]
        mask = mask.flatten(0, 1)[:, None]  # (pairs, 1, .., ..)
        values = values.flatten(0, 1) * mask
        for layer in self.further:
            values = torch.relu(layer(F.pad(values, (0, self.window - 1, 0, self.window - 1)))) * mask
            values, mask = F.max_pool2d(values, 2, ceil_mode=True), mask[..., ::2, ::2]
        after = (most - found for most, found in zip(reversed(self.most), reversed(values.shape), strict=False))
        values = F.pad(values, [part for end in after for part in (0, end)])  # (pairs, filters, most, most)
        return self.output(torch.relu(self.hidden(values.flatten(1)))).view(pairs)


def larger_of_two(rows: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    """The larger value of each two neighbours in texts, one after another, and where each text starts then.

    Args:
        rows: The values, of shape (values, filters).
        offsets: Where each text starts, int64 of shape (texts + 1,).
    """
    first, second, starts = _neighbours(offsets)
    return _LargerRows.apply(rows, first, second), starts


def _neighbours(offsets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The rows of each pair of neighbours in each text, and where the pairs of each text start.

    A last row without a neighbour is paired with itself.
    """
    lengths = (offsets.diff() + 1) // 2
    starts = F.pad(lengths.cumsum(0), (1, 0))
    first = 2 * torch.arange(int(starts[-1]), device=offsets.device)
    first += torch.repeat_interleave(offsets[:-1] - 2 * starts[:-1], lengths)
    second = torch.minimum(first + 1, torch.repeat_interleave(offsets[1:] - 1, lengths))
    return first, second, starts


class _LargerRows(torch.autograd.Function):
    """The larger value of each two rows, or of a row and itself; each row is in one pair."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, first: Tensor, second: Tensor) -> Tensor:
        left, right = rows.index_select(0, first), rows.index_select(0, second)
        ctx.save_for_backward(left >= right, first, second)
        ctx.shape = rows.shape
        return torch.maximum(left, right, out=left)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        is_left, first, second = ctx.saved_tensors
        of_rows = gradient.new_empty(ctx.shape)
        left = gradient * is_left
        of_rows[second] = gradient - left
        of_rows[first] = left  # after the second rows: a row that is alone is both
        return of_rows, None, None


def takes_fewer_products(layer: WindowSums, rows: Tensor) -> bool:
    """Whether to train a layer by :class:`_LargerWindows`: if it has windows of three, on a CPU, without autocast.

    It is never used for scoring: it rounds differently, so scores would depend on the other texts of the batch.
    """
    device = rows.device.type
    return layer.training and layer.size == 3 and device == "cpu" and not torch.is_autocast_enabled(device)


def larger_of_two_windows(layer: WindowSums, rows: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    """The same as ``larger_of_two(layer(rows, None, offsets), offsets)``, except for rounding."""
    first, second, starts = _neighbours(offsets)
    goes_on = second + 1 < torch.repeat_interleave(offsets[1:], starts.diff())  # another pair follows in the same text
    filters = layer.projection.weight.view(3, layer.outputs, -1)
    return _LargerWindows.apply(rows, filters, first, second, goes_on[:, None].to(rows.dtype)) + layer.bias, starts


class _LargerWindows(torch.autograd.Function):
    """A convolution over windows of three rows, then the larger of each two neighbouring values.

    The windows of two neighbours read four rows d, which takes four products instead of six (Winograd, "Arithmetic
    complexity of computations", 1980; Lavin and Gray, 2016, section 4.1)::

        y_1 = m_1 + m_2 + m_3,  y_2 = m_2 - m_3 - m_4
        m_1 = (d_1 - d_3) g_1,  m_2 = (d_2 + d_3) (g_1 + g_2 + g_3) / 2
        m_3 = (d_3 - d_2) (g_1 - g_2 + g_3) / 2,  m_4 = (d_2 - d_4) g_3
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, filters: Tensor, first: Tensor, second: Tensor, goes_on: Tensor) -> Tensor:
        is_alone = (first == second)[:, None]
        one, two = rows.index_select(0, first), rows.index_select(0, second).masked_fill_(is_alone, 0)
        three, four = _moved(one, goes_on), _moved(two, goes_on)
        inputs = one.new_empty(4, *one.shape)
        torch.sub(one, three, out=inputs[0])
        torch.add(two, three, out=inputs[1])
        torch.sub(three, two, out=inputs[2])
        torch.sub(two, four, out=inputs[3])
        ends, middle = (filters[0] + filters[2]) / 2, filters[1] / 2
        weights = torch.stack([filters[0], ends + middle, ends - middle, filters[2]])
        products = inputs @ weights.mT
        left = products[:3].sum(0)
        right = (products[1] - products[2]).sub_(products[3]).masked_fill_(is_alone, -torch.inf)
        ctx.save_for_backward(inputs, weights, left >= right, first, second, goes_on)
        ctx.number = len(rows)
        return torch.maximum(left, right)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        inputs, weights, is_left, first, second, goes_on = ctx.saved_tensors
        products = gradient.new_empty(4, *gradient.shape)
        torch.mul(gradient, is_left, out=products[0])
        products[1] = gradient
        torch.sub(products[0], gradient, out=products[3])
        torch.add(products[0], products[3], out=products[2])
        of_weights = products.mT @ inputs
        half = (of_weights[1] + of_weights[2]) / 2
        of_filters = torch.stack([of_weights[0] + half, (of_weights[1] - of_weights[2]) / 2, of_weights[3] + half])
        of_inputs = products @ weights
        one, two = of_inputs[0], (of_inputs[1] - of_inputs[2]).add_(of_inputs[3])
        three, four = (of_inputs[1] + of_inputs[2]).sub_(of_inputs[0]), of_inputs[3]
        one[1:].addcmul_(three[:-1], goes_on[:-1])
        two[1:].addcmul_(four[:-1], goes_on[:-1], value=-1)
        of_rows = gradient.new_empty(ctx.number, inputs.shape[-1])
        of_rows[second] = two
        of_rows[first] = one  # after the second rows: a row that is alone is both
        return of_rows, of_filters, None, None, None


def _moved(rows: Tensor, goes_on: Tensor) -> Tensor:
    """For each row, the next one of the same text, or zeros if there is none."""
    following = torch.zeros_like(rows)
    torch.mul(rows[1:], goes_on[:-1], out=following[:-1])
    return following


def places_left(words: int, layers: int) -> int:
    """How many values are left of so many words after this many layers, each of which halves them."""
    for _ in range(layers):
        words = -(-words // 2)
    return words
