"""Learned sparse retrieval: the weights of a query's terms times the impacts that an index holds."""

from collections import Counter
from typing import Any

import pandas as pd

from pt_neural.lucene.index.directory import CONTENTS, IndexDirectory
from pt_neural.lucene.search.queries import QueryBuilder, WeightedQueries
from pt_neural.lucene.search.retrievers import Retriever, query_texts, query_weights
from pt_neural.lucene.search.scoring import FrequencySimilarity, Similarity


class Impact(Retriever):
    """The sum of products of query weights and document weights, by term; made by :meth:`LuceneIndex.impact`.

    In an index that Anserini has built with ``-impact -pretokenized``, the frequency of a term in a document is a
    weight that a model has learned, its impact (SPLADE, uniCOIL, DeepImpact). There are no other statistics.
    """

    label = "Impact"
    parameters = ()

    def __init__(self, index: IndexDirectory, *, field: str = CONTENTS, num_results: int = 1000, verbose: bool = False):
        super().__init__(index, field=field, num_results=num_results, verbose=verbose)

    def similarity(self) -> Similarity:
        """The impact itself."""
        return FrequencySimilarity()

    def builder(self, *, weighted: bool) -> QueryBuilder:
        """Weighted terms."""
        return WeightedQueries(self.field)

    def _prepare(self, inp: pd.DataFrame) -> tuple[QueryBuilder, list[Any]]:
        self.index.require_field(self.field)
        if "query_toks" in inp.columns:
            return self.builder(weighted=True), query_weights(inp)
        return self.builder(weighted=True), [dict(Counter(text.split())) for text in query_texts(inp)]
