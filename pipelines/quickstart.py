"""The main job on one page: Lucene retrieves, word embeddings re-rank, a linear mixture joins the two."""

import time

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import pyterrier as pt
from ir_measures import AP, RR, nDCG

import pt_neural as pn
from pipelines.common import Workspace, compare, load, parser, tuned

MEASURES = [nDCG @ 10, RR @ 10, AP]


def main() -> None:
    """Index, train, compare; print one table and save it with the alpha curves."""
    arguments = parser(main.__doc__.replace("\n", " ")).parse_args()
    started = time.perf_counter()

    collection = load(arguments.dataset)
    workspace = Workspace(arguments.out, "quickstart", collection)
    index = workspace.index()
    documents = workspace.forward_index()
    spaces = workspace.spaces("documents", documents.token_lists, dim=200, seed=arguments.seed)

    bm25 = index.bm25()
    systems = {"BM25": bm25, "query likelihood": index.ql(), "SDM": index.sdm()}
    candidates = bm25 % 100
    curves = {}
    for pair in ("in-out", "in-in"):
        desm = pn.DESM(spaces, *pair.split("-"))
        vectors = workspace.built(f"desm-{pair}", lambda path, desm=desm: desm.index(path, documents), pn.open_vectors)
        kept = pn.DESM(spaces, *pair.split("-"), vectors=vectors)
        dense = desm.retriever(vectors)
        name = f"DESM {pair.upper()}"
        systems[f"BM25 top 100, {name}"] = candidates >> kept
        systems[f"BM25 top 100, BM25 + {name}"], curves[f"top 100, {name}"] = tuned(
            candidates >> pn.Mixture(kept), collection, nDCG @ 10, arguments.seed
        )
        systems[f"all documents, {name}"] = dense
        systems[f"all documents, BM25 + {name}"], curves[f"all documents, {name}"] = tuned(
            pn.Mixture(dense, bm25), collection, nDCG @ 10, arguments.seed
        )

    order = ["BM25", "query likelihood", "SDM", *sorted(name for name in systems if "," in name)]
    table = compare(
        {name: systems[name] for name in order},
        collection.test,
        MEASURES,
        baseline="BM25",
        runs=workspace.results / "runs",
    )
    workspace.save_table(
        "table",
        table,
        f"{collection.name}, {len(collection.test.topics):,} test queries; * differs from BM25 with p < 0.05",
    )
    workspace.save_settings({**vars(arguments), "alpha": {name: curve.alpha for name, curve in curves.items()}})
    plot_curves(curves, workspace.results / "alpha.png")
    print(f"\nTable, runs and alpha curves are in {workspace.results} ({time.perf_counter() - started:.0f} seconds).")


def plot_curves(curves: dict[str, "pn.experiment.AlphaCurve"], path: str) -> None:
    """Draw the alpha curves into one picture."""
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for name, curve in curves.items():
        curve.plot(axes, label=name)
    axes.set_title("Mixtures of DESM with BM25")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
