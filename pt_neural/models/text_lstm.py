"""A bi-directional LSTM over texts of different lengths."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

TEXTS_AT_ONCE = 32  # on a CPU, at least; what their steps take then stays in its cache
WORDS_AT_ONCE = 6400  # likewise, of texts that are short


class TextLSTM(nn.LSTM):
    """A bi-directional LSTM over texts that stand one after the other, each read as if it were alone.

    PyTorch reads sequences of different lengths word by word, and trains on them, on a CPU, far more slowly than on
    those of one length. There texts of similar length are filled up at their end, for the second direction in reverse
    order, so that both directions have read a text before they reach what fills it up. A GPU reads them packed.

    Args:
        inputs: Length of the words' vectors.
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
        filled = lengths > 0
        whole = words.new_zeros(len(lengths), 2 * self.hidden_size)
        if not len(words):
            return words.new_zeros(0, 2 * self.hidden_size), whole
        order = torch.argsort(lengths, descending=True, stable=True)[: int(filled.sum())]
        states = (self._packed if words.is_cuda else self._filled_up)(words, offsets, order)
        onward, backward = states.chunk(2, dim=1)
        last = torch.cat([onward[offsets[1:][filled] - 1], backward[offsets[:-1][filled]]], dim=1)
        return states, whole.to(last.dtype).masked_scatter(filled[:, None], last)

    def _packed(self, words: Tensor, offsets: Tensor, order: Tensor) -> Tensor:
        """All texts together; ``order`` are those with words, the longest first."""
        lengths = offsets.diff()[order]
        steps = torch.arange(int(lengths[0]), device=words.device)[:, None]
        there = steps < lengths
        places = (offsets[order] + steps)[there]
        output, _ = super().forward(PackedSequence(F.embedding(places, words), there.sum(dim=1).cpu()))
        return F.embedding(torch.argsort(places), output.data)

    def _filled_up(self, words: Tensor, offsets: Tensor, order: Tensor) -> Tensor:
        """Some texts of similar length at a time."""
        lengths = offsets.diff()
        outputs, rows, start = ([], []), offsets.new_empty(2, len(words)), 0
        for texts in order.split(max(TEXTS_AT_ONCE, WORDS_AT_ONCE // int(lengths[order[0]]))):
            steps = torch.arange(int(lengths[texts[0]]), device=words.device)[:, None]
            there = steps < lengths[texts]
            grid = torch.arange(start, start + there.numel(), device=words.device).view(there.shape)[there]
            ways = offsets[texts] + steps, offsets[texts + 1] - 1 - steps
            for direction, places in enumerate(ways):
                rows[direction, places[there]] = grid
                outputs[direction].append(self._one_way(direction, F.embedding(places.where(there, 0), words)))
            start += there.numel()
        return torch.cat([F.embedding(*way) for way in zip(rows, map(torch.cat, outputs), strict=True)], dim=1)

    def _one_way(self, direction: int, inputs: Tensor) -> Tensor:
        """States of one direction, from inputs of shape (steps, texts, inputs): (steps * texts, units)."""
        zeros = inputs.new_zeros(1, inputs.shape[1], self.hidden_size)
        weights = self.all_weights[direction]
        output, *_ = torch.lstm(inputs, (zeros, zeros), weights, True, 1, 0.0, self.training, False, False)
        return output.flatten(0, 1)
