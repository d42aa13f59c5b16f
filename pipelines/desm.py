"""Tables 3 and 4 and figures 1, 4 and 5 of the DESM paper (Mitra et al., 2016), on any dataset.

Table 3: telescoped, the first stage's top k documents are re-ranked. Table 4: every document is a candidate.
"""

import argparse
from functools import partial

import pyterrier as pt
from ir_measures import nDCG

import pt_neural as pn
from pipelines import desm_figures
from pipelines.common import Split, load, parser
from pipelines.comparison import compare, tuned
from pipelines.workspace import Workspace

MEASURES = [nDCG @ 1, nDCG @ 3, nDCG @ 10]
MIN_QUERIES = 1000  # fewer queries than this are no corpus to train word embeddings on


def main() -> None:
    """Print both tables, and save them with runs, settings and figures."""
    arguments = parser(__doc__.split("\n\n")[0])
    arguments.add_argument("--depth", type=int, default=100, help="candidates a query in the telescoped table")
    arguments.add_argument("--dim", type=int, default=200, help="dimensions of the embeddings (paper: 200) and of LSA")
    arguments.add_argument(
        "--sweep",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="choose BM25's k1 and b on training queries",
    )
    arguments = arguments.parse_args()

    collection = load(arguments.dataset)
    workspace = Workspace(arguments.out, "desm", collection)
    bm25 = workspace.index().bm25()
    if arguments.sweep and collection.train is not None:
        bm25 = swept_bm25(workspace.index(), collection.train, arguments.seed)
    print(f"first stage: {bm25!r}", flush=True)
    candidates = bm25 % arguments.depth
    trained = embeddings(workspace, arguments.dim, arguments.seed)
    rerankers, retrievers, mixtures, curves = {}, {}, {}, {}
    for pair in ("in-in", "in-out"):
        for corpus, spaces in trained.items():
            name = f"DESM ({pair.upper()}, trained on {corpus})"
            rerankers[name], retrievers[name] = workspace.desm(spaces, pair, corpus)
            mixture = pn.Mixture(retrievers[name], bm25)
            mixtures[f"BM25 + {name}"], curves[name] = tuned(mixture, collection, nDCG @ 10, arguments.seed)
    lsa = workspace.lsa(arguments.dim, arguments.seed)
    telescoped = {"BM25": candidates, "LSA": candidates >> lsa}
    telescoped |= {name: candidates >> ranker for name, ranker in rerankers.items()}
    retrievers = {"BM25": bm25, "LSA": lsa.retriever(lsa.vectors), **retrievers, **mixtures}
    everything = {name: system % 100 for name, system in retrievers.items()}

    run = partial(compare, split=collection.test, measures=MEASURES, baselines={"BM25": "*"})
    note = f"{collection.name}, {len(collection.test.topics):,} test queries; * differs from BM25 with p < 0.05"
    workspace.save_table(
        "table3",
        run(telescoped, runs=workspace.results / "runs-telescoped"),
        f"Table 3, telescoped: the top {arguments.depth} of BM25 re-ranked. {note}",
    )
    workspace.save_table(
        "table4",
        run(everything, runs=workspace.results / "runs-all-documents"),
        f"Table 4, every document a candidate. {note}",
    )
    alphas = {name: curve.alpha for name, curve in curves.items()}
    workspace.save_settings({**vars(arguments), "bm25": repr(bm25), "alpha": alphas})
    desm_figures.draw(collection, bm25, rerankers, curves, workspace.results)
    print(f"\nTables, runs and figures are in {workspace.results}.")


def swept_bm25(index: pn.LuceneIndex, train: Split, seed: int, queries: int = 500) -> pt.Transformer:
    """BM25 with k1 and b swept on training queries, as in section 3.3."""
    bm25, sample = index.bm25(num_results=10), train.sample(queries, seed)
    grid = {bm25: {"k1": [0.5, 0.9, 1.3, 1.7, 2.1], "b": [0.3, 0.4, 0.5, 0.65, 0.8, 0.95]}}
    pt.GridSearch(bm25, grid, sample.topics, sample.qrels, "ndcg_cut_10", verbose=False)
    return index.bm25(k1=bm25.k1, b=bm25.b)


def embeddings(workspace: Workspace, dim: int, seed: int) -> dict[str, pn.EmbeddingSpaces]:
    """Word embeddings trained on documents and, where there are enough, on training queries."""
    collection = workspace.collection
    corpora = {"documents": workspace.documents}
    if collection.train is not None and len(collection.train.topics) >= MIN_QUERIES:
        corpora["queries"] = lambda: collection.train.topics
    else:
        print(f"{collection.name} has fewer than {MIN_QUERIES} training queries: no embeddings trained on queries")
    return {corpus: workspace.spaces(corpus, texts, dim=dim, seed=seed) for corpus, texts in corpora.items()}


if __name__ == "__main__":
    main()
