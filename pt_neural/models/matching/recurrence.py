"""The recurrence of a bi-directional LSTM over texts of different lengths, as it is trained on a CPU."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pt_neural.text.compiled import compiled

GATES = [3, 0, 1, 2]  # output, input, forget and new cell, from PyTorch's order

ONE, TWO, HALF = np.float32(1), np.float32(2), np.float32(0.5)
LARGEST = np.float32(87)  # exponent whose power is a normal number, and that of its negative too
LOG2_E = np.float32(np.log2(np.e))
LN2 = np.float32(0.693359375)  # so that products with small integers are exact
LN2_REST = np.float32(np.log(2) - 0.693359375)
INVERSE_FACTORIALS = np.array([1 / 5040, 1 / 720, 1 / 120, 1 / 24, 1 / 6], dtype=np.float32)
FIRST_EXPONENT_BIT, EXPONENT_OF_ONE = np.int32(1 << 23), np.int32(127 << 23)  # of a float32


def states_of(projected: Tensor, recurrent: Tensor, words: Tensor, counts: list[int]) -> Tensor:
    """The states of both directions, from the projections of the distinct words.

    Rows are those of a packed sequence: the first word of each text, the second word of each text that has one, and so
    on, so that the text of row i of a step was in row i of the step before.

    Args:
        projected: What the gates receive from each distinct word, in the order of ``GATES``, float32 of shape
            (2, distinct words, 4 * units).
        recurrent: What they receive from the states, of shape (2, 4 * units, units).
        words: The places of the words of each row among the distinct words, int64 of shape (2, words).
        counts: How many words each step has.

    Returns:
        Shape (2, words, units).
    """
    return _Recurrence.apply(projected, recurrent, words, counts)


class _Recurrence(torch.autograd.Function):
    """See :func:`states_of`; in each step, one product of matrices and one loop over what it gives."""

    @staticmethod
    def forward(ctx: Any, projected: Tensor, recurrent: Tensor, words: Tensor, counts: list[int]) -> Tensor:
        units = recurrent.shape[2]
        gates = projected.new_empty(*words.shape, 4 * units)
        for rows, places, out in zip(projected, words, gates, strict=True):
            torch.index_select(rows, 0, places, out=out)
        cells, tanhs, states = (gates.new_empty(*words.shape, units) for _ in range(3))
        arrays, weights = [array.numpy() for array in (gates, cells, tanhs, states)], recurrent.detach().mT
        start = before = 0
        for count in counts:
            if start:
                gates[:, start : start + count].baddbmm_(states[:, before : before + count], weights)
            _step(*arrays, start, count, before)
            start, before = start + count, start
        ctx.save_for_backward(recurrent, words, gates, cells, tanhs, states)
        ctx.counts, ctx.shape = counts, projected.shape
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        recurrent, words, gates, cells, tanhs, states = ctx.saved_tensors
        first, counts = ctx.counts[0], torch.tensor(ctx.counts)
        of_gates, gradient = torch.empty_like(gates), gradient.clone(memory_format=torch.contiguous_format)
        of_cells = gradient.new_zeros(2, first, gradient.shape[2])  # of each row's text, from the step that follows
        arrays = [array.numpy() for array in (of_gates, of_cells, gradient, gates, cells, tanhs)]
        starts = [0, *counts.cumsum(0).tolist()]
        for number in reversed(range(len(ctx.counts))):
            start, stop = starts[number : number + 2]
            before = starts[max(0, number - 1)]
            if stop < starts[-1]:
                left = ctx.counts[number + 1]
                gradient[:, start : start + left].baddbmm_(of_gates[:, stop : stop + left], recurrent)
            _step_back(*arrays, start, stop - start, before)
        before = torch.arange(first, words.shape[1]) - torch.repeat_interleave(counts[:-1], counts[1:])
        total = gradient.new_zeros(ctx.shape)
        for rows, places, slopes in zip(total, words, of_gates, strict=True):
            rows.index_add_(0, places, slopes)
        return total, of_gates[:, first:].mT @ states[:, before], None, None


@compiled
def _exp(x: np.float32) -> np.float32:
    """e^x, as 2^n e^r with |r| < ln 2 / 2: unlike the library's, loops with it become vector instructions."""
    x = -LARGEST if x < -LARGEST else x  # NaN stays NaN
    x = LARGEST if x > LARGEST else x
    n = np.floor(x * LOG2_E + HALF)
    r = (x - n * LN2) - n * LN2_REST
    power = INVERSE_FACTORIALS[0]
    for factor in range(1, 5):
        power = power * r + INVERSE_FACTORIALS[factor]
    power = ((power * r + HALF) * r + ONE) * r + ONE
    return power * np.int32(np.int32(n) * FIRST_EXPONENT_BIT + EXPONENT_OF_ONE).view(np.float32)


@compiled
def _sigmoid(x: np.float32) -> np.float32:
    return ONE / (ONE + _exp(-x))


@compiled
def _tanh(x: np.float32) -> np.float32:
    return TWO * _sigmoid(TWO * x) - ONE


@compiled
def _step(
    gates: np.ndarray,
    cells: np.ndarray,
    tanhs: np.ndarray,
    states: np.ndarray,
    start: int,
    count: int,
    before: int,
) -> None:
    """The gates, cells and states of a step, from what its gates receive; there are none before the first one."""
    units = states.shape[2]
    for direction in range(2):
        for row in range(count):
            gate, cell = gates[direction, start + row], cells[direction, start + row]
            out, into, kept, new = gate[:units], gate[units : 2 * units], gate[2 * units : 3 * units], gate[3 * units :]
            tanh, state = tanhs[direction, start + row], states[direction, start + row]
            last = cells[direction, before + row]
            for unit in range(units):
                out[unit], into[unit] = _sigmoid(out[unit]), _sigmoid(into[unit])
                kept[unit], new[unit] = _sigmoid(kept[unit]), _tanh(new[unit])
                value = into[unit] * new[unit]
                if start:
                    value += kept[unit] * last[unit]
                cell[unit], tanh[unit] = value, _tanh(value)
                state[unit] = out[unit] * tanh[unit]


@compiled
def _step_back(
    of_gates: np.ndarray,
    of_cells: np.ndarray,
    gradient: np.ndarray,
    gates: np.ndarray,
    cells: np.ndarray,
    tanhs: np.ndarray,
    start: int,
    count: int,
    before: int,
) -> None:
    """The gradients of what the gates of a step receive, and of the cells before it, from those of states and cells.

    Before the first step there are none.
    """
    units = tanhs.shape[2]
    for direction in range(2):
        for row in range(count):
            gate, of_gate = gates[direction, start + row], of_gates[direction, start + row]
            of_cell, of_state = of_cells[direction, row], gradient[direction, start + row]
            tanh, last = tanhs[direction, start + row], cells[direction, before + row]
            for unit in range(units):
                out, into = gate[unit], gate[units + unit]
                kept, new = gate[2 * units + unit], gate[3 * units + unit]
                slope = of_cell[unit] + of_state[unit] * out * (ONE - tanh[unit] * tanh[unit])
                of_gate[unit] = of_state[unit] * tanh[unit] * out * (ONE - out)
                of_gate[units + unit] = slope * new * into * (ONE - into)
                of_kept = slope * last[unit] * kept * (ONE - kept)
                of_gate[2 * units + unit] = of_kept if start else np.float32(0)
                of_gate[3 * units + unit] = slope * into * (ONE - new * new)
                of_cell[unit] = slope * kept
