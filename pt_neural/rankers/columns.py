"""Checks of the columns that rankers need."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt


class ColumnsError(pt.validate.InputValidationError):
    """PyTerrier's error, whose modes its inspection reads, with a message of one sentence."""

    def __str__(self) -> str:
        return self.args[0]


@contextmanager
def validated(frame: pd.DataFrame, transformer: pt.Transformer, fields: Sequence[str]) -> Iterator[Any]:
    """PyTerrier's validator of a frame; if no mode fits, the error says in one sentence what is missing."""
    try:
        with pt.validate.any(frame, context=transformer) as validator:
            yield validator
    except pt.validate.InputValidationError as error:
        if {"qid", "query", "docno"} <= set(frame) and not set(fields) & set(frame):
            message = (
                f"the frame has no text for {transformer!r}, none of the columns {', '.join(fields)}: add >> "
                f"index.text_loader({list(fields)}) before it, or give the ranker documents="
            )
        else:
            nearest = min(error.modes, key=lambda mode: len(mode.missing_columns) + len(mode.extra_columns))
            missing = ", ".join(nearest.missing_columns) or "other columns"
            message = f"{transformer!r} needs {missing}; the frame has {', '.join(map(str, frame)) or 'no columns'}"
        raise ColumnsError(message, error.modes) from None


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
    return rows, ["" if missing else str(text) for text, missing in zip(distinct, pd.isna(distinct), strict=True)]
