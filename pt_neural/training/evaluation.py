"""Moved to :mod:`pt_neural.training.examples`."""

from pt_neural.training.examples import dev_evaluator

__all__ = ["dev_evaluator"]
