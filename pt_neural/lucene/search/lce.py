"""Latent concept expansion: the terms of the best documents that are most probable given the query join it.

Metzler & Croft, SIGIR 2007, with single terms as concepts.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._arguments import checked_choice, checked_number
from pt_neural._frames import Hits
from pt_neural.lucene.index.directory import IndexDirectory
from pt_neural.lucene.index.reader import Reader
from pt_neural.lucene.search.expansion import QueryExpansion
from pt_neural.lucene.search.retrievers import query_texts, query_weights
from pt_neural.lucene.search.scoring import in_chunks
from pt_neural.lucene.search.sdm import SDM

if TYPE_CHECKING:
    from scipy.sparse import csr_array

CHUNK = 50  # queries whose feedback documents are in memory at a time
MIN_LETTERS, MAX_LETTERS, MAX_SHARE = 2, 20, 0.1  # of the terms that Anserini's RM3 may add
ALWAYS_SHOWN = ("fb_docs", "fb_terms", "original_weight")


class LatentConceptExpansion(QueryExpansion):
    """Latent concept expansion (Metzler & Croft, SIGIR 2007) with single terms as concepts.

    For a term e of the feedback documents D of a query Q, P(e|Q) is proportional to the sum over D of

    ``exp(score(Q, D) + document_weight * log p(e|D) - collection_weight * log p(e|C))``

    with ``p(e|D) = (1 - smoothing) tf / |D| + smoothing * p(e|C)`` and ``p(e|C) = cf / |C|``. The most probable terms,
    the concepts, join the query in the column ``query_toks``, which :class:`SDM`, query likelihood and BM25 read::

        sdm = index.sdm()
        lce = pn.LatentConceptExpansion(index)
        sdm >> lce >> sdm           # feedback documents are the best of the incoming results
        lce >> sdm                  # the same: it retrieves them itself
        lce.retriever()             # the same again

    In this implementation:

    * score(Q, D) must be a log-likelihood of the query. Lucene's query likelihood ignores query terms that are not in
      a document, which would favour long documents, so their contribution is added here. That of missing windows,
      which weigh little, is not. Incoming results are assumed to have been scored by ``sdm``. Scores of BM25 are
      used as they are.
    * Document lengths are exact, unlike those that Lucene stores in one byte.
    * A concept may be a term of the query; the two weights are then added.
    * If queries come with a column ``query_toks``, it gives their terms and weights, which are then expanded further.
    * With ``collection_weight=0`` this is RM3 with the likelihoods of SDM. In trials, weights of 0.05 to 0.1 found
      rarer concepts; they raised AP a little on Cranfield and neural:pydocs, and lowered it on CACM and Vaswani.

    Args:
        index: An index with positions and term vectors, as indexes are built by default.
        fb_docs: Number of feedback documents.
        fb_terms: Number of concepts.
        original_weight: Weight of the query's terms against the concepts, above 0 and up to 1, as in RM3. The terms
            keep their weights, by default their counts, and so do the windows of SDM; together the concepts weigh
            ``(1 - original_weight) / original_weight`` times as much as the terms.
        document_weight: Weight of a concept's frequency in the feedback documents, above 0.
        collection_weight: Weight of a concept's rarity in the collection, at least 0.
        smoothing: Weight of the collection against the document in p(e|D), at least 0 and below 1.
        filter_terms: Take only concepts that Anserini's RM3 would take: of 2 to 20 letters and digits, and in no more
            than a tenth of all documents.
        keep_documents: Return incoming results with all rows and columns, and ``query_toks`` beside them, so that the
            same documents can be scored anew: ``candidates >> lce >> sdm``.
        sdm: Retrieves the feedback documents if none come in; otherwise, the retriever that has scored them. Default:
            ``index.sdm()``.
        verbose: Show a progress bar.

    Raises:
        TypeError: If an argument is of the wrong kind.
        ValueError: If one is out of range, or if ``sdm`` retrieves from another index.

    Example:
        >>> import pt_neural as pn
        >>> texts = ["okapi forest congo", "okapi forest ituri", *(f"word{i}" for i in range(30))]
        >>> index = pn.LuceneIndex("okapi.lucene").index({"docno": str(i), "text": t} for i, t in enumerate(texts))
        >>> pn.LatentConceptExpansion(index, fb_docs=2, fb_terms=2).concepts("okapi")["term"].tolist()
        ['forest', 'okapi']
    """

    schematic: ClassVar[dict[str, Any]] = {"label": "LCE", "help_url": None}

    def __init__(
        self,
        index: IndexDirectory,
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
        if not isinstance(index, IndexDirectory):
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
        self.sdm = SDM(index) if sdm is None else sdm
        self.verbose = verbose
        if self.smoothing >= 1:
            raise ValueError(f"smoothing={smoothing}, but with 1 or more nothing of a document is left; use less")
        if self.sdm.index != index:
            raise ValueError(f"{self.sdm!r} retrieves from another index than {index!r}; use sdm=index.sdm(...)")

    def retriever(self, **options: Any) -> pt.Transformer:
        """Expansion and retrieval: ``lce >> sdm``.

        Args:
            **options: Settings of the :class:`SDM` that retrieves, such as ``num_results``; otherwise those of ``sdm``.
        """
        return self >> pt.inspect.transformer_apply_attributes(self.sdm, **options)

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
        _, (concepts,) = self.on(self.index.opened())._find(pd.DataFrame({"qid": ["1"], "query": [query]}))
        weights = np.array(list(concepts.values()), dtype=np.float64)
        return pd.DataFrame({"term": pd.array(list(concepts), dtype="str"), "weight": weights})

    def on(self, index: IndexDirectory) -> Self:
        """The same expansion of another index."""
        result = copy.copy(self)
        result.index, result.sdm = index, self.sdm.on(index)
        return result

    def expand(self, queries: pd.DataFrame, feedback: Hits | None) -> list[dict[str, float]]:
        """The terms of each query and its concepts, with their weights; see :meth:`QueryExpansion.expand`."""
        analysed, concepts = self._find(queries, feedback)
        return [self._join(query.terms, found) for query, found in zip(analysed, concepts, strict=True)]

    def _join(self, terms: Mapping[str, float], concepts: Mapping[str, float]) -> dict[str, float]:
        mass = sum(terms.values()) * (1 - self.original_weight) / self.original_weight
        joined = dict.fromkeys([*terms, *concepts], 0.0)
        return {term: terms.get(term, 0.0) + mass * concepts.get(term, 0.0) for term in joined}

    def _find(
        self, queries: pd.DataFrame, feedback: Hits | None = None
    ) -> tuple[list[AnalysedQuery], list[dict[str, float]]]:
        """The analysed queries and the concepts of each; retrieves the feedback documents if they are not given."""
        index, field = self.index, self.sdm.field
        index.require_field(field)
        index.require_vectors(field)
        analysed = self._analyse(queries)
        feedback = self._retrieve(queries) if feedback is None else feedback
        concepts = []
        for chunk in in_chunks(len(analysed), CHUNK, label=self._label("concepts")):
            first, end = np.searchsorted(feedback.queries, [chunk.start, chunk.stop])
            documents = FeedbackDocuments.read(index.reader, field, feedback.documents[first:end])
            usable = np.ones(len(documents.terms), dtype=bool)
            if self.filter_terms:
                usable = usual_terms(documents.terms, documents.document_frequencies, len(index.reader))
            numbers, scores = feedback.queries[first:end], feedback.scores[first:end]
            for number, query in enumerate(analysed[chunk], chunk.start):
                rows = np.flatnonzero((numbers == number) & (documents.lengths > 0))
                concepts.append(self._most_probable(query, documents, rows, scores[rows], usable))
        return analysed, concepts

    def _analyse(self, queries: pd.DataFrame) -> list[AnalysedQuery]:
        builder = self.sdm.builder(weighted=False)
        analysis = self.index.analysis
        texts = [analysis.terms(text) for text in query_texts(queries)]
        given = query_weights(queries) if "query_toks" in queries.columns else [Counter(text) for text in texts]
        weights = ({str(term): float(weight) for term, weight in terms.items()} for terms in given)
        return [AnalysedQuery(terms, builder.term_weight(text)) for terms, text in zip(weights, texts, strict=True)]

    def _retrieve(self, queries: pd.DataFrame) -> Hits:
        chunks = self.sdm.hits(queries, self.fb_docs, progress=self._label("documents"))
        return Hits(*(np.concatenate(columns) for columns in zip(*chunks, strict=True)))

    def _most_probable(
        self,
        query: AnalysedQuery,
        documents: FeedbackDocuments,
        rows: np.ndarray,
        scores: np.ndarray,
        usable: np.ndarray,
    ) -> dict[str, float]:
        """The concepts of one query, whose feedback documents are in these rows."""
        if not query.terms or not len(rows):
            return {}
        counts = documents.counts[rows]
        occurring = np.unique(counts.indices)
        wanted = occurring[usable[occurring]]
        probabilities = concept_probabilities(
            scores + self._missing(query, documents, rows),
            counts[:, wanted].toarray(),
            documents.lengths[rows],
            documents.shares[wanted],
            smoothing=self.smoothing,
            document_weight=self.document_weight,
            collection_weight=self.collection_weight,
        )
        return most_probable(documents.terms[wanted], probabilities, self.fb_terms)

    def _missing(self, query: AnalysedQuery, documents: FeedbackDocuments, rows: np.ndarray) -> np.ndarray | float:
        """What Lucene leaves out of scores by query likelihood; nothing for BM25, which is no likelihood."""
        if self.sdm.base != "ql":
            return 0.0
        reader, field = self.index.reader, self.sdm.field
        frequencies = reader.collection_frequencies(list(query.terms), field)
        known = [term for term, frequency in zip(query.terms, frequencies, strict=True) if frequency]
        shares = (frequencies[frequencies > 0] + 1) / (reader.collection_length(field) + 1)  # Lucene adds one to both
        weights = query.term_weight * np.array([query.terms[term] for term in known])
        counts = documents.counts_of(known, rows)
        return missing_from_query_likelihood(counts, documents.lengths[rows], shares, weights, self.sdm.mu)

    def _label(self, what: str) -> str | None:
        return f"{self!r} {what}" if self.verbose else None

    def _settings(self) -> dict[str, Any]:
        defaults = type(self).__init__.__kwdefaults__
        return {name: getattr(self, name) for name in defaults if name not in ("sdm", "verbose")}

    def __repr__(self) -> str:
        defaults = type(self).__init__.__kwdefaults__
        shown = [name for name, value in self._settings().items() if name in ALWAYS_SHOWN or value != defaults[name]]
        settings = [f"{name}={getattr(self, name)!r}" for name in shown]
        settings += [] if self.sdm == SDM(self.index) else [f"sdm={self.sdm!r}"]
        return f"LatentConceptExpansion({', '.join([repr(self.index.name), *settings])})"

    def _identity(self) -> tuple[Any, ...]:
        return (self.index, self.sdm, *self._settings().values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LatentConceptExpansion) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())


def concept_probabilities(
    log_likelihoods: np.ndarray,  # score(Q, D): (documents,); adding a constant to all of them changes nothing
    counts: np.ndarray,  # tf: (documents, terms)
    lengths: np.ndarray,  # |D|: (documents,), above 0
    shares: np.ndarray,  # p(e|C): (terms,), above 0
    *,
    smoothing: float,
    document_weight: float,
    collection_weight: float,
) -> np.ndarray:
    """P(e|Q) of each term e, float64 of shape (terms,), up to a common factor; the formula is in the class above.

    With ``collection_weight=0`` and ``document_weight=1`` this is the relevance model RM1.
    """
    weights = np.exp(log_likelihoods - log_likelihoods.max())
    in_documents = (1 - smoothing) * counts / lengths[:, None] + smoothing * shares  # (documents, terms)
    # Summed document by document, so that terms with equal counts come out equal to the last bit, and tie.
    in_feedback = (weights[:, None] * in_documents**document_weight).sum(axis=0)  # (terms,)
    return in_feedback * shares**-collection_weight


def missing_from_query_likelihood(
    counts: np.ndarray, lengths: np.ndarray, shares: np.ndarray, weights: np.ndarray, mu: float
) -> np.ndarray:
    """What Lucene's query likelihood leaves out of log P(Q|D), up to a constant: float64 of shape (documents,).

    With Dirichlet smoothing (Zhai & Lafferty 2004), a term of the query adds ``log(1 + tf / (mu p)) + log(mu / (|D| +
    mu))`` to the log-likelihood of a document. Lucene drops negative values: those of terms that are not in the
    document, or rarer in it than in the collection. ``shares`` are p of each query term; ``counts`` are (documents,
    terms).
    """
    parts = np.log1p(counts / (mu * shares)) + np.log(mu / (lengths + mu))[:, None]  # (documents, terms)
    return np.minimum(parts, 0) @ weights


def usual_terms(terms: np.ndarray, document_frequencies: np.ndarray, num_documents: int) -> np.ndarray:
    """The terms that Anserini's RM3 would add (but not only ASCII): 2 to 20 letters and digits, in few documents."""
    fine = [MIN_LETTERS <= len(term) <= MAX_LETTERS and term.isalnum() for term in terms]
    return np.array(fine, dtype=bool) & (document_frequencies <= MAX_SHARE * num_documents)


def most_probable(terms: np.ndarray, probabilities: np.ndarray, number: int) -> dict[str, float]:
    """The best of the sorted terms, most probable first, equal ones in ascending order; their weights add up to 1."""
    best = np.argsort(-probabilities, kind="stable")[:number]
    best = best[probabilities[best] > 0]
    shares = probabilities[best] / probabilities[best].sum()
    return dict(zip(terms[best].tolist(), shares.tolist(), strict=True))


class AnalysedQuery(NamedTuple):
    """The weights of a query's terms, and the factor that SDM multiplies them by beside its windows."""

    terms: Mapping[str, float]
    term_weight: float


class FeedbackDocuments(NamedTuple):
    """The contents of feedback documents, and the statistics of their terms in the collection."""

    terms: np.ndarray  # all terms of these documents in ascending order, strings as objects
    counts: csr_array  # (documents, terms), int64
    lengths: np.ndarray  # the exact number of term occurrences in each document
    document_frequencies: np.ndarray  # the number of documents in the collection with each term
    shares: np.ndarray  # of each term in all term occurrences of the collection

    @classmethod
    def read(cls, reader: Reader, field: str, documents: np.ndarray) -> FeedbackDocuments:
        """The documents with these numbers, in this order, repetitions included."""
        distinct, rows = np.unique(documents, return_inverse=True)
        terms, counts = reader.term_counts(distinct, field)
        shares = reader.collection_frequencies(terms, field) / reader.collection_length(field)
        lengths = counts.sum(axis=1)
        return cls(terms, counts[rows], lengths[rows], reader.document_frequencies(terms, field), shares)

    def counts_of(self, terms: Sequence[str], rows: np.ndarray) -> np.ndarray:
        """How often the documents in ``rows`` have each term, of shape ``(len(rows), len(terms))``."""
        wanted = np.array(terms, dtype=object)
        columns = np.searchsorted(self.terms, wanted).clip(max=len(self.terms) - 1)
        return self.counts[rows][:, columns].toarray() * (self.terms[columns] == wanted)
