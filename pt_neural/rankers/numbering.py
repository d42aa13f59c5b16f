"""Moved to :mod:`pt_neural.text.packed`."""

from pt_neural.text.packed import Numbering

__all__ = ["Numbering"]
