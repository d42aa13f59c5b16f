"""What all rankers share: texts, two-tower scoring and retrieval, linear mixtures."""

from pt_neural.rankers.mixture import Mixture
from pt_neural.rankers.ranker import Ranker
from pt_neural.rankers.two_tower import TwoTower

__all__ = ["Mixture", "Ranker", "TwoTower"]
