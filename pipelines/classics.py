"""The rankers of the package on one collection: alone, mixed with a tuned BM25, and what they cost.

Every ranker re-ranks the candidates of BM25, whose k1 and b were chosen on dev queries, as were the weights of the
mixtures. Trained rankers have the settings of their recipes; with ``--small`` the sizes of ``small()``, 2,000 groups in
an epoch, and 100 dev queries. Rocchio expands the queries of TFIDF, with settings chosen on dev queries, and
TopicCosine compares the topics of LDA. A prior for short documents shows what a mixture gains by length alone. The
costs are seconds of fitting, milliseconds of re-ranking the candidates of a query by docno, one query at a time, from
stored vectors where a ranker can store them, else from a forward index, and megabytes of the saved ranker, with its
word embeddings and stored vectors. Milliseconds are comparable only within one run on a quiet machine; --costs-only
measures them for all rankers after one epoch of training, since they do not depend on what was learned.
"""

import argparse
import tempfile
import time
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyterrier as pt
from ir_measures import AP, RR, nDCG

import pt_neural as pn
from pipelines.common.arguments import add_recipes, parsed, parser
from pipelines.common.comparison import Comparison, System, alpha_picture, mean_curve, tuned, tuned_by_seed
from pipelines.common.costs import costs_figure
from pipelines.common.first_stage import PRIOR, LengthPrior
from pipelines.common.trained import FITTED, ModelSpec, RecipeRankers, recipe_collection
from pipelines.common.workspace import Workspace
from pt_neural._evaluation import RunEvaluator
from pt_neural.experiment import AlphaCurve

MEASURES = [nDCG @ 10, AP, RR]
TIMED = 30  # queries whose re-ranking is timed
TRAINED = (
    *("DSSM", "CLSM", "SSI", "DuetLocal", "DuetDistributed", "Duet", "DRMM", "SSM", "MatchTensor", "MatchTensorSSM"),
    *("KNRM", "ConvKNRM", "TK", "MatchPyramid", "PACRR", "ARCI", "ARCII", "DRMMTKS", "MVLSTM", "POSITDRMM", "ANMM"),
)
OVER = {"Rocchio": "TFIDF", "TopicCosine": "LDA"}  # rankers, and those that they are made of
MODELS = ("DESM", *FITTED, *OVER, *TRAINED)
RERANKING = {"query": "ms a query", "size": "MB"}  # the columns of the parts of a cost
FEEDBACK = list(product((0.25, 0.5, 1.0), (3, 10, 30)))  # beta and feedback documents of Rocchio


def main() -> None:
    """Print the table of rankers and their costs, and save it with its runs, alpha curves and a scatter plot."""
    arguments = options()
    collection = recipe_collection(arguments)
    workspace = Workspace(arguments, "classics", collection)
    rankers = Rankers(workspace, arguments)
    if arguments.costs_only:
        table = pd.DataFrame([rankers.cost_of_reranking(name) for name in arguments.models])
        workspace.save_table("reranking", table.round(4), f"{collection.label}: costs of re-ranking")
        workspace.save_settings()
        print(f"\nThe table is in {workspace.results}.")
        return
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
        costs = rankers.costs_beside(comparison)
        workspace.save_table("costs", costs.round(4), f"{collection.label}: nDCG@10 and costs")
        rows, (bm25, *_) = costs.set_index("system").drop("BM25"), costs["alone"]
        figure = costs_figure(rows, bm25, ylabel="nDCG@10", title=f"{collection.label}: quality and cost")
        workspace.save_picture("costs", figure)
        rankers.save_histories()
        workspace.save_settings(bm25=repr(rankers.bm25), alpha=rankers.alphas)
        workspace.save_picture("alpha", alpha_picture(rankers.curves, "Mixtures with BM25"))
    print(f"\nThe table, runs and pictures are in {workspace.results}.")


def options() -> argparse.Namespace:
    """The arguments of the pipeline."""
    arguments = parser(__doc__)
    arguments.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), help="rankers")
    add_recipes(arguments)
    arguments.add_argument("--costs-only", action="store_true", help="one epoch; print milliseconds and megabytes only")
    parsed_arguments = parsed(arguments)
    if parsed_arguments.costs_only:
        parsed_arguments.epochs = 1
    return parsed_arguments


class Cost(NamedTuple):
    """What a ranker costs.

    Attributes:
        fit: Seconds of fitting.
        query: Milliseconds of re-ranking the candidates of a query.
        size: Megabytes of the saved ranker and of the vectors that it stores of documents.
    """

    fit: float
    query: float
    size: float


class Rankers(RecipeRankers):
    """Systems by name, and what is known of their training.

    Args:
        workspace: Where artifacts are.
        arguments: The arguments of the pipeline.

    Attributes:
        systems: The systems, by name.
        curves: For each mixture the mean of its alpha curves.
        alphas: The chosen weight of each mixture and seed.
        costs: The mean over its seeds of what each ranker costs.
    """

    def __init__(self, workspace: Workspace, arguments: argparse.Namespace):
        super().__init__(workspace, arguments)
        prior = self.candidates >> pn.Mixture(LengthPrior(self.documents), normalise="minmax")
        prior, curve = tuned(prior, self.collection, nDCG @ 10, arguments.seed)
        self.systems: dict[str, System] = {"BM25": self.candidates, PRIOR: prior}
        self.curves: dict[str, AlphaCurve] = {PRIOR: curve}
        self.alphas: dict[str, float] = {PRIOR: curve.alpha}
        self.costs: dict[str, Cost] = {}
        self._seconds: dict[tuple[str, int | None], float] = {}  # of fitting those that are not trained

    def add(self, name: str) -> None:
        """Fit a ranker, with each seed if it depends on one, and add it and its mixture with BM25."""
        models = self._models(name)
        mixed = f"BM25 + {name}"
        self.systems[name] = {seed: self.candidates >> model for seed, model in models.items()}
        mixtures = {seed: self.candidates >> pn.Mixture(model, normalise="minmax") for seed, model in models.items()}
        self.systems[mixed], curves = tuned_by_seed(mixtures, self.collection, nDCG @ 10, self.arguments.seed)
        self.curves[mixed] = mean_curve(curves)
        self.alphas |= {
            mixed if seed is None else f"{mixed}, seed {seed}": curve.alpha for seed, curve in curves.items()
        }
        self.costs[name] = self._mean_cost(name, models)

    def cost_of_reranking(self, name: str) -> dict[str, Any]:
        """Milliseconds and megabytes of a ranker, the means over its seeds."""
        cost = self._mean_cost(name, self._models(name))
        return {"system": name, **{column: getattr(cost, key) for key, column in RERANKING.items()}}

    def _mean_cost(self, name: str, models: dict[int | None, Any]) -> Cost:
        """What a ranker costs, the mean over its seeds."""
        return Cost(*pd.DataFrame([self._cost(name, seed, model) for seed, model in models.items()]).mean())

    def _models(self, name: str) -> dict[int | None, Any]:
        """The ranker, fitted with each seed if it depends on one."""
        if name in TRAINED:
            return dict(self.trained(ModelSpec(name, getattr(pn, name))))
        return {seed: self._fitted(name, seed) for seed in self.seeds_of(OVER.get(name, name))}

    def _fitted(self, name: str, seed: int | None) -> pt.Transformer:
        """A ranker that is fitted to documents, or to judged pairs of queries and documents, or made of such a one."""
        if name == "DESM":
            return pn.DESM(self.embeddings(seed), documents=self.documents, fields=self.documents.fields)
        model, self._seconds[name, seed] = self.statistical(OVER.get(name, name), seed, self.examples[:2])
        if name == "Rocchio":
            return self._expanding(model)
        return pn.TopicCosine(model, documents=self.documents) if name == "TopicCosine" else model

    def _expanding(self, tfidf: pn.TFIDF) -> pn.Rocchio:
        """Rocchio with the settings that are best on dev queries; without any, with those of the class."""
        if self.collection.dev is None:
            return pn.Rocchio(tfidf)
        candidates, qrels = self.collection.dev_examples(self.candidates)
        evaluate = RunEvaluator(candidates, qrels, candidates["qid"].unique(), nDCG @ 10)

        def quality(settings: tuple[float, int]) -> float:
            beta, number = settings
            rocchio = pn.Rocchio(tfidf, beta=beta, feedback_docs=number)
            return float(evaluate(rocchio.score(candidates)).mean())

        def choose() -> dict[str, Any]:
            beta, number = max(FEEDBACK, key=quality)
            return {"beta": beta, "feedback_docs": number}

        return pn.Rocchio(tfidf, **self.workspace.chosen("Rocchio", choose))

    def _cost(self, name: str, seed: int | None, model: Any) -> Cost:
        """Measured once; word embeddings, which several rankers share, are left out."""
        learned = name in TRAINED
        fit = float(model.history["seconds"].sum()) if learned else self._seconds.get((name, seed), 0.0)

        def measure() -> dict[str, float]:
            model.transform(self._timed[0])
            started = time.perf_counter()
            for candidates in self._timed:
                model.transform(candidates)
            return {"ms": 1000 * (time.perf_counter() - started) / len(self._timed), "MB": megabytes(model)}

        measured = self.workspace.chosen(f"costs of {name}", measure, seed)
        return Cost(fit, measured["ms"], measured["MB"])

    def costs_beside(self, comparison: Comparison) -> pd.DataFrame:
        """A row for each ranker: nDCG@10 alone and mixed with BM25, and what it costs."""
        rows = [
            {
                "system": name,
                "alone": comparison.seed_means(nDCG @ 10, name).mean(),
                "mixed": comparison.seed_means(nDCG @ 10, f"BM25 + {name}").mean(),
                "fit, s": cost.fit,
                **{column: getattr(cost, key) for key, column in RERANKING.items()},
            }
            for name, cost in self.costs.items()
        ]
        first = {"system": "BM25", "alone": comparison.seed_means(nDCG @ 10, "BM25").mean()}
        return pd.DataFrame([first, *rows])

    @cached_property
    def _timed(self) -> list[pd.DataFrame]:
        """The candidates of some test queries, a frame for each query."""
        candidates = self.candidates.transform(self.collection.test.judged.head(TIMED))
        return [frame for _, frame in candidates.groupby("qid", sort=False)]


def megabytes(model: Any) -> float:
    """Of a saved ranker and of the vectors that it stores of documents."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "ranker")
        vectors = getattr(model, "vectors", None)
        folders = [Path(folder), *([] if vectors is None else [Path(vectors.path)])]
        return sum(path.stat().st_size for one in folders for path in one.rglob("*") if path.is_file()) / 1e6


if __name__ == "__main__":
    main()
