"""First-stage retrieval, scoring and text loading beside pyterrier-anserini, in one run.

    python benchmarks/first_stage.py [--collections DIR]

Each side runs in its own process, because two Java set-ups do not mix, over the same two indexes: one without text in
Lucene, one with it. They hold the cpp-docs pages of the folder of collections, or else pydocs, which comes with this
package. Prints a table with ratios, and the largest difference between the scores of the two sides.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt
from parts.rates import record

FIELDS = {"ours": ["title", "text"], "theirs": ["raw"]}


def main() -> None:
    """Build both indexes, run both sides, print the table."""
    options = parse_arguments()
    if options.side:
        run_side(options)
        return
    with tempfile.TemporaryDirectory() as folder:
        options.indexes = Path(folder)
        print(f"collection: {'cpp-docs' if options.collections else 'pydocs'}")
        build(options)
        results = {side: in_subprocess(options, side) for side in ("theirs", "ours")}
        print_table(results)
        print(f"largest difference of scores: {score_difference(Path(folder)):.1e}")
        print(f"Java to first result: {min(first_result(options) for _ in range(3)):.2f} s")
        print(
            f"import of pt_neural and first search: {min(first_search(options) for _ in range(3)):.2f} s (goal: 1.2 s)"
        )


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--collections",
        type=Path,
        default=os.environ.get("PT_NEURAL_COLLECTIONS"),
        help="folder with cpp-docs (default: use pydocs)",
    )
    parser.add_argument("--queries", type=int, default=200, help="number of queries to time (default 200)")
    parser.add_argument("--seconds", type=float, default=4, help="minimum seconds per task (default 4)")
    parser.add_argument("--indexes", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--side", choices=["ours", "theirs", "first"], help=argparse.SUPPRESS)
    return parser.parse_args()


def build(options: argparse.Namespace) -> None:
    """Index the pages with and without text in Lucene."""
    import pt_neural as pn

    for name, raw in (("plain", False), ("stored", True)):
        pn.LuceneIndex(options.indexes / name).index(corpus(options.collections), raw=raw)


def corpus(collections: Path | None) -> Iterator[dict[str, str]]:
    """The cpp-docs pages, or those of pydocs."""
    if collections is None:
        yield from pt.get_dataset("neural:pydocs").get_corpus_iter(verbose=False)
        return
    with gzip.open(collections / "cpp-docs" / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            yield {"docno": record["_id"], "title": record["title"], "text": record["text"]}


def queries(options: argparse.Namespace) -> pd.DataFrame:
    """The first keywords of cpp-docs, or the first test queries of pydocs."""
    if options.collections is None:
        return pt.get_dataset("neural:pydocs").get_topics("test")[["qid", "query"]].head(options.queries)
    with (options.collections / "cpp-docs" / "keywords" / "queries.jsonl").open(encoding="utf-8") as file:
        records = [json.loads(line) for _, line in zip(range(options.queries), file, strict=False)]
    return pd.DataFrame({"qid": [r["_id"] for r in records], "query": [r["text"] for r in records]})


def in_subprocess(options: argparse.Namespace, side: str) -> dict[str, float]:
    """Run one side in a process of its own: units per second for each task."""
    command = [sys.executable, __file__, "--side", side, "--indexes", str(options.indexes)]
    if options.collections:
        command += ["--collections", str(options.collections)]
    command += ["--queries", str(options.queries), "--seconds", str(options.seconds)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def first_result(options: argparse.Namespace) -> float:
    """Seconds from the start of Java to the first result in a fresh process, not counting imports."""
    return in_subprocess(options, "first")["seconds"]


def first_search(options: argparse.Namespace) -> float:
    """Seconds from before the import of pt_neural to the first result, in a fresh process."""
    index = str(options.indexes / "plain")
    code = f"""import time; started = time.perf_counter(); import pt_neural as pn
pn.LuceneIndex({index!r}).bm25().search("vector"); print(time.perf_counter() - started)"""
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def run_side(options: argparse.Namespace) -> None:
    """Time the tasks of one side and print the figures as JSON."""
    topics = queries(options)
    if options.side == "first":
        print(json.dumps({"seconds": time_first_result(options, topics)}))
        return
    open_index = open_ours if options.side == "ours" else open_theirs
    plain, stored = (open_index(options.indexes / name) for name in ("plain", "stored"))
    result = {}
    for index, name in ((plain, "queries"), (stored, "queries, text stored")):
        for k in (1000, 100):
            result[f"{name}, top {k}"] = rate(index.bm25(num_results=k), topics, options.seconds)
    save_scores(options, plain.bm25(num_results=100)(topics))
    scorer = plain.bm25() if options.side == "ours" else plain.reranker("BM25")
    for k, count in ((1000, 20), (100, 200)):
        rows = plain.bm25(num_results=k)(topics[:count])[["qid", "query", "docno"]]
        result[f"pairs scored, {k} per query"] = rate(scorer, rows, options.seconds)
    loader = stored.text_loader(FIELDS[options.side])
    result["texts loaded"] = rate(loader, rows[["docno"]].drop_duplicates()[:4000], options.seconds)
    print(json.dumps(result))


def rate(transformer: Callable[[pd.DataFrame], pd.DataFrame], frame: pd.DataFrame, seconds: float) -> float:
    """Rows of input per second, after a warm-up: the best of at least three passes that take so many seconds."""
    transformer(frame)
    times: list[float] = []
    while len(times) < 3 or sum(times) < seconds:
        start = time.perf_counter()
        transformer(frame)
        times.append(time.perf_counter() - start)
    return len(frame) / min(times)


def time_first_result(options: argparse.Namespace, topics: pd.DataFrame) -> float:
    """Everything that happens once: Java, classes, index, tables."""
    bm25 = open_ours(options.indexes / "plain").bm25()
    start = time.perf_counter()
    bm25(topics[:1])
    return time.perf_counter() - start


def open_ours(path: Path) -> Any:
    """This package's index."""
    import pt_neural as pn

    return pn.LuceneIndex(path)


def open_theirs(path: Path) -> Any:
    """pyterrier-anserini's index, in a JVM that has everything it needs and downloads nothing."""
    os.environ.setdefault("OPENAI_API_KEY", "unused")  # pyserini 1.6 asks for a key when it is imported
    from pt_neural.lucene import start_java

    if not pt.java.started():
        start_java()
        pt.java._utils._started = True
    from pyterrier_anserini import AnseriniIndex

    return AnseriniIndex(str(path))


def save_scores(options: argparse.Namespace, frame: pd.DataFrame) -> None:
    """Save the results of one side, for comparison."""
    frame[["qid", "docno", "score"]].to_csv(options.indexes / f"{options.side}.csv", index=False)


def score_difference(folder: Path) -> float:
    """The largest difference between scores at the same rank."""
    ours, theirs = (pd.read_csv(folder / f"{side}.csv", dtype={"qid": str}) for side in ("ours", "theirs"))
    if list(ours["qid"]) != list(theirs["qid"]):
        raise SystemExit("the two sides found different numbers of documents")
    return float(np.abs(ours["score"] - theirs["score"]).max())


def print_table(results: dict[str, dict[str, float]]) -> None:
    """Print units per second, and ratios."""
    print(f"{'per second':32}{'pyterrier-anserini':>20}{'pt_neural':>14}{'ratio':>8}")
    for task, theirs in results["theirs"].items():
        ours = results["ours"][task]
        record(task, "pyterrier-anserini", ours / theirs)
        print(f"{task:32}{theirs:>20,.0f}{ours:>14,.0f}{ours / theirs:>8.1f}")


if __name__ == "__main__":
    main()
