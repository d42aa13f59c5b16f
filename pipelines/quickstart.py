"""The main job on one page: Lucene retrieves, DESM and a trained DSSM re-rank, linear mixtures combine them."""

import time
from itertools import pairwise

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
# Chosen on the dev queries for a quick demo. Half of word2vec's default time costs IN-OUT 0.016 of nDCG@10, and gives
# IN-IN 0.011; DSSM with twice its recipe's rate reaches the same in six epochs instead of eight.
WORD2VEC = {"epochs": 14, "learning_rate": 0.08}
DSSM = {"learning_rate": 6e-4}
DEPTH = 200  # documents that each side of a mixture retrieves; with 1000, mixtures gain 0.001 on dev queries
ALL = "all documents, "


def main() -> None:
    """Print one table of first stages, rankers and mixtures; save it with its runs and the alpha curves."""
    arguments = parser(__doc__)
    arguments.add_argument("--queries", type=int, default=500, help="test queries, and as many to tune alpha on")
    arguments.add_argument("--epochs", type=int, default=6, help="maximum number of epochs for training DSSM")
    add_pseudo_queries(arguments)
    arguments = parsed(arguments)
    times = [("", time.perf_counter())]  # when each part ended

    collection = load(arguments.dataset).sample(arguments.queries, arguments.seed)
    workspace = Workspace(arguments, "quickstart", collection)
    times.append(("documents", time.perf_counter()))
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
    times.append(("Lucene", time.perf_counter()))
    learning = workspace.learning
    if learning.collection.train is not None:
        first = candidates if learning is workspace else tuned_bm25(learning) % 100
        examples = learning.collection.examples(first)
    rankers = {name: {} for name in (*DESMS, "DSSM")}
    for seed in arguments.seeds:
        spaces = workspace.spaces("documents", workspace.documents, dim=200, seed=seed, **WORD2VEC)
        for name, (pair, centre) in DESMS.items():
            desm, retriever = workspace.desm(spaces, pair, f"documents-seed{seed}-epochs{WORD2VEC['epochs']}", centre)
            rankers[name][seed] = desm, Remembered(retriever % DEPTH)
        times.append(("DESM", time.perf_counter()))
        if learning.collection.train is not None:
            training = pn.Training(epochs=arguments.epochs, seed=seed, **DSSM)
            queries = len(learning.collection.train.judged)
            dssm = pn.DSSM.recipe(queries, training=training, documents=learning.forward_index())
            dssm = workspace.trained(dssm, *examples, documents=workspace.forward_index())
            rankers["DSSM"][seed] = dssm, Remembered(dssm.retriever(dssm.vectors) % DEPTH)
            workspace.learned.add("DSSM")
            times.append(("DSSM", time.perf_counter()))

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

    times.append(("alpha", time.perf_counter()))
    systems = {name: system % 100 for name, system in first_stages.items()} | telescoped | full
    comparison = Comparison(collection.test, MEASURES, runs)
    comparison.add(systems)
    caption = f"{collection.label}, {len(collection.test.topics):,} test queries; * differs from BM25 with p < 0.05"
    comparison.save(workspace, "table", list(systems), {"BM25": "*"}, caption)
    workspace.save_settings(bm25=repr(scorer), alpha={name: curve.alpha for name, curve in curves.items()})
    shown = {PRIOR: curve} | {name.removeprefix(ALL): curves[name] for name in curves if name.startswith(ALL)}
    workspace.save_picture("alpha", alpha_picture(shown, "Mixtures with BM25 over all documents"))
    times.append(("runs", time.perf_counter()))
    parts = ", ".join(f"{name} {end - start:.0f}" for (_, start), (name, end) in pairwise(times))
    print(f"\nThe table, runs and pictures are in {workspace.results}.")
    print(f"Seconds: {times[-1][1] - times[0][1]:.0f} ({parts}).")


if __name__ == "__main__":
    main()
