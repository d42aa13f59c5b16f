"""The main job on one page: Lucene retrieves, DESM and a trained DSSM re-rank, linear mixtures join the two."""

import time

from ir_measures import RR, R, nDCG

import pt_neural as pn
from pipelines.common import load, parser
from pipelines.comparison import alpha_picture, compare, tuned
from pipelines.workspace import Workspace

MEASURES = [nDCG @ 10, RR, R @ 100]


def main() -> None:
    """Print one table of first stages, rankers and mixtures; save it with its runs and the alpha curves."""
    arguments = parser(__doc__)
    arguments.add_argument("--queries", type=int, default=500, help="test queries, and as many to tune alpha on")
    arguments.add_argument("--epochs", type=int, default=6, help="epochs that DSSM is trained, at most")
    arguments = arguments.parse_args()
    started = time.perf_counter()

    collection = load(arguments.dataset).sample(arguments.queries, arguments.seed)
    workspace = Workspace(arguments.out, "quickstart", collection)
    index = workspace.index()
    bm25 = index.bm25()
    first_stages = {"BM25": bm25, "query likelihood": index.ql(), "SDM": index.sdm()}
    candidates = bm25 % 100
    spaces = workspace.spaces("documents", workspace.documents, dim=200, seed=arguments.seed)
    rankers = {f"DESM {pair.upper()}": workspace.desm(spaces, pair, "documents") for pair in ("in-out", "in-in")}
    if collection.train is not None:
        training = pn.Training(epochs=arguments.epochs, seed=arguments.seed)
        dssm = pn.DSSM(training=training, documents=workspace.forward_index())
        dssm = workspace.trained(dssm, *collection.examples(candidates))
        rankers["DSSM"] = dssm, dssm.retriever(dssm.vectors)

    telescoped, everything, curves = {}, {}, {}
    for name, (reranker, retriever) in rankers.items():
        telescoped[f"BM25 top 100, {name}"] = candidates >> reranker
        everything[f"all documents, {name}"] = retriever
        for systems, setting, mixture in (
            (telescoped, "BM25 top 100", candidates >> pn.Mixture(reranker, normalise="minmax")),
            (everything, "all documents", pn.Mixture(retriever, bm25, normalise="minmax")),
        ):
            mixed = f"{setting}, BM25 + {name}"
            systems[mixed], curves[mixed] = tuned(mixture, collection, nDCG @ 10, arguments.seed)

    systems = {name: system % 100 for name, system in (first_stages | telescoped | everything).items()}
    workspace.save_table(
        "table",
        compare(systems, collection.test, MEASURES, baselines={"BM25": "*"}, runs=workspace.results / "runs"),
        f"{collection.name}, {len(collection.test.topics):,} test queries; * differs from BM25 with p < 0.05",
    )
    workspace.save_settings({**vars(arguments), "alpha": {name: curve.alpha for name, curve in curves.items()}})
    alpha_picture(curves, "Mixtures with BM25").savefig(workspace.results / "alpha.png", dpi=150)
    print(f"\nTable, runs and alpha curves are in {workspace.results} ({time.perf_counter() - started:.0f} seconds).")


if __name__ == "__main__":
    main()
