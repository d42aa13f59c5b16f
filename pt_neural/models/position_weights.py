"""The Duet's first dense layer over positions, applied to documents alone."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def weighted_positions(weights: Tensor, padding: Tensor, documents: Sequence[Tensor]) -> Tensor:
    """``E[d, i, k] = sum over t of weights[i, t, k] * documents[d, i, t]``, all that a query needs of a document.

    The dense layer over the Hadamard product of equation 3 is ``sum over i of q[i] * E[d, i, k]``: linear in the query,
    so that its sum over positions needs no query. It is exact, is done once a document, and is smaller than what went
    into it. Positions after those given have the same values in all documents, so their weights are summed, not
    multiplied.

    Args:
        weights: Shape (filters, positions, units).
        padding: Values at the positions after the end of a text, shape (filters,).
        documents: Batches of documents of shape (documents, filters, first positions); fewer positions in each batch
            than in the one before, or as many.

    Returns:
        Shape (documents of all batches, filters, units).
    """
    with torch.autocast(weights.device.type, enabled=False):  # sums over positions need all digits
        return _WeightedPositions.apply(weights, *(one.to(weights.dtype) for one in (padding, *documents)))


class _WeightedPositions(torch.autograd.Function):
    """Adds the gradients of all batches up in place: the weights are too large to be copied for each."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, padding: Tensor, *documents: Tensor) -> Tensor:
        filters, _, units = weights.shape
        result = weights.new_empty(sum(map(len, documents)), filters, units)
        tails = _tails(weights, [batch.shape[2] for batch in documents])
        start = 0
        for batch, tail in zip(documents, tails, strict=True):
            part = result[start : start + len(batch)]
            torch.bmm(batch.transpose(0, 1), weights[:, : batch.shape[2]], out=part.transpose(0, 1))
            part += padding[:, None] * tail
            start += len(batch)
        ctx.save_for_backward(weights, padding, *documents)
        ctx.tails = tails
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        weights, padding, *documents = ctx.saved_tensors
        of_weights, of_padding = torch.zeros_like(weights), torch.zeros_like(padding)
        of_documents, of_tails = [], []
        start = 0
        for batch, tail in zip(documents, ctx.tails, strict=True):
            part = gradient[start : start + len(batch)].transpose(0, 1)
            positions = batch.shape[2]
            of_weights[:, :positions].baddbmm_(batch.permute(1, 2, 0), part)
            of_batch = torch.empty_like(batch)
            torch.bmm(part, weights[:, :positions].transpose(1, 2), out=of_batch.transpose(0, 1))
            of_documents.append(of_batch)
            total = part.sum(1)
            of_padding += (total * tail).sum(1)
            of_tails.append(padding[:, None] * total)
            start += len(batch)
        _add_tails(of_weights, [batch.shape[2] for batch in documents], of_tails)
        return of_weights, of_padding, *of_documents


def _tails(weights: Tensor, lengths: Sequence[int]) -> list[Tensor]:
    """``weights[:, length:].sum(1)`` for falling lengths; each weight is read once."""
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
