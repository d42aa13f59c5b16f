"""How LSA depends on its settings: nDCG@10 on the dev queries with every document a candidate.

The defaults of LSA were chosen by this table.
"""

import time
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pyterrier as pt
from ir_measures import nDCG

import pt_neural as pn
from pipelines.common import Split, load, parsed, parser
from pipelines.workspace import Workspace

DIMENSIONS = [100, 200, 400]
SCALINGS = {"U": None, "U/Σ": "inverse"}


def main() -> None:
    """Fit once for each number of dimensions and each term weight; retrieve with and without the singular values."""
    arguments = parser(__doc__)
    arguments.add_argument("--queries", type=int, default=1000, help="dev queries")
    arguments.add_argument("--dims", type=int, nargs="+", default=DIMENSIONS, help="latent dimensions to try")
    arguments = parsed(arguments)
    collection = load(arguments.dataset).sample(arguments.queries, arguments.seed)
    if collection.dev is None:
        raise SystemExit(f"{collection.name} has no dev queries to choose settings on")
    workspace = Workspace(arguments, "lsa-settings", collection)
    forward, rows = workspace.forward_index(), []
    for dim, sublinear_tf in product(arguments.dims, [False, True]):
        started = time.perf_counter()
        lsa = pn.LSA(dim, sublinear_tf=sublinear_tf, seed=arguments.seed).fit_corpus(forward, verbose=False)
        row = {"dim": dim, "tf": "1 + ln tf" if sublinear_tf else "tf", "s": f"{time.perf_counter() - started:.1f}"}
        for name, lsa.scaling in SCALINGS.items():
            row[name] = f"{retrieval_quality(lsa, forward, collection.dev):.4f}"
        rows.append(row)
        print(row, flush=True)
    caption = f"{collection.label}, {len(collection.dev.topics):,} dev queries, LSA over all documents, nDCG@10"
    workspace.save_table("table", pd.DataFrame(rows), caption)
    workspace.save_settings()


def retrieval_quality(lsa: pn.LSA, documents: pn.ForwardIndex, split: Split) -> float:
    """nDCG@10 of retrieval from the whole collection."""
    with TemporaryDirectory() as directory:
        vectors = lsa.index(Path(directory) / "vectors", documents, verbose=False)
        retriever = lsa.retriever(vectors, num_results=10)
        return pt.Evaluate(retriever.transform(split.topics), split.qrels, [nDCG @ 10])["nDCG@10"]


if __name__ == "__main__":
    main()
