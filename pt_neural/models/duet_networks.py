"""The networks of the Duet (Mitra, Diaz and Craswell, 2017, section 3): local, distributed, and both together."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pt_neural._arguments import checked_number
from pt_neural.models.hashing_layer import HashingLayer
from pt_neural.models.position_weights import weighted_positions
from pt_neural.models.sliding_pooling import padded_words, pooled_windows, window_sums
from pt_neural.rankers.hashed import HashedTexts
from pt_neural.rankers.pairs import Matches, Pairing, PairInputs

LEAST_SHARE = 0.8  # of the longest document of a batch, where documents that are computed together end
MOST_DOCUMENTS = 128  # in a batch, above which the temporaries of its layers outgrow the weights
LEAST_DOCUMENTS = 16  # in a batch, below which reading the weights takes longer than multiplying


@dataclass(frozen=True)
class Shape:
    """Sizes of the networks; those of the paper by default.

    Attributes:
        query_terms: Terms of a query (n_q).
        document_terms: Terms of a document (n_d).
        filters: Filters of the convolutions (c).
        hidden: Units of the dense layers.
        window: Terms a window of the distributed model.
        pooling: Windows of a document that are pooled.
        dropout: Share of units of the last layer that is dropped in training.

    Raises:
        TypeError: If a size is no number.
        ValueError: If a size is below 1, or ``dropout`` is not between 0 and 1.
    """

    query_terms: int = 10
    document_terms: int = 1000
    filters: int = 300
    hidden: int = 300
    window: int = 3
    pooling: int = 100
    dropout: float = 0.2

    def __post_init__(self):
        for name in ("query_terms", "document_terms", "filters", "hidden", "window", "pooling"):
            object.__setattr__(self, name, checked_number(name, getattr(self, name), int, least=1))
        object.__setattr__(self, "dropout", checked_number("dropout", self.dropout, float, least=0))
        if self.dropout >= 1:
            raise ValueError(f"dropout must be below 1, not {self.dropout}")

    def require_windows(self) -> None:
        """Raise ValueError if windows or pooling are longer than the texts."""
        if self.window > self.query_terms:
            raise ValueError(f"window must be at most query_terms, {self.query_terms}, not {self.window}")
        if self.positions < 1:
            windows = self.document_terms - self.window + 1
            raise ValueError(f"pooling must be at most {windows}, the windows of a document, not {self.pooling}")

    @property
    def positions(self) -> int:
        """Positions of a document after pooling: 899 in the paper."""
        return self.document_terms - self.window + 1 - self.pooling + 1


def alike(*shape: int, along: int, bound: float) -> nn.Parameter:
    """First weights that hardly differ along one dimension: what a place means is learned from there.

    Few queries do not teach it from weights that are drawn for each place.
    """
    once = torch.empty([1 if place == along else size for place, size in enumerate(shape)]).uniform_(-bound, bound)
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound).mul_(0.1).add_(once))


class Head(nn.Module):
    """Second dense layer, dropout, and the output unit, of which this gives the value before its tanh."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.dense = nn.Linear(shape.hidden, shape.hidden)
        self.dropout = nn.Dropout(shape.dropout)
        self.output = nn.Linear(shape.hidden, 1)

    def forward(self, units: Tensor) -> Tensor:
        """From shape (pairs, hidden) to (pairs,)."""
        return self.output(self.dropout(torch.tanh(self.dense(units)))).squeeze(1)


class LocalNetwork(nn.Module):
    """The local model (section 3.1): which query terms stand where in the document."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.positions = alike(shape.document_terms, shape.filters, along=0, bound=1)  # W of equation 2
        self.bias = nn.Parameter(torch.zeros(shape.filters))
        self.dense = nn.Linear(shape.query_terms * shape.filters, shape.hidden)
        self.head = Head(shape)
        inputs = self.dense.in_features
        weights = alike(shape.hidden, shape.query_terms, shape.filters, along=1, bound=2 / inputs**0.5)
        self.dense.weight = nn.Parameter(weights.view(-1, inputs))

    def forward(self, matches: Matches, pairs: int) -> Tensor:
        """The output before its tanh, shape (pairs,)."""
        return self.head(self.match(self.convolve(matches).view(pairs, -1)))

    def convolve(self, matches: Matches) -> Tensor:
        """Z of equation 2, shape (query terms of all pairs, filters)."""
        # X is binary and nearly empty, so that X^T W is the sum of a few rows of W.
        sums = F.embedding_bag(matches.positions, self.positions, matches.offsets, mode="sum", include_last_offset=True)
        return torch.tanh(sums + self.bias)

    def match(self, units: Tensor) -> Tensor:
        """The first dense layer, from units of the query terms that there are to shape (pairs, hidden)."""
        given = units.shape[1]
        unmatched = torch.tanh(self.bias).repeat(self.dense.in_features // len(self.bias))  # Z of terms that lack
        rest = F.linear(unmatched[given:], self.dense.weight[:, given:], self.dense.bias)
        return torch.tanh(F.linear(units, self.dense.weight[:, :given]) + rest)


class DistributedNetwork(nn.Module):
    """The distributed model (section 3.2): learned representations of query and document, multiplied."""

    def __init__(self, shape: Shape, num_ngrams: int):
        super().__init__()
        shape.require_windows()
        self.shape = shape
        filters = shape.filters
        self.query_words = HashingLayer(num_ngrams, shape.window * filters, bound=0.15)
        self.query_bias = nn.Parameter(torch.zeros(filters))
        self.query_dense = nn.Linear(filters, filters)
        self.document_words = HashingLayer(num_ngrams, shape.window * filters, bound=0.15)
        self.document_bias = nn.Parameter(torch.zeros(filters))
        self.document_dense = nn.Linear(filters, filters)  # the convolution of 300 x 1
        # The weights of the first dense layer, times the number of positions: Adam changes all weights by as much in a
        # step, and steps of 270,000 weights that do the same at all positions would saturate the layer at once.
        self.positions = alike(filters, shape.positions, shape.hidden, along=1, bound=3 / filters**0.5)
        self.bias = nn.Parameter(torch.zeros(shape.hidden))
        self.head = Head(shape)
        self._start_alike()

    def _start_alike(self) -> None:
        """Let query and document begin with the same weights, and a window as its centre word.

        Equal words then match from the first step on; what context adds and how the sides differ is learned.
        """
        with torch.no_grad():
            places = self.query_words.weight.view(-1, self.shape.window, self.shape.filters)
            places[:, [place for place in range(self.shape.window) if place != self.shape.window // 2]] = 0
        self.document_words.load_state_dict(self.query_words.state_dict())
        self.document_dense.load_state_dict(self.query_dense.state_dict())

    def forward(self, queries: HashedTexts, documents: HashedTexts, pairing: Pairing) -> Tensor:
        """The output before its tanh, shape (pairs,)."""
        return self.match(self.read_queries(queries), self.read_documents(documents), pairing)

    def read_queries(self, texts: HashedTexts) -> Tensor:
        """Convolution, max pooling over all windows, dense layer: shape (queries, filters)."""
        projections = self.query_words(texts).view(-1, self.shape.filters)
        words = padded_words(texts.words, texts.offsets, self.shape.query_terms, len(texts.bags) - 2)
        pooled = window_sums(projections, words, self.shape.window).amax(1)
        # tanh rises, and the bias is that of all windows: both may come after the maximum.
        return torch.tanh(self.query_dense(torch.tanh(pooled + self.query_bias)))

    def read_documents(self, texts: HashedTexts) -> Tensor:
        """All layers that need no query, shape (documents, filters, hidden); the longest document must come first."""
        projections = self.document_words(texts).view(-1, self.shape.filters)
        lengths = texts.offsets.diff().tolist()
        batches = [
            self._document_positions(projections, texts, start, end, lengths[start]) for start, end in similar(lengths)
        ]
        nothing = torch.tanh(self.document_dense(torch.tanh(self.document_bias)))
        return weighted_positions(self.positions, nothing, batches).div_(self.shape.positions)

    def _document_positions(self, projections: Tensor, texts: HashedTexts, start: int, end: int, length: int) -> Tensor:
        """D of equation 3 as far as the longest document goes, shape (documents, filters, positions)."""
        shape = self.shape
        positions = min(max(length, 1), shape.positions)
        width = min(max(length, 1) + shape.window - 1, shape.document_terms)
        words = padded_words(texts.words, texts.offsets[start : end + 1], width, len(texts.bags) - 2)
        pooled = pooled_windows(projections, words, shape.window, shape.pooling, positions)
        units = pooled.add_(self.document_bias[:, None]).tanh_()  # in place, for these are the largest tensors
        weight, bias = self.document_dense.weight.expand(len(units), -1, -1), self.document_dense.bias[:, None]
        return torch.baddbmm(bias, weight, units).tanh_()

    def match(self, queries: Tensor, documents: Tensor, pairing: Pairing) -> Tensor:
        """Hadamard product (equation 3) and the dense layers, shape (pairs,)."""
        units = torch.bmm(queries[pairing.queries], documents).flatten(0, 1)[pairing.places.flatten()]
        return self.head(torch.tanh(units + self.bias))


class DuetNetwork(nn.Module):
    """One or both models; their outputs are added up (equation 1).

    Args:
        shape: Sizes.
        num_ngrams: Number of letter n-grams of the distributed model.
        parts: ``"local"``, ``"distributed"``, or both in this order.
    """

    def __init__(self, shape: Shape, num_ngrams: int, parts: tuple[str, ...]):
        super().__init__()
        self.names = parts
        self.local = LocalNetwork(shape) if "local" in parts else None
        self.distributed = DistributedNetwork(shape, num_ngrams) if "distributed" in parts else None

    def forward(self, inputs: PairInputs) -> Tensor:
        """Scores f in the shape of the pairs: the sum of one tanh a part."""
        return torch.tanh(self.parts(inputs)).sum(1).view(inputs.pairing.places.shape)

    def parts(self, inputs: PairInputs) -> Tensor:
        """The output of each part before its tanh, shape (pairs, parts)."""
        outputs = []
        if self.local is not None:
            outputs.append(self.local(inputs.matches, inputs.pairing.places.numel()))
        if self.distributed is not None:
            outputs.append(self.distributed(inputs.queries, inputs.documents, inputs.pairing))
        return torch.stack(outputs, dim=1)


def similar(lengths: list[int]) -> list[tuple[int, int]]:
    """Cut falling lengths into stretches of similar ones: where each starts and ends."""
    stretches, start = [], 0
    for place, length in enumerate(lengths):
        shorter = length < LEAST_SHARE * lengths[start] and place - start >= LEAST_DOCUMENTS
        if shorter or place - start == MOST_DOCUMENTS:
            stretches.append((start, place))
            start = place
    return [*stretches, (start, len(lengths))]


def joint_scores(outputs: Tensor) -> Tensor:
    """Scores that rank as the sum of the tanh of each part does (equation 1), and do not tie where tanh is flat.

    This is ``atanh(f / parts)``, computed without f: for one part its output before the tanh.

    Args:
        outputs: Outputs before the tanh, shape (pairs, parts).

    Returns:
        float64 of shape (pairs,).
    """
    # 1 + tanh(a) = 2 sigmoid(2a), and 1 - tanh(a) = 2 sigmoid(-2a).
    outputs = outputs.double()  # two parts that contradict each other leave a small difference
    nearness, distance = F.logsigmoid(2 * outputs), F.logsigmoid(-2 * outputs)
    return (nearness.logsumexp(1) - distance.logsumexp(1)) / 2
