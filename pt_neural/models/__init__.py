"""One file a model family: the formula or the network, and its transformer."""

from pt_neural.models.desm import DESM

__all__ = ["DESM"]
