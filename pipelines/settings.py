"""How DESM depends on the settings of word2vec, and LSA on its own settings: nDCG@10 on the dev queries.

The defaults of EmbeddingSpaces.train and of LSA were chosen from these tables.
"""

import argparse
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pyterrier as pt
from ir_measures import nDCG

import pt_neural as pn
from pipelines.common.arguments import parsed, parser
from pipelines.common.collection import Split, load
from pipelines.common.first_stage import tuned_bm25
from pipelines.common.workspace import Workspace

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
DIMENSIONS = [100, 200, 400]
SCALINGS = {"U": None, "U/Σ": "inverse"}


def main() -> None:
    """Print and save one table per model."""
    arguments = parser(__doc__, one_seed=True)
    arguments.add_argument("--models", nargs="+", choices=TABLES, default=list(TABLES), help="tables to make")
    arguments.add_argument("--queries", type=int, default=1000, help="dev queries")
    arguments.add_argument("--dims", type=int, nargs="+", default=DIMENSIONS, help="latent dimensions of LSA to try")
    arguments = parsed(arguments)
    collection = load(arguments.dataset).sample(arguments.queries, arguments.seed)
    if collection.dev is None:
        raise SystemExit(f"{collection.name} has no dev queries to choose settings on")
    workspace = Workspace(arguments, "settings", collection)
    for model in arguments.models:
        about, make = TABLES[model]
        rows = []
        for row in make(workspace, arguments):
            rows.append(row)
            print(row, flush=True)
        caption = f"{collection.label}, {len(collection.dev.topics):,} dev queries, {about}, nDCG@10"
        workspace.save_table(model, pd.DataFrame(rows), caption)
    workspace.save_settings()


def desm_rows(workspace: Workspace, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """BM25's top 100 re-ranked by DESM, alone and mixed with the best alpha on the same queries."""
    dev = workspace.collection.dev
    forward, texts = workspace.forward_index(), list(workspace.documents())
    candidates = (tuned_bm25(workspace) % 100).transform(dev.topics)
    for change in CHANGES:
        settings = WORD2VEC | change
        started = time.perf_counter()
        spaces = pn.EmbeddingSpaces.train(texts, seed=arguments.seed, verbose=False, **settings)
        row = {
            "settings": ", ".join(f"{name}={value}" for name, value in settings.items()),
            "s": round(time.perf_counter() - started),
        }
        for pair in ("in-in", "in-out"):
            mixture = pn.Mixture(pn.DESM(spaces, *pair.split("-"), documents=forward))
            curve = pn.tune_alpha(mixture, candidates, dev.qrels, nDCG @ 10).to_frame()["nDCG@10"]
            row |= {f"{pair} alone": f"{curve.iloc[-1]:.4f}", f"{pair} mixed": f"{curve.max():.4f}"}
        yield {**row, "BM25": f"{curve.iloc[0]:.4f}"}


def lsa_rows(workspace: Workspace, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """LSA over all documents, for each number of dimensions and term weight, with and without singular values."""
    forward = workspace.forward_index()
    for dim, sublinear_tf in product(arguments.dims, [False, True]):
        started = time.perf_counter()
        lsa = pn.LSA(dim, sublinear_tf=sublinear_tf, seed=arguments.seed).fit_corpus(forward, verbose=False)
        row = {"dim": dim, "tf": "1 + ln tf" if sublinear_tf else "tf", "s": f"{time.perf_counter() - started:.1f}"}
        for name, scaling in SCALINGS.items():
            lsa.scaling = scaling
            row[name] = f"{retrieval_quality(lsa, forward, workspace.collection.dev):.4f}"
        yield row


def retrieval_quality(lsa: pn.LSA, documents: pn.ForwardIndex, split: Split) -> float:
    """nDCG@10 of retrieval from the whole collection."""
    with TemporaryDirectory() as directory:
        vectors = lsa.index(Path(directory) / "vectors", documents, verbose=False)
        retriever = lsa.retriever(vectors, num_results=10)
        return pt.Evaluate(retriever.transform(split.topics), split.qrels, [nDCG @ 10])["nDCG@10"]


TABLES = {"desm": ("BM25's top 100 re-ranked by DESM", desm_rows), "lsa": ("LSA over all documents", lsa_rows)}

if __name__ == "__main__":
    main()
