"""Trained rankers with the settings of their recipes, by themselves and mixed with a tuned BM25.

Every ranker re-ranks the candidates of BM25, whose k1 and b were chosen on dev queries, as were the weights of the
mixtures. A prior for short documents shows what a mixture gains by length alone.
"""

import argparse
from collections.abc import Sequence
from functools import cached_property

import pandas as pd
import pyterrier as pt
from ir_measures import AP, RR, nDCG

import pt_neural as pn
from pipelines.common.arguments import parsed, parser
from pipelines.common.collection import FIELDS, load
from pipelines.common.comparison import Comparison, System, alpha_picture, mean_curve, tuned, tuned_by_seed
from pipelines.common.first_stage import PRIOR, LengthPrior
from pipelines.common.trained import ModelSpec, TrainedRankers
from pipelines.common.workspace import Workspace
from pt_neural.experiment import AlphaCurve

MEASURES = [nDCG @ 10, AP, RR]
MODELS = {
    "dssm": pn.DSSM,
    "clsm": pn.CLSM,
    "duet": pn.Duet,
    "match-tensor": pn.MatchTensor,
    "drmm": pn.DRMM,
    "ssm": pn.SSM,
}
DEFAULT = ["dssm", "clsm", "duet", "match-tensor"]


def main() -> None:
    """Print the table of all rankers, and save it with its runs and alpha curves."""
    arguments = options()
    collection = load(arguments.dataset)
    if collection.train is None:
        raise SystemExit(f"{collection.name} has no training queries; pipelines.pretraining makes some")
    if arguments.queries:
        collection = collection.sample(arguments.queries, arguments.seed)
    workspace = Workspace(arguments, "mixtures", collection)
    rankers = Rankers(workspace, arguments)
    comparison = Comparison(collection.test, MEASURES, workspace.runs())
    for key in arguments.models:  # a table after each, since training takes a while
        rankers.add(key)
        comparison.add(rankers.systems)
        caption = (
            f"{collection.label}, {len(collection.test.judged):,} test queries{workspace.seeds_note}, the top "
            f"{arguments.depth} of BM25 re-ranked, {len(collection.train.judged):,} training queries; * differs from "
            "BM25 with p < 0.05"
        )
        comparison.save(workspace, "table", list(rankers.systems), {"BM25": "*"}, caption)
        rankers.save_histories()
        workspace.save_settings(bm25=repr(rankers.bm25), alpha=rankers.alphas)
        workspace.save_picture("alpha", alpha_picture(rankers.curves, "Mixtures with BM25"))
    print(f"\nThe table, runs and pictures are in {workspace.results}.")


def options() -> argparse.Namespace:
    """The arguments of the pipeline."""
    arguments = parser(__doc__)
    arguments.add_argument("--models", nargs="+", choices=list(MODELS), default=DEFAULT, help="rankers to train")
    arguments.add_argument("--fields", nargs="+", default=list(FIELDS), help="fields that all rankers read")
    arguments.add_argument("--depth", type=int, default=50, help="candidates per query")
    arguments.add_argument("--queries", type=int, help="sample size of dev and of test queries; None: all")
    arguments.add_argument("--max-time", help='longest time that a model may train, such as "00:00:10:00"; None: any')
    return parsed(arguments)


class Rankers(TrainedRankers):
    """Systems by name, and what is known of their training.

    Args:
        workspace: Where artifacts are.
        arguments: The arguments of the pipeline.

    Attributes:
        systems: The systems, by name.
        curves: For each mixture the mean of its alpha curves.
        alphas: The chosen weight of each mixture and seed.
    """

    def __init__(self, workspace: Workspace, arguments: argparse.Namespace):
        super().__init__(workspace, arguments)
        prior = self.candidates >> pn.Mixture(LengthPrior(self.documents), normalise="minmax")
        prior, curve = tuned(prior, self.collection, nDCG @ 10, arguments.seed)
        self.systems: dict[str, System] = {"BM25": self.candidates, PRIOR: prior}
        self.curves: dict[str, AlphaCurve] = {PRIOR: curve}
        self.alphas: dict[str, float] = {PRIOR: curve.alpha}

    def add(self, key: str) -> None:
        """Train a ranker with each seed, and add it and its mixture with BM25."""
        spec = ModelSpec(MODELS[key].__name__, MODELS[key])
        models = self.trained(spec)
        self.systems[spec.name] = self.reranking(spec)
        mixtures = {seed: self.candidates >> pn.Mixture(model, normalise="minmax") for seed, model in models.items()}
        mixed = f"BM25 + {spec.name}"
        self.systems[mixed], curves = tuned_by_seed(mixtures, self.collection, nDCG @ 10, self.arguments.seed)
        self.curves[mixed] = mean_curve(curves)
        self.alphas |= {f"{mixed}, seed {seed}": curve.alpha for seed, curve in curves.items()}

    def _trained(self, spec: ModelSpec, seed: int, examples: Sequence[pd.DataFrame]) -> pt.Transformer:
        print(f"{spec.name}, seed {seed}", flush=True)
        training = pn.Training(seed=seed, dev_queries=500, max_time=self.arguments.max_time)
        options = {"documents": self.documents, "fields": self.documents.fields}
        if "spaces" in spec.model.components:
            options["spaces"] = self.workspace.spaces("documents", self.workspace.documents, dim=200, seed=seed)
        model = spec.model.recipe(len(self.collection.train.judged), training=training, **options)
        if model.training.completed(model.own_training).negatives == "retrieved":
            examples = [self._train_candidates, *examples[1:]]
        return self.workspace.trained(model, *examples)

    @cached_property
    def _train_candidates(self) -> pd.DataFrame:
        return self.candidates.transform(self.collection.train.judged)


if __name__ == "__main__":
    main()
