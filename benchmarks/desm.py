"""Speed of word embeddings and DESM on the embedded collection, beside gensim's own scoring of word sets.

Each line says what was done, how fast, and the best that the machine allows: the bytes that must be read, divided by
the rate at which this process copies memory. Run it with: python benchmarks/desm.py
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pyterrier as pt
from gensim.models import KeyedVectors

import pt_neural as pn
from pt_neural.text import tokenise


def main() -> None:
    """Measure each stage and print one line for it."""
    arguments = argparse.ArgumentParser(description=main.__doc__)
    arguments.add_argument("--dataset", default="neural:pydocs")
    arguments.add_argument("--queries", type=int, default=1000)
    arguments.add_argument("--candidates", type=int, default=1000)
    arguments.add_argument("--peer-rows", type=int, default=3000, help="rows that the slow peers score")
    arguments = arguments.parse_args()
    dataset = pt.get_dataset(arguments.dataset)
    texts = list(dataset.get_corpus_iter(verbose=False))
    with TemporaryDirectory() as name:
        folder = Path(name)
        forward, seconds = timed(lambda: pn.ForwardIndex.build(folder / "forward", texts, verbose=False))
        words = len(forward.all().terms)
        report("forward index", f"{seconds:.1f} s", f"{words / seconds:,.0f} words/s")
        spaces, seconds = timed(lambda: pn.EmbeddingSpaces.train(texts, dim=200, verbose=False))
        epochs = spaces.settings["epochs"]
        report(
            f"word2vec, 200 dimensions, {epochs} epochs", f"{seconds:.1f} s", f"{epochs * words / seconds:,.0f} words/s"
        )
        desm = pn.DESM(spaces)
        spaces.unit_vectors("in"), spaces.unit_vectors("out")
        _, seconds = timed(lambda: desm.encode_sequences(forward.all(), forward.vocabulary))
        report("centroids from term ids", f"{len(forward) / seconds:,.0f} documents/s")
        vectors = desm.index(folder / "vectors", forward, verbose=False)
        rows = candidates(dataset, forward, arguments.queries, arguments.candidates)
        kept = pn.DESM(spaces, vectors=vectors)
        kept.transform(rows.head(10))
        _, seconds = timed(lambda: kept.transform(rows), repeats=3)
        ours = len(rows) / seconds
        limit = copy_rate() / (spaces.dim * 4)
        report("re-ranking from stored centroids, frame included", f"{ours:,.0f} rows/s", f"limit {limit:,.0f} rows/s")
        peers(rows.head(arguments.peer_rows), texts, spaces, ours)


def timed(work: Callable[[], object], repeats: int = 1) -> tuple[object, float]:
    """The result, and the shortest time of the repeats in seconds."""
    best = np.inf
    for _ in range(repeats):
        started = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - started)
    return result, best


def report(what: str, *figures: str) -> None:
    """Print one line."""
    print(f"{what:50s} {'   '.join(figures)}", flush=True)


def candidates(dataset: pt.datasets.Dataset, forward: pn.ForwardIndex, queries: int, depth: int) -> pd.DataFrame:
    """Random candidates for test queries: ``queries * depth`` rows."""
    topics = dataset.get_topics("test").head(queries)
    chosen = np.random.default_rng(1).integers(len(forward), size=len(topics) * depth)
    rows = topics.loc[topics.index.repeat(depth)].reset_index(drop=True)
    return rows.assign(docno=np.array(list(forward.docnos), dtype=object)[chosen])


def copy_rate(size: int = 2**28) -> float:
    """Bytes per second that one thread reads from memory."""
    source = np.ones(size // 4, dtype=np.float32)
    _, seconds = timed(source.sum, repeats=5)
    return size / seconds


def peers(rows: pd.DataFrame, texts: list[dict], spaces: pn.EmbeddingSpaces, ours: float) -> None:
    """Score the same pairs as people do without stored centroids, and print our speed relative to each way."""
    by_docno = {document["docno"]: f"{document['title']} {document['text']}" for document in texts}
    pairs = [(tokenise(row.query), tokenise(by_docno[row.docno])) for row in rows.itertuples()]
    pairs = [[[word for word in side if word in spaces] for side in pair] for pair in pairs]
    pairs = [(query, document) for query, document in pairs if query and document]
    keyed = KeyedVectors(spaces.dim)
    keyed.add_vectors(spaces.vocabulary.terms, spaces.in_vectors)
    _, seconds = timed(lambda: [keyed.n_similarity(query, document) for query, document in pairs])
    report(
        "gensim n_similarity, tokens given",
        f"{len(pairs) / seconds:,.0f} rows/s",
        f"ours {ours * seconds / len(pairs):,.0f}x",
    )
    _, seconds = timed(lambda: [word_by_word(query, document, spaces) for query, document in pairs[:300]])
    rate = min(300, len(pairs)) / seconds
    report("equation 5 word by word in NumPy, tokens given", f"{rate:,.0f} rows/s", f"ours {ours / rate:,.0f}x")


def word_by_word(query: list[str], document: list[str], spaces: pn.EmbeddingSpaces) -> float:
    """DESM IN-OUT, written down literally from the equations."""
    words = spaces.out_vectors[spaces.ids(document)]
    centroid = np.mean([word / np.linalg.norm(word) for word in words], axis=0)
    cosines = [
        word @ centroid / (np.linalg.norm(word) * np.linalg.norm(centroid))
        for word in spaces.in_vectors[spaces.ids(query)]
    ]
    return float(np.mean(cosines))


if __name__ == "__main__":
    main()
