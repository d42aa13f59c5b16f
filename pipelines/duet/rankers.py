"""The rankers of the Duet paper's tables and figures, each a re-ranker of BM25's candidates."""

from collections import Counter
from functools import cached_property
from typing import Any

import numpy as np

import pt_neural as pn
from pipelines.common.comparison import System
from pipelines.common.statistical import READ, StatisticalRankers
from pipelines.common.trained import ModelSpec, RerankingRankers
from pt_neural.experiment import count_terms
from pt_neural.experiment.pictures import Kind

OURS = {"local": pn.DuetLocal, "distributed": pn.DuetDistributed, "duet": pn.Duet}
TWO_TOWERS = {"dssm": pn.DSSM, "cdssm": pn.CDSSM}
NAMES = {  # in the order of Table 2
    "lsa": "LSA",
    "bm25": "BM25",
    "sdm": "SDM",
    "ql": "QL",
    "drmm": "DRMM",
    "dssm": "DSSM",
    "cdssm": "CDSSM",
    "desm": "DESM IN-OUT",
    "local": "Local",
    "distributed": "Distributed",
    "duet": "Duet",
    **READ,
}
KINDS: dict[str, Kind] = {
    **dict.fromkeys(["BM25", "QL", *READ.values()], "exact"),
    **dict.fromkeys(["SDM"], "proximity"),
    **dict.fromkeys(["LSA", "DRMM", "DSSM", "CDSSM", "DESM IN-OUT"], "inexact"),
    **dict.fromkeys(["Local", "Distributed", "Duet"], "ours"),
}
TRAINED = ("drmm", *TWO_TOWERS, *OURS)
ROWS = tuple(key for key in NAMES if key != "bm25")  # BM25 is always there


class Rankers(RerankingRankers):
    """The rankers of the paper; those that are trained learn from the same queries."""

    def system(self, key: str) -> System:
        """The candidates, re-ranked by the ranker of a row."""
        if key in OURS:
            return self.reranking(self.ours(key))
        if key in TWO_TOWERS:
            return self.reranking(ModelSpec(NAMES[key], TWO_TOWERS[key]))
        if key == "drmm":
            return self.reranking(self._drmm())
        if key == "bm25":
            return self.candidates
        if key in READ:
            return self._statistical.over_words_read(key)
        if key == "lsa":
            return self.candidates >> self.workspace.lsa(self.arguments.dim, self.arguments.seed, self.documents.fields)
        if key == "desm":
            return {seed: self.candidates >> self._desm(seed) for seed in self.arguments.seeds}
        return self._statistical.systems(key)[1]

    @cached_property
    def _statistical(self) -> StatisticalRankers:
        return StatisticalRankers(self)

    def _desm(self, seed: int) -> pn.DESM:
        return pn.DESM(self._spaces(seed), "in", "out", documents=self.documents, fields=self.documents.fields)

    def _drmm(self) -> ModelSpec:
        return ModelSpec(NAMES["drmm"], pn.DRMM, self._training, {"spaces": self._spaces()})

    def ours(self, key: str, negatives: str | None = None, **training: Any) -> ModelSpec:
        """How one of our models is made.

        Args:
            key: The model.
            negatives: Where its negatives come from; None for :attr:`negatives`.
            **training: Settings of the training that differ from the pipeline's.
        """
        arguments, name = self.arguments, NAMES[key]
        options = {"document_terms": arguments.document_terms}
        options |= {"filters": arguments.filters, "hidden": arguments.filters}
        if key != "local":
            options |= {"pooling": arguments.pooling, "num_ngrams": arguments.ngrams}
        # With random negatives, too, positives are among the candidates, so that only the negatives differ (Figure 4).
        positives = {"positives": "retrieved"} if self.negatives == "retrieved" else {}
        training = {**self._training, "negatives": negatives or self.negatives, **positives, **training}
        return ModelSpec(f"{name}, {negatives} negatives" if negatives else name, OURS[key], training, options)

    def training_terms(self) -> Counter[str]:
        """How often each term occurs in the training queries and the documents judged relevant to them."""
        train = self.training_queries
        counts = count_terms(train.topics["query"])
        rows = np.unique(self.documents.rows(train.qrels.loc[train.qrels["label"] > 0, "docno"]))
        terms, times = np.unique(self.documents.all().take(rows[rows >= 0]).terms, return_counts=True)
        names = self.documents.vocabulary.terms
        counts.update({names[term]: count for term, count in zip(terms.tolist(), times.tolist(), strict=True)})
        return counts
