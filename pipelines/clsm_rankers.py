"""The rankers of the CLSM paper's tables, each as a re-ranker of BM25's candidates and over the whole collection."""

import argparse
from typing import Any

import pyterrier as pt
from ir_measures import nDCG

import pt_neural as pn
from pipelines.clsm_statistical import StatisticalRankers
from pipelines.comparison import System, mean_curve, tuned_by_seed
from pipelines.trained import Learned, TrainedRankers
from pipelines.workspace import Workspace
from pt_neural.experiment import AlphaCurve

SETTINGS = ("telescoped", "all-documents")
DEPTH = 100  # documents a query in the run files of all documents


def random_negatives(number: int) -> dict[str, Any]:
    """J documents drawn from the collection, as in the paper (equation 5)."""
    return {"negatives": "random", "num_negatives": number}


LEARNED = {
    "dssm-4": Learned("DSSM (J=4)", pn.DSSM, random_negatives(4)),
    "dssm-50": Learned("DSSM (J=50)", pn.DSSM, random_negatives(50)),
    "clsm-4": Learned("CLSM (J=4)", pn.CLSM, random_negatives(4)),
    "clsm-50": Learned("CLSM (J=50)", pn.CLSM, random_negatives(50)),
    "dssm": Learned("DSSM (in-batch)", pn.DSSM, {"negatives": "in-batch"}),
    "clsm": Learned("CLSM (in-batch)", pn.CLSM, {"negatives": "in-batch"}),
    "dssm-shared": Learned("DSSM (in-batch, shared)", pn.DSSM, {"negatives": "in-batch"}, {"shared": True}),
    "clsm-shared": Learned("CLSM (in-batch, shared)", pn.CLSM, {"negatives": "in-batch"}, {"shared": True}),
}
MIXED = {f"bm25+{key}": key for key in ("dssm", "clsm", "dssm-shared", "clsm-shared")}


class Rankers(TrainedRankers):
    """Rankers by name, in both settings.

    Args:
        workspace: Where artifacts are.
        arguments: The pipeline's.

    Attributes:
        systems: For each setting, what ``compare`` takes; ``BM25`` is always there.
        curves: For each mixture's name and setting, the alpha curve of each seed.
        statistical: The rows that count words.
    """

    def __init__(self, workspace: Workspace, arguments: argparse.Namespace):
        super().__init__(workspace, arguments)
        self.systems: dict[str, dict[str, System]] = {setting: {} for setting in SETTINGS}
        self.curves: dict[tuple[str, str], dict[int, AlphaCurve]] = {}
        self.statistical = StatisticalRankers(workspace, arguments, self.index, self.candidates, self.documents)
        self._put("BM25", self.candidates, self.bm25 % DEPTH)

    def _put(self, name: str, *systems: System) -> str:
        for setting, system in zip(SETTINGS, systems, strict=True):
            self.systems[setting][name] = system
        return name

    def add(self, key: str) -> str:
        """Make the rankers of one row, and tell its name."""
        if key in LEARNED:
            return self.learned(LEARNED[key])
        if key in MIXED:
            return self.mixed(LEARNED[MIXED[key]])
        if key == "lsa":
            return self.lsa()
        name, reranker, retriever = self.statistical.systems(key)
        return self._put(name, reranker, retriever % DEPTH)

    def lsa(self) -> str:
        """LSA of the collection, with one seed only."""
        lsa = self.workspace.lsa(self.arguments.dim, self.arguments.seed, self.documents.fields)
        return self._put("LSA", self.candidates >> lsa, lsa.retriever(lsa.vectors) % DEPTH)

    def learned(self, row: Learned) -> str:
        """A trained model, once for each seed."""
        everything = {seed: model.retriever(model.vectors) % DEPTH for seed, model in self.trained(row).items()}
        return self._put(row.name, self.reranking(row), everything)

    def mixed(self, row: Learned) -> str:
        """BM25 and a trained model, with an alpha of its own for each seed and setting."""
        name = f"BM25 + {row.name}"
        telescoped, everything = {}, {}
        for seed, model in self.trained(row).items():
            telescoped[seed] = self.candidates >> pn.Mixture(model, normalise="minmax")
            everything[seed] = pn.Mixture(model.retriever(model.vectors), self.bm25, normalise="minmax")
        mixtures = zip(SETTINGS, (telescoped, everything), strict=True)
        return self._put(name, *(self._tuned(name, setting, by_seed) for setting, by_seed in mixtures))

    def _tuned(self, name: str, setting: str, mixtures: dict[int, pt.Transformer]) -> System:
        systems, self.curves[name, setting] = tuned_by_seed(mixtures, self.collection, nDCG @ 10, self.arguments.seed)
        return {seed: system % DEPTH for seed, system in systems.items()}

    def alphas(self) -> dict[str, float]:
        """The chosen weight of the trained model in each mixture."""
        return {
            f"{name}, {setting}, seed {seed}": curve.alpha
            for (name, setting), curves in self.curves.items()
            for seed, curve in curves.items()
        }

    def mean_curves(self) -> dict[str, AlphaCurve]:
        """The alpha curves, each the mean over seeds."""
        named = {f"{name}, {setting.replace('-', ' ')}": curves for (name, setting), curves in self.curves.items()}
        return {name: mean_curve(curves) for name, curves in named.items()}
