"""Training: groups of a query, its positives and its negatives; losses; the loops around the steps."""

from pt_neural.training.settings import Training

__all__ = ["Training"]
