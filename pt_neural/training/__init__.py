"""Training, once: groups of a query, its positives and its negatives; losses; the loop."""

from pt_neural.training.settings import Training

__all__ = ["Training"]
