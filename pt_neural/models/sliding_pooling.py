"""Convolution over windows of words and max pooling over stretches of a text (Duet paper, section 3.2)."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

WINDOWS_PER_STEP = 2048  # what is computed for them stays in the processor's cache


def padded_words(words: Tensor, offsets: Tensor, width: int, padding: int) -> Tensor:
    """Texts as the rows of a matrix, int64 of shape (texts, width).

    Args:
        words: The texts, one after the other, int64.
        offsets: Where each text starts, int64 of shape (texts + 1,).
        width: At least the length of the longest text.
        padding: What stands after the end of a text.
    """
    lengths = offsets.diff()
    matrix = torch.full((len(lengths), width), padding, dtype=torch.int64, device=words.device)
    matrix[torch.arange(width, device=words.device) < lengths[:, None]] = words[offsets[0] : offsets[-1]]
    return matrix


def window_sums(projections: Tensor, words: Tensor, window: int) -> Tensor:
    """What a convolution gives before its bias and its tanh, for each window of each text.

    Args:
        projections: Shape (distinct words * window, units): row ``word * window + i`` is what the word adds to a unit
            where it stands at place ``i`` of a window.
        words: Padded texts, int64 of shape (texts, width).
        window: Words a window.

    Returns:
        Shape (texts, width - window + 1, units).
    """
    rows = words.unfold(1, window, 1) * window + torch.arange(window, device=words.device)
    sums = F.embedding_bag(rows.reshape(-1, window), projections, mode="sum")
    return sums.view(*rows.shape[:2], -1)


def sliding_max(values: Tensor, size: int) -> Tensor:
    """The largest of each ``size`` values that follow one another: (texts, n, units) to (texts, n - size + 1, units).

    Stretches of 2, 4, 8.. values are made of two halves each, so that it takes log2(size) steps.
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

    Windows beyond the width count as zero, so texts must be padded by at least ``window - 1`` words that add nothing.

    Args:
        projections: As :func:`window_sums` takes them; zero for the padding.
        words: Padded texts, int64 of shape (texts, width).
        window: Words a window.
        size: Windows that are pooled.
        positions: Positions wanted: t from 0.

    Returns:
        Shape (texts, units, positions).
    """
    return _PooledWindows.apply(projections, words, window, size, positions)


class _PooledWindows(torch.autograd.Function):
    """Takes a few texts at a time, and remembers the windows that won instead of the layer between."""

    @staticmethod
    def forward(ctx: Any, projections: Tensor, words: Tensor, window: int, size: int, positions: int) -> Tensor:
        length = positions + size - 1
        pooled = projections.new_empty(len(words), projections.shape[1], positions)
        keep = ctx.needs_input_grad[0]
        kind = torch.int16 if length < 2**15 else torch.int32
        winners = torch.empty(pooled.shape if keep else (0,), dtype=kind, device=words.device)
        for texts in _steps(len(words), length):
            sums = window_sums(projections, words[texts], window)[:, :length]
            sums = F.pad(sums, (0, 0, 0, length - sums.shape[1]))
            if keep:
                largest, won = _with_winners(sums, size)
                pooled[texts], winners[texts] = largest.transpose(1, 2), won.transpose(1, 2)
            else:
                pooled[texts] = sliding_max(sums, size).transpose(1, 2)
        ctx.save_for_backward(words, winners)
        ctx.sizes = projections.shape, window, length
        return pooled

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None, None]:
        words, winners = ctx.saved_tensors
        shape, window, length = ctx.sizes
        result = gradient.new_zeros(shape)
        windows = min(words.shape[1] - window + 1, length)
        for texts in _steps(len(words), length):
            of_windows = gradient.new_zeros(*gradient[texts].shape[:2], length)
            of_windows.scatter_add_(2, winners[texts].long(), gradient[texts])
            of_windows = of_windows[:, :, :windows].transpose(1, 2).reshape(-1, shape[1])
            for place in range(window):
                rows = words[texts, place : place + windows] * window + place
                result.index_add_(0, rows.reshape(-1), of_windows)
        return result, None, None, None, None


def _with_winners(values: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """What :func:`sliding_max` gives, and the number of the value that won each place."""
    # float64 has 29 bits that float32 lacks. They hold the number, so that one search finds both.
    numbers = torch.arange(values.shape[1], device=values.device)[:, None]
    largest = sliding_max((values.float().double().view(torch.int64) | numbers).view(torch.float64), size)
    return largest.to(values.dtype), largest.view(torch.int64) & (2**28 - 1)


def _steps(texts: int, length: int) -> list[slice]:
    step = max(1, WINDOWS_PER_STEP // length)
    return [slice(start, start + step) for start in range(0, texts, step)]
