"""Rankers that look at a query and a document together."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._frames import with_scores
from pt_neural.rankers.columns import accept_text, validated
from pt_neural.rankers.ranker import Ranker
from pt_neural.rankers.trained import Trained
from pt_neural.text import ForwardIndex, PackedSequences, Vocabulary, pack_fields, pack_texts
from pt_neural.training import Training
from pt_neural.training.examples import Examples

TERMS_PER_BLOCK = 65_536


class Interaction(Ranker, Trained):
    """Base of the rankers whose score needs the query and the document at once.

    The transformer re-ranks: frames with ``qid, query, docno`` and the text, or only ``docno`` where documents are
    kept, get a new ``score`` and ``rank``, ties by docno.

    Args:
        training: How to train.
        fields: Text columns, joined by a space; those that a frame lacks are passed over, one must be there.
        documents: A forward index, to train and to re-rank by ``docno``.
        device: Where to score.
        batch_size: Documents read at a time, at most.
        verbose: Show a progress bar while scoring.
    """

    def __init__(
        self,
        *,
        training: Training | None,
        fields: str | Sequence[str] | None,
        documents: ForwardIndex | None,
        device: str,
        batch_size: int,
        verbose: bool,
    ):
        Trained.__init__(self, training=training, device=device)
        Ranker.__init__(self, fields=fields, documents=documents, batch_size=batch_size, verbose=verbose)

    @abstractmethod
    def score(self, frame: pd.DataFrame) -> np.ndarray:
        """Scores of the rows of a result frame, float32 of shape (rows,)."""

    def kept_documents(self) -> ForwardIndex | None:
        """Where documents are read from by docno; None where frames must bring their text."""
        return self.documents

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Re-rank a result frame; see the class for the columns that it needs."""
        self.check_columns(inp, self)
        return with_scores(inp, np.zeros(0) if inp.empty else self.score(inp))

    def check_columns(self, frame: pd.DataFrame, context: pt.Transformer) -> None:
        """Raise an error in the name of ``context`` where the columns of a frame are not enough to score its rows."""
        with validated(frame, context, self.fields) as v:
            if self.kept_documents() is not None:
                v.result_frame(["query"], mode="score")
            accept_text(v, self.fields, also=["qid", "docno", "query"], mode="score")

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
        starts = _starts(np.maximum(lengths[order], 1).tolist(), self.batch_size)
        ranks = np.argsort(order)[rows]
        sequence = np.argsort(ranks, kind="stable")
        bounds = np.searchsorted(ranks[sequence], starts[1:])
        blocks = zip(np.split(order, starts[1:]), np.split(sequence, bounds), strict=True)
        quiet = not (self.verbose if verbose is None else verbose)
        with pt.tqdm(total=len(rows), desc=repr(self), unit=unit, disable=quiet) as progress:
            for documents, pairs in blocks:
                yield documents, pairs
                progress.update(len(pairs))


def _starts(lengths: list[int], most: int) -> list[int]:
    """Where blocks of documents of falling lengths start."""
    starts = [0]
    for place in range(len(lengths)):
        if place - starts[-1] >= min(most, max(1, TERMS_PER_BLOCK // lengths[starts[-1]])):
            starts.append(place)
    return starts
