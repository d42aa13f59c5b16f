"""Losses over groups of a relevant document and its negatives."""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from pt_neural.training.settings import Training

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]


def make_loss(training: Training, *, highest: float) -> Loss:
    """The loss that the settings name, as a function of scores, labels and validity.

    Args:
        training: The completed settings.
        highest: The highest grade of a positive.
    """
    if training.loss == "softmax":
        return partial(softmax_loss, gamma=training.gamma)
    if training.loss == "margin":
        return partial(margin_loss, margin=training.margin)
    return partial(pointwise_loss, highest=highest)


def softmax_loss(scores: Tensor, labels: Tensor, valid: Tensor, *, gamma: float) -> Tensor:
    """Negative log-probability of the positive under a softmax over the group (CLSM paper, equations 5 and 6).

    Args:
        scores: Shape (groups, 1 + negatives), the positive first.
        labels: Grades, of the same shape; not used.
        valid: Whether there is a document, of the same shape.
        gamma: Smoothing factor.

    Returns:
        The mean over groups.

    Example::

        >>> softmax_loss(torch.tensor([[1.0, 0.0]]), torch.zeros(1, 2), torch.ones(1, 2, dtype=bool), gamma=1.0)
        tensor(0.3133)
    """
    return -F.log_softmax((gamma * scores).masked_fill(~valid, -torch.inf), dim=1)[:, 0].mean()


def margin_loss(scores: Tensor, labels: Tensor, valid: Tensor, *, margin: float) -> Tensor:
    """``max(0, margin - positive + negative)``, the mean over pairs (SSI paper, equation 8).

    Args:
        scores: Shape (groups, 1 + negatives), the positive first.
        labels: Grades, of the same shape; not used.
        valid: Whether there is a document, of the same shape.
        margin: Difference of scores above which there is no loss.
    """
    losses = F.relu(margin - scores[:, :1] + scores[:, 1:]) * valid[:, 1:]
    return losses.sum() / valid[:, 1:].sum().clamp(min=1)


def pointwise_loss(scores: Tensor, labels: Tensor, valid: Tensor, *, highest: float) -> Tensor:
    """Cross-entropy between the sigmoid of each document's score and its grade, the mean over documents.

    Args:
        scores: Before the sigmoid, shape (groups, 1 + negatives).
        labels: Grades, of the same shape; grades below 0 count as 0.
        valid: Whether there is a document, of the same shape.
        highest: The grade whose target is 1; targets of lower grades are proportional.
    """
    losses = F.binary_cross_entropy_with_logits(scores, (labels / highest).clamp(0, 1), reduction="none") * valid
    return losses.sum() / valid.sum()
