"""Convolution of documents with filters of which each query has its own."""

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def shifted_products(rows: Tensor, filters: Tensor) -> Tensor:
    """``sum over s of rows[:, t + s] @ filters[:, s]`` for each row t that has all its followers.

    As a sum of matrix products, without windows in memory: neighbouring windows share their rows.

    Args:
        rows: Shape (groups, rows, channels).
        filters: Shape (groups, shifts, channels, columns).

    Returns:
        Shape (groups, rows - shifts + 1, columns).
    """
    return _ShiftedProducts.apply(rows, filters)


class _ShiftedProducts(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows: Tensor, filters: Tensor) -> Tensor:
        ctx.save_for_backward(rows, filters)
        count = rows.shape[1] - filters.shape[1] + 1
        result = torch.bmm(rows[:, :count], filters[:, 0])
        for shift in range(1, filters.shape[1]):
            result.baddbmm_(rows[:, shift : shift + count], filters[:, shift])
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, Tensor]:
        rows, filters = ctx.saved_tensors
        count, gradient = gradient.shape[1], gradient.contiguous()
        of_rows, of_filters = torch.zeros_like(rows), torch.empty_like(filters)
        for shift in range(filters.shape[1]):
            of_rows[:, shift : shift + count].baddbmm_(gradient, filters[:, shift].transpose(1, 2))
            torch.bmm(rows[:, shift : shift + count].transpose(1, 2), gradient, out=of_filters[:, shift])
        return of_rows, of_filters
