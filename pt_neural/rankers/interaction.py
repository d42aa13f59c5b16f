"""Rankers that look at a query and a document together."""

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._frames import with_scores
from pt_neural.rankers.columns import accept_candidates, validated
from pt_neural.rankers.ranker import Ranker
from pt_neural.rankers.trained import Trained
from pt_neural.text import ForwardIndex
from pt_neural.training import Training


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

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Re-rank a result frame; see the class for the columns that it needs."""
        self.check_columns(inp, self)
        return with_scores(inp, np.zeros(0) if inp.empty else self.score(inp))

    def check_columns(self, frame: pd.DataFrame, context: pt.Transformer) -> None:
        """Raise an error in the name of ``context`` where the columns of a frame are not enough to score its rows."""
        with validated(frame, context, self.fields) as v:
            accept_candidates(v, self.fields, kept=self.kept_documents() is not None)
