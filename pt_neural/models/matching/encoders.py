"""Each word of a text in its context: bi-directional LSTMs, or convolutions in their place (sections 3.1 and 5.6)."""

from collections.abc import Collection, Mapping
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from pt_neural._arguments import checked_choice, checked_number
from pt_neural.models.clsm.layers import max_over_windows
from pt_neural.models.matching.recurrence import GATES, states_of
from pt_neural.rankers.readers.embedded_words import EmbeddedTexts

Encoder = Literal["lstm", "cnn"]
ENCODERS = ("lstm", "cnn")

# A CPU reads at least so many texts, or so many words of short texts, at a time: then they stay in its cache.
TEXTS_AT_ONCE = 32
WORDS_AT_ONCE = 6400
LEAST_ROWS = 32  # the bits of a product of matrices depend on the number of rows where there are fewer


def checked_sizes(sizes: Mapping[str, Any], choices: Mapping[str, Collection[str]]) -> dict[str, Any]:
    """Check a network's sizes, choices and ``dropout``, given by name; sizes become Python numbers."""
    checked = {}
    for name, value in sizes.items():
        if name in choices:
            checked[name] = checked_choice(name, value, choices[name])
        elif name == "dropout":
            checked[name] = checked_number(name, value, float, least=0)
            if checked[name] >= 1:
                raise ValueError(f"dropout must be below 1, not {value!r}")
        else:
            checked[name] = checked_number(name, value, int, least=1)
    return checked


class Encoded(NamedTuple):
    """The output of an encoder.

    Attributes:
        states: The state of each word, text after text, float32 of shape (words, 2 * units).
        whole: A vector for each text as a whole, float32 of shape (texts, 2 * units); zero for empty texts.
    """

    states: Tensor
    whole: Tensor


class Queries(NamedTuple):
    """Queries as the networks match them with documents.

    Attributes:
        words: A vector for each word, float32 of shape (queries, most words of a query, units); padded with zeros.
        lengths: Words of each query, int64.
        whole: A vector for each query as a whole, float32 of shape (queries, units); None if it is not matched so.
    """

    words: Tensor
    lengths: Tensor
    whole: Tensor | None

    def take(self, numbers: Tensor) -> "Queries":
        """The queries with these numbers, which may repeat."""
        return Queries(*(part if part is None else part[numbers] for part in self))

    def one(self, number: int) -> "Queries":
        """One of the queries, without padding."""
        query = Queries(*(part if part is None else part[number : number + 1] for part in self))
        return query._replace(words=query.words[:, : max(1, int(query.lengths))])


def pad_rows(rows: Tensor, dimension: int = 0) -> Tensor:
    """Rows followed by zeros, if there are few; a row's product with a matrix then does not depend on the others."""
    missing = max(0, LEAST_ROWS - rows.shape[dimension])
    return F.pad(rows, (0, 0) * (rows.dim() - dimension - 1) + (0, missing)) if missing else rows


class RowLinear(nn.Linear):
    """A linear layer; a row's result does not depend on the other rows, except in training."""

    def forward(self, rows: Tensor) -> Tensor:
        """From (rows, inputs) to (rows, outputs)."""
        if self.training:
            return super().forward(rows)  # no slice, since its gradient would be copied
        return super().forward(pad_rows(rows))[: len(rows)]


class TextEncoders(nn.Module):
    """The first layers of all models of the paper: one projection of word vectors, then an encoder for each side.

    Args:
        dim: Dimensions of the word embeddings.
        projection: Dimensions that they are projected to.
        query_units: Units of each direction of the query encoder.
        document_units: Units of each direction of the document encoder.
        encoder: ``"lstm"`` or ``"cnn"``.
        dropout: Share of the encoders' inputs and outputs that is dropped in training.
    """

    def __init__(
        self, dim: int, projection: int, query_units: int, document_units: int, encoder: Encoder, dropout: float
    ):
        super().__init__()
        kind = RecurrentEncoder if encoder == "lstm" else ConvolutionalEncoder
        self.projection = RowLinear(dim, projection)
        self.query = kind(projection, query_units, dropout)
        self.document = kind(projection, document_units, dropout)

    def forward(self, side: Literal["query", "document"], texts: EmbeddedTexts) -> Encoded:
        """Read the texts of one side; each distinct word is projected once."""
        words = F.embedding(texts.words, self.projection(texts.vectors))  # (words, projection)
        return getattr(self, side)(words, texts.offsets)


class RecurrentEncoder(nn.Module):
    """A bi-directional LSTM; the last state of each direction stands for the text (sections 3.1 and 5.3).

    Args:
        inputs: Length of the word vectors.
        units: Units of each direction.
        dropout: Share of inputs and outputs that is dropped in training; recurrent connections are kept.
    """

    def __init__(self, inputs: int, units: int, dropout: float):
        super().__init__()
        self.lstm = TextLSTM(inputs, units)
        self.dropout = ByteDropout(dropout)

    def forward(self, words: Tensor, offsets: Tensor) -> Encoded:
        """Read texts.

        Args:
            words: Vectors of the words, text after text, float32 of shape (words, inputs).
            offsets: Where each text starts, int64 of shape (texts + 1,).
        """
        states, whole = self.lstm(self.dropout(words), offsets)
        return Encoded(self.dropout(states), self.dropout(whole))


class ConvolutionalEncoder(nn.Module):
    """Convolutions over single words and over three words; the largest value of each unit stands for the text.

    "A mix of width 1 and width 3 convolutional filters" (section 5.6): half of the units have width 1 and half width 3,
    with tanh, and there are as many as in both directions of the LSTM.

    Args:
        inputs: Length of the word vectors.
        units: Units of each width.
        dropout: Share of inputs and outputs that is dropped in training.
    """

    def __init__(self, inputs: int, units: int, dropout: float):
        super().__init__()
        self.one = RowLinear(inputs, units)
        self.three = RowLinear(3 * inputs, units)
        self.dropout = ByteDropout(dropout)

    def forward(self, words: Tensor, offsets: Tensor) -> Encoded:
        """Read texts; see :meth:`RecurrentEncoder.forward`."""
        words = self.dropout(words)
        rows = torch.arange(len(words), device=words.device)
        before, after = rows - 1, rows + 1
        not_empty = offsets.diff() > 0
        before[offsets[:-1][not_empty]] = len(words)  # the row of zeros, before the first word and after the last
        after[offsets[1:][not_empty] - 1] = len(words)
        padded = F.pad(words, (0, 0, 0, 1))
        windows = torch.cat([padded[before], words, padded[after]], dim=1)  # (words, 3 * inputs)
        states = torch.tanh(torch.cat([self.one(words), self.three(windows)], dim=1))  # (words, 2 * units)
        states = self.dropout(states)
        return Encoded(states, max_over_texts(states, offsets))


def max_over_texts(states: Tensor, offsets: Tensor) -> Tensor:
    """The largest value of each unit over each text, (texts, units); zero for empty texts."""
    return max_over_windows(states, torch.arange(len(states), device=states.device), offsets, 1)


class TextLSTM(nn.LSTM):
    """A bi-directional LSTM over texts of different lengths, each read as if it were alone.

    On a CPU, PyTorch reads sequences of different lengths one word at a time, far more slowly than sequences of equal
    length, so texts of similar length are padded at the end. The second direction reads each text reversed, so that
    both directions come to the padding last. On a GPU, sequences are packed.

    Args:
        inputs: Length of the word vectors.
        units: Units of each direction.
    """

    def __init__(self, inputs: int, units: int):
        super().__init__(inputs, units, bidirectional=True)

    def forward(self, words: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
        """Read texts.

        Args:
            words: Vectors of the words, text after text, float32 of shape (words, inputs).
            offsets: Where each text starts, int64 of shape (texts + 1,).

        Returns:
            The state of each word, float32 of shape (words, 2 * units), and the last state of both directions, of shape
            (texts, 2 * units), zero for empty texts.
        """
        lengths = offsets.diff()
        not_empty = lengths > 0
        whole = words.new_zeros(len(lengths), 2 * self.hidden_size)
        if not len(words):
            return words.new_zeros(0, 2 * self.hidden_size), whole
        order = _longest_first(lengths)
        states = (self._packed if words.is_cuda else self._padded)(words, offsets, order)  # (words, 2 * units)
        forward, backward = states.chunk(2, dim=1)
        last = torch.cat([forward[offsets[1:][not_empty] - 1], backward[offsets[:-1][not_empty]]], dim=1)
        return states, whole.to(last.dtype).masked_scatter(not_empty[:, None], last)

    def of_distinct(self, vectors: Tensor, words: Tensor, offsets: Tensor) -> Tensor:
        """The state of each word, from the vectors of the distinct words and each word's place among them.

        In training on a CPU, each distinct word is projected once, and loops of our own read no padding.
        """
        in_loops = self.training and vectors.device.type == "cpu" and vectors.dtype == torch.float32
        if not in_loops or not len(words):
            return self(F.embedding(words, vectors), offsets)[0]
        lengths, order = offsets.diff(), _longest_first(offsets.diff())
        steps = torch.arange(int(lengths.max()))[:, None]
        is_word = steps < lengths[order]  # (steps, texts)
        rows = torch.stack([(offsets[order] + steps)[is_word], (offsets[order + 1] - 1 - steps)[is_word]])
        weights = [torch.stack(both) for both in zip(*self.all_weights, strict=True)]
        of_inputs, recurrent, *biases = (weight.unflatten(1, (4, -1))[:, GATES].flatten(1, 2) for weight in weights)
        with torch.autocast("cpu", enabled=False):  # which these loops lack, as PyTorch's LSTM of a CPU does
            projected = vectors @ of_inputs.mT + sum(biases)[:, None]  # (2, distinct words, 4 * units)
            states = states_of(projected, recurrent, words[rows], is_word.sum(1).tolist())
        places = rows.argsort()  # of each word's state
        return torch.cat([states[direction].index_select(0, places[direction]) for direction in range(2)], dim=1)

    def _packed(self, words: Tensor, offsets: Tensor, order: Tensor) -> Tensor:
        """Read all texts at once; ``order`` lists those with words, the longest first."""
        lengths = offsets.diff()[order]
        steps = torch.arange(int(lengths[0]), device=words.device)[:, None]
        is_word = steps < lengths  # (steps, texts)
        rows = (offsets[order] + steps)[is_word]
        output, _ = super().forward(PackedSequence(F.embedding(rows, words), is_word.sum(dim=1).cpu()))
        return F.embedding(torch.argsort(rows), output.data)

    def _padded(self, words: Tensor, offsets: Tensor, order: Tensor) -> Tensor:
        """Read a few texts of similar length at a time."""
        lengths = offsets.diff()
        outputs, output_rows, start = ([], []), offsets.new_empty(2, len(words)), 0
        for texts in order.split(max(TEXTS_AT_ONCE, WORDS_AT_ONCE // int(lengths[order[0]]))):
            steps = torch.arange(int(lengths[texts[0]]), device=words.device)[:, None]
            is_word = steps < lengths[texts]  # (steps, texts)
            cells = torch.arange(start, start + is_word.numel(), device=words.device).view(is_word.shape)[is_word]
            for direction, rows in enumerate([offsets[texts] + steps, offsets[texts + 1] - 1 - steps]):
                output_rows[direction, rows[is_word]] = cells
                outputs[direction].append(self._one_way(direction, F.embedding(rows.where(is_word, 0), words)))
            start += is_word.numel()
        both = zip(output_rows, map(torch.cat, outputs), strict=True)
        return torch.cat([F.embedding(rows, output) for rows, output in both], dim=1)

    def _one_way(self, direction: int, inputs: Tensor) -> Tensor:
        """States of one direction, from inputs of shape (steps, texts, inputs): (steps * texts, units)."""
        number, inputs = inputs.shape[1], inputs if self.training else pad_rows(inputs, 1)
        zeros = inputs.new_zeros(1, inputs.shape[1], self.hidden_size)
        weights = self.all_weights[direction]
        output, *_ = torch.lstm(inputs, (zeros, zeros), weights, True, 1, 0.0, self.training, False, False)
        return output[:, :number].flatten(0, 1)


def _longest_first(lengths: Tensor) -> Tensor:
    """Numbers of the texts that have words, the longest first."""
    return torch.argsort(lengths, descending=True, stable=True)[: int((lengths > 0).sum())]


class ByteDropout(nn.Module):
    """Dropout that draws one random byte per unit; PyTorch draws a float, which takes longer than the layers around it.

    Args:
        share: Share of units set to zero in training, rounded to a 256th; the others are scaled up to keep the mean.
    """

    def __init__(self, share: float):
        super().__init__()
        self.dropped = min(255, round(256 * share))

    def forward(self, units: Tensor) -> Tensor:
        """Drop units at random."""
        if not self.training or not self.dropped:
            return units
        eights = torch.empty(-(-units.numel() // 8), dtype=torch.int64, device=units.device).random_(-(2**63), None)
        kept = eights.view(torch.uint8)[: units.numel()].view(units.shape) >= self.dropped
        return units * kept.to(units.dtype).mul_(256 / (256 - self.dropped))
