"""Moved to :mod:`pt_neural.text.counts`."""

from pt_neural.text.counts import TfIdf

__all__ = ["TfIdf"]
