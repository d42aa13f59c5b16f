"""The quality of our rankers and of matchzoo-py's, trained on the same groups of one collection.

    PT_NEURAL_MATCHZOO=/path/to/matchzoo/bin/python python benchmarks/quality.py
    python benchmarks/quality.py --dataset neural:folder:/path/to/collection --models KNRM DRMM --seeds 13 14 15

The head of benchmarks/parts/matchzoo.py says how to make that environment.

Both sides read the same words: those of our tokeniser, and of a text no more than are read. Both start from the same
word vectors, trained on the collection. A group is a training query with a relevant document and four others, drawn
once from the candidates of BM25. Both sides train with Adam for the same number of epochs, with each of the same rates;
the epoch and the rate are chosen by nDCG@10 on dev queries. Losses are those of the papers on our side, and on
matchzoo-py's softmax over a group. The candidates of
test queries are ranked by the score alone. Networks have the same sizes as far as matchzoo-py allows; the heads of
benchmarks/peers/matchzoo_*.py say where it does not.

The last columns say by how much a score changes with what else is in the batch (ours: each pair alone; matchzoo-py's:
texts filled up to twice the length), in standard deviations of the scores; its networks for texts of a fixed length
have none.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyterrier as pt
from ir_measures import nDCG
from parts import matchzoo
from scipy import stats

import pt_neural as pn
from pipelines.common.arguments import as_json
from pipelines.common.collection import FOLDER, short_name
from pipelines.common.workspace import slug
from pt_neural.text import tokenise

MEASURE = nDCG @ 10
NEGATIVES = 4
BATCH = 16
LOCAL = ("dataset", "out", "matchzoo", "models")  # options that differ between machines, or between runs
PACKAGES = ("pt-neural", "torch", "gensim", "numpy")  # of our side
OURS: dict[str, dict[str, Any]] = {  # settings beside the defaults, of matchzoo-py's sizes
    "DSSM": {},
    "CLSM": {},
    "Duet": {"ngram_sizes": (3,), "pooling": None},
    "DRMM": {"gating": "vector"},
    "KNRM": {},
    "ConvKNRM": {},
    "MatchPyramid": {},
    "ARCI": {},
    "ARCII": {},
    "DRMMTKS": {},
    "MVLSTM": {"similarity": "cosine"},
    "ANMM": {},
}


class Split(NamedTuple):
    """Queries with numbered candidates.

    Attributes:
        topics: ``qid`` and ``query``.
        qrels: Their judgements.
        rows: The candidates: ``qid, query, docno``.
    """

    topics: pd.DataFrame
    qrels: pd.DataFrame
    rows: pd.DataFrame


def main() -> None:
    """Make the groups, train both sides, and print the table as it grows."""
    options = parse_arguments()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        data = Data(Path(folder), options)
        rows, results = [], []
        for name in options.models:
            found = [result for seed in options.seeds for result in both(name, seed, data, options)]
            rows.append(table_row(name, pd.DataFrame(found)))
            results += [{"ranker": name, **result} for result in found]
            table = pd.DataFrame(rows).set_index("ranker")
            print(f"\n{data.label}\n{table.to_string(float_format='{:.4f}'.format, na_rep='–')}", flush=True)
            if options.out:
                save(options, data, results, time.perf_counter() - started)


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    matchzoo.add_argument(parser)
    parser.add_argument("--dataset", default="neural:pydocs", help="any dataset with train, dev and test queries")
    parser.add_argument("--models", nargs="+", choices=list(OURS), default=list(OURS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[13, 14], help="seeds of training")
    parser.add_argument("--rates", type=float, nargs="+", default=[1e-3, 1e-2], help="learning rates to choose from")
    parser.add_argument("--epochs", type=int, default=5, help="epochs of training")
    parser.add_argument("--groups", type=int, default=1000, help="training queries (default 1,000)")
    parser.add_argument("--dev", type=int, default=100, help="dev queries (default 100)")
    parser.add_argument("--test", type=int, default=200, help="test queries (default 200)")
    parser.add_argument("--depth", type=int, default=20, help="candidates of dev and test queries (default 20)")
    parser.add_argument("--query-terms", type=int, default=8, help="words of a query that are read")
    parser.add_argument("--document-terms", type=int, default=100, help="words of a document that are read")
    parser.add_argument("--dim", type=int, default=100, help="dimensions of the word vectors (default 100)")
    parser.add_argument("--out", type=Path, help="folder of results, for python -m pipelines.results to keep")
    options = parser.parse_args()
    matchzoo.check(parser, options)
    return options


class Data:
    """What both sides read.

    Args:
        folder: Where the texts, the vectors and the documents are written.
        options: The command line.

    Attributes:
        path: The JSON for matchzoo-py.
        documents: The documents that are read, as a forward index.
        spaces: Their word vectors.
        triples: The training groups: a query, its relevant document, and others.
        dev: Dev queries.
        test: Test queries.
        collection: The short name of the dataset.
        bm25: The measure of BM25 for each test query.
        label: What the table says of the data.
    """

    def __init__(self, folder: Path, options: argparse.Namespace):
        dataset = pt.get_dataset(options.dataset)
        index = pn.LuceneIndex(folder / "lucene").index(dataset.get_corpus_iter(verbose=False), verbose=False)
        whole = pn.ForwardIndex.build(folder / "whole", dataset.get_corpus_iter(verbose=False), verbose=False)
        generator = np.random.default_rng(0)
        bm25 = index.bm25(num_results=max(options.depth, 10 * NEGATIVES))
        self.splits = {
            name: self._split(dataset, name, count, bm25, generator)
            for name, count in (("train", options.groups), ("dev", options.dev), ("test", options.test))
        }
        groups = list(self._groups(self.splits["train"], generator))
        self.dev, self.test = (self._cut(self.splits[name], options.depth) for name in ("dev", "test"))
        read = {docno for group in groups for docno in group[1:]} | {*self.dev.rows["docno"], *self.test.rows["docno"]}
        docnos = sorted(read)
        texts = self._words(whole, docnos, options.document_terms)
        corpus = [{"docno": docno, "text": text} for docno, text in zip(docnos, texts, strict=True)]
        self.documents = pn.ForwardIndex.build(folder / "documents", corpus, fields=["text"], verbose=False)
        self.spaces = pn.EmbeddingSpaces.train(
            dataset.get_corpus_iter(verbose=False), dim=options.dim, seed=0, verbose=False
        )
        queries = self._queries(options.query_terms)
        self.triples = [(queries[qid], *members) for qid, *members in groups]
        for split in (self.dev, self.test):
            split.rows["query"] = split.rows["qid"].map(queries)
        self.path = self._write(folder, docnos, texts)
        self.bm25 = self.quality(self.test, self.test.rows["score"].to_numpy())
        self.collection = short_name(options.dataset)
        self.label = (
            f"{self.collection}: {len(self.triples):,} groups, {options.epochs} epochs, nDCG@10 of "
            f"{len(self.test.topics)} test queries, the top {options.depth} of BM25 ({self.bm25.mean():.4f}) re-ranked"
        )

    @staticmethod
    def _split(dataset: Any, name: str, count: int, bm25: Any, generator: np.random.Generator) -> Split:
        qrels = dataset.get_qrels(name)
        topics = dataset.get_topics(name)[["qid", "query"]]
        topics = topics[topics["qid"].isin(qrels.loc[qrels["label"] > 0, "qid"])]
        chosen = np.sort(generator.permutation(len(topics))[:count])
        topics = topics.iloc[chosen].reset_index(drop=True)
        rows = bm25.transform(topics)[["qid", "query", "docno", "score", "rank"]]
        return Split(topics, qrels[qrels["qid"].isin(topics["qid"])], rows)

    @staticmethod
    def _cut(split: Split, depth: int) -> Split:
        return split._replace(rows=split.rows[split.rows["rank"] < depth].reset_index(drop=True))

    @staticmethod
    def _groups(split: Split, generator: np.random.Generator) -> Any:
        """A relevant document and others for each query that has enough candidates."""
        candidates = split.rows.groupby("qid", sort=False)["docno"].agg(list)
        relevant = split.qrels[split.qrels["label"] > 0].groupby("qid", sort=False)["docno"].agg(list)
        for qid in split.topics["qid"]:
            others = [docno for docno in candidates.get(qid, []) if docno not in relevant[qid]]
            if len(others) >= NEGATIVES:
                drawn = generator.choice(len(others), NEGATIVES, replace=False)
                yield qid, generator.choice(relevant[qid]), *(others[place] for place in drawn)

    @staticmethod
    def _words(documents: pn.ForwardIndex, docnos: Sequence[str], limit: int) -> list[str]:
        """The words of each document that are read, joined by blanks."""
        terms = documents.vocabulary.terms
        return [" ".join(terms[term] for term in sequence[:limit]) for sequence in documents.sequences(docnos)]

    def _queries(self, limit: int) -> dict[str, str]:
        topics = pd.concat([split.topics for split in self.splits.values()])
        return {
            qid: " ".join(tokenise(query)[:limit]) for qid, query in zip(topics["qid"], topics["query"], strict=True)
        }

    def _write(self, folder: Path, docnos: list[str], texts: list[str]) -> Path:
        places = {docno: place for place, docno in enumerate(docnos)}
        content: dict[str, Any] = {"documents": texts}
        content["train"] = {
            "queries": [query for query, *_ in self.triples],
            "candidates": [[places[docno] for docno in members] for _, *members in self.triples],
        }
        for name, split in (("dev", self.dev), ("test", self.test)):
            by_query = split.rows.groupby("qid", sort=False)
            content[name] = {
                **self._gains(split),
                "queries": by_query["query"].first().tolist(),
                "candidates": [[places[docno] for docno in docnos] for docnos in by_query["docno"].agg(list)],
            }
        words = list(self.spaces.vocabulary.terms)
        content["words"] = words
        np.save(folder / "vectors.npy", self.spaces.vectors("in"))
        path = folder / "data.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    @staticmethod
    def _gains(split: Split) -> dict[str, list]:
        """The gains of the candidates, and the DCG@10 of each query's judgements in the best order."""
        grades = split.qrels[split.qrels["label"] > 0].groupby("qid")["label"].agg(lambda labels: sorted(labels)[::-1])
        labels = split.rows.merge(split.qrels, on=["qid", "docno"], how="left")["label"].fillna(0)
        gains = labels.groupby(split.rows["qid"], sort=False).agg(list)
        discounts = np.log2(np.arange(10) + 2)
        ideal = [float((grades[qid][:10] / discounts[: len(grades[qid][:10])]).sum()) for qid in gains.index]
        return {"gains": gains.tolist(), "ideal": ideal}

    @staticmethod
    def quality(split: Split, scores: np.ndarray) -> np.ndarray:
        """The measure of each query; a query without candidates has 0."""
        run = split.rows[["qid", "docno"]].assign(score=scores)
        run = run.rename(columns={"qid": "query_id", "docno": "doc_id"})
        qrels = split.qrels.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"})
        found = {metric.query_id: metric.value for metric in MEASURE.iter_calc(qrels, run)}
        return np.array([found.get(qid, 0.0) for qid in split.topics["qid"]])


def both(name: str, seed: int, data: Data, options: argparse.Namespace) -> list[dict]:
    """The results of both sides: of each the best rate and epoch on dev queries."""
    sides = {"ours": [], "matchzoo-py": []}
    for rate in options.rates:
        sides["ours"].append(ours(name, seed, rate, data, options))
        settings = {"model": name, "seed": seed, "rate": rate, "epochs": options.epochs}
        sizes = {"query-terms": options.query_terms, "document-terms": options.document_terms}
        theirs = matchzoo.measure(options.matchzoo, "matchzoo_quality.py", data.path, **settings, **sizes)
        if theirs is not None:
            values = data.quality(data.test, np.array(theirs["test"]))
            sides["matchzoo-py"].append({"dev": theirs["dev"], "values": values, "padding": theirs["padding"]})
    return [
        {"side": side, "seed": seed, **max(found, key=lambda result: result["dev"])}
        for side, found in sides.items()
        if found
    ]


def ours(name: str, seed: int, rate: float, data: Data, options: argparse.Namespace) -> dict[str, Any]:
    """Our best epoch on dev queries."""
    training = pn.Training(
        epochs=options.epochs,
        batch_size=BATCH,
        learning_rate=rate,
        optimiser="adam",
        patience=None,
        dev_measure=MEASURE,
        seed=seed,
        verbose=False,
    )
    kind = getattr(pn, name)
    sizes = {"query_terms": options.query_terms, "document_terms": options.document_terms}
    settings = {**OURS[name], **{key: value for key, value in sizes.items() if hasattr(kind, "least")}}
    if "spaces" in kind.components:
        settings["spaces"] = data.spaces
    model = kind(documents=data.documents, training=training, fields=["text"], **settings)
    model.fit_triples(data.triples, None, data.dev.rows, data.dev.qrels)
    scored = model.transform(data.test.rows)
    scores = data.test.rows[["qid", "docno"]].merge(scored, on=["qid", "docno"], how="left")["score"].to_numpy()
    return {
        "dev": model.history[f"dev {MEASURE}"].max(),
        "values": data.quality(data.test, scores),
        "padding": padding(model, data.test.rows, scores),
    }


def padding(model: Any, rows: pd.DataFrame, scores: np.ndarray) -> float:
    """By how much a score changes when a row is scored alone."""
    some = rows.head(50)
    alone = np.concatenate([model.transform(some.iloc[[place]])["score"].to_numpy() for place in range(len(some))])
    return float(np.abs(alone - scores[: len(some)]).max() / scores.std())


def table_row(name: str, results: pd.DataFrame) -> dict[str, Any]:
    """The mean over seeds of both sides with its spread, the p-value of the difference, and padding."""
    row: dict[str, Any] = {"ranker": name}
    means = {}
    for side, found in results.groupby("side", sort=False):
        by_seed = np.array([values.mean() for values in found["values"]])
        means[side] = np.mean(list(found["values"]), axis=0)
        row |= {side: by_seed.mean(), f"{side}, range": np.ptp(by_seed)}
    if len(means) == 2:
        row["p"] = stats.ttest_rel(*means.values()).pvalue
    for side, found in results.groupby("side", sort=False):
        row[f"padding, {side}"] = found["padding"].max()
    return row


def results_folder(options: argparse.Namespace) -> Path:
    """Where results are kept."""
    return options.out / f"peers-{slug(short_name(options.dataset))}"


def save(options: argparse.Namespace, data: Data, results: Sequence[dict], seconds: float) -> None:
    """Write the values by query and seed, and how they were made, as the pipelines do."""
    folder = results_folder(options)
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    pd.concat(frames_of_values(data, results)).to_csv(folder / "runs" / "values.csv.gz", index=False)
    models = list(dict.fromkeys(result["ranker"] for result in results))
    given = {"models": models, **{name: value for name, value in vars(options).items() if name not in LOCAL}}
    where = f"{FOLDER}$PT_NEURAL_COLLECTIONS/" if options.dataset.startswith(FOLDER) else ""
    words = [f"--{name.replace('_', '-')} {listed(value)}" for name, value in given.items()]
    settings = {
        "command": " ".join(["python benchmarks/quality.py", f"--dataset {where}{data.collection}", *words]),
        "pipeline": "peers",
        "collection": data.collection,
        "packages": {name: version(name) for name in PACKAGES},
        "seconds": round(seconds, 1),
    }
    (folder / "settings.json").write_text(as_json(settings), encoding="utf-8")


def listed(value: object) -> str:
    """One or several values of an option."""
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def frames_of_values(data: Data, results: Sequence[dict]) -> Iterator[pd.DataFrame]:
    """``name, qid, measure, value`` of BM25 and of each training."""
    columns = {"qid": data.test.topics["qid"], "measure": str(MEASURE)}
    yield pd.DataFrame({"name": "BM25", **columns, "value": data.bm25})
    for result in results:
        name = f"{result['ranker']}, {result['side']}, seed {result['seed']}"
        yield pd.DataFrame({"name": name, **columns, "value": result["values"]})


if __name__ == "__main__":
    main()
