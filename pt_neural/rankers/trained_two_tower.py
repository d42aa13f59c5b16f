"""Two-tower rankers that learn from judgements."""

from typing import Any

from pt_neural.rankers.trained import Trained
from pt_neural.rankers.two_tower import TwoTower
from pt_neural.training import Training


class TrainedTwoTower(TwoTower, Trained):
    """Base of the two-tower rankers that are trained.

    Args:
        training: How to train.
        device: Where to score.
        **options: What :class:`~pt_neural.rankers.two_tower.TwoTower` takes.
    """

    def __init__(self, *, training: Training | None, device: str, **options: Any):
        Trained.__init__(self, training=training, device=device)
        TwoTower.__init__(self, **options)
