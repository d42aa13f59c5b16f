"""Cosine of tf-idf vectors, the first baseline of the SSI paper."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from pt_neural._arguments import checked_choice, checked_number
from pt_neural._artifacts import ArtifactError
from pt_neural.rankers import BilinearRanker, TermVectors
from pt_neural.rankers.fingerprint import fingerprint
from pt_neural.rankers.last_vocabulary import OwnIds
from pt_neural.rankers.weighed import Weighed
from pt_neural.text import ForwardIndex, PackedSequences, Vocabulary, tokenise_packed
from pt_neural.text.counts import count_corpus
from pt_neural.text.tf_idf import TfIdf

FITTED_WITH = ("sublinear_tf", "min_count", "max_terms")


class TFIDF(BilinearRanker):
    """Cosine of the tf-idf vectors of query and document: q'Wd with W = I (SSI paper, section 2.2.1).

    A text's vector has tf idf for each of its terms, idf = ln((1 + N) / (1 + df)) + 1 in a collection of N documents,
    and is scaled to length 1. Terms that the collection lacks are ignored. A document that shares no term with the
    query scores 0, and is never retrieved; re-ranked, such documents tie.

    Args:
        sublinear_tf: Weigh tf occurrences as 1 + ln tf; False as tf.
        min_count: Terms that occur less often are left out.
        max_terms: Keep only that many of the most frequent terms; None keeps all.
        fields: Text columns, joined by a space; those that a frame lacks are passed over, one must be there. None for
            those of ``documents``, or ``title`` and ``text``.
        documents: A forward index, to re-rank by ``docno``.
        vectors: What :meth:`~BilinearRanker.index` made, or the path of it, to re-rank by ``docno`` from kept vectors.
        batch_size: Documents weighed at a time.
        verbose: Show a progress bar while weighing documents.

    Attributes:
        vocabulary: The terms, with their document frequencies; None until :meth:`fit_corpus`.

    Raises:
        TypeError: If an argument is of another kind than said here.
        ValueError: If a setting is out of range.

    Example::

        tfidf = pn.TFIDF().fit_corpus(docs.get_corpus_iter())
        vectors = tfidf.index("pydocs.terms", docs.get_corpus_iter())
        tfidf.retriever(vectors).search("pairwise distance")
    """

    schematic = {"label": "TFIDF", "help_url": None}
    artifact_format = "tf-idf"

    def __init__(
        self,
        *,
        sublinear_tf: bool = False,
        min_count: int = 1,
        max_terms: int | None = None,
        fields: str | Sequence[str] | None = None,
        documents: ForwardIndex | None = None,
        vectors: TermVectors | None = None,
        batch_size: int = 1024,
        verbose: bool = False,
    ):
        self.sublinear_tf = checked_choice("sublinear_tf", sublinear_tf, (True, False))
        self.min_count = checked_number("min_count", min_count, int, least=1)
        self.max_terms = checked_number("max_terms", max_terms, int, least=1, optional=True)
        self.vocabulary: Vocabulary | None = None
        self._own_ids = OwnIds()
        super().__init__(fields=fields, documents=documents, vectors=vectors, batch_size=batch_size, verbose=verbose)

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
        return self._set(vocabulary)

    def _set(self, vocabulary: Vocabulary) -> "TFIDF":
        self._weights = TfIdf(vocabulary, sublinear_tf=self.sublinear_tf)
        self.vocabulary = vocabulary
        self._fitted_with = {name: getattr(self, name) for name in FITTED_WITH}
        terms = "\n".join(vocabulary.terms).encode(errors="surrogatepass")
        self._fingerprint = fingerprint([self.artifact_format, self.sublinear_tf], {"idf": self._weights.idf}, terms)
        return self

    def weigh_queries(self, texts: Sequence[str]) -> Weighed:
        """Unit tf-idf vectors of queries; zero where no term is known."""
        return self.weigh_documents(texts)

    def weigh_documents(self, texts: Sequence[str]) -> Weighed:
        """Unit tf-idf vectors of texts; zero where no term is known."""
        self._require_fitted()
        return self._weigh(tokenise_packed(texts, self.vocabulary, drop_unknown=True))

    def weigh_sequences(self, sequences: PackedSequences, vocabulary: Vocabulary) -> Weighed:
        """Unit tf-idf vectors of documents given as term ids over another vocabulary."""
        self._require_fitted()
        return self._weigh(self._own_ids(sequences, vocabulary, self.vocabulary))

    def _weigh(self, sequences: PackedSequences) -> Weighed:
        return Weighed(None, self._weights.of_sequences(sequences))

    def _require_fitted(self) -> None:
        if self.vocabulary is None:
            raise RuntimeError(f"{self!r} knows no documents yet; call tfidf.fit_corpus(docs.get_corpus_iter()) first")
        if changed := [name for name in FITTED_WITH if getattr(self, name) != self._fitted_with[name]]:
            raise RuntimeError(f"{', '.join(changed)} of {self!r} changed after fit_corpus: fit again, or change back")

    def settings(self) -> dict[str, Any]:
        """What makes the model what it is."""
        return {name: getattr(self, name) for name in FITTED_WITH}

    def fingerprint(self) -> str | None:
        """Changes with what was fitted; None before :meth:`fit_corpus`."""
        return None if self.vocabulary is None else self._fingerprint

    def _save_parts(self, directory: Path) -> None:
        self.vocabulary.save(directory / "vocabulary")

    def _load_parts(self, directory: Path) -> None:
        vocabulary = Vocabulary.load(directory / "vocabulary")
        if vocabulary.document_frequency is None:
            raise ArtifactError(f"{directory / 'vocabulary' / 'counts.json'} is damaged: no document frequencies")
        self._set(vocabulary)

    def __repr__(self) -> str:
        return f"TFIDF({'sublinear_tf=True' if self.sublinear_tf else ''})"
