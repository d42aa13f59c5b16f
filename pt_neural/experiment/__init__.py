"""What pt.Experiment lacks."""

from pt_neural.experiment.alpha import AlphaCurve, tune_alpha

__all__ = ["AlphaCurve", "tune_alpha"]
