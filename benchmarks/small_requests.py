"""What re-ranking a few rows costs beyond the arithmetic of the model, for every ranker.

Rankers are small and fitted on a few queries; documents of 40 random words are retrieved by BM25 from an index of
20,000. A request has the text of its documents, or reads them by docno from a forward index, or is a whole search:
``(bm25 % 100 >> loader >> ranker).search(query)``.

Arithmetic is the time within the methods of the network; for rankers without one, the time to make representations of
words that are read already, and to multiply them. Overhead is the rest of a call: frames, checks, tokenising, readers.
For a search, the time of ``(bm25 % 100 >> loader).search(query)`` is left out too, which is printed once. ``first`` is
the first call after ``load``, less the arithmetic; the forward index has been in use before, by another ranker.

All times are milliseconds of the processor time of the thread, the least of several calls with different documents, so
that other programs hardly count. Beside SDM stands what it takes beyond query likelihood. ``--gar`` instead times
adaptive re-ranking (GAR of pyterrier-adaptive), which calls a ranker for 16 rows at a time, over ten queries.

    OMP_NUM_THREADS=1 python benchmarks/small_requests.py
    OMP_NUM_THREADS=1 python benchmarks/small_requests.py --rankers DSSM Duet --documents 100000
"""

import argparse
import inspect
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt
from parts.collection import SHIFT
from parts.synthetic import Texts, synthetic_spaces, synthetic_words

import pt_neural as pn
from pt_neural.rankers import LanguageModelRanker, Ranker, Trained
from pt_neural.rankers.registry import RANKERS

SEQUENCES = {"projection": 4, "document_units": 5, "query_units": 3, "hidden": 6}
TENSOR = {**SEQUENCES, "tensor_size": 4, "filters": 3, "second_filters": 4}
DUET = {"document_terms": 50, "filters": 8, "hidden": 6}
SETTINGS: dict[str, dict[str, Any]] = {
    "BLTM": {"num_topics": 5, "iterations": 5},
    "CLSM": {"filters": 8, "dim": 6},
    "DSSM": {"layers": (8, 6)},
    "Duet": {**DUET, "pooling": 5},
    "DuetDistributed": {**DUET, "pooling": 5},
    "DuetLocal": DUET,
    "LDA": {"num_topics": 5, "iterations": 5},
    "LSA": {"dim": 8, "min_count": 1},
    "MatchTensor": TENSOR,
    "MatchTensorSSM": TENSOR,
    "PLSA": {"num_topics": 5, "iterations": 5},
    "PhraseTranslation": {"iterations": 2},
    "SSI": {"dim": 8, "embedded_terms": 1000},
    "SSM": SEQUENCES,
    "WordTranslation": {"iterations": 2},
}
FIRST = 5  # first calls, each of a ranker that has just been loaded
TRAINED_ON = 300  # queries, each with its document


def main() -> None:
    """Print a table."""
    options = parse_arguments()
    frame = random_texts(options.words, options.documents)
    corpus = frame[["docno", "text"]].to_dict("records")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        index = pn.LuceneIndex(folder / "lucene").index(corpus, verbose=False)
        documents = pn.ForwardIndex.build(folder / "forward", corpus, fields=["text"], verbose=False)
        candidates = index.bm25() % 100 >> index.text_loader(["text"])
        queries = frame["query"].tolist()[-options.calls - 1 :]
        results = [candidates.search(query) for query in queries]
        requests = random_requests(frame, options.calls + 1)
        if options.gar:
            print_gar(Fitted(folder, frame), documents, index.bm25() % 100, frame[["qid", "query"]].tail(10))
            return
        alone = least(partial(candidates.search, query) for query in queries)
        print(f"(bm25 % 100 >> loader).search(query): {alone:.1f} ms, {np.mean(list(map(len, results))):.0f} rows")
        print_sdm(index, " ".join(frame["query"]).split(), options.calls)
        fitted = Fitted(folder, frame)
        rows = {}
        for row in RANKERS:
            if not options.rankers or row.name in options.rankers:
                ranker = fitted.saved(row.name)
                found = measure(ranker, requests, documents, candidates, queries, alone)
                rows |= {(row.name, kind): times for kind, times in found.items()}
        table = pd.DataFrame(rows, index=["arithmetic", "overhead", "first"])
        for kind, times in table.T.groupby(level=1, sort=False):
            print(f"\n{kind}\n{times.droplevel(1).round(1).to_string()}")


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rankers", nargs="*", help="names of rankers (default: all)")
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--words", type=int, default=20_000)
    parser.add_argument("--gar", action="store_true", help="time adaptive re-ranking")
    parser.add_argument("--calls", type=int, default=30, help="calls of which the least is taken")
    return parser.parse_args()


def random_texts(words: int, documents: int) -> pd.DataFrame:
    """Documents of 40 words with the frequencies of a language, each with four of its words as a query."""
    generator = np.random.default_rng(13)
    vocabulary = synthetic_words(words, generator).astype(object)
    shares = 1 / (np.arange(words) + SHIFT)
    drawn = vocabulary[generator.choice(words, size=(documents, 40), p=shares / shares.sum())]
    return Texts(*([" ".join(text) for text in part] for part in (drawn[:, :4], drawn))).frame()


def random_requests(frame: pd.DataFrame, calls: int) -> list[pd.DataFrame]:
    """A query and a hundred random documents for each call: ``qid, query, docno, text``."""
    generator = np.random.default_rng(14)
    requests = []
    for number in range(calls):
        rows = frame.iloc[generator.choice(len(frame), size=100, replace=False)].reset_index(drop=True)
        requests.append(rows.assign(qid="1", query=frame["query"].iloc[number]))
    return requests


def print_sdm(index: pn.LuceneIndex, words: list[str], calls: int) -> None:
    """What SDM takes beyond query likelihood, for queries that it has not seen, by their number of words."""
    sdm, ql = (retriever % 100 for retriever in (index.sdm(), index.ql()))
    for length in (2, 4, 8, 12):
        queries = [" ".join(words[start : start + length]) for start in range(0, calls * length, length)]
        base = least(partial(ql.search, query) for query in queries)
        beyond = least(partial(sdm.search, query) for query in queries) - base
        print(f"SDM, {length:2} words: {base:.1f} + {beyond:.1f} ms")
        words = words[calls * length :]


def print_gar(fitted: "Fitted", documents: pn.ForwardIndex, bm25: Any, topics: pd.DataFrame) -> None:
    """What adaptive re-ranking of a hundred documents of each query takes, and how much of it is the ranker's."""
    from pyterrier_adaptive import GAR

    for name in ("DSSM", "CLSM"):
        ranker = loaded(fitted.saved(name), documents)
        vectors = ranker.index(fitted.folder / f"{name}.vectors", documents, verbose=False)
        graph = vectors.corpus_graph(16)
        for kind, options in (("documents", {"documents": documents}), ("vectors", {"vectors": vectors})):
            calls = Counted(loaded(fitted.saved(name)))
            for option, value in options.items():
                setattr(calls.ranker, option, value)
            work = partial((bm25 >> GAR(calls, graph, num_results=100, batch_size=16)).transform, topics)
            whole = least([work] * 5)
            own = min(calls.passes(5))
            print(f"GAR, {name} by {kind}: {whole:.0f} ms, of which {own:.0f} in {calls.number // 5} calls")


class Counted(pt.Transformer):
    """A ranker whose calls are counted and timed."""

    def __init__(self, ranker: Ranker):
        self.ranker, self.number, self.times = ranker, 0, []

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Re-rank."""
        started = time.thread_time()
        results = self.ranker.transform(inp)
        self.number += 1
        self.times.append(1000 * (time.thread_time() - started))
        return results

    def passes(self, number: int) -> np.ndarray:
        """The milliseconds of the calls in each of so many passes."""
        return np.reshape(self.times, (number, -1)).sum(axis=1)


class Fitted:
    """Fits each ranker of the registry to a few pairs, and saves it."""

    def __init__(self, folder: Path, frame: pd.DataFrame):
        self.folder = folder
        self.frame = frame.head(TRAINED_ON)
        self.spaces = synthetic_spaces(Texts([], frame["text"].tolist()), 16, 1)

    def unfitted(self, name: str) -> Ranker:
        """A small ranker."""
        kind = getattr(pn, name)
        taken = inspect.signature(kind).parameters
        arguments = dict(SETTINGS.get(name, {}))
        if "fields" in taken:
            arguments["fields"] = ["text"]
        if "training" in taken:
            settings = {"negatives": "random"} if name == "SSI" else {}
            arguments["training"] = pn.Training(epochs=1, verbose=False, device="cpu", **settings)
        if "device" in taken:
            arguments["device"] = "cpu"
        components = {
            "spaces": lambda: self.spaces,
            "tfidf": lambda: pn.TFIDF.load(self.saved("TFIDF"), documents=None),
            "topics": lambda: pn.PLSA.load(self.saved("PLSA"), documents=None),
        }
        arguments |= {component: components[component]() for component in kind.components}
        return kind(**arguments)

    def saved(self, name: str) -> Path:
        """Where the fitted ranker is."""
        path = self.folder / name
        if not path.exists():
            model = self.unfitted(name)
            if hasattr(model, "fit_corpus"):
                model.fit_corpus(self.frame[["docno", "text"]], verbose=False)
            elif hasattr(model, "fit"):
                others = self.frame.assign(docno=np.roll(self.frame["docno"], 1), text=np.roll(self.frame["text"], 1))
                quiet = {"verbose": False} if "verbose" in inspect.signature(model.fit).parameters else {}
                candidates = pd.concat([self.frame, others], ignore_index=True)
                model.fit(candidates, self.frame[["qid", "docno"]].assign(label=1), **quiet)
            model.save(path)
        return path


def loaded(path: Path, documents: pn.ForwardIndex | None = None) -> Any:
    """A saved ranker, to read documents from a forward index if there is one."""
    model = pn.rankers.registry.load_ranker(path)
    if documents is not None:
        getattr(model, "tfidf", model).documents = documents
    return model


class Arithmetic:
    """Adds up the seconds within the arithmetic of a model, however deep its methods are nested."""

    def __init__(self, model: Any):
        self.seconds, self._within = 0.0, False
        model = getattr(model, "tfidf", model)
        if isinstance(model, Trained):
            self._watch(model.network, public_methods(model.network))
        if hasattr(model, "score_pairs"):
            own = () if isinstance(model, Trained) else ("represent_queries", "represent_documents")
            self._watch(model, [*own, "score_pairs"])
        if isinstance(model, LanguageModelRanker):
            self._watch(model, ["_counted"])

    def _watch(self, owner: Any, names: list[str]) -> None:
        for name in names:
            object.__setattr__(owner, name, partial(self._timed, getattr(owner, name)))

    def _timed(self, method: Callable, *arguments: Any, **keywords: Any) -> Any:
        if self._within:
            return method(*arguments, **keywords)
        self._within, started = True, time.thread_time()
        try:
            return method(*arguments, **keywords)
        finally:
            self._within = False
            self.seconds += time.thread_time() - started


def public_methods(network: Any) -> list[str]:
    """The methods that a class of this package gives a network."""
    own = [kind for kind in type(network).__mro__ if kind.__module__.startswith("pt_neural")]
    return sorted({name for kind in own for name, value in vars(kind).items() if name[0] != "_" and callable(value)})


def measure(
    path: Path,
    requests: list[pd.DataFrame],
    documents: pn.ForwardIndex,
    candidates: Any,
    queries: list[str],
    alone: float,
) -> dict[str, tuple[float, float, float]]:
    """Milliseconds of arithmetic, and of the overhead of steady calls and of the first, for each kind of request."""
    kept = [request[["qid", "query", "docno"]] for request in requests]
    kinds: dict[str, tuple[Any, list[Callable[[Any], Any]], float]] = {}
    for rows in (16, 100):
        kinds[f"text {rows}"] = None, [partial(call, request.head(rows)) for request in requests], 0.0
        kinds[f"docno {rows}"] = documents, [partial(call, request.head(rows)) for request in kept], 0.0
    kinds["search"] = None, [partial(search, candidates, query) for query in queries], alone
    found = {}
    for kind, (source, calls, left_out) in kinds.items():
        model = loaded(path, source)
        arithmetic = Arithmetic(model)
        with no_collection():
            steady = [timed(partial(work, model), arithmetic) for work in calls]
            first = min(timed(partial(calls[-1], loaded(path, source)), arithmetic)[0] for _ in range(FIRST))
        own = min(inner for _, inner in steady)
        overhead = min(whole - inner for whole, inner in steady)
        found[kind] = own, overhead - left_out, first - own - left_out
    return found


def call(request: pd.DataFrame, model: Any) -> Any:
    """Re-rank a request."""
    return model.transform(request)


def search(candidates: Any, query: str, model: Any) -> Any:
    """Search by a whole pipeline."""
    return (candidates >> model).search(query)


@contextmanager
def no_collection() -> Iterator[None]:
    """Without Python's collection of garbage, whose turn comes at random."""
    import gc

    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def timed(work: Callable[[], Any], arithmetic: Arithmetic) -> tuple[float, float]:
    """Milliseconds of a call, and of the arithmetic within."""
    arithmetic.seconds = 0.0
    started = time.thread_time()
    work()
    return 1000 * (time.thread_time() - started), 1000 * arithmetic.seconds


def least(works: Iterable[Callable[[], Any]]) -> float:
    """The least milliseconds of calls."""
    times = []
    for work in works:
        started = time.thread_time()
        work()
        times.append(1000 * (time.thread_time() - started))
    return min(times)


if __name__ == "__main__":
    main()
