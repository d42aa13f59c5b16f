"""How DESM depends on the settings of word2vec: nDCG@10 on the dev queries, for one change at a time and all of them.

The defaults of EmbeddingSpaces.train were chosen by this table.
"""

import time

import pandas as pd
from ir_measures import nDCG

import pt_neural as pn
from pipelines.common import load, parsed, parser
from pipelines.workspace import Workspace

WORD2VEC = {"window": 5, "epochs": 5, "subsample": 1e-3}  # of the word2vec program
CHANGES = [
    {},
    {"window": 20},
    {"epochs": 30},
    {"subsample": 1e-5},
    {"window": 20, "epochs": 30},
    {"epochs": 30, "subsample": 1e-5},
    {"window": 10, "epochs": 30, "subsample": 1e-5},
    {"window": 20, "epochs": 30, "subsample": 1e-5},
    {"window": 20, "epochs": 30, "subsample": 1e-5, "negative": 15},
    {"window": 20, "epochs": 10, "subsample": 1e-5, "algorithm": "skipgram"},
]


def main() -> None:
    """Train once for each setting; re-rank BM25's top 100, alone and mixed with the best alpha on the same queries."""
    arguments = parser(__doc__)
    arguments.add_argument("--queries", type=int, default=500, help="dev queries")
    arguments = parsed(arguments)
    collection = load(arguments.dataset).sample(arguments.queries, arguments.seed)
    if collection.dev is None:
        raise SystemExit(f"{collection.name} has no dev queries to choose settings on")
    workspace = Workspace(arguments, "embedding-settings", collection)
    forward, texts = workspace.forward_index(), list(workspace.documents())
    candidates = (workspace.index().bm25() % 100).transform(collection.dev.topics)
    rows = []
    for change in CHANGES:
        settings = WORD2VEC | change
        started = time.perf_counter()
        spaces = pn.EmbeddingSpaces.train(texts, seed=arguments.seed, verbose=False, **settings)
        row = {
            "settings": ", ".join(f"{k}={v}" for k, v in settings.items()),
            "s": round(time.perf_counter() - started),
        }
        for pair in ("in-in", "in-out"):
            mixture = pn.Mixture(pn.DESM(spaces, *pair.split("-"), documents=forward))
            curve = pn.tune_alpha(mixture, candidates, collection.dev.qrels, nDCG @ 10).to_frame()["nDCG@10"]
            row |= {f"{pair} alone": f"{curve.iloc[-1]:.4f}", f"{pair} mixed": f"{curve.max():.4f}"}
        rows.append({**row, "BM25": f"{curve.iloc[0]:.4f}"})
        print(rows[-1], flush=True)
    caption = f"{collection.label}, {len(collection.dev.topics):,} dev queries, BM25's top 100 re-ranked, nDCG@10"
    workspace.save_table("table", pd.DataFrame(rows), caption)
    workspace.save_settings()


if __name__ == "__main__":
    main()
