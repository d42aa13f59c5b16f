"""Which columns a two-tower ranker can work with."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from pt_neural.rankers.two_tower import TwoTower


def accept_text(
    validator: Any,
    fields: Sequence[str],
    *,
    also: Sequence[str] = (),
    excludes: Sequence[str] = (),
    mode: str = "text",
) -> None:
    """Accept frames that have all text fields, or at least one of them, next to the columns of ``also``."""
    validator.columns(includes=[*also, *fields], excludes=list(excludes), mode=mode)
    if len(fields) > 1:
        for field in reversed(fields):
            validator.columns(includes=[*also, field], excludes=list(excludes), mode=mode)


def accept_scoring(validator: Any, model: "TwoTower") -> None:
    """Accept frames whose rows the model can score: a query, and a document in some form."""
    if model.documents is not None or model.vectors is not None:
        validator.result_frame(["query"], mode="score")
    accept_text(validator, model.fields, also=["qid", "docno", "query"], mode="score")
    validator.result_frame(["query", "doc_vec"], mode="score")
    validator.result_frame(["query_vec", "doc_vec"], mode="score")


def distinct_queries(frame: pd.DataFrame) -> tuple[np.ndarray, list[str]]:
    """The number of each row's query, from 0, and the distinct queries; a missing query is an empty one."""
    rows, distinct = pd.factorize(frame["query"], use_na_sentinel=False)
    return rows, ["" if lacking else str(text) for text, lacking in zip(distinct, pd.isna(distinct), strict=True)]
