"""What all Lucene transformers share, and the two plainest: BM25 and query likelihood."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._frames import Hits, retrieved_frame
from pt_neural.lucene.docnos import look_up
from pt_neural.lucene.frames import group_queries, scored_frame
from pt_neural.lucene.queries import QueryBuilder, TextQueries, WeightedQueries
from pt_neural.lucene.rescoring import rescore
from pt_neural.lucene.search import search
from pt_neural.lucene.similarities import BM25Similarity, QLSimilarity, Similarity

if TYPE_CHECKING:
    from pt_neural.lucene.index import LuceneIndex

CONTENTS = "contents"


class Retriever(pt.Transformer):
    """Retrieves from a Lucene index, or scores rows that name their documents.

    * Given queries (``qid``, ``query``), it retrieves: a row for each of the best ``num_results`` documents.
    * Given rows with a ``docno``, it scores exactly these rows, by the same formula and statistics.

    Subclasses say how queries are built and terms are scored.
    """

    label: ClassVar[str]
    parameters: ClassVar[tuple[str, ...]]  # what tells one setting from another, in the order of the repr
    takes_weights: ClassVar[bool] = True
    needs_text: ClassVar[bool] = False  # even where there are weights

    def __init__(self, index: LuceneIndex, *, field: str, num_results: int, verbose: bool):
        self.index = index
        self.field = field
        self.num_results = _at_least_one(num_results)
        self.verbose = verbose
        self._cut: int | None = None
        self.similarity()  # refuses impossible parameters

    @abstractmethod
    def similarity(self) -> Similarity:
        """How terms are scored; made on each use, as grid search sets attributes."""

    def builder(self, *, weighted: bool) -> QueryBuilder:
        """How queries become Lucene queries."""
        return WeightedQueries(self.field) if weighted else TextQueries(self.index.analysis, self.field)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Retrieve for queries, or score the rows that have a docno.

        Args:
            inp: Frame with ``qid`` and ``query``. A query that is empty or missing finds nothing. With a column
                ``docno``, rows are scored. BM25 and QL use a column ``query_toks`` (a dict from analysed term to
                weight >= 0 in each row) in place of ``query`` where there is one. SDM takes its terms from there,
                and its windows still from ``query``. RM3 knows ``query`` only.

        Returns:
            All columns of the input, and ``docno``, ``score``, ``rank``. Retrieved rows are sorted by rank; equal
            scores are in ascending order of docno, also where ``num_results`` cuts through them. Scored rows
            are in the order of the input; a document without a term of the query has score 0.0.

        Raises:
            ValueError: If a docno is not in the index, or if the index lacks the field.
        """
        self._validate(inp)
        if "docno" in inp.columns:
            return scored_frame(inp, self._score(inp) if len(inp) else np.empty(0), self._cut)
        return self._retrieve(inp)

    def _validate(self, inp: pd.DataFrame) -> None:
        with pt.validate.any(inp, context=self) as validator:
            for column in ("query", "query_toks") if self.takes_weights and not self.needs_text else ("query",):
                validator.query_frame([column], mode="retrieve")
                validator.result_frame([column], mode="score")

    def _retrieve(self, inp: pd.DataFrame) -> pd.DataFrame:
        if not len(inp):
            return retrieved_frame(inp, [], pd.array([], dtype="str"))
        found = self.hits(inp, self.num_results, progress=self._label())
        return retrieved_frame(inp, list(found), self.index.reader.docno_array)

    def hits(self, queries: pd.DataFrame, num_results: int, *, progress: str | None = None) -> Iterator[Hits]:
        """The best documents of each row of a query frame, in chunks; see :func:`search`."""
        builder, prepared = self._prepare(queries)
        return search(self.index.reader, builder, self.similarity(), prepared, num_results, progress=progress)

    def _score(self, inp: pd.DataFrame) -> np.ndarray:
        groups, firsts = group_queries(inp)
        builder, queries = self._prepare(inp.iloc[firsts])
        reader = self.index.reader
        documents = look_up(inp["docno"], reader.numbers, reader.path)
        similarity = self.similarity()
        return rescore(reader, builder, similarity, queries, groups, documents, progress=self._label())

    def _label(self) -> str | None:
        return repr(self) if self.verbose else None

    def _prepare(self, inp: pd.DataFrame) -> tuple[QueryBuilder, list[Any]]:
        self.index.require_field(self.field)
        if self.takes_weights and "query_toks" in inp.columns:
            return self.builder(weighted=True), query_weights(inp)
        return self.builder(weighted=False), query_texts(inp)

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer | None:
        """Retrieve only ``k`` documents where only the first ``k`` are wanted."""
        if k >= self.num_results:
            return None
        fused = pt.inspect.transformer_apply_attributes(self, num_results=k)
        fused._cut = k  # rows that are scored, and not retrieved, must be cut all the same
        return fused

    def schematic(self, *, input_columns: list[str] | None = None) -> dict[str, Any]:
        """How PyTerrier draws it."""
        return {"label": self.label, "help_url": None}

    def __repr__(self) -> str:
        shown = {name: getattr(self, name) for name in self.parameters}
        usual = {"field": CONTENTS, "num_results": 1000}
        shown |= {name: getattr(self, name) for name in usual if getattr(self, name) != usual[name]}
        return f"{self.label}({self.index.name!r}{''.join(f', {name}={value!r}' for name, value in shown.items())})"

    def _identity(self) -> tuple[Any, ...]:
        settings = (getattr(self, name) for name in self.parameters)
        values = tuple(tuple(value) if isinstance(value, list) else value for value in settings)  # lists have no hash
        return (type(self), self.index, self.field, self.num_results, self._cut, values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Retriever) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())


def query_texts(queries: pd.DataFrame) -> list[str]:
    """The column ``query``; nothing for what is missing."""
    missing = queries["query"].isna()
    return ["" if absent else str(text) for text, absent in zip(queries["query"], missing, strict=True)]


def query_weights(queries: pd.DataFrame) -> list[dict[str, float]]:
    """The column ``query_toks``; no terms for what is no dict."""
    return [weights if isinstance(weights, dict) else {} for weights in queries["query_toks"]]


def _at_least_one(num_results: int) -> int:
    try:
        number = operator.index(num_results)
    except TypeError:
        raise ValueError(f"num_results={num_results!r}, but a number of documents is an integer") from None
    if number < 1:
        raise ValueError(f"num_results={number}, but a retriever returns at least one document")
    return number


class BM25(Retriever):
    """BM25 as Lucene has it; made by :meth:`LuceneIndex.bm25`."""

    label = "BM25"
    parameters = ("k1", "b")

    def __init__(
        self,
        index: LuceneIndex,
        *,
        k1: float = 0.9,
        b: float = 0.4,
        field: str = CONTENTS,
        num_results: int = 1000,
        verbose: bool = False,
    ):
        self.k1 = k1
        self.b = b
        super().__init__(index, field=field, num_results=num_results, verbose=verbose)

    def similarity(self) -> Similarity:
        """BM25 with the present k1 and b."""
        return BM25Similarity(self.k1, self.b)


class QL(Retriever):
    """Query likelihood with Dirichlet smoothing as Lucene has it; made by :meth:`LuceneIndex.ql`."""

    label = "QL"
    parameters = ("mu",)

    def __init__(
        self,
        index: LuceneIndex,
        *,
        mu: float = 1000,
        field: str = CONTENTS,
        num_results: int = 1000,
        verbose: bool = False,
    ):
        self.mu = mu
        super().__init__(index, field=field, num_results=num_results, verbose=verbose)

    def similarity(self) -> Similarity:
        """Query likelihood with the present mu."""
        return QLSimilarity(self.mu)
