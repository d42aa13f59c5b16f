"""The separate faces of a two-tower ranker, with pyterrier_dr's columns."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural.rankers.columns import accept_scoring, accept_text, distinct_queries, validated

if TYPE_CHECKING:
    from pt_neural.rankers.two_tower import TwoTower


class _Face(pt.Transformer):
    """A transformer that is one ability of a model; two of them are equal when their model is the same."""

    def __init__(self, model: "TwoTower"):
        self.model = model

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.model is other.model

    def __hash__(self) -> int:
        return hash((type(self), id(self.model)))

    def subtransformers(self) -> dict:
        return {}  # the model is what this transformer is made of, not a stage before it


class QueryEncoder(_Face):
    """Adds ``query_vec`` (float32 arrays) to frames with ``query``; equal queries are encoded once."""

    schematic = {"label": "QueryEncoder", "help_url": None}

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Encode the queries of ``inp``."""
        pt.validate.columns(inp, includes=["query"], context=self)
        if inp.empty:
            return inp.assign(query_vec=pd.Series(dtype=object, index=inp.index))
        rows, texts = distinct_queries(inp)
        return inp.assign(query_vec=_objects(self.model.encode_queries(texts)[rows], inp))

    def __repr__(self) -> str:
        return f"{self.model!r}.query_encoder()"


class DocEncoder(_Face):
    """Adds ``doc_vec`` (float32 arrays) to frames with the model's text columns."""

    schematic = {"label": "DocEncoder", "help_url": None}

    @property
    def batch_size(self) -> int:
        """Documents encoded at a time; pipelines that index use it as the size of their chunks."""
        return self.model.batch_size

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer:
        """Encode only the documents that a later cut-off keeps."""
        return pt.RankCutoff(k) >> self

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Encode the documents of ``inp``."""
        with validated(inp, self, self.model.fields) as v:
            accept_text(v, self.model.fields)
        if inp.empty:
            return inp.assign(doc_vec=pd.Series(dtype=object, index=inp.index))
        return inp.assign(doc_vec=_objects(self.model.encode_texts(self.model.frame_texts(inp)), inp))

    def __repr__(self) -> str:
        return f"{self.model!r}.doc_encoder()"


class TextScorer(_Face):
    """Re-ranks, and does nothing else."""

    schematic = {"label": "TextScorer", "help_url": None}

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score the rows of ``inp``."""
        with validated(inp, self, self.model.fields) as v:
            accept_scoring(v, self.model)
        return self.model.score(inp)

    def __repr__(self) -> str:
        return f"{self.model!r}.text_scorer()"


def _objects(matrix: np.ndarray, frame: pd.DataFrame) -> pd.Series:
    return pd.Series(list(matrix), index=frame.index, dtype=object)
