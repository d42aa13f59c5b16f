"""What pre-training on pseudo-queries brings: a DSSM untrained, trained on them, on few real queries, and on both.

Pseudo-queries are made from the documents alone, see ``pt_neural.pseudo_queries``. Models re-rank BM25's candidates
of the real test queries, by itself and mixed with BM25. A collection without training queries has the first rows only.
"""

import argparse
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import pandas as pd
from ir_measures import AP, RR, nDCG

import pt_neural as pn
from pipelines.common.arguments import add_pseudo_queries, add_training, parsed, parser
from pipelines.common.collection import load
from pipelines.common.comparison import MAIN, Comparison, System, tuned_by_seed
from pipelines.common.trained import TrainedRankers
from pipelines.common.workspace import Workspace
from pt_neural.experiment import significance

MEASURES = [nDCG @ 10, AP, RR]
PATIENCE = 5
NO_STEPS = {"epochs": 1, "learning_rate": 1e-60}  # 0 in float32: the weights stay those of the start
TUNING = {"learning_rate": 3e-4}  # a third of the usual one, which forgets what was learned before
UNTRAINED, PRETRAINED = "DSSM, untrained", "DSSM, pseudo-queries"


def main() -> None:
    """Print a table of means and one of differences with their p-values; save them with runs and histories."""
    arguments = options()
    collection = load(arguments.dataset)
    collection = collection.sample(arguments.queries, arguments.seed) if arguments.queries else collection
    workspace = Workspace(arguments, "pretraining", collection)
    rankers = Rankers(workspace, arguments)
    systems, comparison = rankers.systems(), Comparison(collection.test, MEASURES, workspace.runs())
    comparison.add(systems)
    caption = (
        f"{collection.label}, {len(collection.test.judged):,} test queries{workspace.seeds_note}, the top "
        f"{arguments.depth} of BM25 re-ranked; pseudo-queries of kind {arguments.pseudo_queries!r}"
    )
    comparison.save(workspace, "table", list(systems), {"BM25": "*"}, f"{caption}; * differs from BM25 with p < 0.05")
    differences = gains(comparison, rankers.pairs())
    caption = f"{caption}; {MAIN}, and p of a paired t-test over queries, whose values are means over seeds"
    workspace.save_table("gains", differences.map(_rounded), caption, differences)
    rankers.save_histories()
    workspace.save_settings(bm25=repr(rankers.bm25), alpha=rankers.alphas)
    print(f"\nTables and runs are in {workspace.results}.")


def options() -> argparse.Namespace:
    """The arguments of the pipeline."""
    arguments = parser(__doc__)
    add_training(arguments)
    add_pseudo_queries(arguments)
    arguments.set_defaults(pseudo_queries="title")
    arguments.add_argument("--depth", type=int, default=100, help="candidates per query")
    arguments.add_argument("--queries-train", type=int, default=500, help="real training queries, drawn for each seed")
    return parsed(arguments)


def gains(comparison: Comparison, pairs: Iterable[tuple[str, str]]) -> pd.DataFrame:
    """One row per pair: the mean of a system, its difference from that of a baseline, and p."""
    rows = []
    for system, baseline in pairs:
        values = comparison.values(MAIN, [system, baseline])
        rows.append(significance(values, baseline)[["system", "baseline", "mean", "difference", "p"]])
    return pd.concat(rows, ignore_index=True)


def _rounded(cell: str | float) -> str:
    if isinstance(cell, str):
        return cell
    return f"{cell:.4f}" if abs(cell) >= 1e-4 else f"{cell:.1g}"


class Rankers(TrainedRankers):
    """DSSM with and without pre-training, as re-ranker and mixed with BM25.

    Args:
        workspace: Where artifacts are.
        arguments: The arguments of the pipeline.

    Attributes:
        few: The name of the model that learns from real queries alone.
        both: The name of the one that is pre-trained, then fine-tuned.
        alphas: The chosen weight of DSSM in each mixture.
    """

    def __init__(self, workspace: Workspace, arguments: argparse.Namespace):
        super().__init__(workspace, arguments)
        train = self.collection.train
        real = f"{min(arguments.queries_train, len(train.judged) if train else arguments.queries_train)} queries"
        self.few, self.both = f"DSSM, {real}", f"{PRETRAINED}, then {real}"
        self.alphas: dict[str, float] = {}

    def systems(self) -> dict[str, System]:
        """All systems by name."""
        for seed in self.arguments.seeds:
            self._train(seed)
        rerankers = {
            name: {seed: self.candidates >> model for seed, model in models.items()}
            for name, models in self.models.items()
        }
        return {"BM25": self.candidates, **rerankers, **{f"BM25 + {name}": self._mixed(name) for name in self.models}}

    def pairs(self) -> list[tuple[str, str]]:
        """The systems to compare."""
        pairs = [(PRETRAINED, UNTRAINED)]
        if self.few in self.models:
            pairs += [(self.both, self.few), (self.both, PRETRAINED)]
        mixed = [(f"BM25 + {one}", f"BM25 + {other}") for one, other in pairs]
        return [*pairs, *mixed, *((f"BM25 + {name}", "BM25") for name in self.models)]

    def _train(self, seed: int) -> None:
        made = self.learning.forward_index(self.arguments.fields)
        self._dssm(UNTRAINED, seed, self.examples[:2], self.documents, **NO_STEPS)
        pretrained = self._dssm(PRETRAINED, seed, self.examples, made)
        if self.collection.train is not None:
            start = self.workspace.built(f"start-{pretrained.fingerprint()[:12]}", pretrained.save, Path)
            few = self.collection.train.sample(self.arguments.queries_train, seed)
            pairs = replace(self.collection, train=few, dev=None).examples(self.candidates)
            self._dssm(self.few, seed, [*pairs, *self._dev], self.documents)
            self._dssm(self.both, seed, [*pairs, *self._dev], self.documents, start=start, **TUNING)

    @cached_property
    def _dev(self) -> list[pd.DataFrame]:
        return self.collection.dev_examples(self.candidates)

    def _dssm(
        self, name: str, seed: int, examples: list[pd.DataFrame], documents: pn.ForwardIndex, **settings: object
    ) -> pn.DSSM:
        """A model that has learned from some documents, and ranks those of the collection."""
        arguments = self.arguments
        given = {"epochs": arguments.epochs, "batch_size": arguments.batch_size, "max_groups": arguments.groups}
        training = pn.Training(
            **{"seed": seed, "dev_measure": self.dev_measure, "patience": PATIENCE, **given, **settings}
        )
        model = pn.DSSM(shared=True, documents=documents, fields=documents.fields, training=training)
        print(f"{name}, seed {seed}", flush=True)
        trained = self.workspace.trained(model, *examples, documents=self.documents)
        self.models.setdefault(name, {})[seed] = trained
        return trained

    def _mixed(self, name: str) -> System:
        mixtures = {
            seed: self.candidates >> pn.Mixture(model, normalise="minmax") for seed, model in self.models[name].items()
        }
        systems, curves = tuned_by_seed(mixtures, self.collection, MAIN, self.arguments.seed)
        self.alphas |= {f"{name}, seed {seed}": curve.alpha for seed, curve in curves.items()}
        return systems


if __name__ == "__main__":
    main()
