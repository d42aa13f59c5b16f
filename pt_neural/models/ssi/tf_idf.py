"""Cosine of tf-idf vectors, the first baseline of the SSI paper."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Unpack

import numpy as np
import pandas as pd

from pt_neural._arguments import checked_choice, checked_number
from pt_neural._artifacts import ArtifactError
from pt_neural.rankers.kept.term_vectors import TermVectors
from pt_neural.rankers.options import RepresentationOptions
from pt_neural.rankers.representation import RepresentationRanker
from pt_neural.rankers.vectors import Vectors
from pt_neural.text import ForwardIndex, PackedSequences, TfIdf, Vocabulary, tokenise_packed
from pt_neural.text.counts import count_corpus
from pt_neural.text.vocabulary import OwnIds


class TFIDF(RepresentationRanker):
    """Cosine of the tf-idf vectors of query and document: q'Wd with W = I (SSI paper, section 2.2.1).

    A text's vector has tf idf for each of its terms, with idf = ln((1 + N) / (1 + df)) + 1 in a collection of N
    documents, and is scaled to length 1. Terms that the collection lacks are ignored. A document that shares no term
    with the query scores 0, and is never retrieved; when re-ranked, such documents tie.

    Args:
        sublinear_tf: Weigh tf occurrences as 1 + ln tf; False as tf.
        min_count: Terms that occur less often are left out.
        max_terms: Number of most frequent terms to keep; None keeps all.

    Attributes:
        vocabulary: The terms, with their document frequencies; None until :meth:`fit_corpus`.

    Raises:
        TypeError: If an argument is of another kind than described.
        ValueError: If a setting is out of range.

    Example::

        tfidf = pn.TFIDF().fit_corpus(docs.get_corpus_iter())
        vectors = tfidf.index("pydocs.terms", docs.get_corpus_iter())
        tfidf.retriever(vectors).search("pairwise distance")
    """

    schematic = {"label": "TFIDF", "help_url": None}
    artifact_format = "tf-idf"
    fitting: ClassVar[str] = "tfidf.fit_corpus(docs.get_corpus_iter())"
    kept_as: ClassVar[type] = TermVectors
    least_score = 0.0
    has_encoders = False

    def __init__(
        self,
        *,
        sublinear_tf: bool = False,
        min_count: int = 1,
        max_terms: int | None = None,
        **options: Unpack[RepresentationOptions],
    ):
        self.sublinear_tf = checked_choice("sublinear_tf", sublinear_tf, (True, False))
        self.min_count = checked_number("min_count", min_count, int, least=1)
        self.max_terms = checked_number("max_terms", max_terms, int, least=1, optional=True)
        self.vocabulary: Vocabulary | None = None
        self._own_ids = OwnIds()
        super().__init__(**options)

    def fit_corpus(
        self, corpus: Iterable[Mapping[str, Any]] | pd.DataFrame | ForwardIndex, *, verbose: bool = True
    ) -> "TFIDF":
        """Count the terms of a collection.

        Args:
            corpus: Documents with ``docno`` and text, read once, or a forward index.
            verbose: Show a progress bar while reading.

        Returns:
            This ranker.

        Raises:
            TypeError: If the corpus is none of these.
            ValueError: If there are no terms; if ``vectors`` are set; or if the forward index holds other fields than
                the model reads.
        """
        self._require_no_vectors()
        self._settle_fields(corpus)
        limits = {"min_count": self.min_count, "max_terms": self.max_terms}
        vocabulary, _ = count_corpus(corpus, **limits, fields=self.fields, desc=f"{self!r} terms", verbose=verbose)
        if len(vocabulary) == 0:
            raise ValueError(
                f"no term of the {vocabulary.num_documents:,} documents occurs at least {self.min_count} times; give "
                "more documents or a smaller min_count"
            )
        self._set(vocabulary)
        self._mark_fitted()
        return self

    def _set(self, vocabulary: Vocabulary) -> None:
        self.vocabulary, self._tf_idf = vocabulary, TfIdf(vocabulary, sublinear_tf=self.sublinear_tf)

    def represent_queries(self, texts: Sequence[str]) -> Vectors:
        """Unit tf-idf vectors of queries; zero where no term is known."""
        self._require_fitted()
        return Vectors(None, self._tf_idf.of_sequences(tokenise_packed(texts, self.vocabulary, drop_unknown=True)))

    def represent_documents(self, sequences: PackedSequences, vocabulary: Vocabulary) -> Vectors:
        """Unit tf-idf vectors of documents; zero where no term is known."""
        self._require_fitted()
        return Vectors(None, self._tf_idf.of_sequences(self._own_ids(sequences, vocabulary, self.vocabulary)))

    def _identity_parts(self) -> tuple[dict[str, np.ndarray], list[bytes]]:
        return {"idf": self._tf_idf.idf}, ["\n".join(self.vocabulary.terms).encode(errors="surrogatepass")]

    def _save_parts(self, directory: Path) -> None:
        self.vocabulary.save(directory / "vocabulary")

    def _load_parts(self, directory: Path) -> None:
        vocabulary = Vocabulary.load(directory / "vocabulary")
        if vocabulary.document_frequency is None:
            raise ArtifactError(f"{directory / 'vocabulary' / 'counts.json'} is damaged: no document frequencies")
        self._set(vocabulary)

    def __repr__(self) -> str:
        return f"TFIDF({'sublinear_tf=True' if self.sublinear_tf else ''})"
