"""One file a model family: the formula or the network, and its transformer."""

from pt_neural.models.desm import DESM
from pt_neural.models.lsa import LSA

__all__ = ["DESM", "LSA"]
