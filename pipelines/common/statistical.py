"""Rankers that count words: query likelihood, term dependencies, topics, translations.

Their few free settings are tuned on the dev queries, as in the CLSM paper, whose Table 5 has them all; without dev
queries, by five folds of the test queries, so that each query has settings that were chosen without it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt
from ir_measures import nDCG

import pt_neural as pn
from pipelines.common.collection import Split
from pipelines.common.comparison import System
from pipelines.common.first_stage import FOLDS, K1, B, WordBM25
from pipelines.common.trained import TrainedRankers
from pt_neural._evaluation import RunEvaluator
from pt_neural.experiment.alpha import assign_folds

SMOOTHING = {"mu": [10, 30, 100, 300, 1000, 3000]}
MIXED = {**SMOOTHING, "unigram_weight": [0.9, 0.7, 0.5, 0.3]}
DEPENDENCIES = {"weights": [(0.95, 0.04, 0.01), (0.85, 0.10, 0.05), (0.70, 0.20, 0.10), (0.50, 0.30, 0.20)]}
EXPANSION = {"original_weight": [0.9, 0.7, 0.5], "collection_weight": [0.0, 0.1]}
PHRASES = {"phrase_weight": [0.1, 0.2, 0.4, 0.7]}
Grid = Mapping[str, Sequence[Any]]  # the values of each setting
DEV_QUERIES = 500  # at most, to choose settings on


@dataclass(frozen=True)
class Statistical:
    """A model fitted without gradients: its name, class and arguments; ``seeded`` if it starts at random."""

    name: str
    model: type
    options: Mapping[str, Any] = field(default_factory=dict)
    seeded: bool = True


LUCENE = {"ql": "ULM", "sdm": "MRF", "lce": "LCE"}
READ = {  # over the words that a network reads; matches alone do not tell it how rare a word is
    "bm25-read": "BM25 over the words read",
    "bm25-read-no-idf": "BM25 over the words read, without IDF",
}
UNIGRAM = "unigram"
STATISTICAL = {
    # A single topic is the collection model; with a unigram weight of 1 it is not even used.
    UNIGRAM: Statistical("ULM, words as below", pn.PLSA, {"num_topics": 1, "unigram_weight": 1.0}, seeded=False),
    "plsa-100": Statistical("PLSA (T=100)", pn.PLSA, {"num_topics": 100}),
    "plsa-500": Statistical("PLSA (T=500)", pn.PLSA, {"num_topics": 500}),
    "lda-100": Statistical("LDA (T=100)", pn.LDA, {"num_topics": 100}),
    "lda-500": Statistical("LDA (T=500)", pn.LDA, {"num_topics": 500}),
    "bltm": Statistical("BLTM", pn.BLTM, {"num_topics": 100}),
    "wtm": Statistical("WTM", pn.WordTranslation, seeded=False),
    "ptm": Statistical("PTM (maxlen=3)", pn.PhraseTranslation, {"max_length": 3}, seeded=False),
}
PAPER = ["ql", UNIGRAM, "plsa-100", "plsa-500", "lda-100", "lda-500", "bltm", "sdm", "lce", "wtm", "ptm"]
LEARNED = ["bltm", "wtm", "ptm"]  # those that need training queries


class StatisticalRankers:
    """The rankers of these rows.

    Args:
        rankers: The first stage, its candidates and the forward index; and what to learn from.

    Attributes:
        settings: The settings chosen for each row, by its name.
    """

    def __init__(self, rankers: TrainedRankers):
        self.workspace, self.collection, self.arguments = rankers.workspace, rankers.collection, rankers.arguments
        self.index, self.candidates, self.documents = rankers.index, rankers.candidates, rankers.documents
        self.rankers = rankers
        self.settings: dict[str, dict[str, Any]] = {}

    def systems(self, key: str) -> tuple[str, System, System]:
        """The name of a row, its re-ranker of the candidates, and its retriever over all documents; for each seed."""
        if self.collection.dev is None:
            return self._by_fold(key)
        if key == "lce":
            return LUCENE[key], self.candidates >> self._expanded, self._lce >> self._sdm
        if key in LUCENE:
            retriever = {"ql": self._ql, "sdm": self._sdm}[key]
            return LUCENE[key], self.candidates >> retriever, retriever
        name, models = self._fitted(key)
        rerankers = {seed: self.candidates >> model for seed, model in models.items()}
        return name, rerankers, {seed: model.retriever(self.documents) for seed, model in models.items()}

    def _by_fold(self, key: str) -> tuple[str, System, System]:
        """The same if there are no dev queries."""
        if key not in LUCENE:
            row = STATISTICAL[key]
            models, grid = self._models(key, row), SMOOTHING if key == UNIGRAM else MIXED
            rerankers = {seed: self._folded(self.candidates >> model, {model: grid}) for seed, model in models.items()}
            retrievers = {
                seed: self._folded(model.retriever(self.documents), {model: grid}) for seed, model in models.items()
            }
            return row.name, rerankers, retrievers
        first = self.index.ql() if key == "ql" else self.index.sdm(base="ql")
        reranker, retriever = self.candidates >> first, first
        grids = {first: {**SMOOTHING, **DEPENDENCIES} if key == "sdm" else SMOOTHING}
        if key == "lce":
            lce = pn.LatentConceptExpansion(self.index, sdm=first, keep_documents=True)
            reranker, retriever, grids[lce] = reranker >> lce >> first, lce >> first, EXPANSION
        return LUCENE[key], self._folded(reranker, grids), self._folded(retriever, grids)

    def _folded(self, ranker: pt.Transformer, grids: Mapping[pt.Transformer, Grid]) -> pt.Transformer:
        return TunedByFold(ranker, grids, self.collection.test, self.arguments.seed)

    def over_words_read(self, key: str) -> System:
        """The candidates, re-ranked by BM25 over the words that the networks of the pipeline read."""
        bm25 = WordBM25(self.documents, self.arguments.document_terms, idf=key == "bm25-read")
        return self.candidates >> self.tuned(READ[key], bm25, {"k1": K1, "b": B})

    @cached_property
    def _ql(self) -> pt.Transformer:
        return self.tuned(LUCENE["ql"], self.index.ql(), SMOOTHING)

    @cached_property
    def _sdm(self) -> pt.Transformer:
        return self.tuned(LUCENE["sdm"], self.index.sdm(base="ql", mu=self._ql.mu), DEPENDENCIES)

    @cached_property
    def _lce(self) -> pn.LatentConceptExpansion:
        lce = pn.LatentConceptExpansion(self.index, sdm=self._sdm, keep_documents=True)
        return self.tuned(LUCENE["lce"], lce, EXPANSION, self._sdm >> lce >> self._sdm)

    @property
    def _expanded(self) -> pt.Transformer:
        """Expands queries by the best candidates, and scores the candidates again."""
        return self._sdm >> self._lce >> self._sdm

    def _fitted(self, key: str) -> tuple[str, dict[int | None, pt.Transformer]]:
        """A row's models; their settings are those tuned for the first."""
        row = STATISTICAL[key]
        models, grid = self._models(key, row), SMOOTHING if key == UNIGRAM else MIXED
        first, *others = models.values()
        tuned = self.tuned(row.name, first, grid)
        if key == "ptm":  # after the others, since all together would be too many
            tuned = self.tuned(f"{row.name}, phrases", tuned, PHRASES)
        for model in others:
            for parameter in grid:
                setattr(model, parameter, getattr(tuned, parameter))
        return row.name, models

    def _models(self, key: str, row: Statistical) -> dict[int | None, pt.Transformer]:
        """A row's model for each seed, or one under None if it has no seed."""
        seeds = self.arguments.seeds if row.seeded else [None]
        return {seed: self._fitted_with(key, row, {} if seed is None else {"seed": seed}) for seed in seeds}

    def _fitted_with(self, key: str, row: Statistical, seed: dict[str, int]) -> pt.Transformer:
        options = {**row.options, **seed}
        if key not in LEARNED:
            return self.workspace.fitted(row.model(documents=self.documents, **options))
        self.workspace.learned.add(row.name)
        model = row.model(documents=self.workspace.learning.forward_index(self.documents.fields), **options)
        return self.workspace.fitted(model, *self.rankers.examples[:2], documents=self.documents)

    def tuned(
        self, name: str, model: pt.Transformer, grid: Grid, ranker: pt.Transformer | None = None
    ) -> pt.Transformer:
        """The model with the settings by which it, or the ranker that it is part of, re-ranks the dev queries best."""
        if self.collection.dev is not None:
            search = partial(self._search, name, model, grid, ranker or model)
            for parameter, value in self.workspace.chosen(name, search, grid, self.documents.fields).items():
                setattr(model, parameter, tuple(value) if isinstance(value, list) else value)
        self.settings[name] = {parameter: getattr(model, parameter) for parameter in grid}
        return model

    def _search(self, name: str, model: pt.Transformer, grid: Grid, ranker: pt.Transformer) -> dict[str, Any]:
        dev = self.collection.dev.sample(DEV_QUERIES, self.arguments.seed)
        print(f"{name}: choosing settings on {len(dev.topics):,} dev queries", flush=True)
        candidates = pt.Transformer.from_df(self.candidates.transform(dev.topics))
        pt.GridSearch(candidates >> ranker, {model: dict(grid)}, dev.topics, dev.qrels, "ndcg_cut_10")
        return {parameter: getattr(model, parameter) for parameter in grid}


class TunedByFold(pt.Transformer):
    """A ranker whose settings for each query were chosen on the other folds of the queries.

    Args:
        ranker: Finds documents for queries.
        grids: The settings to choose from, by the part of the ranker that has them.
        split: The queries and judgements.
        seed: Seed of the folds.
    """

    def __init__(self, ranker: pt.Transformer, grids: Mapping[pt.Transformer, Grid], split: Split, seed: int):
        self.ranker, self.split, self.seed = ranker, split, seed
        # No dict, since a setting that changes may change the hash of the part that has it.
        self.grid = [(model, name, values) for model, grid in grids.items() for name, values in grid.items()]

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """The results of those queries that are in the split."""
        return self._run[self._run["qid"].isin(inp["qid"])].reset_index(drop=True)

    @cached_property
    def _run(self) -> pd.DataFrame:
        topics, runs, values = self.split.judged, [], []
        for settings in product(*(values for _, _, values in self.grid)):
            for (model, name, _), value in zip(self.grid, settings, strict=True):
                setattr(model, name, value)
            runs.append(self.ranker.transform(topics))
            evaluate = RunEvaluator(runs[-1], self.split.qrels, topics["qid"], nDCG @ 10)
            values.append(evaluate(runs[-1]["score"].to_numpy()))
        fold_of, values = np.array(assign_folds(FOLDS, evaluate.qids, self.seed)), np.array(values)
        parts = []
        for fold in range(FOLDS):
            best = runs[values[:, fold_of != fold].mean(axis=1).argmax()]
            parts.append(best[best["qid"].isin(np.array(evaluate.qids)[fold_of == fold])])
        return pd.concat(parts)
