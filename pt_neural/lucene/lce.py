"""Latent concept expansion: terms of the best documents join the query, by how probable they are given it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._arguments import checked_choice, checked_number
from pt_neural._frames import Hits
from pt_neural.lucene.feedback import best_rows
from pt_neural.lucene.frames import group_queries
from pt_neural.lucene.index import LuceneIndex
from pt_neural.lucene.latent_concepts import AnalysedQuery, LatentConcepts
from pt_neural.lucene.retrievers import query_texts, query_weights
from pt_neural.lucene.sdm import SDM


class LatentConceptExpansion(pt.Transformer):
    """Latent concept expansion (Metzler & Croft, SIGIR 2007) with single terms as concepts.

    For a term e of the feedback documents D of a query Q, P(e|Q) is proportional to the sum over D of

    ``exp(score(Q, D) + document_weight * log p(e|D) - collection_weight * log p(e|C))``

    with ``p(e|D) = (1 - smoothing) tf / |D| + smoothing * p(e|C)`` and ``p(e|C) = cf / |C|``. The most probable terms,
    the concepts, join the query in the column ``query_toks``, which :class:`SDM`, query likelihood and BM25 take::

        sdm = index.sdm()
        lce = pn.LatentConceptExpansion(index)
        sdm >> lce >> sdm           # feedback documents are the first of the results that come in
        lce >> sdm                  # the same: it retrieves them itself

    What is particular here:

    * score(Q, D) must be a log-likelihood of the query. Lucene's query likelihood skips the terms that a document
      lacks, so that long documents would gain. What is missing is added for terms; windows that a document lacks,
      which weigh little, stay left out. Results that come in are taken to have been scored by ``sdm``. With
      ``"bm25"`` as its base nothing is added.
    * Lengths of documents are counted, and not those that Lucene keeps, in one byte.
    * Concepts may be terms of the query; their weights are added.
    * With ``collection_weight=0`` this is RM3 with the likelihoods of SDM. In trials, weights of 0.05 to 0.1 found
      rarer concepts; they raised AP a little on Cranfield and neural:pydocs, and lowered it on CACM and Vaswani.

    Args:
        index: An index with positions and term vectors, as they are built by default.
        fb_docs: Number of feedback documents.
        fb_terms: Number of concepts.
        original_weight: Weight of the terms of the query against the concepts, above 0 and up to 1, as in RM3. The
            terms keep the weights that they came with, by default their counts, and the windows of SDM with them;
            the concepts have the rest: ``(1 - original_weight) / original_weight`` times as much in all.
        document_weight: How much it counts that documents have the concept often, above 0.
        collection_weight: How much it counts that the collection has the concept rarely, at least 0.
        smoothing: Weight of the collection against the document in p(e|D), from 0 and below 1.
        filter_terms: Take only such concepts as Anserini's RM3 does: of 2 to 20 letters and digits, and in no more
            than a tenth of all documents.
        keep_documents: Give results that come in back, with all rows and columns, and ``query_toks`` beside them,
            so that the same documents can be scored anew: ``candidates >> lce >> sdm``.
        sdm: Retrieves the feedback documents where none come in, and says in which field and with which settings
            they have been scored. Default: ``index.sdm()``.
        verbose: Show a progress bar.

    Raises:
        TypeError: If a setting is of another kind than said here.
        ValueError: If one is out of range, or if ``sdm`` is one of another index.

    Example:
        >>> import pt_neural as pn
        >>> texts = ["okapi forest congo", "okapi forest ituri", *(f"word{i}" for i in range(30))]
        >>> index = pn.LuceneIndex("okapi.lucene").index({"docno": str(i), "text": t} for i, t in enumerate(texts))
        >>> pn.LatentConceptExpansion(index, fb_docs=2, fb_terms=2).concepts("okapi")["term"].tolist()
        ['forest', 'okapi']
    """

    parameters: ClassVar[tuple[str, ...]] = (
        "fb_docs",
        "fb_terms",
        "original_weight",
        "document_weight",
        "collection_weight",
        "smoothing",
        "filter_terms",
        "keep_documents",
    )
    schematic: ClassVar[dict[str, Any]] = {"label": "LCE", "help_url": None}

    def __init__(
        self,
        index: LuceneIndex,
        *,
        fb_docs: int = 10,
        fb_terms: int = 10,
        original_weight: float = 0.7,
        document_weight: float = 1.0,
        collection_weight: float = 0.0,
        smoothing: float = 0.5,
        filter_terms: bool = True,
        keep_documents: bool = False,
        sdm: SDM | None = None,
        verbose: bool = False,
    ):
        if not isinstance(index, LuceneIndex):
            raise TypeError(f"index must be a Lucene index, such as pn.LuceneIndex('pydocs.lucene'), not {index!r:.80}")
        if not isinstance(sdm, SDM | None):
            raise TypeError(f"sdm must be made by index.sdm(...), not {sdm!r:.80}")
        self.index = index
        self.fb_docs = checked_number("fb_docs", fb_docs, int, least=1)
        self.fb_terms = checked_number("fb_terms", fb_terms, int, least=1)
        self.original_weight = checked_number("original_weight", original_weight, float, above=0, most=1)
        self.document_weight = checked_number("document_weight", document_weight, float, above=0)
        self.collection_weight = checked_number("collection_weight", collection_weight, float, least=0)
        self.smoothing = checked_number("smoothing", smoothing, float, least=0)
        self.filter_terms = checked_choice("filter_terms", filter_terms, (True, False))
        self.keep_documents = checked_choice("keep_documents", keep_documents, (True, False))
        self.sdm = index.sdm() if sdm is None else sdm
        self.verbose = verbose
        if self.smoothing >= 1:
            raise ValueError(f"smoothing={smoothing}, but with 1 or more nothing of a document is left; use less")
        if self.sdm.index != index:
            raise ValueError(f"{self.sdm!r} retrieves from another index than {index!r}; use sdm=index.sdm(...)")

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Expand queries.

        Args:
            inp: Frame with ``qid`` and ``query``. With ``docno`` and ``score``, the best ``fb_docs`` rows of a query
                are its feedback documents. Where there is a column ``query_toks``, the terms of a query and their
                weights come from there, and are expanded once more.

        Returns:
            One row a query, with its columns and ``query_toks``, a dict from analysed term to weight: the terms of
            the query and the concepts. A query that no document matches has only its own terms there. With
            ``keep_documents``, all rows and columns that came in.

        Raises:
            ValueError: If a feedback document is not in the index, or if the index lacks positions or term vectors.
        """
        with pt.validate.any(inp, context=self) as validator:
            validator.query_frame(["query"], mode="retrieve")
            validator.result_frame(["query", "score"], mode="feedback")
        if "docno" not in inp.columns:
            return _with_weights(inp, self._expand(inp))
        groups, firsts = group_queries(inp)
        queries = inp.iloc[firsts][_query_columns(inp)]
        weights = self._expand(queries, best_rows(inp, groups, self.index.reader, self.fb_docs)) if len(inp) else []
        if self.keep_documents:
            return _with_weights(inp, [weights[group] for group in groups])
        return _with_weights(queries, weights)

    def concepts(self, query: str) -> pd.DataFrame:
        """The concepts that a query is expanded by.

        Args:
            query: Text of the query; its feedback documents are retrieved.

        Returns:
            Frame with ``term``, as the index has it, and ``weight``, most probable first; weights add up to 1. No
            rows if no document matches, or if ``filter_terms`` leaves none, as in an index of a few documents.

        Example::

            lce.concepts("pairwise distance")
        """
        _, (found,) = self._find(pd.DataFrame({"qid": ["1"], "query": [query]}))
        weights = np.array(list(found.values()), dtype=np.float64)
        return pd.DataFrame({"term": pd.array(list(found), dtype="str"), "weight": weights})

    def _expand(self, queries: pd.DataFrame, feedback: Hits | None = None) -> list[dict[str, float]]:
        if queries.empty:
            return []
        return [self._join(query.terms, found) for query, found in zip(*self._find(queries, feedback), strict=True)]

    def _join(self, terms: Mapping[str, float], concepts: Mapping[str, float]) -> dict[str, float]:
        mass = sum(terms.values()) * (1 - self.original_weight) / self.original_weight
        joined = dict.fromkeys([*terms, *concepts], 0.0)
        return {term: terms.get(term, 0.0) + mass * concepts.get(term, 0.0) for term in joined}

    def _find(
        self, queries: pd.DataFrame, feedback: Hits | None = None
    ) -> tuple[list[AnalysedQuery], list[dict[str, float]]]:
        """The queries in terms, and the concepts of each; feedback documents are retrieved if they are not given."""
        index, field = self.index, self.sdm.field
        index.require_field(field)
        index.require_vectors(field)
        analysed = self._analysed(queries)
        concepts = LatentConcepts(
            reader=index.reader,
            field=field,
            similarity=self.sdm.similarity(),
            fb_terms=self.fb_terms,
            smoothing=self.smoothing,
            document_weight=self.document_weight,
            collection_weight=self.collection_weight,
            filter_terms=self.filter_terms,
        )
        feedback = self._retrieved(queries) if feedback is None else feedback
        return analysed, concepts.find(analysed, feedback, progress=self._label("concepts"))

    def _retrieved(self, queries: pd.DataFrame) -> Hits:
        parts = self.sdm.hits(queries, self.fb_docs, progress=self._label("documents"))
        return Hits(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def _analysed(self, queries: pd.DataFrame) -> list[AnalysedQuery]:
        builder = self.sdm.builder(weighted=False)
        texts = [self.index.analysis.terms(text) for text in query_texts(queries)]
        given = query_weights(queries) if "query_toks" in queries.columns else [Counter(text) for text in texts]
        weights = ({str(term): float(weight) for term, weight in terms.items()} for terms in given)
        return [AnalysedQuery(terms, builder.term_weight(text)) for terms, text in zip(weights, texts, strict=True)]

    def _label(self, what: str) -> str | None:
        return f"{self!r} {what}" if self.verbose else None

    def subtransformers(self) -> dict:
        """None: SDM is what this transformer is made of, not a stage before it."""
        return {}

    def __repr__(self) -> str:
        usual = type(self).__init__.__kwdefaults__
        shown = [name for name in self.parameters if name in _ALWAYS_SHOWN or getattr(self, name) != usual[name]]
        settings = [f"{name}={getattr(self, name)!r}" for name in shown]
        settings += [] if self.sdm == self.index.sdm() else [f"sdm={self.sdm!r}"]
        return f"LatentConceptExpansion({', '.join([repr(self.index.name), *settings])})"

    def _identity(self) -> tuple[Any, ...]:
        return (self.index, self.sdm, *(getattr(self, name) for name in self.parameters))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LatentConceptExpansion) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())


_ALWAYS_SHOWN = ("fb_docs", "fb_terms", "original_weight")


def _query_columns(frame: pd.DataFrame) -> list[str]:
    columns = set(pt.model.query_columns(frame))
    return [column for column in frame.columns if column in columns]


def _with_weights(frame: pd.DataFrame, weights: list[dict[str, float]]) -> pd.DataFrame:
    column = np.empty(len(frame), dtype=object)
    column[:] = weights
    return frame.reset_index(drop=True).assign(query_toks=column)
