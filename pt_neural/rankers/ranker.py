"""What every ranker of texts is told: which columns are the text, and where documents are kept."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._arguments import checked_choice, checked_number
from pt_neural.rankers.saved import Saved
from pt_neural.text import (
    TEXT_FIELDS,
    ForwardIndex,
    PackedSequences,
    Vocabulary,
    frame_texts,
    join_fields,
    pack_fields,
    pack_texts,
)
from pt_neural.training.examples import Examples


class Ranker(Saved, pt.Transformer):
    """Base of the rankers that score the texts of documents.

    Args:
        fields: Text columns, joined by a space; those that a frame lacks are passed over, one must be there. None for
            those of ``documents``, or ``title`` and ``text`` without a forward index.
        documents: A forward index: re-ranking then needs ``docno`` only, no text and no tokenising.
        batch_size: Documents read at a time.
        verbose: Show a progress bar.

    Raises:
        TypeError: If an argument is of another kind than said here.
        ValueError: If there are no fields, if they are not those of the forward index, or if ``batch_size`` is below 1.

    Attributes:
        tells_fields_apart: Whether the model sees where a field ends; otherwise fields are one text.
        terms_per_block: Terms of documents read at a time, at most.
    """

    tells_fields_apart = False
    terms_per_block = 65_536

    def __init__(
        self,
        *,
        fields: str | Sequence[str] | None = None,
        documents: ForwardIndex | None = None,
        batch_size: int = 1024,
        verbose: bool = False,
    ):
        self._fields: tuple[str, ...] | None = None
        self._documents: ForwardIndex | None = None
        self.fields = fields
        self.documents = documents
        self.batch_size = checked_number("batch_size", batch_size, int, least=1)
        self.verbose = checked_choice("verbose", verbose, (True, False))

    @property
    def fields(self) -> tuple[str, ...]:
        """Text columns; one may be set by its name alone, and None are those of ``documents``."""
        if self._fields is not None:
            return self._fields
        return (self._documents is not None and self._documents.fields) or TEXT_FIELDS

    @fields.setter
    def fields(self, fields: str | Sequence[str] | None) -> None:
        fields = None if fields is None else _checked_fields(fields)
        require_same_fields(fields, self._documents)
        self._fields = fields

    @property
    def documents(self) -> ForwardIndex | None:
        """The forward index that documents are read from; None to read texts."""
        return self._documents

    @documents.setter
    def documents(self, documents: ForwardIndex | None) -> None:
        if documents is not None:
            require_forward_index(documents)
        require_same_fields(self._fields, documents)
        self._documents = documents

    def frame_texts(self, frame: pd.DataFrame) -> list[str]:
        """The text of each row of a frame, as the model reads it."""
        return frame_texts(frame, self.fields, mark_ends=self.tells_fields_apart)

    def document_text(self, document: Mapping[str, Any]) -> str:
        """The text of a document of a corpus, as the model reads it."""
        return join_fields(document, self.fields, mark_ends=self.tells_fields_apart)

    def kept_documents(self) -> ForwardIndex | None:
        """Where documents are read from by docno; None where frames must bring their text."""
        return self.documents

    def _frame_documents(self, frame: pd.DataFrame) -> tuple[np.ndarray, PackedSequences, Vocabulary]:
        """The document of each row, the distinct documents as term ids, and the terms."""
        kept = self.kept_documents()
        if kept is not None:
            rows, docnos = pd.factorize(frame["docno"], use_na_sentinel=False)
            return rows, kept.sequences(list(docnos)), kept.vocabulary
        rows, texts = pd.factorize(np.array(self.frame_texts(frame), dtype=object))
        sequences, terms = self._pack(texts)
        return rows, sequences, Vocabulary(terms)

    def _pack(self, texts: Iterable[str]) -> tuple[PackedSequences, list[str]]:
        return pack_fields(texts, len(self.fields)) if self.tells_fields_apart else pack_texts(texts)

    def _training_documents(self, examples: Examples) -> tuple[PackedSequences, Vocabulary]:
        """All documents of the examples as term ids, and the terms with their frequencies."""
        if examples.document_texts is None:
            return self.documents.all(), self.documents.vocabulary
        sequences, terms = self._pack(examples.document_texts)
        return sequences, Vocabulary(terms, np.bincount(sequences.terms, minlength=len(terms)))

    def _blocks(
        self, lengths: np.ndarray, rows: np.ndarray, *, unit: str = "pair", verbose: bool | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Documents of similar length, the longest first, each block with its pairs; with a progress bar.

        Args:
            lengths: Terms of each document.
            rows: The document of each pair.
            unit: What the progress bar counts.
            verbose: Whether there is one; None for what the model says.

        Yields:
            Numbers of documents, and numbers of the pairs that have them.
        """
        order = np.argsort(-lengths, kind="stable")
        starts = _starts(np.maximum(lengths[order], 1).tolist(), self.batch_size, self.terms_per_block)
        ranks = np.argsort(order)[rows]
        sequence = np.argsort(ranks, kind="stable")
        bounds = np.searchsorted(ranks[sequence], starts[1:])
        blocks = zip(np.split(order, starts[1:]), np.split(sequence, bounds), strict=True)
        quiet = not (self.verbose if verbose is None else verbose)
        with pt.tqdm(total=len(rows), desc=repr(self), unit=unit, disable=quiet) as progress:
            for documents, pairs in blocks:
                yield documents, pairs
                progress.update(len(pairs))

    def _settle_fields(self, corpus: Any = None) -> None:
        """Read from now on what the model is learned from: the fields of a forward index, or those that it has."""
        if isinstance(corpus, ForwardIndex):
            require_same_fields(self._fields, corpus)
            self._fields = corpus.fields or self._fields
        self._fields = self.fields


def _checked_fields(fields: Any) -> tuple[str, ...]:
    several = not isinstance(fields, str) and isinstance(fields, Iterable)
    names = tuple(fields) if several else (fields,)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"fields must be names of text columns, such as ['title', 'text'], not {fields!r:.80}")
    if not names or "" in names:
        raise ValueError(f"fields must name at least one text column, not {fields!r}")
    return names


def require_same_fields(fields: tuple[str, ...] | None, documents: ForwardIndex | None) -> None:
    """Raise ValueError if a forward index holds other fields than those given; None are any."""
    if fields is not None and documents is not None and documents.fields not in ((), fields):
        raise ValueError(
            f"the model reads the fields {', '.join(fields)}, but {documents!r} holds {', '.join(documents.fields)}: "
            f"give fields={list(documents.fields)!r}, or build the forward index over the fields of the model"
        )


def require_forward_index(given: Any) -> None:
    """Raise TypeError if ``documents`` are something else, in words that say how to get one."""
    if isinstance(given, ForwardIndex):
        return
    said = f"documents must be a forward index, not {given!r:.80}"
    if isinstance(given, str | os.PathLike):
        raise TypeError(f"{said}; pn.ForwardIndex({os.fspath(given)!r}) opens one")
    raise TypeError(f"{said}; pn.ForwardIndex.build(path, corpus) makes one")


def _starts(lengths: list[int], most: int, terms: int) -> list[int]:
    """Where blocks of documents of falling lengths start."""
    starts = [0]
    for place in range(len(lengths)):
        if place - starts[-1] >= min(most, max(1, terms // lengths[starts[-1]])):
            starts.append(place)
    return starts
