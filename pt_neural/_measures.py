"""Moved to :mod:`pt_neural._evaluation`."""

from pt_neural._evaluation import RankLoss, direction, share_in_order

__all__ = ["RankLoss", "direction", "share_in_order"]
