"""How long retrieval by q'Wd from a whole collection takes, and how long only reading its bytes would."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from parts.collection import Collection
from parts.rates import Rate, line, spread

from pt_neural.rankers import RepresentationRanker, Retriever, TermVectors

BLOCK = 200  # queries that are answered at once
ALONE = 20  # queries that are answered one by one in each round
KEYWORDS = 5
WEIGHT = 8  # bytes of a weight and its position


def print_retrieval(
    models: dict[str, RepresentationRanker], collection: Collection, folder: Path, rounds: int, memory: float
) -> None:
    """Print lines for each model: long queries and keyword queries, one by one and all at once."""
    print("\nretrieval, milliseconds per query")
    for name, kinds in measure(models, collection, folder, rounds).items():
        for kind, found in kinds.items():
            limit = f"{found['bytes'] / 1e6:.1f} MB, limit {1000 * found['bytes'] / memory:.1f}"
            print(f"{line(f'{name}: queries of {kind}, one by one', found['alone'])}   {limit}")
            print(line(f"{name}: queries of {kind}, {BLOCK} at once", found["block"]))


def measure(
    models: dict[str, RepresentationRanker], collection: Collection, folder: Path, rounds: int
) -> dict[str, Any]:
    """Milliseconds per query of each model, for long queries and for keywords."""
    found: dict[str, Any] = {}
    for name, model in models.items():
        vectors = model.index(folder / name.replace(" ", "-"), collection.documents, verbose=False)
        retriever = model.retriever(vectors)
        found[name] = {}
        for kind, queries in query_sets(collection).items():
            needed = bytes_read(model, vectors, queries["query"].head(ALONE))
            found[name][kind] = {**times(retriever, queries, rounds), "bytes": needed}
    return found


def query_sets(collection: Collection) -> dict[str, pd.DataFrame]:
    """The queries of the first pairs, in full and cut to their first words."""
    queries = collection.pairs[["qid", "query"]].drop_duplicates("qid").head(BLOCK)
    words = queries["query"].str.split()
    long, short = f"{words.str.len().median():.0f} words", f"{KEYWORDS} words"
    return {long: queries, short: queries.assign(query=words.str[:KEYWORDS].str.join(" "))}


def times(retriever: Retriever, queries: pd.DataFrame, rounds: int) -> dict[str, Rate]:
    """Milliseconds of processor time per query, from frame to frame: one by one, and in a block."""
    retriever.transform(queries.head(2))
    alone = [milliseconds(retriever, queries.iloc[[number]]) for _ in range(rounds) for number in range(ALONE)]
    block = [milliseconds(retriever, queries) / len(queries) for _ in range(rounds)]
    return {"alone": spread(alone), "block": spread(block)}


def milliseconds(retriever: Retriever, queries: pd.DataFrame) -> float:
    """The time of one search."""
    started = time.process_time()
    retriever.transform(queries)
    return 1000 * (time.process_time() - started)


def bytes_read(model: RepresentationRanker, vectors: TermVectors, texts: pd.Series) -> float:
    """Bytes that a single query must read: latent vectors, and the documents' weights of its terms, or of all terms.

    With a hashed W, this includes the weights of W, one for each pair of a query word and a word of the vocabulary.
    """
    queries = model.represent_queries(texts.tolist())
    latent = 0 if queries.dense is None else vectors.vectors.dense.nbytes
    if isinstance(queries.sparse, np.ndarray):
        words = model.features.read_queries(texts.tolist()).terms
        return latent + WEIGHT * vectors.terms.nnz + 4 * words.nnz / words.shape[0] * words.shape[1]
    postings = (queries.sparse != 0) @ np.diff(vectors.postings.indptr).astype(np.float64)
    return latent + WEIGHT * float(np.minimum(postings, vectors.terms.nnz).mean())
