"""Time, memory and disk of each stage, by the number of documents: what grows, and how fast.

Documents of about 41 words are generated from a vocabulary whose frequencies follow Zipf's law, always the same ones.
Each step runs in a process of its own. Memory is the largest sum of what the process holds itself (anonymous pages),
and, in parentheses, with the pages of mapped files, which the system can drop. The time to generate the documents is
left out. Linux only.

The exponent of growth is that of time from the last number but one to the last: with ten times as many documents, a
stage of exponent 1 takes ten times as long, and one of 0 as long as before.

    python benchmarks/growth.py
    python benchmarks/growth.py --large
    python benchmarks/growth.py --documents 10000 100000 --steps "ForwardIndex.build" "DSSM.index"
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt

import pt_neural as pn

WORDS = 50_000  # nearly all of which occur in 100,000 documents, so that the vocabulary hardly grows after them
MEAN_LENGTH = 41
QUERIES = 256
DEPTH = 100  # documents re-ranked for each query
BLOCK = 1000  # documents generated at a time
WARM = "warm"  # the folder of as many documents, which processes read first to load their libraries


class Corpus:
    """Generated documents; ``seconds`` is the processor time that generating them took."""

    def __init__(self, number: int):
        self.number, self.seconds = number, 0.0
        frequencies = 1 / np.arange(1, WORDS + 1)
        self._shares = np.cumsum(frequencies / frequencies.sum())
        letters = np.array(list("etaoinshrdlcumwfgypbvkjxqz"))
        spelling = np.random.default_rng(1).integers(26, size=(WORDS, 4))
        self._words = np.array(["".join(letters[row]) + f"{i:x}" for i, row in enumerate(spelling)], dtype=object)

    def __iter__(self) -> Iterator[dict[str, str]]:
        for start in range(0, self.number, BLOCK):
            began = time.process_time()
            texts = self.texts(start, min(BLOCK, self.number - start), MEAN_LENGTH)
            documents = [{"docno": f"doc-{start + i}", "text": text} for i, text in enumerate(texts)]
            self.seconds += time.process_time() - began
            yield from documents

    def texts(self, seed: int, number: int, mean_length: int) -> list[str]:
        """Texts of random words."""
        random = np.random.default_rng(seed)
        lengths = random.poisson(mean_length, size=number)
        words = self._words[np.searchsorted(self._shares, random.random(lengths.sum()))]
        return [" ".join(part) for part in np.split(words, np.cumsum(lengths)[:-1])]

    def pairs(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """A query for each document, its first five words, as candidates, and judgements."""
        rows = [(document["docno"], " ".join(document["text"].split()[:5])) for document in self]
        docnos, queries = zip(*rows, strict=True)
        frame = pd.DataFrame({"qid": [f"q{i}" for i in range(len(rows))], "query": queries, "docno": docnos})
        return frame, frame[["qid", "docno"]].assign(label=1)

    def queries(self, number: int = QUERIES) -> pd.DataFrame:
        """Queries of about five words."""
        return pd.DataFrame({"qid": [f"q{i}" for i in range(number)], "query": self.texts(-1 % 2**32, number, 5)})

    def candidates(self) -> pd.DataFrame:
        """Random documents for each query: ``qid, query, docno``."""
        random, queries = np.random.default_rng(2), self.queries()
        frame = queries.loc[np.repeat(np.arange(QUERIES), DEPTH)].reset_index(drop=True)
        return frame.assign(docno=[f"doc-{number}" for number in random.integers(self.number, size=len(frame))])


class Memory:
    """Samples the memory of this process while a block runs."""

    def __enter__(self) -> "Memory":
        self.own = self.whole = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.02):
            sizes = dict(
                line.split(":") for line in Path("/proc/self/status").read_text().splitlines() if "Rss" in line
            )
            anonymous, files = (int(sizes[name].split()[0]) * 1024 for name in ("RssAnon", "RssFile"))
            self.own, self.whole = max(self.own, anonymous), max(self.whole, anonymous + files)


def prepare(folder: Path) -> None:
    """Fit small models to a thousand documents."""
    corpus = pd.DataFrame(Corpus(BLOCK)).rename_axis("qid").reset_index().astype({"qid": str})
    frame = corpus.assign(query=corpus["text"].str.split().str[:5].str.join(" "))
    qrels = frame[["qid", "docno"]].assign(label=1)
    quiet = {"epochs": 1, "verbose": False}
    pn.DSSM(training=pn.Training(device="cpu", **quiet)).fit(frame, qrels).save(folder / "DSSM")
    pn.SSI(dim=100, training=pn.Training(negatives="random", **quiet)).fit(frame, qrels).save(folder / "SSI")
    (folder / WARM).mkdir()
    small = steps(folder / WARM)
    for name in small:
        if "index" in name or "build" in name:
            small[name](Corpus(BLOCK))


def built(folder: Path, name: str, build: Callable[[Path, Corpus], Any], corpus: Corpus) -> dict[str, float]:
    """Build an index of all documents."""
    began = time.process_time()
    build(folder / name, corpus)
    seconds = time.process_time() - began - corpus.seconds
    files = (file for file in (folder / name).rglob("*") if file.is_file())
    return {"docs per CPU s": corpus.number / seconds, "bytes": sum(file.stat().st_size for file in files)}


def learned(folder: Path, model: Callable[[], Any], corpus: Corpus) -> dict[str, float]:
    """Fit a model: to the texts, or to as many queries as there are documents, read from a forward index."""
    ranker = model()
    if hasattr(ranker, "fit_corpus"):
        began = time.process_time()
        ranker.fit_corpus(corpus, verbose=False)
        return {"docs per CPU s": corpus.number / (time.process_time() - began - corpus.seconds)}
    pairs, ranker.documents = corpus.pairs(), pn.ForwardIndex(folder / "forward")
    return {"docs per CPU s": corpus.number / cpu_seconds(lambda: ranker.fit(*pairs))}


def searched(folder: Path, open_retriever: Callable[[Path], pt.Transformer], corpus: Corpus) -> dict[str, float]:
    """Open a retriever, search one query, then many."""
    queries = corpus.queries()
    open_retriever(folder.parent / WARM).transform(queries[:1])  # loads libraries
    retriever, first = opened(lambda: open_retriever(folder), queries)
    alone = cpu_seconds(lambda: [retriever.transform(queries[i : i + 1]) for i in range(8)]) / 8
    many = cpu_seconds(lambda: retriever.transform(queries)) / len(queries)
    return {"first": first, "alone": 1000 * alone, "many": 1000 * many}


def reranked(folder: Path, open_model: Callable[[Path], pt.Transformer], corpus: Corpus) -> dict[str, float]:
    """Re-rank by docno: the first row, then many."""
    open_model(folder.parent / WARM).transform(Corpus(BLOCK).candidates()[:1])  # loads libraries
    frame = corpus.candidates()
    model, first = opened(lambda: open_model(folder), frame)
    return {"first": first, "many": 1e6 * cpu_seconds(lambda: model.transform(frame)) / len(frame)}


def opened(load: Callable[[], pt.Transformer], frame: pd.DataFrame) -> tuple[pt.Transformer, float]:
    """A transformer that has read one row, and the milliseconds of processor time that this took."""
    began = time.process_time()
    transformer = load()
    transformer.transform(frame[:1])
    return transformer, 1000 * (time.process_time() - began)


def cpu_seconds(work: Callable[[], object]) -> float:
    """Processor time of a call."""
    began = time.process_time()
    work()
    return time.process_time() - began


def steps(folder: Path) -> dict[str, Callable[[Corpus], dict[str, float]]]:
    """What is measured, in order: later steps read what earlier ones wrote."""
    dssm, ssi = partial(pn.DSSM.load, folder.parent / "DSSM"), partial(pn.SSI.load, folder.parent / "SSI")
    builds = {
        "LuceneIndex.index": ("lucene", lambda path, corpus: pn.LuceneIndex(path).index(corpus, verbose=False)),
        "ForwardIndex.build": ("forward", lambda path, corpus: pn.ForwardIndex.build(path, corpus, verbose=False)),
        "DSSM.index": ("dssm", lambda path, corpus: dssm(device="cpu").index(path, corpus, verbose=False)),
        "SSI.index": ("ssi", lambda path, corpus: ssi().index(path, corpus, verbose=False)),
    }
    searches = {
        "open + BM25": lambda path: pn.LuceneIndex(path / "lucene").bm25(),
        "DSSM.retriever": lambda path: dssm(device="cpu").retriever(path / "dssm"),
        "SSI.retriever": lambda path: ssi().retriever(path / "ssi"),
    }
    rerankers = {
        "re-rank, ForwardIndex": lambda path: dssm(device="cpu", documents=pn.ForwardIndex(path / "forward")),
        "re-rank, kept vectors": lambda path: dssm(device="cpu", vectors=path / "dssm"),
    }
    training = pn.Training(epochs=1, negatives="random", verbose=False, device="cpu")
    fits = {
        "DSSM.fit": lambda: pn.DSSM(training=training),
        "SSI.fit": lambda: pn.SSI(dim=100, training=training),
        "LSA.fit_corpus": lambda: pn.LSA(dim=50),
        "PLSA.fit_corpus": lambda: pn.PLSA(num_topics=20, iterations=5),
        "LDA.fit_corpus": lambda: pn.LDA(num_topics=20, iterations=5),
        "WordTranslation.fit": lambda: pn.WordTranslation(iterations=3),
    }
    found: dict[str, Any] = {name: partial(built, folder, *build) for name, build in builds.items()}
    found |= {name: partial(learned, folder, model) for name, model in fits.items()}
    for measure, transformers in ((searched, searches), (reranked, rerankers)):
        found |= {name: partial(measure, folder, load) for name, load in transformers.items()}
    return found


def run_step(name: str, number: int, folder: Path) -> None:
    """Run one step in this process, and print what was measured as JSON."""
    corpus = Corpus(number)
    with Memory() as memory:
        result = steps(folder)[name](corpus)
    print(json.dumps({**result, "own": memory.own, "whole": memory.whole}))


def table(results: dict[int, dict[str, dict[str, float]]]) -> str:
    """A Markdown table: a row for each step, figures by number of documents separated by arrows."""
    numbers = sorted(results)
    sizes = " → ".join(f"{number:,}" for number in numbers)
    lines = [
        f"{sizes} documents; CPU time of opening and the first query or row, of a query alone, of {QUERIES} or a pair",
        "",
        "| step | docs per CPU s | first, ms | CPU alone | CPU of many | exponent | MB of memory (and mapped) | "
        "B/doc of memory | B/doc of disk |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for step in results[numbers[0]]:
        found = [results[number][step] for number in numbers]
        unit = "µs" if step.startswith("re-rank") else "ms"
        memory = " → ".join(f"{one['own'] / 1e6:,.0f} ({one['whole'] / 1e6:,.0f})" for one in found)
        growth = (found[-1]["own"] - found[0]["own"]) / max(numbers[-1] - numbers[0], 1)
        cells = [
            arrows(found, "docs per CPU s", "{:,.0f}"),
            arrows(found, "first", "{:,.0f}"),
            arrows(found, "alone", "{:,.1f} ms"),
            arrows(found, "many", f"{{:,.1f}} {unit}"),
            exponent(found, numbers),
            memory,
            f"{growth:,.0f}" if len(numbers) > 1 else "",
            f"{found[-1]['bytes'] / numbers[-1]:,.0f}" if "bytes" in found[-1] else "",
        ]
        lines.append(f"| {step} | {' | '.join(cells)} |")
    return "\n".join(lines)


def exponent(found: list[dict[str, float]], numbers: list[int]) -> str:
    """The exponent of growth of a step's time from the last number but one to the last."""
    if len(numbers) < 2:
        return ""
    last = zip(numbers[-2:], found[-2:], strict=True)
    before, after = (one["many"] if "many" in one else number / one["docs per CPU s"] for number, one in last)
    return f"{np.log(after / before) / np.log(numbers[-1] / numbers[-2]):.2f}"


def arrows(found: list[dict[str, float]], name: str, form: str) -> str:
    """A figure by number of documents."""
    return " → ".join(form.format(one[name]) for one in found if name in one)


def main() -> None:
    """Measure every step for every number of documents, and print a table."""
    arguments = argparse.ArgumentParser(description=main.__doc__)
    arguments.add_argument("--documents", type=int, nargs="+", default=[1000, 10_000, 100_000])
    arguments.add_argument("--large", action="store_true", help="a million documents, too")
    arguments.add_argument("--steps", nargs="+", default=list(steps(Path("."))))
    arguments.add_argument("--folder", type=Path, help="where indexes are written, and kept; else a temporary folder")
    arguments.add_argument("--step", help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.step:
        run_step(options.step, *options.documents, options.folder)
        return
    with TemporaryDirectory() as temporary:
        base = options.folder or Path(temporary)
        if not (base / "SSI").exists():
            prepare(base)
        base = base.absolute()
        results: dict[int, dict[str, Any]] = {}
        for number in [*options.documents, *([1_000_000] if options.large else [])]:
            folder = base / str(number)
            folder.mkdir(exist_ok=True)
            results[number] = {}
            for step in options.steps:
                own = ["--step", step, "--documents", str(number), "--folder", str(folder)]
                run = subprocess.run([sys.executable, __file__, *own], stdout=subprocess.PIPE, check=True, text=True)
                results[number][step] = json.loads(run.stdout.splitlines()[-1])
                print(number, step, results[number][step], file=sys.stderr, flush=True)
        print(f"{os.cpu_count()} cores, OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', '')}")
        print(table(results))


if __name__ == "__main__":
    main()
