"""What pt.Experiment lacks."""

from pt_neural.experiment.alpha import AlphaCurve, tune_alpha
from pt_neural.experiment.breakdown import Breakdown, by_length, by_rarity, count_terms
from pt_neural.experiment.components import SystemComponents, pca
from pt_neural.experiment.differences import significance
from pt_neural.experiment.values import per_query

__all__ = [
    "AlphaCurve",
    "Breakdown",
    "SystemComponents",
    "by_length",
    "by_rarity",
    "count_terms",
    "pca",
    "per_query",
    "significance",
    "tune_alpha",
]
