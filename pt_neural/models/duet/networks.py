"""The networks of the Duet (Mitra, Diaz and Craswell, 2017, section 3): local, distributed, and their sum."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pt_neural._arguments import checked_number
from pt_neural.rankers.readers.hashed_ngrams import HashedTexts, HashingLayer
from pt_neural.rankers.readers.word_pairs import Matches, Pairing, PairInputs

MOST_QUERY_TERMS = 10_000  # the distributed model pads queries to their number, which no weight depends on
LENGTH_RATIO = 0.8  # least length of a document in a batch, as a share of the longest one
MAX_DOCUMENTS = 128  # in a batch; with more, the layers' temporaries outgrow the weights
MIN_DOCUMENTS = 16  # in a batch; with fewer, reading the weights takes longer than multiplying
WINDOWS_PER_STEP = 2048  # pooled at a time, so that intermediate results stay in the processor's cache


@dataclass(frozen=True)
class DuetSizes:
    """Sizes of the networks; the defaults are those of the paper.

    Attributes:
        query_terms: Terms of a query (n_q).
        document_terms: Terms of a document (n_d).
        filters: Filters of the convolutions (c).
        hidden: Units of each dense layer.
        window: Terms per window of the distributed model.
        pooling: Windows of a document that are pooled at each position; None for a tenth of its windows, at most 100,
            which is the paper's 100 of 998.
        dropout: Share of the last layer's units that is dropped in training.

    Raises:
        TypeError: If a size is not a number.
        ValueError: If a size is below 1, ``query_terms`` above 10,000, or ``dropout`` not between 0 and 1.
    """

    query_terms: int = 10
    document_terms: int = 1000
    filters: int = 300
    hidden: int = 300
    window: int = 3
    pooling: int | None = None
    dropout: float = 0.2

    def __post_init__(self):
        for name in ("query_terms", "document_terms", "filters", "hidden", "window", "pooling"):
            most = MOST_QUERY_TERMS if name == "query_terms" else None
            size = checked_number(name, getattr(self, name), int, least=1, most=most, optional=name == "pooling")
            object.__setattr__(self, name, size)
        if self.pooling is None:
            tenth = round((self.document_terms - self.window + 1) / 10)
            object.__setattr__(self, "pooling", min(max(tenth, 1), 100))
        object.__setattr__(self, "dropout", checked_number("dropout", self.dropout, float, least=0))
        if self.dropout >= 1:
            raise ValueError(f"dropout must be below 1, not {self.dropout}")

    def require_windows(self) -> None:
        """Raise ValueError if windows or pooling are longer than the texts."""
        if self.window > self.query_terms:
            raise ValueError(f"window must be at most query_terms, {self.query_terms}, not {self.window}")
        num_windows = self.document_terms - self.window + 1
        if num_windows < 1:
            raise ValueError(f"window must be at most document_terms, {self.document_terms}, not {self.window}")
        if self.pooling > num_windows:
            raise ValueError(f"pooling must be at most {num_windows}, the windows of a document, not {self.pooling}")

    @property
    def positions(self) -> int:
        """Positions of a document after pooling: 899 in the paper."""
        return self.document_terms - self.window + 1 - self.pooling + 1


class DuetNetwork(nn.Module):
    """The local model, the distributed model, or the sum of both (equation 1).

    Args:
        sizes: Sizes.
        num_ngrams: Number of letter n-grams known to the distributed model.
        parts: ``"local"``, ``"distributed"``, or both in this order.
    """

    def __init__(self, sizes: DuetSizes, num_ngrams: int, parts: tuple[str, ...]):
        super().__init__()
        self.local = LocalNetwork(sizes) if "local" in parts else None
        self.distributed = DistributedNetwork(sizes, num_ngrams) if "distributed" in parts else None

    def forward(self, pairs: PairInputs) -> Tensor:
        """Scores f, one for each pair: the sum of the tanh of each part's output (equation 1)."""
        outputs = self.match(pairs, self.read_queries(pairs.queries), self.read_documents(pairs.documents))
        return torch.tanh(outputs).sum(1).view(pairs.pairing.places.shape)

    def read_queries(self, texts: HashedTexts | None) -> Tensor | None:
        """The distributed model's query vectors, shape (queries, filters); None if there is no such model."""
        return None if self.distributed is None else self.distributed.read_queries(texts)

    def read_documents(self, texts: HashedTexts | None) -> Tensor | None:
        """The distributed model's document matrices, longest document first, shape (documents, filters, hidden)."""
        return None if self.distributed is None else self.distributed.read_documents(texts)

    def match(self, pairs: PairInputs, queries: Tensor | None, documents: Tensor | None) -> Tensor:
        """The output of each part before its tanh, shape (pairs, parts).

        Args:
            pairs: The pairs, whose texts have already been read.
            queries: The result of :meth:`read_queries`.
            documents: The result of :meth:`read_documents`.
        """
        outputs = []
        if self.local is not None:
            outputs.append(self.local(pairs.matches, pairs.pairing.places.numel()))
        if self.distributed is not None:
            outputs.append(self.distributed.match(queries, documents, pairs.pairing))
        return torch.stack(outputs, dim=1)

    def scaled_weights(self) -> list[tuple[nn.Parameter, float]]:
        """Weights that are kept as a multiple of those of the paper, with the factor; see ``training.lightning``."""
        return [] if self.distributed is None else [(self.distributed.positions, self.distributed.sizes.positions)]


def joint_scores(outputs: Tensor) -> Tensor:
    """Scores that rank as the sum of the parts' tanh does (equation 1), but without ties where tanh is flat.

    This is ``atanh(f / parts)``, computed without f; for a single part, its output before the tanh.

    Args:
        outputs: Outputs before the tanh, shape (pairs, parts).

    Returns:
        float64 of shape (pairs,).
    """
    # 1 + tanh(a) = 2 sigmoid(2a), and 1 - tanh(a) = 2 sigmoid(-2a).
    outputs = outputs.double()  # two parts that contradict each other leave a small difference
    above, below = F.logsigmoid(2 * outputs), F.logsigmoid(-2 * outputs)  # (pairs, parts)
    return (above.logsumexp(1) - below.logsumexp(1)) / 2


class Head(nn.Module):
    """The last layers of either model: dense, dropout, and the output unit without its tanh."""

    def __init__(self, sizes: DuetSizes):
        super().__init__()
        self.dense = nn.Linear(sizes.hidden, sizes.hidden)
        self.dropout = nn.Dropout(sizes.dropout)
        self.output = nn.Linear(sizes.hidden, 1)

    def forward(self, units: Tensor) -> Tensor:
        """From (pairs, hidden) to (pairs,)."""
        return self.output(self.dropout(torch.tanh(self.dense(units)))).squeeze(1)


class LocalNetwork(nn.Module):
    """The local model (section 3.1): which query terms occur where in the document."""

    def __init__(self, sizes: DuetSizes):
        super().__init__()
        self.positions = nearly_constant(sizes.document_terms, sizes.filters, along=0, bound=1)  # W of equation 2
        self.bias = nn.Parameter(torch.zeros(sizes.filters))
        self.dense = nn.Linear(sizes.query_terms * sizes.filters, sizes.hidden)
        self.head = Head(sizes)
        inputs = self.dense.in_features
        weights = nearly_constant(sizes.hidden, sizes.query_terms, sizes.filters, along=1, bound=2 / inputs**0.5)
        self.dense.weight = nn.Parameter(weights.view(-1, inputs))

    def forward(self, matches: Matches, num_pairs: int) -> Tensor:
        """The output before its tanh, shape (pairs,)."""
        units = self.convolve(matches)  # (pairs * query terms, filters)
        units = self.first_dense(units.view(num_pairs, -1))  # (pairs, hidden)
        return self.head(units)

    def convolve(self, matches: Matches) -> Tensor:
        """Z of equation 2, shape (query terms of all pairs, filters)."""
        # X is binary and nearly empty, so X^T W is the sum of a few rows of W.
        sums = F.embedding_bag(matches.positions, self.positions, matches.offsets, mode="sum", include_last_offset=True)
        return torch.tanh(sums + self.bias)

    def first_dense(self, units: Tensor) -> Tensor:
        """From the units of query terms, (pairs, query terms * filters), to (pairs, hidden).

        Queries may be shorter than the layer's input: padding matches nothing, so its Z is a constant.
        """
        width = units.shape[1]
        unmatched = torch.tanh(self.bias).repeat(self.dense.in_features // len(self.bias))  # (all inputs,)
        padding = F.linear(unmatched[width:], self.dense.weight[:, width:], self.dense.bias)  # (hidden,)
        return torch.tanh(F.linear(units, self.dense.weight[:, :width]) + padding)


class DistributedNetwork(nn.Module):
    """The distributed model (section 3.2): learned representations of query and document, multiplied."""

    def __init__(self, sizes: DuetSizes, num_ngrams: int):
        super().__init__()
        sizes.require_windows()
        self.sizes = sizes
        filters = sizes.filters
        self.query_words = HashingLayer(num_ngrams, sizes.window * filters, bound=0.15)
        self.query_bias = nn.Parameter(torch.zeros(filters))
        self.query_dense = nn.Linear(filters, filters)
        self.document_words = HashingLayer(num_ngrams, sizes.window * filters, bound=0.15)
        self.document_bias = nn.Parameter(torch.zeros(filters))
        self.document_dense = nn.Linear(filters, filters)  # the convolution with a 300 x 1 kernel
        # The weights of the first dense layer, times the number of positions. Adam changes every weight by about the
        # same amount in a step; 270,000 weights that change alike at all positions would saturate the layer at once.
        # scaled_weights tells SGD, whose steps depend on the scale.
        self.positions = nearly_constant(filters, sizes.positions, sizes.hidden, along=1, bound=3 / filters**0.5)
        self.bias = nn.Parameter(torch.zeros(sizes.hidden))
        self.head = Head(sizes)
        self._match_equal_words()

    def _match_equal_words(self) -> None:
        """Start with the same weights for query and document, and with windows that see only their middle word.

        Equal words then match from the first step on; context, and how the two sides differ, is learned.
        """
        window = self.sizes.window
        with torch.no_grad():
            weights = self.query_words.weight.view(-1, window, self.sizes.filters)  # (n-grams, window, filters)
            weights[:, [place for place in range(window) if place != window // 2]] = 0
        self.document_words.load_state_dict(self.query_words.state_dict())
        self.document_dense.load_state_dict(self.query_dense.state_dict())

    def read_queries(self, texts: HashedTexts) -> Tensor:
        """Convolution, max pooling over all windows, dense layer: shape (queries, filters)."""
        sizes = self.sizes
        projections = self.query_words(texts).view(-1, sizes.filters)  # (distinct words * window, filters)
        words = padded_words(texts.words, texts.offsets, sizes.query_terms, len(texts.bags) - 2)  # (queries, terms)
        pooled = window_sums(projections, words, sizes.window).amax(1)  # (queries, filters)
        # tanh is monotonic, and all windows have the same bias, so both can follow the maximum.
        return torch.tanh(self.query_dense(torch.tanh(pooled + self.query_bias)))

    def read_documents(self, texts: HashedTexts) -> Tensor:
        """All layers that do not depend on the query, shape (documents, filters, hidden); longest document first."""
        projections = self.document_words(texts).view(-1, self.sizes.filters)  # (distinct words * window, filters)
        lengths = texts.offsets.diff().tolist()
        batches = [
            self._document_positions(projections, texts, start, end, lengths[start])  # (batch, filters, positions)
            for start, end in similar_lengths(lengths)
        ]
        padding = torch.tanh(self.document_dense(torch.tanh(self.document_bias)))  # (filters,)
        return weighted_positions(self.positions, padding, batches).div_(self.sizes.positions)

    def _document_positions(self, projections: Tensor, texts: HashedTexts, start: int, end: int, length: int) -> Tensor:
        """D of equation 3 up to the end of the longest of these documents: shape (documents, filters, positions)."""
        sizes = self.sizes
        positions = min(max(length, 1), sizes.positions)
        width = min(max(length, 1) + sizes.window - 1, sizes.document_terms)
        words = padded_words(texts.words, texts.offsets[start : end + 1], width, len(texts.bags) - 2)
        units = pooled_windows(projections, words, sizes.window, sizes.pooling, positions)
        # In place, because these are the largest tensors of all: (documents, filters, positions).
        units = tanh_(units.add_(self.document_bias[:, None]))
        weight, bias = self.document_dense.weight.expand(len(units), -1, -1), self.document_dense.bias[:, None]
        return tanh_(torch.baddbmm(bias, weight, units))

    def match(self, queries: Tensor, documents: Tensor, pairing: Pairing) -> Tensor:
        """Hadamard product (equation 3) and the dense layers, shape (pairs,).

        Args:
            queries: The result of :meth:`read_queries`, shape (queries, filters).
            documents: The result of :meth:`read_documents`, shape (documents, filters, hidden).
            pairing: Which queries and documents form pairs.
        """
        units = torch.bmm(queries[pairing.queries], documents)  # (documents, queries per document, hidden)
        units = units.flatten(0, 1)[pairing.places.flatten()]  # (pairs, hidden)
        return self.head(torch.tanh(units + self.bias))


def tanh_(units: Tensor) -> Tensor:
    """The hyperbolic tangent, in place: ``2 sigmoid(2x) - 1`` where nothing is learned, in half of the time."""
    if torch.is_grad_enabled():
        return units.tanh_()
    for part in units.unbind():  # one after the other, because one fits into the processor's cache
        part.mul_(2).sigmoid_().mul_(2).sub_(1)
    return units


def nearly_constant(*shape: int, along: int, bound: float) -> nn.Parameter:
    """Initial weights that hardly differ along one dimension, so that few queries suffice to learn from.

    If they were drawn independently for each position, small training sets would not teach what a position means.
    """
    shared = torch.empty([1 if place == along else size for place, size in enumerate(shape)]).uniform_(-bound, bound)
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound).mul_(0.1).add_(shared))


def similar_lengths(lengths: Sequence[int]) -> list[tuple[int, int]]:
    """Cut a descending list of lengths into runs of similar lengths: the start and end of each run."""
    runs, start = [], 0
    for place, length in enumerate(lengths):
        is_shorter = length < LENGTH_RATIO * lengths[start] and place - start >= MIN_DOCUMENTS
        if is_shorter or place - start == MAX_DOCUMENTS:
            runs.append((start, place))
            start = place
    return [*runs, (start, len(lengths))]


# Convolution over windows of words, and max pooling over stretches of windows (section 3.2)


def padded_words(words: Tensor, offsets: Tensor, width: int, padding: int) -> Tensor:
    """Texts as the rows of a matrix, int64 of shape (texts, width).

    Args:
        words: The texts, one after the other, int64.
        offsets: Where each text starts, int64 of shape (texts + 1,).
        width: At least the length of the longest text.
        padding: The word that follows the end of a text.
    """
    lengths = offsets.diff()
    matrix = torch.full((len(lengths), width), padding, dtype=torch.int64, device=words.device)
    matrix[torch.arange(width, device=words.device) < lengths[:, None]] = words[offsets[0] : offsets[-1]]
    return matrix


def window_sums(projections: Tensor, words: Tensor, window: int) -> Tensor:
    """The convolution of each window of each text, before its bias and its tanh.

    Args:
        projections: Shape (distinct words * window, units): row ``word * window + i`` is what the word contributes to
            the units at place ``i`` of a window.
        words: Padded texts, int64 of shape (texts, width).
        window: Words per window.

    Returns:
        Shape (texts, width - window + 1, units).
    """
    rows = words.unfold(1, window, 1) * window + torch.arange(window, device=words.device)  # (texts, windows, window)
    sums = F.embedding_bag(rows.reshape(-1, window), projections, mode="sum")  # (texts * windows, units)
    return sums.view(*rows.shape[:2], -1)


def sliding_max(values: Tensor, size: int) -> Tensor:
    """The largest of every ``size`` successive values: (texts, n, units) to (texts, n - size + 1, units).

    The maximum of a stretch of 2, 4, 8.. values is that of its two halves' maxima, so this takes log2(size) steps.
    """
    reach = 1
    while 2 * reach <= size:
        values = torch.maximum(values[:, :-reach], values[:, reach:])
        reach *= 2
    if reach == size:
        return values
    rest = size - reach
    return torch.maximum(values[:, :-rest], values[:, rest:])


def pooled_windows(projections: Tensor, words: Tensor, window: int, size: int, positions: int) -> Tensor:
    """``max over s < size of sum over i of projections[word t + s + i, place i]`` for each position t of each text.

    Windows beyond the width count as zero, so texts must end in at least ``window - 1`` padding words, which are zero.

    Args:
        projections: See :func:`window_sums`; zero for the padding.
        words: Padded texts, int64 of shape (texts, width).
        window: Words per window.
        size: Windows that are pooled.
        positions: Number of positions t, from 0.

    Returns:
        Shape (texts, units, positions).
    """
    return _PooledWindows.apply(projections, words, window, size, positions)


class _PooledWindows(torch.autograd.Function):
    """Takes a few texts at a time, and remembers the windows that won instead of all window sums."""

    @staticmethod
    def forward(ctx: Any, projections: Tensor, words: Tensor, window: int, size: int, positions: int) -> Tensor:
        num_windows = positions + size - 1
        pooled = projections.new_empty(len(words), projections.shape[1], positions)  # (texts, units, positions)
        learns = ctx.needs_input_grad[0]
        integer = torch.int16 if num_windows < 2**15 else torch.int32
        winners = torch.empty(pooled.shape if learns else (0,), dtype=integer, device=words.device)
        for texts in _steps(len(words), num_windows):
            sums = window_sums(projections, words[texts], window)[:, :num_windows]
            sums = F.pad(sums, (0, 0, 0, num_windows - sums.shape[1]))  # (texts, windows, units)
            if learns:
                largest, places = _max_and_place(sums, size)
                pooled[texts], winners[texts] = largest.transpose(1, 2), places.transpose(1, 2)
            else:
                pooled[texts] = sliding_max(sums, size).transpose(1, 2)
        ctx.save_for_backward(words, winners)
        ctx.sizes = projections.shape, window, num_windows
        return pooled

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None, None]:
        words, winners = ctx.saved_tensors
        shape, window, num_windows = ctx.sizes
        projection_gradient = gradient.new_zeros(shape)
        inside = min(words.shape[1] - window + 1, num_windows)  # windows of the text, not of the padding after it
        for texts in _steps(len(words), num_windows):
            windows = gradient.new_zeros(*gradient[texts].shape[:2], num_windows)  # (texts, units, windows)
            windows.scatter_add_(2, winners[texts].long(), gradient[texts])
            windows = windows[:, :, :inside].transpose(1, 2).reshape(-1, shape[1])  # (texts * windows, units)
            for place in range(window):
                rows = words[texts, place : place + inside] * window + place
                projection_gradient.index_add_(0, rows.reshape(-1), windows)
        return projection_gradient, None, None, None, None


def _max_and_place(values: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The result of :func:`sliding_max`, and the place of each maximum among the values."""
    # float64 has 29 bits more than float32. They hold the place, so one search finds both. A zero with a place would be
    # denormal, which some processors are told to take for zero, so 2^-1000 is added; it is lost in any other float32.
    places = torch.arange(values.shape[1], device=values.device)[:, None]
    numbers = values.float().double().add_(2.0**-1000).view(torch.int64).bitwise_or_(places)
    largest = sliding_max(numbers.view(torch.float64), size)
    return largest.to(values.dtype), largest.view(torch.int64) & (2**28 - 1)


def _steps(num_texts: int, num_windows: int) -> list[slice]:
    step = max(1, WINDOWS_PER_STEP // num_windows)
    return [slice(start, start + step) for start in range(0, num_texts, step)]


# The first dense layer over positions, applied to documents alone


def weighted_positions(weights: Tensor, padding: Tensor, documents: Sequence[Tensor]) -> Tensor:
    """``E[d, i, k] = sum over t of weights[i, t, k] * documents[d, i, t]``, all that matching needs of a document.

    The dense layer over the Hadamard product of equation 3 is ``sum over i of q[i] * E[d, i, k]``: it is linear in the
    query, so the sum over positions does not depend on the query. This is exact, is done once per document, and E is
    smaller than the documents. Positions beyond the given ones have the same value in all documents, so their weights
    are summed rather than multiplied.

    Args:
        weights: Shape (filters, positions, units).
        padding: Values at the positions beyond the end of a text, shape (filters,).
        documents: Batches of shape (documents, filters, first positions), by descending number of positions.

    Returns:
        Shape (documents of all batches, filters, units).
    """
    with torch.autocast(weights.device.type, enabled=False):  # sums over positions need all digits
        return _WeightedPositions.apply(weights, *(part.to(weights.dtype) for part in (padding, *documents)))


class _WeightedPositions(torch.autograd.Function):
    """Adds up the gradients of all batches in place, because the weights are too large to copy for each batch."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, padding: Tensor, *documents: Tensor) -> Tensor:
        filters, _, units = weights.shape
        result = weights.new_empty(sum(map(len, documents)), filters, units)
        tails = _sum_tails(weights, [batch.shape[2] for batch in documents])
        start = 0
        for batch, tail in zip(documents, tails, strict=True):
            part = result[start : start + len(batch)]  # (documents, filters, units)
            torch.bmm(batch.transpose(0, 1), weights[:, : batch.shape[2]], out=part.transpose(0, 1))
            part += padding[:, None] * tail
            start += len(batch)
        ctx.save_for_backward(weights, padding, *documents)
        ctx.tails = tails
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        weights, padding, *documents = ctx.saved_tensors
        weight_gradient, padding_gradient = torch.empty_like(weights), torch.zeros_like(padding)
        document_gradients, tail_gradients = [], []
        start = 0
        for batch, tail in zip(documents, ctx.tails, strict=True):
            part = gradient[start : start + len(batch)].transpose(0, 1)  # (filters, documents, units)
            positions = batch.shape[2]
            if start == 0:  # the longest: what it does not reach, none does
                torch.bmm(batch.permute(1, 2, 0), part, out=weight_gradient[:, :positions])
                weight_gradient[:, positions:] = 0
            else:
                weight_gradient[:, :positions].baddbmm_(batch.permute(1, 2, 0), part)
            batch_gradient = torch.empty_like(batch)  # (documents, filters, positions)
            torch.bmm(part, weights[:, :positions].transpose(1, 2), out=batch_gradient.transpose(0, 1))
            document_gradients.append(batch_gradient)
            total = part.sum(1)  # (filters, units)
            padding_gradient += (total * tail).sum(1)
            tail_gradients.append(padding[:, None] * total)
            start += len(batch)
        _add_tails(weight_gradient, [batch.shape[2] for batch in documents], tail_gradients)
        return weight_gradient, padding_gradient, *document_gradients


def _sum_tails(weights: Tensor, lengths: Sequence[int]) -> list[Tensor]:
    """``weights[:, length:].sum(1)`` for descending lengths, (filters, units) each; each weight is read once."""
    tails, end = [], weights.shape[1]
    total = weights.new_zeros(weights.shape[0], weights.shape[2])
    for length in lengths:
        if length < end:
            total = total + weights[:, length:end].sum(1)
        tails.append(total)
        end = length
    return tails


def _add_tails(gradient: Tensor, lengths: Sequence[int], tails: Sequence[Tensor]) -> None:
    """Add ``tails[b]`` to ``gradient[:, lengths[b]:]`` for all b; each place is written once."""
    total = torch.zeros_like(tails[0])
    ends = [gradient.shape[1], *lengths[:-1]]
    for length, end, tail in reversed(list(zip(lengths, ends, tails, strict=True))):
        total = total + tail
        if length < end:
            gradient[:, length:end] += total[:, None]
