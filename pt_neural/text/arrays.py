"""Moved to :mod:`pt_neural._artifacts`."""

from pt_neural._artifacts import load_array

__all__ = ["load_array"]
