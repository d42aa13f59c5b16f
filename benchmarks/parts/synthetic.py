"""Texts of random words, reproducible by seed."""

from typing import NamedTuple

import numpy as np
import pandas as pd

import pt_neural as pn

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Texts(NamedTuple):
    """Documents, and for each a query for which it is the relevant document."""

    queries: list[str]
    documents: list[str]

    def frame(self) -> pd.DataFrame:
        """Each query with its document: ``qid, query, docno, text``."""
        qids, docnos = ([f"{letter}{i}" for i in range(len(self.queries))] for letter in "qd")
        return pd.DataFrame({"qid": qids, "query": self.queries, "docno": docnos, "text": self.documents})


def synthetic_texts(
    words: int,
    documents: int,
    generator: np.random.Generator,
    *,
    terms: int,
    shared: int,
    others: int = 0,
    letters: str = LETTERS,
    zipf: bool = False,
) -> Texts:
    """Documents of ``terms`` terms, drawn from random words made of the letters: uniformly, or by Zipf's law.

    A query has the first ``shared`` terms of its document, and ``others`` more drawn at random.
    """
    vocabulary = synthetic_words(words, generator, letters).astype(object)
    frequencies = 1 / np.arange(1, words + 1) if zipf else np.ones(words)
    shares = frequencies / frequencies.sum()
    drawn = vocabulary[generator.choice(words, size=(documents, terms), p=shares)]
    further = vocabulary[generator.choice(words, size=(documents, others), p=shares)]
    queries = np.hstack([drawn[:, :shared], further])
    return Texts(*([" ".join(text) for text in texts] for texts in (queries, drawn)))


def synthetic_candidates(documents: int, negatives: int, generator: np.random.Generator) -> np.ndarray:
    """The numbers of each query's documents, its own document first: (documents, 1 + negatives)."""
    own = np.arange(documents)[:, None]
    steps = generator.integers(1, documents, size=(documents, negatives))
    return np.hstack([own, (own + steps) % documents])  # a document is never its own negative


def candidate_frame(frame: pd.DataFrame, candidates: np.ndarray) -> pd.DataFrame:
    """A frame of queries and documents, with each query's candidates in place of its document."""
    rows = frame[["qid", "query"]].loc[np.repeat(np.arange(len(candidates)), candidates.shape[1])]
    documents = frame[["docno", "text"]].loc[candidates.ravel()]
    return pd.concat([rows.reset_index(drop=True), documents.reset_index(drop=True)], axis=1)


def synthetic_spaces(texts: Texts, dim: int, seed: int) -> pn.EmbeddingSpaces:
    """A random vector for each word of the documents, the same for IN and OUT."""
    words = sorted({word for text in texts.documents for word in text.split()})
    vectors = np.random.default_rng(seed).normal(size=(len(words), dim)).astype(np.float32)
    return pn.EmbeddingSpaces.from_vectors(words, vectors, vectors)


def synthetic_words(count: int, generator: np.random.Generator, letters: str = LETTERS) -> np.ndarray:
    """This many distinct words of four to ten letters."""
    words: dict[str, None] = {}
    while len(words) < count:
        words["".join(generator.choice(list(letters), size=generator.integers(4, 11)))] = None
    return np.array(list(words))
