"""The rankers of the CLSM paper's tables, each as a re-ranker of BM25's candidates and over all documents."""

import argparse
from typing import Any

import pyterrier as pt
from ir_measures import nDCG

import pt_neural as pn
from pipelines.clsm.pooling import SummingCLSM
from pipelines.common.comparison import System, by_seed, mean_curve, mixed_over_all, tuned_by_seed
from pipelines.common.first_stage import tuned_bm25
from pipelines.common.statistical import StatisticalRankers
from pipelines.common.trained import ModelSpec, TrainedRankers
from pipelines.common.workspace import Workspace
from pt_neural.experiment import AlphaCurve

SETTINGS = ("telescoped", "all-documents")
SPLIT = {"bm25-words": ("BM25, words as below", "words"), "bm25-stems": ("BM25, stems of words as below", "stems")}
DEPTH = 100  # documents per query in the runs over all documents


def random_negatives(number: int) -> dict[str, Any]:
    """J documents drawn from the collection, as in the paper (equation 5)."""
    return {"negatives": "random", "num_negatives": number}


LEARNED = {
    "dssm-4": ModelSpec("DSSM (J=4)", pn.DSSM, random_negatives(4)),
    "dssm-50": ModelSpec("DSSM (J=50)", pn.DSSM, random_negatives(50)),
    "clsm-4": ModelSpec("CLSM (J=4)", pn.CLSM, random_negatives(4)),
    "clsm-50": ModelSpec("CLSM (J=50)", pn.CLSM, random_negatives(50)),
    "dssm": ModelSpec("DSSM (in-batch)", pn.DSSM, {"negatives": "in-batch"}),
    "clsm": ModelSpec("CLSM (in-batch)", pn.CLSM, {"negatives": "in-batch"}),
    "clsm-sum": ModelSpec("CLSM (in-batch, summed)", SummingCLSM, {"negatives": "in-batch"}),
    "clsm-sum-1": ModelSpec("CLSM (in-batch, summed), window 1", SummingCLSM, {"negatives": "in-batch"}, {"window": 1}),
    "dssm-shared": ModelSpec("DSSM (in-batch, shared)", pn.DSSM, {"negatives": "in-batch"}, {"shared": True}),
    "clsm-shared": ModelSpec("CLSM (in-batch, shared)", pn.CLSM, {"negatives": "in-batch"}, {"shared": True}),
}
MIXED = {f"bm25+{key}": key for key in ("dssm", "clsm", "dssm-shared", "clsm-shared")}


class Rankers(TrainedRankers):
    """Rankers by name, in both settings.

    Args:
        workspace: Where artifacts are.
        arguments: The arguments of the pipeline.

    Attributes:
        systems: The systems of each setting, by name; ``BM25`` is always there.
        curves: For each mixture and setting, the alpha curve of each seed.
        statistical: The rows that count words.
    """

    def __init__(self, workspace: Workspace, arguments: argparse.Namespace):
        super().__init__(workspace, arguments)
        self.systems: dict[str, dict[str, System]] = {setting: {} for setting in SETTINGS}
        self.curves: dict[tuple[str, str], dict[int, AlphaCurve]] = {}
        self.statistical = StatisticalRankers(self)
        self._put("BM25", self.candidates, self.bm25 % DEPTH)

    def _put(self, name: str, *systems: System) -> str:
        for setting, system in zip(SETTINGS, systems, strict=True):
            self.systems[setting][name] = system
        return name

    def add(self, key: str) -> str:
        """Make the rankers of a row, and return its name."""
        if key in LEARNED:
            return self.learned(LEARNED[key])
        if key in MIXED:
            return self.mixed(LEARNED[MIXED[key]])
        if key == "lsa":
            return self.lsa()
        if key in SPLIT:
            name, split = SPLIT[key]
            bm25 = tuned_bm25(self.workspace, self.arguments.fields, split=split)
            return self._put(name, self.candidates >> bm25, bm25 % DEPTH)
        name, reranker, retriever = self.statistical.systems(key)
        retrievers = {seed: each % DEPTH for seed, each in by_seed(retriever).items()}
        return self._put(name, reranker, retrievers)

    def lsa(self) -> str:
        """LSA of the collection, with one seed."""
        lsa = self.workspace.lsa(self.arguments.dim, self.arguments.seed, self.documents.fields)
        return self._put("LSA", self.candidates >> lsa, lsa.retriever(lsa.vectors) % DEPTH)

    def learned(self, spec: ModelSpec) -> str:
        """A trained model, once for each seed."""
        full = {seed: model.retriever(model.vectors) % DEPTH for seed, model in self.trained(spec).items()}
        return self._put(spec.name, self.reranking(spec), full)

    def mixed(self, spec: ModelSpec) -> str:
        """BM25 and a trained model, with an alpha of its own for each seed and setting."""
        name = f"BM25 + {spec.name}"
        telescoped, full = {}, {}
        for seed, model in self.trained(spec).items():
            telescoped[seed] = self.candidates >> pn.Mixture(model, normalise="minmax")
            retriever = model.retriever(model.vectors)
            full[seed] = mixed_over_all(model, retriever, self.bm25, normalise="minmax")
        mixtures = zip(SETTINGS, (telescoped, full), strict=True)
        return self._put(name, *(self._tuned(name, setting, seeds) for setting, seeds in mixtures))

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
        """The alpha curves, each averaged over seeds."""
        named = {f"{name}, {setting.replace('-', ' ')}": curves for (name, setting), curves in self.curves.items()}
        return {name: mean_curve(curves) for name, curves in named.items()}
