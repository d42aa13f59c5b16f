"""What all Lucene retrievers share, and the two plainest: BM25 and query likelihood."""

import copy
import operator
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._arguments import checked_choice
from pt_neural._frames import EXPANDED_BY, Hits, as_texts, retrieved_frame, validated, with_scores
from pt_neural.lucene.index.directory import CONTENTS, IndexDirectory
from pt_neural.lucene.index.reader import look_up
from pt_neural.lucene.index.statistics import Statistics
from pt_neural.lucene.java.jvm import naming
from pt_neural.lucene.search.queries import PhraseQueries, QueryBuilder, TextQueries, WeightedQueries, check_weights
from pt_neural.lucene.search.scoring import BM25Similarity, QLSimilarity, Similarity, rescore, search
from pt_neural.lucene.search.windows import count_windows


class Retriever(pt.Transformer):
    """Retrieves from a Lucene index, or scores rows that name their documents.

    * Given queries (``qid``, ``query``), it retrieves: a row for each of the best ``num_results`` documents.
    * Given rows with a ``docno``, it scores exactly these rows, by the same formula and statistics.

    Subclasses say how queries are built and how terms are scored.
    """

    label: ClassVar[str]
    parameters: ClassVar[tuple[str, ...]]  # attributes that the scores depend on, in the order of the repr
    takes_weights: ClassVar[bool] = True
    needs_text: ClassVar[bool] = False  # even if there are weights
    expands: ClassVar[bool] = False  # whether it expands queries
    phrases = False  # whether words in double quotes are phrases

    def __init__(self, index: IndexDirectory, *, field: str, num_results: int, verbose: bool):
        self.index = index
        self.field = field
        self.num_results = _at_least_one(num_results)
        self.verbose = verbose
        self._cut: int | None = None
        self.similarity()  # refuses impossible parameters

    @abstractmethod
    def similarity(self) -> Similarity:
        """How terms are scored; made on each use, because grid search sets attributes."""

    def builder(self, *, weighted: bool) -> QueryBuilder:
        """How queries become Lucene queries."""
        if weighted:
            return WeightedQueries(self.field)
        if self.phrases:
            self.index.require_positions(self.field)
            return PhraseQueries(self.index.analysis, self.field)
        return TextQueries(self.index.analysis, self.field)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Retrieve for queries, or score the rows that have a docno.

        Args:
            inp: Frame with ``qid`` and ``query``. An empty or missing query finds nothing. With a column ``docno``,
                rows are scored. If there is a column ``query_toks`` (dicts from analysed term to weight >= 0),
                BM25, QL and Impact use it in place of ``query``; SDM takes its terms from it, but its windows
                from ``query``; RM3 ignores it.

        Returns:
            All columns of the input, and ``docno``, ``score``, ``rank``. Retrieved rows are sorted by rank; equal
            scores are in descending order of docno, even where ``num_results`` cuts through them. Scored rows
            are in the order of the input; a document without any term of the query has score 0.0.

        Raises:
            ValueError: If a docno is not in the index, or if the index does not have the field.
        """
        self.validate(inp)
        if not len(inp):
            return self._nothing(inp)
        opened = self.on(self.index.opened())
        if "docno" not in inp.columns:
            return self._marked(opened._retrieve(inp))
        if EXPANDED_BY in inp.attrs and not (self.expands or "query_toks" in inp.columns):
            expansion = inp.attrs[EXPANDED_BY]
            maker = f"index.{expansion.partition('(')[0].lower()}()"
            warnings.warn(
                f"{self!r} scores what {expansion} has found, by the query without its expansion, which so is lost. To "
                f"expand queries between two retrievals: bm25 >> {maker}.rewriter() >> bm25",
                stacklevel=2,
            )
        return self._marked(self.cut(with_scores(inp, opened.score(inp))))

    def _marked(self, results: pd.DataFrame) -> pd.DataFrame:
        """Results that say whether their scores are those of expanded queries."""
        results.attrs.pop(EXPANDED_BY, None)
        if self.expands:
            results.attrs[EXPANDED_BY] = repr(self)
        return results

    def _nothing(self, inp: pd.DataFrame) -> pd.DataFrame:
        """The result for no rows, which needs no index."""
        if "docno" not in inp.columns:
            return retrieved_frame(inp, [], pd.array([], dtype="str"))
        return with_scores(inp, np.empty(0))

    def cut(self, scored: pd.DataFrame) -> pd.DataFrame:
        """Of scored rows, those that a cutoff fused into this transformer leaves."""
        return scored if self._cut is None else scored[scored["rank"] < self._cut]

    def on(self, index: IndexDirectory) -> Self:
        """The same retriever of another index."""
        result = copy.copy(self)
        result.index = index
        return result

    def validate(self, inp: pd.DataFrame) -> None:
        """Raise if a frame has neither the columns to retrieve by nor those to score, or values that cannot be."""
        with validated(inp, self) as validator:
            for column in ("query", "query_toks") if self.takes_weights and not self.needs_text else ("query",):
                validator.query_frame([column], mode="retrieve")
                validator.result_frame([column], mode="score")
        if self.takes_weights:
            check_weights(inp, self)

    def _retrieve(self, inp: pd.DataFrame) -> pd.DataFrame:
        chunks = self.hits(inp, self.num_results, progress=self._label())
        return retrieved_frame(inp, list(chunks), self.index.reader.docnos)

    def hits(self, queries: pd.DataFrame, num_results: int, *, progress: str | None = None) -> Iterator[Hits]:
        """The best documents of each row of a query frame, in chunks; see :func:`search`."""
        builder, prepared = self._prepare(queries)
        return search(self.index.reader, builder, self.similarity(), prepared, num_results, progress=progress)

    def statistics(self, queries: pd.DataFrame) -> Statistics:
        """What this index knows of the terms and windows of a query frame."""
        builder, prepared = self._prepare(queries)
        terms, windows = builder.needs(prepared)
        reader, names = self.index.reader, sorted(terms)
        documents = reader.document_frequencies(names, self.field).tolist()
        occurrences = reader.collection_frequencies(names, self.field).tolist()
        counts = dict(zip(names, zip(documents, occurrences, strict=True), strict=True))
        with naming(reader.path):
            found = count_windows(reader, self.field, list(windows))
        return Statistics(self.field, reader.collection_statistics(self.field), counts, found)

    def score(self, inp: pd.DataFrame) -> np.ndarray:
        """The scores of the rows of a frame with ``docno``, float64, in their order."""
        groups, firsts = group_queries(inp)
        builder, queries = self._prepare(inp.iloc[firsts])
        reader = self.index.reader
        documents = look_up(inp["docno"], reader.docnos, reader.path)
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
        fused._cut = k  # for rows that are scored rather than retrieved
        return fused

    def schematic(self, *, input_columns: list[str] | None = None) -> dict[str, Any]:
        """How PyTerrier draws it."""
        return {"label": self.label, "help_url": None}

    def __repr__(self) -> str:
        shown = {name: getattr(self, name) for name in self.parameters}
        defaults = {"phrases": False, "field": CONTENTS, "num_results": 1000}
        shown |= {name: getattr(self, name) for name in defaults if getattr(self, name) != defaults[name]}
        return f"{self.label}({self.index.name!r}{''.join(f', {name}={value!r}' for name, value in shown.items())})"

    def _identity(self) -> tuple[Any, ...]:
        settings = (getattr(self, name) for name in self.parameters)
        values = tuple(tuple(value) if isinstance(value, list) else value for value in settings)  # lists have no hash
        return (type(self), self.index, self.phrases, self.field, self.num_results, self._cut, values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Retriever) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())


def group_queries(frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Group the rows of the same query: those that agree in ``qid`` and, if there is one, in ``query``.

    Returns the number of each row's query, from 0 in order of appearance, and the first row of each query; int64.
    """
    groups, _ = pd.factorize(frame["qid"], use_na_sentinel=False)
    if "query" in frame.columns:
        texts, distinct = pd.factorize(frame["query"], use_na_sentinel=False)
        groups, _ = pd.factorize(groups.astype(np.int64) * len(distinct) + texts)
    _, firsts = np.unique(groups, return_index=True)
    return groups.astype(np.int64), firsts


def query_texts(queries: pd.DataFrame) -> list[str]:
    """The column ``query``, with empty text where it is missing."""
    return as_texts(queries["query"])


def query_weights(queries: pd.DataFrame) -> list[dict[str, float]]:
    """The column ``query_toks``, with no terms where it holds no mapping."""
    return [weights if isinstance(weights, Mapping) else {} for weights in queries["query_toks"]]


def _at_least_one(num_results: int) -> int:
    try:
        number = operator.index(num_results)
    except TypeError:
        raise ValueError(f"num_results={num_results!r}, but a number of documents is an integer") from None
    if number < 1:
        raise ValueError(f"num_results={number}, but a retriever returns at least one document")
    return number


class BM25(Retriever):
    """Lucene's BM25; made by :meth:`LuceneIndex.bm25`."""

    label = "BM25"
    parameters = ("k1", "b")

    def __init__(
        self,
        index: IndexDirectory,
        *,
        k1: float = 0.9,
        b: float = 0.4,
        phrases: bool = False,
        field: str = CONTENTS,
        num_results: int = 1000,
        verbose: bool = False,
    ):
        self.phrases = checked_choice("phrases", phrases, (True, False))
        self.k1 = k1
        self.b = b
        super().__init__(index, field=field, num_results=num_results, verbose=verbose)

    def similarity(self) -> Similarity:
        """BM25 with the current k1 and b."""
        return BM25Similarity(self.k1, self.b)


class QL(Retriever):
    """Lucene's query likelihood with Dirichlet smoothing; made by :meth:`LuceneIndex.ql`."""

    label = "QL"
    parameters = ("mu",)

    def __init__(
        self,
        index: IndexDirectory,
        *,
        mu: float = 1000,
        phrases: bool = False,
        field: str = CONTENTS,
        num_results: int = 1000,
        verbose: bool = False,
    ):
        self.phrases = checked_choice("phrases", phrases, (True, False))
        self.mu = mu
        super().__init__(index, field=field, num_results=num_results, verbose=verbose)

    def similarity(self) -> Similarity:
        """Query likelihood with the current mu."""
        return QLSimilarity(self.mu)


class RetrieverOverBase(Retriever):
    """A retriever that scores terms as its base does, ``"bm25"`` or ``"ql"``: SDM and RM3."""

    own_parameters: ClassVar[tuple[str, ...]]  # in addition to those of the base

    def __init__(
        self,
        index: IndexDirectory,
        *,
        base: str,
        k1: float,
        b: float,
        mu: float,
        field: str,
        num_results: int,
        verbose: bool,
    ):
        if base not in ("ql", "bm25"):
            raise ValueError(f"base={base!r}, but {self.label} scores by 'bm25' or 'ql'")
        self.base = base
        self.k1 = k1
        self.b = b
        self.mu = mu
        super().__init__(index, field=field, num_results=num_results, verbose=verbose)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The attributes that the scores depend on."""
        return ("base", *self.own_parameters, *(("mu",) if self.base == "ql" else ("k1", "b")))

    def similarity(self) -> Similarity:
        """How the base scores terms."""
        return QLSimilarity(self.mu) if self.base == "ql" else BM25Similarity(self.k1, self.b)
