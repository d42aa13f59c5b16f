"""Topic and translation models: training beside peers in the same run, re-ranking, retrieval.

    python benchmarks/statistical.py
    python benchmarks/statistical.py --pairs 20000 --documents 2000 --rounds 1

Words follow the Zipf-Mandelbrot law. Translation models and BLTM learn from frames, through ``fit``: from pairs of a
title of ten words and a query of five, two of which are words of the title. PLSA and LDA learn from documents of 114
words. Peers are nltk's IBM Model 1, on fewer pairs; scikit-learn's factorisation with the Kullback-Leibler divergence,
one iteration of which equals one of PLSA; and gensim's LDA, one pass of which is compared with one iteration of our
sampler.

Re-ranking is by docno, of 100 queries with 1,000 documents each; retrieval is from all documents of 114 words. Both go
from frame to frame.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from parts.collection import Collection, zipf_collection
from parts.rates import Rate, line, record, spread, text
from parts.statistical_peers import gensim_lda, nltk_model_1, scikit_learn_plsa

import pt_neural as pn
from pt_neural.rankers.language_model import LanguageModelRanker
from pt_neural.text.counts import count_corpus

QUERIES, DEPTH = 100, 1000
ITERATIONS = 5  # of topic models beside their peers
FEW_PAIRS = 2000  # for nltk


def main() -> None:
    """Make the texts, and print each part as it is measured."""
    options = parse_arguments()
    generator = np.random.default_rng(options.seed)
    with tempfile.TemporaryDirectory() as name:
        sizes = {"terms": 10, "shared": 2, "query_terms": 5}
        titles = zipf_collection(Path(name) / "titles", 30_000, options.pairs, generator, **sizes)
        print("lowest / median / highest of repeats")
        models = print_pairs(titles, options)
        print_model_1(titles.head(FEW_PAIRS), options.rounds)
        texts = zipf_collection(Path(name) / "texts", 30_000, options.documents, generator, terms=114, shared=5)
        models |= print_topics(texts, options)
        print_rankings(models, titles, texts, options.rounds, generator)


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=100_000, help="pairs of query and title (default 100,000)")
    parser.add_argument("--documents", type=int, default=10_000, help="documents of 114 words (default 10,000)")
    parser.add_argument("--topics", type=int, default=100, help="of all topic models (default 100)")
    parser.add_argument("--rounds", type=int, default=3, help="repeats of each measurement (default 3)")
    parser.add_argument("--seed", type=int, default=13)
    return parser.parse_args()


def seconds(work: Callable[..., object], *arguments: object, **options: object) -> float:
    """Seconds of wall-clock time that a call takes."""
    started = time.perf_counter()
    work(*arguments, **options)
    return time.perf_counter() - started


def print_pairs(titles: Collection, options: argparse.Namespace) -> dict[str, LanguageModelRanker]:
    """Measure whole fits of the models that learn from pairs."""
    print(f"{len(titles.pairs):,} pairs, {len(titles.documents.vocabulary):,} words: seconds of fit")
    models = {
        "WordTranslation": pn.WordTranslation(documents=titles.documents),
        "PhraseTranslation": pn.PhraseTranslation(documents=titles.documents),
        f"BLTM, T = {options.topics}": pn.BLTM(options.topics, documents=titles.documents),
    }
    small = titles.head(100)
    for name, model in models.items():
        model.fit(small.pairs, small.qrels, verbose=False)  # compiles
        fits = [seconds(model.fit, titles.pairs, titles.qrels, verbose=False) for _ in range(options.rounds)]
        per_iteration = model.history["seconds"].median()
        note = f"{len(model.history)} iterations, {1000 * per_iteration:,.0f} ms each"
        print(f"{line(name, spread(fits))}   {note}, {len(titles.pairs) / per_iteration:,.0f} pairs/s", flush=True)
    return models


def print_model_1(few: Collection, rounds: int) -> None:
    """Measure our and nltk's IBM Model 1 on the same few pairs."""
    model = pn.WordTranslation(documents=few.documents)
    model.fit(few.pairs, few.qrels, verbose=False)
    ours, theirs = [], []
    for _ in range(rounds):
        model.fit(few.pairs, few.qrels, verbose=False)
        ours.append(len(few.pairs) / model.history["seconds"].median())
        theirs.append(len(few.pairs) / nltk_model_1(few))
    print(f"\nIBM Model 1, {len(few.pairs):,} pairs: pairs per second in an iteration")
    beside("pn.WordTranslation", spread(ours), "nltk", spread(theirs))


def beside(label: str, ours: Rate, peer: str, theirs: Rate, *, less_is_more: bool = False) -> None:
    """Print our rate beside a peer's."""
    ratio = theirs[1] / ours[1] if less_is_more else ours[1] / theirs[1]
    record(label, peer, ratio)
    print(f"{line(label, ours)}   {peer} {text(theirs)}: {ratio:.1f} times", flush=True)


def print_topics(texts: Collection, options: argparse.Namespace) -> dict[str, LanguageModelRanker]:
    """Measure an iteration of PLSA and of LDA beside their peers."""
    print(f"\n{len(texts.documents):,} documents of 114 words, T = {options.topics}: milliseconds per iteration")
    models = {
        "PLSA": pn.PLSA(options.topics, iterations=ITERATIONS, tolerance=0, documents=texts.documents),
        "LDA": pn.LDA(options.topics, iterations=10 * ITERATIONS, documents=texts.documents),
    }
    _, counts = count_corpus(texts.documents, verbose=False)
    peers = {
        "PLSA": ("scikit-learn NMF", lambda: scikit_learn_plsa(counts, options.topics, ITERATIONS, options.seed)),
        "LDA": ("gensim, a pass", lambda: gensim_lda(counts, options.topics, options.seed)),
    }
    for name, model in models.items():
        model.fit_corpus(texts.documents, verbose=False)  # compiles
        ours, theirs = [], []
        for _ in range(options.rounds):
            model.fit_corpus(texts.documents, verbose=False)
            ours.append(1000 * model.history["seconds"].sum() / model.iterations)
            theirs.append(1000 * peers[name][1]())
        beside(f"pn.{name}", spread(ours), peers[name][0], spread(theirs), less_is_more=True)
    return models


def print_rankings(
    models: dict[str, LanguageModelRanker],
    titles: Collection,
    texts: Collection,
    rounds: int,
    generator: np.random.Generator,
) -> None:
    """Measure re-ranking and retrieval by all models over the same documents."""
    documents = texts.documents
    queries = texts.pairs[["qid", "query"]].head(QUERIES)
    queries = queries.assign(query=queries["query"].str.split().str[:5].str.join(" "))
    docnos = np.array(list(documents.docnos), dtype=object)
    drawn = [generator.choice(docnos, min(DEPTH, len(documents)), replace=False) for _ in range(QUERIES)]
    candidates = pd.concat(
        [
            pd.DataFrame({"qid": qid, "query": query, "docno": docnos})
            for (qid, query), docnos in zip(queries.itertuples(index=False), drawn, strict=True)
        ],
        ignore_index=True,
    )
    print(
        f"\n{QUERIES} queries of five words: seconds to re-rank {len(candidates):,} rows by docno, again and for the "
        f"first time; milliseconds per query to retrieve from {len(documents):,} documents"
    )
    for name, model in models.items():
        model.documents = documents
        first = seconds(model.transform, candidates)
        again = spread([seconds(model.transform, candidates) for _ in range(rounds)])
        retriever = model.retriever(documents)
        retriever.transform(queries.head(1))
        found = spread([1000 * seconds(retriever.transform, queries) / QUERIES for _ in range(rounds)])
        print(f"{line(name, again)}   first {first:.1f}; retrieval {text(found)}", flush=True)


if __name__ == "__main__":
    main()
