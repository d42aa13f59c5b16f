"""Settings for few and for more training queries, searched at random and compared on dev queries.

Each trial draws settings from the model's choices, trains on a sample of the training queries, and re-ranks BM25's
candidates of the dev queries, alone and mixed with BM25's scores (the best of eleven weights, so that this column
flatters all trials alike). The first trial of each model has the settings of its class, and a few models have others
that are tried before those at random. Such tables on the collection debian chose the recipes of DSSM, Duet and
Match-Tensor for few queries, and on neural:pydocs and cpp-docs/keywords those of MatchPyramid, PACRR, DRMMTKS and ANMM;
see ``recipe`` of the rankers.
"""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyterrier as pt
from ir_measures import nDCG

import pt_neural as pn
from pipelines.common.arguments import parsed, parser
from pipelines.common.collection import Collection, load
from pipelines.common.first_stage import tuned_bm25
from pipelines.common.workspace import Workspace
from pt_neural._evaluation import RunEvaluator
from pt_neural.rankers.mixture import normalised
from pt_neural.rankers.options import own_parameters
from pt_neural.training.settings import divided

SIZES = {"few": 3_000, "some": None}  # training queries; None: all
MEASURE = nDCG @ 10
ALPHAS = np.linspace(0, 1, 11)

_TOWERS = {
    "learning_rate": [1e-3, 3e-4, 1e-4],
    "gamma": [10.0, 20.0],
    "batch_size": [64, 256],
    "negatives": ["in-batch", "random"],
    "shared": [True, False],
    "optimiser": ["adam", "adamw"],
    "weight_decay": [0.0, 0.01],
}
_PAIRS = {
    "learning_rate": [3e-3, 1e-3, 3e-4],
    "loss": ["softmax", "pointwise", "margin"],
    "gamma": [1.0, 10.0],
    "batch_size": [16, 32, 64],
    "num_negatives": [1, 4],
    "positives": ["retrieved", "all"],
}
_MATCHING = {
    "learning_rate": [1e-2, 3e-3, 1e-3],
    "loss": ["margin", "softmax"],
    "gamma": [1.0, 10.0],
    "batch_size": [16, 64],
    "num_negatives": [1, 4],
    "positives": ["retrieved", "all"],
    "embeddings": ["frozen", "trained"],
}
_DUET = {
    **_PAIRS,
    "filters": [50, 100],
    "hidden": [50, 100],
    "document_terms": [100, 200],
    "dropout": [0.2, 0.5],
}


_VECTORS = [  # with trained word vectors; the first did best for MatchPyramid
    {"learning_rate": 1e-2, "loss": "softmax", "gamma": 10.0, "embeddings": "trained"},
    {"learning_rate": 1e-3, "loss": "softmax", "gamma": 10.0, "embeddings": "trained"},
    {"learning_rate": 1e-2, "loss": "margin", "gamma": 1.0, "embeddings": "trained"},
]
_FAST = {"learning_rate": 1e-2}
_SOFTMAX = {"learning_rate": 1e-2, "loss": "softmax", "gamma": 10.0}


class Choices(NamedTuple):
    """A model, and the values that each of its settings may have."""

    model: type
    settings: Mapping[str, Sequence[Any]]
    start: Mapping[str, Any] = {}  # what differs from the class in the first trial, for the sake of time
    given: Sequence[Mapping[str, Any]] = ()  # what differs from the first trial in those before the random ones


MODELS = {
    "dssm": Choices(pn.DSSM, _TOWERS),
    "clsm": Choices(pn.CLSM, {**_TOWERS, "window": [1, 3]}),
    "duet-local": Choices(pn.DuetLocal, _DUET, {"filters": 100, "hidden": 100, "document_terms": 200}),
    "duet": Choices(pn.Duet, _DUET, {"filters": 100, "hidden": 100, "document_terms": 200}),
    "drmm": Choices(pn.DRMM, _PAIRS),
    "match-tensor": Choices(pn.MatchTensor, _PAIRS),
    "ssm": Choices(pn.SSM, _PAIRS),
    "match-pyramid": Choices(pn.MatchPyramid, _MATCHING),
    "anmm": Choices(pn.ANMM, {**_MATCHING, "bins": [21, 201], "nodes": [1, 4]}, given=_VECTORS),
    "arc-i": Choices(pn.ARCI, {**_MATCHING, "layers": [(50, 50), (50,)]}, pn.ARCI.small_sizes, _VECTORS),
    "arc-ii": Choices(pn.ARCII, {**_MATCHING, "layers": [(16, 16), (16,)]}, pn.ARCII.small_sizes, _VECTORS),
    "mv-lstm": Choices(
        pn.MVLSTM,
        {**_MATCHING, "similarity": ["cosine", "bilinear", "tensor"], "units": [20], "document_terms": [100]},
        pn.MVLSTM.small_sizes,
        _VECTORS,
    ),
    "pacrr": Choices(pn.PACRR, {**_MATCHING, "top_k": [2, 5, 10]}, given=[_FAST, *_VECTORS]),
    "drmmtks": Choices(pn.DRMMTKS, {**_MATCHING, "patience": [12]}, {"patience": 12}, [_FAST, *_VECTORS]),
    "knrm": Choices(pn.KNRM, _MATCHING, given=_VECTORS),
    "conv-knrm": Choices(pn.ConvKNRM, _MATCHING, given=_VECTORS),
    "tk": Choices(pn.TK, _MATCHING, {"batch_size": 16}, [_FAST, _SOFTMAX]),
}


def main() -> None:
    """Print a table of trials for each model and number of training queries; each trial is made once."""
    arguments = parser(__doc__, one_seed=True)
    arguments.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS), help="what to train")
    arguments.add_argument("--sizes", nargs="+", choices=list(SIZES), default=list(SIZES), help="training queries")
    arguments.add_argument("--trials", type=int, default=8, help="settings to try for each model and size")
    arguments.add_argument(
        "--epochs", type=int, default=40, help="maximum number of epochs; patience is 3 (DRMMTKS: 12)"
    )
    arguments.add_argument("--minutes", type=int, default=5, help="longest time that a trial may train")
    arguments.add_argument("--queries", type=int, default=500, help="dev queries")
    arguments.add_argument("--depth", type=int, default=50, help="candidates per query")
    arguments = parsed(arguments)
    collection = load(arguments.dataset)
    if collection.train is None or collection.dev is None:
        raise SystemExit(f"{collection.name} lacks training or dev queries, which settings are searched with")
    workspace = Workspace(arguments, "recipes", collection)
    search = Search(workspace, arguments)
    for key in arguments.models:
        for size in arguments.sizes:
            search.save_table(key, size)
    workspace.save_settings(bm25=repr(search.bm25))


class Search:
    """Trials of settings, each with the same training sample and dev candidates.

    Args:
        workspace: Where trials are kept.
        arguments: The arguments of the pipeline.
    """

    def __init__(self, workspace: Workspace, arguments: argparse.Namespace):
        self.workspace, self.arguments = workspace, arguments
        collection: Collection = workspace.collection
        self.train, self.documents = collection.train, workspace.forward_index()
        dev = collection.dev.sample(arguments.queries, arguments.seed)
        self.bm25 = tuned_bm25(workspace)
        self.candidates = self.bm25 % arguments.depth
        self.dev = self.candidates.transform(dev.topics), dev.qrels
        self.evaluate = RunEvaluator(self.dev[0], dev.qrels, dev.judged["qid"], MEASURE)

    def save_table(self, key: str, size: str) -> None:
        """Run the trials of a model that were not run yet, and print them, the best mixture first."""
        trials = [self._trial(key, size, settings) for settings in self._drawn(key, size)]
        table = pd.DataFrame(trials).sort_values("mixture", ascending=False)
        bm25 = float(self.evaluate(self.dev[0]["score"].to_numpy()).mean())
        queries = min(SIZES[size] or len(self.train.judged), len(self.train.judged))
        caption = f"{key}, {queries:,} training queries of {self.workspace.collection.label}: {MEASURE} of "
        caption += f"{len(self.evaluate.qids):,} dev queries, BM25 {bm25:.4f}"
        self.workspace.save_table(f"{key}-{size}", table.round(4), caption)

    def _drawn(self, key: str, size: str) -> list[dict[str, Any]]:
        """The settings of each trial, none twice: those of the class first, then those that are given, then random."""
        random = np.random.default_rng([self.arguments.seed, list(MODELS).index(key), list(SIZES).index(size)])
        start = MODELS[key].start
        drawn = [dict(start), *({**start, **others} for others in MODELS[key].given)][: self.arguments.trials]
        while len(drawn) < self.arguments.trials:
            settings = {name: values[random.integers(len(values))] for name, values in MODELS[key].settings.items()}
            if settings not in drawn:
                drawn.append(settings)
        return drawn

    def _trial(self, key: str, size: str, settings: dict[str, Any]) -> dict[str, Any]:
        fixed = [self.arguments.minutes, self.arguments.epochs, self.arguments.queries, self.arguments.depth]
        return self.workspace.chosen(f"{key} {size}", lambda: self._run(key, size, settings), settings, fixed)

    def _run(self, key: str, size: str, settings: dict[str, Any]) -> dict[str, Any]:
        print(f"{key}, {size} queries: {settings}", flush=True)
        model = MODELS[key].model
        of_training, own = divided(settings, but=own_parameters(model.__init__))
        hours, minutes = divmod(self.arguments.minutes, 60)
        training = pn.Training(
            seed=self.arguments.seed,
            epochs=self.arguments.epochs,
            dev_measure=MEASURE,
            max_time=f"00:{hours:02d}:{minutes:02d}:00",
            verbose=False,
            **of_training,
        )
        if "spaces" in model.components:
            own["spaces"] = self.workspace.spaces(
                "documents", self.workspace.documents, dim=200, seed=self.arguments.seed
            )
        ranker = model(training=training, documents=self.documents, **own)
        ranker.fit(*self._examples(size, training.completed(ranker.own_training)), *self.dev)
        history, outcome = ranker.history, ranker.report.outcome
        alone = {"start": outcome.start, "alone": outcome.best, "mixture": self._mixed(ranker)}
        how = {"epoch": outcome.best_epoch, "epochs": outcome.epochs, "seconds": float(history["seconds"].sum())}
        return {**alone, **how, **settings}

    def _examples(self, size: str, training: pn.Training) -> list[pd.DataFrame]:
        """Candidates if negatives are retrieved ones, else the judged pairs alone; and the judgements."""
        split = self.train if SIZES[size] is None else self.train.sample(SIZES[size], self.arguments.seed)
        if training.negatives == "retrieved":
            return [self.candidates.transform(split.judged), split.qrels]
        return [split.topics[["qid", "query"]].merge(split.qrels[["qid", "docno"]], on="qid"), split.qrels]

    def _mixed(self, ranker: pt.Transformer) -> float:
        """The dev measure of the best mixture with BM25, each normalised by query."""
        frame = self.dev[0]
        queries = pd.factorize(frame["qid"])[0]
        sides = ranker.score(frame), frame["score"].to_numpy()
        own, bm25 = (normalised(np.asarray(scores, dtype=float), queries, "minmax") for scores in sides)
        return max(float(self.evaluate(alpha * own + (1 - alpha) * bm25).mean()) for alpha in ALPHAS)


if __name__ == "__main__":
    main()
