"""Trained rankers with the settings of their recipes, by themselves and mixed with a tuned BM25.

Every ranker re-ranks the candidates of BM25, whose k1 and b were chosen on dev queries, as were the weights of the
mixtures. A prior for short documents shows what a mixture gains by length alone.
"""

import argparse
from functools import cached_property

import pandas as pd
from ir_measures import AP, RR, nDCG

import pt_neural as pn
from pipelines.common.arguments import parsed, parser
from pipelines.common.collection import FIELDS, Collection, load
from pipelines.common.comparison import Comparison, System, alpha_picture, mean_curve, tuned, tuned_by_seed
from pipelines.common.first_stage import PRIOR, LengthPrior, tuned_bm25
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
        rankers.histories().to_csv(workspace.results / "histories.csv", index=False)
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


class Rankers:
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
        self.workspace, self.arguments = workspace, arguments
        self.collection: Collection = workspace.collection
        self.documents = workspace.forward_index(arguments.fields)
        self.bm25 = tuned_bm25(workspace, arguments.fields)
        self.candidates = self.bm25 % arguments.depth
        prior = self.candidates >> pn.Mixture(LengthPrior(self.documents), normalise="minmax")
        prior, curve = tuned(prior, self.collection, nDCG @ 10, arguments.seed)
        self.systems: dict[str, System] = {"BM25": self.candidates, PRIOR: prior}
        self.curves: dict[str, AlphaCurve] = {PRIOR: curve}
        self.alphas: dict[str, float] = {PRIOR: curve.alpha}
        self._histories: list[pd.DataFrame] = []

    def add(self, key: str) -> None:
        """Train a ranker with each seed, and add it and its mixture with BM25."""
        name = MODELS[key].__name__
        models = {seed: self._trained(key, seed) for seed in self.arguments.seeds}
        self.systems[name] = {seed: self.candidates >> model for seed, model in models.items()}
        mixtures = {seed: self.candidates >> pn.Mixture(model, normalise="minmax") for seed, model in models.items()}
        mixed = f"BM25 + {name}"
        self.systems[mixed], curves = tuned_by_seed(mixtures, self.collection, nDCG @ 10, self.arguments.seed)
        self.curves[mixed] = mean_curve(curves)
        self.alphas |= {f"{mixed}, seed {seed}": curve.alpha for seed, curve in curves.items()}
        self._histories += [model.history.assign(system=name, seed=seed) for seed, model in models.items()]

    def _trained(self, key: str, seed: int) -> pn.DSSM:
        print(f"{key}, seed {seed}", flush=True)
        training = pn.Training(seed=seed, dev_queries=500, max_time=self.arguments.max_time)
        options = {"documents": self.documents, "fields": self.documents.fields}
        if "spaces" in MODELS[key].components:
            options["spaces"] = self.workspace.spaces("documents", self.workspace.documents, dim=200, seed=seed)
        model = MODELS[key].recipe(len(self.collection.train.judged), training=training, **options)
        retrieved = model.training.completed(model.own_training).negatives == "retrieved"
        return self.workspace.trained(model, *(self._candidates if retrieved else self._pairs))

    @cached_property
    def _pairs(self) -> list[pd.DataFrame]:
        return self.collection.examples(self.candidates)

    @cached_property
    def _candidates(self) -> list[pd.DataFrame]:
        """With the candidates of the training queries, which retrieved negatives come from."""
        train = self.collection.train
        return [self.candidates.transform(train.judged), train.qrels, *self._pairs[2:]]

    def histories(self) -> pd.DataFrame:
        """What happened in each epoch of each training: ``system, seed, epoch, loss, ..``."""
        return pd.concat(self._histories, ignore_index=True)


if __name__ == "__main__":
    main()
