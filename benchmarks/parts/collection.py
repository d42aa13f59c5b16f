"""Documents, and pairs of a query and a relevant document: of random words with uneven frequencies, or a dataset."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyterrier as pt
from parts.synthetic import Texts

import pt_neural as pn
from pt_neural.text import tokenise

SHIFT = 2.7  # of the Zipf-Mandelbrot law: the frequency of the word of rank r is proportional to 1/(r + 2.7)


class Collection(NamedTuple):
    """The texts to train on.

    Attributes:
        documents: The documents.
        pairs: Queries with one relevant document each: ``qid, query, docno``.
    """

    documents: pn.ForwardIndex
    pairs: pd.DataFrame

    @property
    def qrels(self) -> pd.DataFrame:
        """The pairs as judgements."""
        return self.pairs[["qid", "docno"]].assign(label=1)

    def head(self, count: int) -> "Collection":
        """All documents, and the first pairs."""
        return self._replace(pairs=self.pairs.head(count))


def zipf_collection(
    path: Path,
    words: int,
    documents: int,
    generator: np.random.Generator,
    *,
    terms: int,
    shared: int,
    query_terms: int | None = None,
) -> Collection:
    """Random documents, and for each a query that shares words with it.

    Args:
        path: Where to store the documents.
        words: Number of distinct words, numbered by descending frequency.
        documents: Number of documents.
        generator: Draws the words.
        terms: Words of a document, counting repetitions.
        shared: Words that a query takes from the beginning of its document; its other words are drawn at random.
        query_terms: Words of a query; None for as many as a document has.
    """
    vocabulary = np.array([f"w{number}" for number in range(words)], dtype=object)
    shares = np.cumsum(1 / (np.arange(words) + SHIFT))

    def drawn(count: int) -> np.ndarray:
        return np.searchsorted(shares, generator.random((documents, count)) * shares[-1])

    document_words = drawn(terms)
    query_words = np.hstack([document_words[:, :shared], drawn((query_terms or terms) - shared)])

    def texts(numbers: np.ndarray) -> Iterator[str]:
        return (" ".join(vocabulary[row]) for row in numbers)

    docnos = [f"d{number}" for number in range(documents)]
    corpus = ({"docno": docno, "text": text} for docno, text in zip(docnos, texts(document_words), strict=True))
    index = pn.ForwardIndex.build(path, corpus, fields=["text"], verbose=False)
    qids = [f"q{number}" for number in range(documents)]
    return Collection(index, pd.DataFrame({"qid": qids, "query": list(texts(query_words)), "docno": docnos}))


def dataset_collection(path: Path, name: str, generator: np.random.Generator) -> Collection:
    """The documents of a dataset, stored at ``path``, and its training pairs, shuffled."""
    dataset = pt.get_dataset(name)
    index = pn.ForwardIndex.build(path, dataset.get_corpus_iter(verbose=False), verbose=False)
    qrels = dataset.get_qrels("train").query("label > 0")
    pairs = dataset.get_topics("train")[["qid", "query"]].merge(qrels[["qid", "docno"]])
    order = generator.permutation(len(pairs))
    return Collection(index, pairs.iloc[order].reset_index(drop=True))


def dataset_texts(name: str, queries: int, generator: np.random.Generator, *, query_terms: int, terms: int) -> Texts:
    """Training queries of a dataset with a relevant document each, no document twice; of each text its first words."""
    with tempfile.TemporaryDirectory() as folder:
        collection = dataset_collection(Path(folder) / "documents", name, generator)
        pairs = collection.pairs.drop_duplicates("qid").drop_duplicates("docno").head(queries)
        words, documents = collection.documents.vocabulary.terms, collection.documents.sequences(list(pairs["docno"]))
        return Texts(
            [" ".join(tokenise(query)[:query_terms]) for query in pairs["query"]],
            [" ".join(words[term] for term in document[:terms]) for document in documents],
        )
