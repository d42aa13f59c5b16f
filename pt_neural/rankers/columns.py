"""The columns that rankers need."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from pt_neural._frames import as_texts


def accept_text(
    validator: Any,
    fields: Sequence[str],
    *,
    also: Sequence[str] = (),
    excludes: Sequence[str] = (),
    mode: str = "text",
) -> None:
    """Accept frames with the columns ``also`` and all text fields, or at least one of them."""
    validator.columns(includes=[*also, *fields], excludes=list(excludes), mode=mode)
    if len(fields) > 1:
        for field in reversed(fields):
            validator.columns(includes=[*also, field], excludes=list(excludes), mode=mode)


def accept_candidates(validator: Any, fields: Sequence[str], *, kept: bool) -> None:
    """Accept frames with queries and the text of documents, or only ``docno`` where documents are kept."""
    if kept:
        validator.result_frame(["query"], mode="score")
    accept_text(validator, fields, also=["qid", "docno", "query"], mode="score")


def distinct_queries(frame: pd.DataFrame) -> tuple[np.ndarray, list[str]]:
    """The number of each row's query, from 0, and the distinct queries; a missing query counts as empty."""
    rows, distinct = pd.factorize(frame["query"], use_na_sentinel=False)
    return rows, as_texts(distinct)
