"""The main job on one page: Lucene retrieves, DESM and a trained DSSM re-rank, linear mixtures combine them."""

import time

from ir_measures import RR, R, nDCG

import pt_neural as pn
from pipelines.common.arguments import add_pseudo_queries, parsed, parser
from pipelines.common.collection import load
from pipelines.common.comparison import (
    Comparison,
    alpha_picture,
    mean_curve,
    tuned,
    tuned_by_seed,
)
from pipelines.common.first_stage import PRIOR, LengthPrior, Remembered, tuned_bm25
from pipelines.common.workspace import Workspace

DESMS = {
    "DESM IN-OUT": ("in-out", "none"),
    "DESM IN-OUT centred": ("in-out", "both"),
    "DESM IN-IN": ("in-in", "none"),
}
MEASURES = [nDCG @ 10, RR, R @ 100]
# Both were chosen on the dev queries, as the least time that costs no quality.
WORD2VEC = {"epochs": 10, "learning_rate": 0.1}
DSSM = {"learning_rate": 1e-3}
DEPTH = 200  # documents that each side of a mixture retrieves; with 1000, mixtures are no better on dev queries
ALL = "all documents, "


def main() -> None:
    """Print one table of first stages, rankers and mixtures; save it with its runs and the alpha curves."""
    arguments = parser(__doc__)
    arguments.add_argument("--queries", type=int, default=500, help="test queries, and as many to tune alpha on")
    arguments.add_argument("--epochs", type=int, default=4, help="maximum number of epochs for training DSSM")
    add_pseudo_queries(arguments)
    arguments = parsed(arguments)
    started = time.perf_counter()

    collection = load(arguments.dataset).sample(arguments.queries, arguments.seed)
    workspace = Workspace(arguments, "quickstart", collection)
    index = workspace.index()
    scorer, plain, runs = tuned_bm25(workspace), index.bm25(), workspace.runs()
    bm25 = Remembered(scorer % DEPTH)
    shorter = bm25 >> pn.Mixture(LengthPrior(workspace.forward_index()), normalise="minmax")
    shorter, curve = tuned(shorter, collection, nDCG @ 10, arguments.seed, (runs, PRIOR))
    first_stages = {
        "BM25": bm25,
        f"BM25 (k1 {plain.k1:g}, b {plain.b:g})": plain,
        PRIOR: shorter,
        "query likelihood": index.ql(),
        "SDM": index.sdm(),
    }
    candidates = bm25 % 100
    learning = workspace.learning
    if learning.collection.train is not None:
        first = candidates if learning is workspace else tuned_bm25(learning) % 100
        examples = learning.collection.examples(first)
    rankers = {name: {} for name in (*DESMS, "DSSM")}
    for seed in arguments.seeds:
        spaces = workspace.spaces("documents", workspace.documents, dim=200, seed=seed, **WORD2VEC)
        for name, (pair, centre) in DESMS.items():
            desm, retriever = workspace.desm(spaces, pair, f"documents-seed{seed}-quick", centre)
            rankers[name][seed] = desm, Remembered(retriever % DEPTH)
        if learning.collection.train is not None:
            training = pn.Training(epochs=arguments.epochs, seed=seed, **DSSM)
            queries = len(learning.collection.train.judged)
            dssm = pn.DSSM.recipe(queries, training=training, documents=learning.forward_index())
            dssm = workspace.trained(dssm, *examples, documents=workspace.forward_index())
            rankers["DSSM"][seed] = dssm, Remembered(dssm.retriever(dssm.vectors) % DEPTH)
            workspace.learned.add("DSSM")

    telescoped, full, curves = {}, {}, {PRIOR: curve}
    for name, seeds in rankers.items():
        if not seeds:
            continue
        telescoped[f"BM25 top 100, {name}"] = {seed: candidates >> reranker for seed, (reranker, _) in seeds.items()}
        full[f"all documents, {name}"] = {seed: retriever % 100 for seed, (_, retriever) in seeds.items()}
        mixtures = {
            "BM25 top 100": {
                seed: candidates >> pn.Mixture(reranker, normalise="minmax") for seed, (reranker, _) in seeds.items()
            },
            "all documents": {
                seed: (bm25 | retriever) >> pn.Mixture(reranker, scorer, normalise="minmax")
                for seed, (reranker, retriever) in seeds.items()
            },
        }
        for systems, (setting, by_seed) in zip((telescoped, full), mixtures.items(), strict=True):
            mixed = f"{setting}, BM25 + {name}"
            chosen, alphas = tuned_by_seed(by_seed, collection, nDCG @ 10, arguments.seed, (runs, mixed))
            systems[mixed] = {seed: system % 100 for seed, system in chosen.items()}
            curves[mixed] = mean_curve(alphas)

    systems = {name: system % 100 for name, system in first_stages.items()} | telescoped | full
    comparison = Comparison(collection.test, MEASURES, runs)
    comparison.add(systems)
    caption = f"{collection.label}, {len(collection.test.topics):,} test queries; * differs from BM25 with p < 0.05"
    comparison.save(workspace, "table", list(systems), {"BM25": "*"}, caption)
    workspace.save_settings(bm25=repr(scorer), alpha={name: curve.alpha for name, curve in curves.items()})
    shown = {PRIOR: curve} | {name.removeprefix(ALL): curves[name] for name in curves if name.startswith(ALL)}
    workspace.save_picture("alpha", alpha_picture(shown, "Mixtures with BM25 over all documents"))
    print(f"\nThe table, runs and pictures are in {workspace.results} ({time.perf_counter() - started:.0f} seconds).")


if __name__ == "__main__":
    main()
