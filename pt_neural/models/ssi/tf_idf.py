"""Cosine of tf-idf vectors, the first baseline of the SSI paper."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Unpack

import numpy as np

from pt_neural._arguments import checked_choice, checked_number
from pt_neural._files import ArtifactError
from pt_neural._temporary import SparseBlocks
from pt_neural.rankers.kept.term_vectors import TermVectors
from pt_neural.rankers.options import RepresentationOptions
from pt_neural.rankers.representation import RepresentationRanker
from pt_neural.rankers.term_counts import fit_to_counts
from pt_neural.rankers.vectors import Vectors
from pt_neural.text import PackedSequences, TfIdf, Vocabulary, tokenise_packed
from pt_neural.text.vocabulary import OwnIds


class TFIDF(RepresentationRanker):
    """Cosine of the tf-idf vectors of query and document: q'Wd with W = I (SSI paper, section 2.2.1).

    A text's vector has tf idf for each of its terms, with idf = ln((1 + N) / (1 + df)) + 1 in a collection of N
    documents, and is scaled to length 1. Unknown terms are ignored. A document that shares no term
    with the query scores 0, and is never retrieved; when re-ranked, such documents tie.

    Args:
        sublinear_tf: Replace the term frequency tf by 1 + ln tf.
        min_count: Terms that occur less often are left out.
        max_terms: Number of most frequent terms to keep; None keeps all.

    Attributes:
        vocabulary: The terms, with their document frequencies; None until :meth:`fit_corpus`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a setting is out of range.

    Example::

        tfidf = pn.TFIDF().fit_corpus(docs.get_corpus_iter())
        vectors = tfidf.index("pydocs.terms", docs.get_corpus_iter())
        tfidf.retriever(vectors).search("pairwise distance")
    """

    schematic = {"label": "TFIDF", "help_url": None}
    artifact_format = "tf-idf"
    fitting: ClassVar[str] = "tfidf.fit_corpus(docs.get_corpus_iter())"
    fit_corpus = fit_to_counts
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

    def _learn_counts(self, vocabulary: Vocabulary, counts: SparseBlocks, *, verbose: bool) -> None:
        self._set(vocabulary)
        self._mark_fitted()

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
