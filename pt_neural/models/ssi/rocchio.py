"""Query expansion by blind relevance feedback (Rocchio, 1971), a baseline of the SSI paper."""

import os
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyterrier as pt
from scipy.sparse import csr_array

from pt_neural._arguments import checked_number
from pt_neural._frames import ranks, with_scores
from pt_neural.models.ssi.tf_idf import TFIDF
from pt_neural.rankers import TermVectors
from pt_neural.rankers.bilinear_retriever import BilinearRetriever
from pt_neural.rankers.collection_scores import collection_scores
from pt_neural.rankers.columns import distinct_queries
from pt_neural.rankers.retriever import best
from pt_neural.rankers.saved import Saved
from pt_neural.rankers.weighed import Weighed, products


class Rocchio(Saved, pt.Transformer):
    """TFIDF, and TFIDF again with queries that the first results have expanded (SSI paper, section 4).

    The vector q of a query becomes q + beta (d_1 + ... + d_E) / E, with the vectors of the E documents that
    :class:`TFIDF` ranks first, and is scaled to length 1 again, so that scores stay cosines. Only documents that share
    a term with the query count; where they are fewer, E is their number.

    As a transformer it re-ranks: the first E are those of the candidates that come in with a query. Its
    :meth:`retriever` searches the whole collection twice. The columns that it needs, and where documents are read
    from, are those of the TFIDF: set ``rocchio.tfidf.documents`` or ``rocchio.tfidf.vectors``.

    The paper chooses both settings on the training data.

    Args:
        tfidf: A fitted TFIDF.
        beta: Weight of the mean of the documents; the query has 1.
        feedback_docs: E, documents that expand a query.

    Raises:
        TypeError: If ``tfidf`` is something else, or a setting no number.
        ValueError: If ``beta`` is below 0, or ``feedback_docs`` below 1.

    Example::

        rocchio = pn.Rocchio(tfidf, beta=0.5, feedback_docs=5)
        rocchio.retriever(vectors).search("pairwise distance")
        (bm25 % 100 >> index.text_loader() >> rocchio).search("pairwise distance")
    """

    schematic = {"label": "Rocchio", "help_url": None}
    artifact_format = "rocchio"
    free_settings: ClassVar[tuple[str, ...]] = ("beta", "feedback_docs")

    def __init__(self, tfidf: TFIDF, *, beta: float = 0.75, feedback_docs: int = 10):
        if not isinstance(tfidf, TFIDF):
            raise TypeError(f"tfidf must be a fitted TFIDF, not {tfidf!r:.80}")
        self.tfidf = tfidf
        self.beta = checked_number("beta", beta, float, least=0)
        self.feedback_docs = checked_number("feedback_docs", feedback_docs, int, least=1)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Re-rank a result frame; it needs the columns that the TFIDF needs."""
        self.tfidf.check_columns(inp, self)
        if inp.empty:
            return with_scores(inp, np.zeros(0))
        text_rows, texts = distinct_queries(inp)
        documents, document_rows = self.tfidf.frame_documents(inp)
        # The same query may come with other candidates under another qid.
        query_rows, pairs = pd.factorize(pd.MultiIndex.from_arrays([pd.factorize(inp["qid"])[0], text_rows]))
        queries = self.tfidf.weigh_queries(texts).take(pairs.get_level_values(1).to_numpy())
        first = products(queries, query_rows, documents, document_rows)
        chosen = self._first(query_rows, first, inp["docno"])
        shape = len(pairs), documents.terms.shape[0]
        feedback = _ones(query_rows[chosen], document_rows[chosen], shape)
        expanded = self.expand(queries, feedback, documents)
        return with_scores(inp, products(expanded, query_rows, documents, document_rows))

    def _first(self, queries: np.ndarray, scores: np.ndarray, docnos: pd.Series) -> np.ndarray:
        """Numbers of the pairs whose documents expand queries, each document once."""
        repeated = pd.DataFrame({"query": queries, "docno": docnos.to_numpy()}).duplicated().to_numpy()
        found = np.flatnonzero((scores > 0) & ~repeated)
        return found[ranks(pd.Series(queries[found]), scores[found], docnos.iloc[found]) < self.feedback_docs]

    def expand(self, queries: Weighed, feedback: csr_array, documents: Weighed) -> Weighed:
        """Add the mean of some documents to each query.

        Args:
            queries: Unit vectors.
            feedback: 1 where a document expands a query, of shape ``(queries, documents)``.
            documents: Unit vectors.

        Returns:
            Unit vectors of the expanded queries; a query that no document expands stays as it is.
        """
        from sklearn.preprocessing import normalize

        number = np.repeat(np.maximum(feedback.sum(axis=1), 1), np.diff(feedback.indptr))
        shares = csr_array((feedback.data / number, feedback.indices, feedback.indptr), shape=feedback.shape)
        return Weighed(None, normalize(queries.terms + np.float32(self.beta) * (shares @ documents.terms)))

    def retriever(
        self, vectors: TermVectors | str | os.PathLike, *, num_results: int = 1000, verbose: bool = False
    ) -> "RocchioRetriever":
        """Search the whole collection, exactly, and again with the expanded queries.

        Args:
            vectors: What the ``index`` of the TFIDF made, or the path of it.
            num_results: Documents a query.
            verbose: Show a progress bar.

        Returns:
            Transformer from ``qid, query`` to ``qid, query, docno, score, rank``.
        """
        return RocchioRetriever(self, vectors, num_results=num_results, verbose=verbose)

    @property
    def fields(self) -> tuple[str, ...]:
        """The text columns of the TFIDF."""
        return self.tfidf.fields

    def settings(self) -> dict[str, Any]:
        """What makes the model what it is, next to the TFIDF."""
        return {"beta": self.beta, "feedback_docs": self.feedback_docs}

    def fingerprint(self) -> str | None:
        """That of the TFIDF, whose vectors the documents have."""
        return self.tfidf.fingerprint()

    def _config(self) -> dict[str, Any]:
        return self.settings()

    @classmethod
    def _arguments(cls, config: Any, directory: Path) -> dict[str, Any]:
        return {**config, "tfidf": TFIDF.load(directory / "tfidf")}

    def _require_fitted(self) -> None:
        self.tfidf._require_fitted()

    def _save_parts(self, directory: Path) -> None:
        self.tfidf.save(directory / "tfidf")

    def subtransformers(self) -> dict:
        """None: the TFIDF is what this transformer is made of, not a stage before it."""
        return {}

    def __repr__(self) -> str:
        return f"Rocchio({self.tfidf!r}, beta={self.beta:g}, feedback_docs={self.feedback_docs})"


class RocchioRetriever(BilinearRetriever):
    """Retrieves the documents with the largest cosines to expanded queries, from all documents that a TFIDF kept.

    Args:
        model: Expands the queries.
        vectors: What the ``index`` of its TFIDF made, or the path of it.
        num_results: Documents a query.
        verbose: Show a progress bar over blocks of queries.

    Raises:
        TypeError: If ``num_results`` is no integer.
        ValueError: If it is below 1, or if another model made the vectors.
    """

    schematic = {"label": "RocchioRetriever", "help_url": None}

    def _scores(self, texts: list[str]) -> np.ndarray:
        queries = self.model.tfidf.weigh_queries(texts)
        hits = best(collection_scores(queries, self._table), self._table.order, self.model.feedback_docs)
        feedback = _ones(hits.queries, hits.documents, (len(texts), len(self._table)))
        return collection_scores(self.model.expand(queries, feedback, self._table.weighed), self._table)


def _ones(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> csr_array:
    return csr_array((np.ones(len(rows), dtype=np.float32), (rows, columns)), shape=shape)
