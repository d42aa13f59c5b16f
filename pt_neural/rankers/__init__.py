"""What all rankers share: texts, two-tower and bilinear scoring and retrieval, interaction, linear mixtures."""

from importlib import import_module
from typing import Any

from pt_neural.rankers.bilinear import BilinearRanker
from pt_neural.rankers.mixture import Mixture
from pt_neural.rankers.ranker import Ranker
from pt_neural.rankers.representations import DocumentRepresentations
from pt_neural.rankers.term_vectors import TermVectors
from pt_neural.rankers.two_tower import TwoTower

__all__ = ["BilinearRanker", "DocumentRepresentations", "Interaction", "Mixture", "Ranker", "TermVectors", "TwoTower"]


def __getattr__(name: str) -> Any:
    if name != "Interaction":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("pt_neural.rankers.interaction").Interaction  # imports torch, which DESM and LSA do without
