"""BM25 with tuned settings, BM25 over the words that networks read, and BM25 with a prior for short documents."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt
from ir_measures import nDCG
from scipy.sparse import csr_array

import pt_neural as pn
from pipelines.common.collection import FIELDS, Split
from pipelines.common.workspace import SplitText, Workspace, split_text
from pt_neural._evaluation import RunEvaluator
from pt_neural._frames import with_scores
from pt_neural.experiment.alpha import assign_folds
from pt_neural.text import tokenise_packed
from pt_neural.text.counts import bag_of_words

PRIOR = "BM25 + length prior"  # the name of the row
K1 = (0.5, 0.9, 1.2, 1.7, 2.5)
B = (0.2, 0.4, 0.6, 0.8, 0.95)
QUERIES = 300  # at most, to choose on
FOLDS = 5  # as for alpha


def tuned_bm25(
    workspace: Workspace, fields: Sequence[str] = FIELDS, *, split: SplitText | None = None
) -> pt.Transformer:
    """BM25 with the k1 and b of the best nDCG@10 on dev queries, chosen once and printed.

    Without dev queries they are chosen on training queries; and if there are only test queries by five folds, so that
    each query has settings that were chosen without it.

    Args:
        workspace: Where the index and the choice are kept.
        fields: The fields of the index.
        split: How texts are split; see ``Workspace.index``.
    """
    index, name = workspace.index(fields, split=split), f"bm25 over split {split}" if split else "bm25"
    collection, seed = workspace.collection, workspace.arguments.seed
    queries = pt.apply.generic(lambda frame: frame.assign(query=frame["query"].map(split_text if split else str)))
    if collection.for_choices is not None:
        known = collection.for_choices.sample(QUERIES, seed)
        choose = partial(_best, index, replace(known, topics=queries(known.topics)))
        bm25 = index.bm25(**workspace.chosen(name, choose, fields, known.topics["qid"].tolist()))
    else:
        known = collection.test
        choose = partial(_best_by_fold, index, replace(known, topics=queries(known.topics)), seed)
        chosen = workspace.chosen(f"{name} by fold", choose, fields, known.topics["qid"].tolist())
        bm25 = BM25ByFold(index, **chosen)
    print(f"BM25: {bm25!r}", flush=True)
    return queries >> bm25 if split else bm25


def _best(index: pn.LuceneIndex, split: Split) -> dict[str, float]:
    return _settings(_values(index, split))


def _best_by_fold(index: pn.LuceneIndex, split: Split, seed: int) -> dict[str, Any]:
    values = _values(index, split)
    fold_of = assign_folds(FOLDS, values.index.tolist(), seed).tolist()
    folds = [_settings(values[np.not_equal(fold_of, fold)]) for fold in range(FOLDS)]
    return {"folds": folds, "fold_of": dict(zip(values.index, fold_of, strict=True)), "others": _settings(values)}


def _values(index: pn.LuceneIndex, split: Split) -> pd.DataFrame:
    """nDCG@10 of each judged query (the rows) with each k1 and b (the columns)."""
    print(f"BM25: choosing k1 and b on {len(split.judged):,} queries", flush=True)
    values = {}
    for k1, b in product(K1, B):
        run = index.bm25(k1, b, num_results=10).transform(split.judged)
        evaluate = RunEvaluator(run, split.qrels, split.judged["qid"], nDCG @ 10)
        values[k1, b] = evaluate(run["score"].to_numpy())
    return pd.DataFrame(values, index=evaluate.qids)


def _settings(values: pd.DataFrame) -> dict[str, float]:
    """The k1 and b of the best mean."""
    return dict(zip(("k1", "b"), values.mean().idxmax(), strict=True))


class BM25ByFold(pt.Transformer):
    """BM25 whose k1 and b depend on the fold of the query.

    Args:
        index: The index.
        folds: The settings of each fold.
        fold_of: The fold of each query.
        others: The settings of all other queries.
    """

    def __init__(
        self,
        index: pn.LuceneIndex,
        folds: Sequence[Mapping[str, float]],
        fold_of: Mapping[str, int],
        others: Mapping[str, float],
    ):
        self.index, self.folds, self.fold_of, self.others = index, folds, fold_of, others

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Retrieve for queries, or score rows; the rows of a query keep their order."""
        folds, rows = (
            inp["qid"].map(self.fold_of).fillna(len(self.folds)).to_numpy(),
            inp.assign(row=np.arange(len(inp))),
        )
        settings = enumerate([*self.folds, self.others])
        found = [self.index.bm25(**each).transform(rows[folds == fold]) for fold, each in settings]
        found = pd.concat([frame for frame in found if len(frame)] or found[:1])
        return found.sort_values("row", kind="stable", ignore_index=True).drop(columns="row")

    def __repr__(self) -> str:
        pairs = ", ".join(f"({each['k1']:g}, {each['b']:g})" for each in self.folds)
        return f"BM25((k1, b) = {pairs} in {len(self.folds)} folds)"


class Remembered(pt.Transformer):
    """A retriever that keeps its results in memory, so that all systems that begin with it run it once.

    Args:
        retriever: Finds documents for queries.
    """

    def __init__(self, retriever: pt.Transformer):
        self.retriever = retriever
        self._results: dict[tuple[str, ...], pd.DataFrame] = {}

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """The results for queries, which qids tell apart."""
        qids = tuple(inp["qid"])
        if qids not in self._results:
            self._results[qids] = self.retriever.transform(inp)
        return self._results[qids].copy(deep=False)

    def __repr__(self) -> str:
        return f"Remembered({self.retriever!r})"


class WordBM25(pt.Transformer):
    """BM25 over the words that a network reads: the first of a document, not stemmed, with stop words.

    Without inverse document frequencies it knows no more than a network that sees which words match, but not how rare
    they are.

    Args:
        documents: The forward index.
        max_terms: Words of a document that are read.
        idf: Whether words are weighed by their inverse document frequency.
        k1: As for BM25.
        b: As for BM25.
    """

    def __init__(
        self, documents: pn.ForwardIndex, max_terms: int, *, idf: bool = True, k1: float = 0.9, b: float = 0.4
    ):
        self.documents, self.max_terms, self.idf, self.k1, self.b = documents, max_terms, idf, k1, b

    @cached_property
    def _counts(self) -> csr_array:
        sequences = self.documents.all().take(np.arange(len(self.documents)), max_terms=self.max_terms)
        return bag_of_words(sequences, len(self.documents.vocabulary))

    @cached_property
    def _term_weights(self) -> np.ndarray:
        number, terms = self._counts.shape
        if not self.idf:
            return np.ones(terms)
        found = np.bincount(self._counts.indices, minlength=terms)
        return np.log1p((number - found + 0.5) / (found + 0.5))

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score the documents of a result frame."""
        rows = self.documents.known_rows(inp["docno"].tolist())
        counts = self._counts[rows]
        places, queries = pd.factorize(inp["query"])
        bags = bag_of_words(tokenise_packed(queries, self.documents.vocabulary), counts.shape[1])
        lengths = self._counts.sum(axis=1)
        norms = self.k1 * (1 - self.b + self.b * lengths / lengths.mean())
        counts.data = counts.data / (counts.data + np.repeat(norms[rows], np.diff(counts.indptr)))
        return with_scores(inp, counts.multiply(bags[places]) @ self._term_weights)

    def __repr__(self) -> str:
        return f"WordBM25({self.max_terms} words{'' if self.idf else ', idf=False'}, k1={self.k1:g}, b={self.b:g})"


class LengthPrior(pt.Transformer):
    """Scores documents by minus the natural logarithm of their number of tokens.

    A mixture with BM25 is BM25 minus a weight times the logarithm of the length: what a ranker gains that only
    prefers short documents.

    Args:
        documents: The forward index.
    """

    def __init__(self, documents: pn.ForwardIndex):
        self.documents = documents

    @cached_property
    def _scores(self) -> np.ndarray:
        return -np.log(np.maximum(self.documents.all().lengths, 1))

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score the documents of a result frame."""
        return with_scores(inp, self._scores[self.documents.known_rows(inp["docno"].tolist())])

    def __repr__(self) -> str:
        return "LengthPrior()"
