"""Query expansion by blind relevance feedback (Rocchio, 1971), a baseline of the SSI paper."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypedDict

import numpy as np
import pandas as pd
import pyterrier as pt
from scipy.sparse import csr_array

from pt_neural._arguments import checked_number
from pt_neural._frames import EXPANDED_BY, ranks
from pt_neural.models.ssi.tf_idf import TFIDF
from pt_neural.rankers.columns import distinct_queries
from pt_neural.rankers.kept.term_vectors import TermVectors
from pt_neural.rankers.ranker import Ranker
from pt_neural.rankers.retriever import Retriever, search
from pt_neural.rankers.vectors import Vectors


class NoOptions(TypedDict):
    """No shared options: the TFIDF has them."""


class Rocchio(Ranker):
    """TFIDF, and TFIDF again with queries that its first results have expanded (SSI paper, section 4).

    The vector q of a query becomes q + beta (d_1 + ... + d_E) / E, with the vectors of the E documents that
    :class:`TFIDF` ranks first, and is scaled to length 1 again, so that scores stay cosines. Only documents that share
    a term with the query count; if there are fewer, E is their number.

    The transformer re-ranks: the first E documents are taken from a query's candidates. Its :meth:`retriever` searches
    the whole collection twice. The TFIDF decides which columns are needed, and where documents are read from: set
    ``rocchio.tfidf.documents`` or ``rocchio.tfidf.vectors``.

    It gives no queries for ``bm25 >> ... >> bm25``: ``index.rocchio().rewriter()`` of a Lucene index does, see
    :meth:`LuceneIndex.rocchio <pt_neural.LuceneIndex.rocchio>`.

    The paper chooses both settings on the training data.

    Args:
        tfidf: A fitted TFIDF.
        beta: Weight of the mean of the documents; the query's weight is 1.
        feedback_docs: E, the number of documents that expand a query.

    Raises:
        TypeError: If ``tfidf`` is something else, or a setting is not a number.
        ValueError: If ``beta`` is below 0 or above a million, or ``feedback_docs`` below 1.

    Example::

        rocchio = pn.Rocchio(tfidf, beta=0.5, feedback_docs=5)
        rocchio.retriever(vectors).search("pairwise distance")
        (bm25 % 100 >> index.text_loader() >> rocchio).search("pairwise distance")
    """

    schematic = {"label": "Rocchio", "help_url": None}
    artifact_format = "rocchio"
    options_type: ClassVar[type] = NoOptions
    components: ClassVar[dict[str, Callable[..., Any]]] = {"tfidf": TFIDF.load}
    free_settings: ClassVar[tuple[str, ...]] = ("beta", "feedback_docs")
    queries_per_block: ClassVar[int] = TFIDF.queries_per_block

    def __init__(self, tfidf: TFIDF, *, beta: float = 0.75, feedback_docs: int = 10):
        if not isinstance(tfidf, TFIDF):
            raise TypeError(f"tfidf must be a fitted TFIDF, not {tfidf!r:.80}")
        self.tfidf = tfidf
        self.beta = checked_number("beta", beta, float, least=0, most=1e6)
        self.feedback_docs = checked_number("feedback_docs", feedback_docs, int, least=1)
        super().__init__()

    @property
    def fields(self) -> tuple[str, ...]:
        """The text columns of the TFIDF."""
        return self.tfidf.fields

    @property
    def is_fitted(self) -> bool:
        """Whether the TFIDF is."""
        return self.tfidf.is_fitted

    def _require_fitted(self) -> None:
        self.tfidf._require_fitted()

    def fingerprint(self) -> str | None:
        """The fingerprint of the TFIDF, which makes the vectors of documents."""
        return self.tfidf.fingerprint()

    def check_columns(self, frame: pd.DataFrame, context: pt.Transformer) -> None:
        """Raise an error in the name of ``context`` if a frame lacks columns that are needed to score its rows."""
        self.tfidf.check_columns(frame, context)

    def _scored(self, inp: pd.DataFrame) -> pd.DataFrame:
        results = super()._scored(inp)
        results.attrs[EXPANDED_BY] = repr(self)  # a retriever that scores them next warns
        return results

    def score(self, frame: pd.DataFrame) -> np.ndarray:
        """Scores of the rows of a result frame; it needs the columns that the TFIDF needs."""
        self._require_fitted()
        text_rows, texts = distinct_queries(frame)
        documents, document_rows = self.tfidf._frame_representations(frame)
        # The same query may come with other candidates under another qid.
        query_rows, pairs = pd.factorize(pd.MultiIndex.from_arrays([pd.factorize(frame["qid"])[0], text_rows]))
        queries = self.tfidf.represent_queries(texts).take(pairs.get_level_values(1).to_numpy())
        first = self.tfidf.score_pairs(queries, query_rows, documents, document_rows)
        chosen = self._first(query_rows, first, frame["docno"])
        feedback = _ones(query_rows[chosen], document_rows[chosen], (len(pairs), documents.number))
        return self.tfidf.score_pairs(self.expand(queries, feedback, documents), query_rows, documents, document_rows)

    def _first(self, queries: np.ndarray, scores: np.ndarray, docnos: pd.Series) -> np.ndarray:
        """Numbers of the pairs whose documents expand queries, each document once."""
        repeated = pd.DataFrame({"query": queries, "docno": docnos.to_numpy()}).duplicated().to_numpy()
        found = np.flatnonzero((scores > 0) & ~repeated)
        return found[ranks(pd.Series(queries[found]), scores[found], docnos.iloc[found]) < self.feedback_docs]

    def expand(self, queries: Vectors, feedback: csr_array, documents: Vectors) -> Vectors:
        """Add the mean of feedback documents to each query, and scale it to length 1 again.

        ``feedback`` is 1 where a document expands a query, ``(queries, documents)``; other queries stay as they are.
        """
        from sklearn.preprocessing import normalize

        number = np.repeat(np.maximum(feedback.sum(axis=1), 1), np.diff(feedback.indptr))
        chosen, columns = np.unique(feedback.indices, return_inverse=True)
        shares = csr_array((feedback.data / number, columns, feedback.indptr), shape=(queries.number, len(chosen)))
        means = shares @ documents.take(chosen).sparse
        return Vectors(None, normalize(queries.sparse + np.float32(self.beta) * means))

    def open_kept(self, vectors: TermVectors | str | os.PathLike) -> TermVectors:
        """The documents that the ``index`` of the TFIDF has written, given as its result or as its path."""
        return self.tfidf.open_kept(vectors)

    def represent_queries(self, texts: Sequence[str]) -> Vectors:
        """Queries as the TFIDF represents them, not expanded."""
        return self.tfidf.represent_queries(texts)

    def adapt_queries(self, queries: Vectors, kept: TermVectors) -> Vectors:
        """Queries that their best documents of a collection expand."""
        found = search(self.tfidf, queries, queries.number, kept, self.feedback_docs)
        numbers = np.repeat(np.arange(queries.number), [len(best.documents) for best in found])
        documents = np.concatenate([best.documents for best in found])
        return self.expand(queries, _ones(numbers, documents, (queries.number, len(kept))), kept.vectors)

    def score_all(self, queries: Vectors, kept: TermVectors, block: slice) -> np.ndarray:
        """Scores of a block of documents; -inf for documents not to be found."""
        return self.tfidf.score_all(queries, kept, block)

    def retriever(
        self, vectors: TermVectors | str | os.PathLike, *, num_results: int = 1000, verbose: bool = False
    ) -> Retriever:
        """Search the whole collection, exactly, and again with the expanded queries.

        Args:
            vectors: What the ``index`` of the TFIDF returned, or its path.
            num_results: Documents a query.
            verbose: Show a progress bar.
        """
        return Retriever(self, vectors, num_results=num_results, verbose=verbose)

    @classmethod
    def _arguments(cls, config: Any) -> dict[str, Any]:
        return config["settings"]

    def _identity_parts(self) -> tuple[dict[str, np.ndarray], list[bytes]]:
        return {}, []

    def _save_parts(self, directory: Path) -> None:
        pass

    def _load_parts(self, directory: Path) -> None:
        pass

    def subtransformers(self) -> dict:
        """None: the TFIDF is what this transformer is made of, not a stage before it."""
        return {}

    def __repr__(self) -> str:
        return f"Rocchio({self.tfidf!r}, beta={self.beta:g}, feedback_docs={self.feedback_docs})"


def _ones(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> csr_array:
    return csr_array((np.ones(len(rows), dtype=np.float32), (rows, columns)), shape=shape)
