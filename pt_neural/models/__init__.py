"""One file a model family: the formula or the network, and its transformer."""

from pt_neural.models.clsm import CLSM
from pt_neural.models.desm import DESM
from pt_neural.models.dssm import DSSM
from pt_neural.models.lsa import LSA

CDSSM = CLSM

__all__ = ["CDSSM", "CLSM", "DESM", "DSSM", "LSA"]
