"""Losses over groups of a relevant document and its negatives."""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from pt_neural.training.settings import DEFAULT_NEGATIVES, Training

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]


def make_loss(training: Training, *, highest: float) -> Loss:
    """The loss that the completed settings name, as a function of scores, labels and validity.

    Each has the shape (groups, 1 + negatives), the positive first; ``highest`` is the highest grade of a positive.
    """
    if training.loss == "softmax":
        return partial(softmax_loss, gamma=training.gamma)
    if training.loss == "margin":
        return partial(margin_loss, margin=training.margin)
    own = (training.num_negatives or DEFAULT_NEGATIVES) if training.shared_groups else None
    return partial(pointwise_loss, highest=highest, num_negatives=own)


def softmax_loss(scores: Tensor, labels: Tensor, valid: Tensor, *, gamma: float) -> Tensor:
    """Negative log-probability of the positive under a softmax over the group (CLSM paper, equations 5 and 6).

    Example::

        >>> softmax_loss(torch.tensor([[1.0, 0.0]]), torch.zeros(1, 2), torch.ones(1, 2, dtype=bool), gamma=1.0)
        tensor(0.3133)
    """
    return -F.log_softmax((gamma * scores).masked_fill(~valid, -torch.inf), dim=1)[:, 0].mean()


def margin_loss(scores: Tensor, labels: Tensor, valid: Tensor, *, margin: float) -> Tensor:
    """``max(0, margin - positive + negative)``, the mean over pairs (SSI paper, equation 8)."""
    losses = F.relu(margin - scores[:, :1] + scores[:, 1:]) * valid[:, 1:]
    return losses.sum() / valid[:, 1:].sum().clamp(min=1)


def pointwise_loss(
    scores: Tensor, labels: Tensor, valid: Tensor, *, highest: float, num_negatives: int | None = None
) -> Tensor:
    """Cross-entropy between the sigmoid of each document's score and its grade, the mean over documents.

    The target of the grade ``highest`` is 1; those of lower grades are proportional, and 0 for grades below 0. With
    ``num_negatives``, the negatives of a group, however many there are, count together as much as so many.
    """
    losses = F.binary_cross_entropy_with_logits(scores, (labels / highest).clamp(0, 1), reduction="none")
    weights = valid.to(losses.dtype)
    if num_negatives is not None:
        weights[:, 1:] *= num_negatives / (scores.shape[1] - 1)
    return (losses * weights).sum() / weights.sum()
