"""Rankers by query likelihood: the probability that a language model of the document generates the query."""

import os
import shutil
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Unpack

import numpy as np
import pandas as pd
import pyterrier as pt
from scipy.sparse import csr_array, issparse, vstack

from pt_neural._arguments import checked_number
from pt_neural._artifacts import atomic_directory, unchanged
from pt_neural._files import ArtifactError, read_tensors, write_tensors
from pt_neural._temporary import Spool
from pt_neural.datasets.docnos import DocnoTable
from pt_neural.rankers.kept.kept import Kept
from pt_neural.rankers.options import RepresentationOptions
from pt_neural.rankers.ranker import require_forward_index, require_same_fields
from pt_neural.rankers.representation import RepresentationRanker
from pt_neural.text import ForwardIndex, PackedSequences, Vocabulary, tokenise_packed
from pt_neural.text.counts import bag_of_words
from pt_neural.text.vocabulary import LastVocabulary, OwnIds

UNSEEN = 0.5  # occurrences in the collection of a word of training queries alone
LEAST = 1e-30  # with probability zero, all documents without a word would be alike

_DENSE_SUMS = 16  # columns of weights that are dense at once


@dataclass(frozen=True)
class DocumentCounts:
    """Documents as language models represent them.

    Attributes:
        counts: Occurrences of words, float32 csr matrix of shape ``(documents, words)``.
        lengths: Known words of each document, float32 of shape ``(documents,)``.
        extra: What the model adds, such as P(z|d): an array or csr matrix with a row for each document, or None.
        postings: The transpose of ``counts``, to score many queries with all documents; else None.
    """

    counts: csr_array
    lengths: np.ndarray
    extra: Any = None
    postings: csr_array | None = None

    @classmethod
    def of(cls, sequences: PackedSequences, num_words: int) -> "DocumentCounts":
        """Count the words of documents; ids outside ``range(num_words)`` are ignored."""
        counts = bag_of_words(sequences, num_words)
        return cls(counts, counts.sum(axis=1, dtype=np.float32))

    @classmethod
    def joined(cls, parts: Sequence["DocumentCounts"]) -> "DocumentCounts":
        """The documents of all parts, one part after another."""
        counts = vstack([part.counts for part in parts], format="csr")
        lengths = np.concatenate([part.lengths for part in parts])
        extras = [part.extra for part in parts]
        if extras[0] is None:
            return cls(counts, lengths)
        return cls(counts, lengths, vstack(extras, format="csr") if issparse(extras[0]) else np.concatenate(extras))

    def __len__(self) -> int:
        return self.counts.shape[0]

    def take(self, rows: np.ndarray) -> "DocumentCounts":
        """Some of the documents, without postings."""
        return DocumentCounts(self.counts[rows], self.lengths[rows], None if self.extra is None else self.extra[rows])

    def with_postings(self) -> "DocumentCounts":
        """The same documents with postings, which find the occurrences of a few words without reading all counts."""
        return replace(self, postings=self.counts.T.tocsr())

    def occurrences(self, words: np.ndarray) -> np.ndarray:
        """Occurrences of the given words in each document, float32 of shape ``(documents, words)``."""
        return self.counts[:, words].toarray() if self.postings is None else self.postings[words].toarray().T

    def weighted_sums(self, weights: csr_array) -> np.ndarray:
        """Sums of each document's counts by weights ``(sums, words)``: float32 of shape ``(documents, sums)``."""
        sums = np.empty((len(self), weights.shape[0]), dtype=np.float32)
        for start in range(0, weights.shape[0], _DENSE_SUMS):
            block = weights[start : start + _DENSE_SUMS].toarray()  # twice as fast dense as sparse
            sums[:, start : start + _DENSE_SUMS] = self.counts @ np.ascontiguousarray(block.T)
        return sums


class _Blocks:
    """Blocks of the documents of a collection, in a temporary file."""

    def __init__(self):
        self._spool, self._places = Spool(), {}

    def __call__(self, block: slice, represent: Callable[[], DocumentCounts]) -> DocumentCounts:
        """A block, represented when it is first asked for."""
        key = block.start, block.stop
        if key not in self._places:
            documents = represent()
            parts = documents.counts, documents.lengths, documents.extra, documents.postings
            self._places[key] = [self._spool.write(part) for part in parts]
        return DocumentCounts(*map(self._spool.read, self._places[key]))


class ForwardIndexTable(Kept):
    """A forward index in the role of kept documents, though it depends on no model."""

    def __init__(self, index: ForwardIndex):
        self.index = index
        self.path: str | os.PathLike = index.path

    @property
    def docnos(self) -> DocnoTable:
        """The docno of each document."""
        return self.index.docnos

    def require_made_by(self, model: "LanguageModelRanker") -> None:
        """Raise ValueError if the forward index holds other fields than the model reads."""
        require_same_fields(model.fields, self.index)

    def __reduce__(self) -> tuple:
        return ForwardIndexTable, (self.index,)


class LanguageModelRanker(RepresentationRanker):
    """Base of the rankers whose score is log P(q|d), where P(q|d) is the product of P(w|d) over the query's words.

    P(w|d) = unigram_weight · P_uni(w|d) + (1 - unigram_weight) · P_model(w|d). P_uni is the unigram language model with
    Dirichlet smoothing, (tf + mu P(w|C)) / (length of d + mu), where P(w|C) is the relative frequency of the word in
    the collection. P_model is what a model adds, as Wei & Croft (SIGIR 2006) add LDA. With ``unigram_weight=1`` all
    these rankers are the unigram model.

    A query is represented by its words, a document by :class:`DocumentCounts`. :meth:`index` writes a
    :class:`~pt_neural.ForwardIndex`, which does not depend on the model.

    Unknown words are ignored. A query without any known word scores 0 with every document; in a document without any,
    a word has its probability in the collection by the unigram model, and zero by P_model.

    A model implements :meth:`word_probabilities`, ``_arrays`` and ``_set_arrays``, and, where documents need more than
    their counts, ``_extra``; fitting ends with ``_set_vocabulary`` and ``_mark_fitted``.

    Args:
        unigram_weight: Weight of the unigram model, from 0 to 1; may be set on a fitted model.
        mu: Weight of the collection against the document, in words, above 0; may be set on a fitted model.

    Attributes:
        vocabulary: The words, with their frequencies in the collection; None before the model is fitted.
    """

    free_settings: ClassVar[tuple[str, ...]] = ("unigram_weight", "mu")
    has_encoders: ClassVar[bool] = False

    vocabulary: Vocabulary | None = None

    def __init__(self, *, unigram_weight: float, mu: float, **options: Unpack[RepresentationOptions]):
        self.unigram_weight, self.mu = unigram_weight, mu
        self._check_weights()
        self._own_ids = OwnIds()
        self._collection_counts = LastVocabulary()
        super().__init__(**options)

    def _check_weights(self) -> None:
        """Raise an error if a setting that may change on a fitted model is out of range."""
        self.unigram_weight = checked_number("unigram_weight", self.unigram_weight, float, least=0, most=1)
        self.mu = checked_number("mu", self.mu, float, above=0)

    def _require_fitted(self) -> None:
        super()._require_fitted()
        self._check_weights()

    @abstractmethod
    def word_probabilities(self, words: np.ndarray, documents: DocumentCounts) -> np.ndarray:
        """P_model(w|d), zero where the document is empty.

        Args:
            words: Distinct word ids, integers of shape ``(words,)``.
            documents: The documents.

        Returns:
            float32 of shape ``(documents, words)``.
        """

    @abstractmethod
    def _arrays(self) -> dict[str, np.ndarray]:
        """What was learned, by name."""

    @abstractmethod
    def _set_arrays(self, vocabulary: Vocabulary, arrays: Mapping[str, np.ndarray]) -> None:
        """Take what :meth:`_arrays` gave; KeyError or ValueError if arrays are missing or do not fit."""

    def _extra(self, sequences: PackedSequences, counts: DocumentCounts) -> Any:
        """What the model adds to the counts of documents, given as its own word ids, -1 for unknown words."""
        return None

    def _stored_extra(
        self, index: ForwardIndex, rows: np.ndarray, sequences: PackedSequences, counts: DocumentCounts
    ) -> Any:
        """The same for documents that are rows of a forward index."""
        return self._extra(sequences, counts)

    def _set_vocabulary(self, vocabulary: Vocabulary) -> None:
        """Take a vocabulary with collection frequencies, and forget what was computed with the last one."""
        frequency = np.maximum(vocabulary.collection_frequency, UNSEEN)
        self._collection = (frequency / frequency.sum()).astype(np.float32)
        self._own_ids, self._collection_counts = OwnIds(), LastVocabulary()
        self.vocabulary = vocabulary

    def represent_queries(self, texts: Sequence[str]) -> PackedSequences:
        """The known words of queries, in their order."""
        self._require_fitted()
        return tokenise_packed(texts, self.vocabulary, drop_unknown=True)

    def represent_documents(self, sequences: PackedSequences, vocabulary: Vocabulary) -> DocumentCounts:
        """The counts of documents, given as term ids over any vocabulary, and what the model adds to them."""
        self._require_fitted()
        return self._counted(sequences, vocabulary, self._extra)

    def _counted(self, sequences: PackedSequences, vocabulary: Vocabulary, extra: Callable) -> DocumentCounts:
        own = self._own_ids(sequences, vocabulary, self.vocabulary)
        counts = DocumentCounts.of(own, len(self.vocabulary))
        return replace(counts, extra=extra(own, counts))

    def represent_block(self, index: ForwardIndex, block: slice) -> DocumentCounts:
        """Consecutive documents of a forward index, with postings; those of the last index stay in a temporary file."""
        self._require_fitted()
        blocks = self._collection_counts(_Blocks, index.vocabulary)
        return blocks(block, lambda: self._represent_rows(index, np.arange(block.start, block.stop)).with_postings())

    def _represent_rows(self, index: ForwardIndex, rows: np.ndarray) -> DocumentCounts:
        """Documents that are rows of a forward index."""

        def represent(block: np.ndarray) -> DocumentCounts:
            extra = partial(self._stored_extra, index, rows[block])
            return self._counted(index.all().take(rows[block]), index.vocabulary, extra)

        return self._in_batches(len(rows), represent)

    def _represent_distinct(self, sequences: PackedSequences, vocabulary: Vocabulary) -> DocumentCounts:
        return self._in_batches(
            len(sequences), lambda block: self.represent_documents(sequences.take(block), vocabulary)
        )

    def _in_batches(self, number: int, represent: Callable[[np.ndarray], DocumentCounts]) -> DocumentCounts:
        """Represent documents ``batch_size`` at a time: only counts are ever in memory for all of them."""
        starts = range(0, max(number, 1), self.batch_size)
        quiet = not self.verbose or len(starts) == 1
        progress = pt.tqdm(starts, desc=f"{self!r} documents", unit="batch", disable=quiet)
        blocks = (np.arange(start, min(start + self.batch_size, number)) for start in progress)
        return DocumentCounts.joined([represent(block) for block in blocks])

    def _frame_representations(self, frame: pd.DataFrame) -> tuple[DocumentCounts, np.ndarray]:
        if self._kept is not None:
            self._kept.require_made_by(self)
        documents = self.documents if self._kept is None else self._kept.index
        if documents is not None:
            rows, docnos = pd.factorize(frame["docno"], use_na_sentinel=False)
            return self._represent_rows(documents, documents.known_rows(list(docnos))), rows
        return super()._frame_representations(frame)

    def score_pairs(
        self, queries: PackedSequences, query_rows: np.ndarray, documents: DocumentCounts, document_rows: np.ndarray
    ) -> np.ndarray:
        """Log P(q|d) of pairs of a query and a document, float64 of shape ``(pairs,)``."""
        scores = np.empty(len(query_rows))
        order = np.argsort(query_rows, kind="stable")
        bounds = np.searchsorted(query_rows[order], np.arange(len(queries) + 1))
        progress = pt.tqdm(queries, desc=repr(self), unit="query", total=len(queries), disable=not self.verbose)
        for words, start, stop in zip(progress, bounds[:-1], bounds[1:], strict=True):
            pairs = order[start:stop]
            scores[pairs] = self.log_likelihoods(words, documents.take(document_rows[pairs]))
        return scores

    def score_all(self, queries: PackedSequences, kept: ForwardIndexTable, block: slice) -> np.ndarray:
        """Log P(q|d) of consecutive documents of a forward index for each query.

        Returns:
            float64 of shape ``(queries, documents)``; -inf for queries and for documents without any known word.
        """
        with self.silent_scoring():  # within the bar of the retriever
            documents = self.represent_block(kept.index, block)
        scores = np.full((len(queries), len(documents)), -np.inf)
        for row, words in zip(scores, queries, strict=True):
            if len(words):
                row[:] = self.log_likelihoods(words, documents)
        scores[:, documents.lengths == 0] = -np.inf
        return scores

    def collection_probabilities(self, words: np.ndarray) -> np.ndarray:
        """P(w|C), the relative frequencies of words in the collection: float32 of shape ``(words,)``."""
        return self._collection[words]

    def unigram_probabilities(self, words: np.ndarray, documents: DocumentCounts) -> np.ndarray:
        """P_uni(w|d), the unigram language model with Dirichlet smoothing: float32 of shape ``(documents, words)``."""
        counts = documents.occurrences(words) + np.float32(self.mu) * self._collection[words]
        return counts / (documents.lengths + np.float32(self.mu))[:, None]

    def mixed_probabilities(self, words: np.ndarray, documents: DocumentCounts) -> np.ndarray:
        """P(w|d): float32 of shape ``(documents, words)``, above 0."""
        weight, probabilities = np.float32(self.unigram_weight), self.unigram_probabilities(words, documents)
        if weight < 1:
            probabilities = weight * probabilities + (1 - weight) * self.word_probabilities(words, documents)
        return np.maximum(probabilities, LEAST)

    def log_likelihoods(self, words: np.ndarray, documents: DocumentCounts) -> np.ndarray:
        """Log P(q|d) of one query, given as word ids, with each document: float64 of shape ``(documents,)``."""
        distinct, counts = np.unique(words, return_counts=True)
        probabilities = self.mixed_probabilities(distinct, documents)
        total = np.zeros(len(probabilities))
        for column, count in zip(probabilities.T, counts, strict=True):  # a product may add up rows in several orders
            total += count * np.log(column, dtype=np.float64)
        return total

    def _require_no_vectors(self) -> None:
        """Nothing is wrong with them: a forward index depends on no model."""

    def open_kept(self, vectors: ForwardIndex | str | os.PathLike) -> ForwardIndexTable:
        """The documents of a forward index, given as such or by its path."""
        index = ForwardIndex(vectors) if isinstance(vectors, str | os.PathLike) else vectors
        require_forward_index(index)
        return ForwardIndexTable(index)

    def index(
        self,
        path: str | os.PathLike,
        corpus: Iterable[Mapping[str, Any]] | ForwardIndex,
        *,
        overwrite: bool = False,
        verbose: bool | None = None,
    ) -> ForwardIndex:
        """Write a forward index of a collection, which is all that a language model needs, to a new directory.

        Args:
            path: Directory to create.
            corpus: Iterator of documents with ``docno`` and text, or a forward index, which is copied.
            overwrite: Replace a forward index that is there.
            verbose: Show a progress bar; None for the ranker's own ``verbose``.

        Returns:
            The forward index, for :meth:`retriever`, ``vectors=`` or ``documents=``.

        Raises:
            RuntimeError: If the model is not fitted.
            FileExistsError: If the directory exists and ``overwrite`` is false, or if it holds something else.
            ValueError: If there are no documents; if one has no docno or no text; if a docno occurs twice; or if the
                forward index holds other fields than the model reads.

        Example::

            kept = plsa.index("pydocs.forward", docs.get_corpus_iter())
            plsa.retriever(kept).search("pairwise distance")
        """
        verbose = self.reports(verbose)
        self._require_fitted()
        if not isinstance(corpus, ForwardIndex):
            return ForwardIndex.build(path, corpus, fields=self.fields, overwrite=overwrite, verbose=verbose)
        require_same_fields(self.fields, corpus)
        path, kind = Path(path).expanduser(), {"type": corpus.ARTIFACT_TYPE, "format": corpus.ARTIFACT_FORMAT}
        with (
            atomic_directory(path, overwrite=overwrite, **kind) as directory,
            unchanged(corpus.path, corpus._metadata),
        ):
            shutil.copytree(corpus.path, directory, dirs_exist_ok=True)
        return ForwardIndex(path)

    def _identity_parts(self) -> tuple[dict[str, np.ndarray], list[bytes]]:
        return self._arrays(), ["\n".join(self.vocabulary.terms).encode(errors="surrogatepass")]

    def _save_parts(self, directory: Path) -> None:
        write_tensors(directory / "weights.safetensors", self._arrays())
        self.vocabulary.save(directory / "vocabulary")

    def _load_parts(self, directory: Path) -> None:
        vocabulary = Vocabulary.load(directory / "vocabulary")
        if vocabulary.collection_frequency is None:
            raise ArtifactError(f"{directory / 'vocabulary' / 'counts.json'} is damaged: no collection frequencies")
        self._set_arrays(vocabulary, read_tensors(directory / "weights.safetensors"))
