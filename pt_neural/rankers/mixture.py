"""Linear mixtures of two rankers."""

import numbers
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._arguments import checked_choice, checked_number
from pt_neural._frames import numbers_in, require_columns, validated, with_scores

Normalise = Literal["minmax", "zscore"] | None


@dataclass(frozen=True)
class Sides:
    """The aligned results of two rankers: rows without scores, and each side's scores, float64 of shape ``(rows,)``."""

    rows: pd.DataFrame
    a: np.ndarray
    b: np.ndarray

    def scores(self, alpha: float) -> np.ndarray:
        """``alpha * a + (1 - alpha) * b``."""
        return alpha * self.a + (1 - alpha) * self.b

    def mix(self, alpha: float) -> pd.DataFrame:
        """The rows with the mixed ``score`` and ``rank``."""
        return with_scores(self.rows, self.scores(alpha))


class Mixture(pt.Transformer):
    """Linear mixture ``alpha * a + (1 - alpha) * b`` of two rankers (DESM paper, section 2.3, equation 9).

    With ``b=None`` the second score is the one that comes in: ``candidates >> Mixture(desm, alpha=0.3)`` runs the
    candidates once. With two rankers the union of their results is ranked.

    It differs from PyTerrier's ``alpha * a + (1 - alpha) * b`` where one side did not return a document. PyTerrier
    counts 0 for that side, so that with scores below zero (cosines, log-likelihoods) a document that one side never
    saw can come first; here that side counts as the lowest score that it gave for the query. Documents found only by
    the second side keep their ``query``, and ``alpha`` is one attribute, which ``pt.GridSearch`` and
    :func:`~pt_neural.tune_alpha` set.

    Args:
        a: A ranker (re-ranker or retriever).
        b: The other ranker, or None for the score of the rows that come in.
        alpha: Weight of ``a``, from 0 to 1.
        normalise: None, or per query and side, before mixing: ``"minmax"`` to [0, 1], or ``"zscore"`` to mean 0 and
            standard deviation 1. Where all scores of a query are equal, both give 0.
        missing: Score of a document that one side did not return: ``"min"``, that side's lowest (normalised) score
            for the query, or ``"zero"``. A side without any result for the query counts 0.
        num_results: Documents that two retrievers together return for a query, at most; None for all that either has
            found. Rows that come in with a ``docno`` are never cut, and :func:`~pt_neural.tune_alpha` weighs all.

    Raises:
        TypeError: If a side is not a transformer.
        ValueError: For an alpha outside [0, 1], an unknown ``normalise`` or ``missing``, a ``num_results`` below 1, or
            infinite scores.

    Example::

        mixed = candidates >> pn.Mixture(desm, alpha=0.4)
        both = pn.Mixture(desm.retriever(vectors), bm25, alpha=0.1)
        both.search("pairwise distance")
    """

    schematic = {"label": "Mixture", "inner_pipelines_mode": "linked", "help_url": None}

    def __init__(
        self,
        a: pt.Transformer,
        b: pt.Transformer | None = None,
        alpha: float = 0.5,
        *,
        normalise: Normalise = None,
        missing: Literal["min", "zero"] = "min",
        num_results: int | None = 1000,
    ):
        if isinstance(b, (int, float)):
            raise TypeError(f"b is the second ranker, not {b}; did you mean alpha={b}?")
        for side in (a, b):
            if side is not None and not isinstance(side, pt.Transformer):
                raise TypeError(f"a mixture needs rankers, not {side!r:.80}")
        self.a, self.b, self.alpha = a, b, alpha
        self.normalise = checked_choice("normalise", normalise, (None, "minmax", "zscore"))
        self.missing = checked_choice("missing", missing, ("min", "zero"))
        self.num_results = checked_number("num_results", num_results, int, least=1, optional=True)

    @property
    def alpha(self) -> float:
        """Weight of ``a``, from 0 to 1."""
        return self._alpha

    @alpha.setter
    def alpha(self, alpha: float) -> None:
        if not (isinstance(alpha, numbers.Real) and 0 <= alpha <= 1):
            raise ValueError(f"alpha must be a number between 0 and 1, not {alpha!r}")
        self._alpha = float(alpha)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Run both sides and mix their scores.

        Returns:
            The columns of both sides with the mixed ``score`` and ``rank``. With ``b=None``: the rows that came in,
            in their order (and any that ``a`` adds behind them). Otherwise the union, by query and rank.
        """
        mixed = self.sides(inp).mix(self.alpha)
        if self.b is None:
            return mixed
        if self.num_results is not None and "docno" not in inp:
            mixed = mixed[mixed["rank"] < self.num_results]
        order = np.lexsort((mixed["rank"], pd.factorize(mixed["qid"])[0]))
        return mixed.iloc[order].reset_index(drop=True)

    def transform_inputs(self) -> list[list[str]]:
        """The columns of frames that both sides can score, as ``pt.inspect`` asks for them."""
        incoming = [["qid", "docno", "score"]]
        right = incoming if self.b is None else pt.inspect.transformer_inputs(self.b, strict=False)
        left = pt.inspect.transformer_inputs(self.a, strict=False)
        both = [list(dict.fromkeys(["qid", *b, *a])) for a, b in product(left or [[]], right or [[]])]
        sides = [side for side in (self.a, self.b) if side is not None]
        return [columns for columns in both if all(_scores_frames(side, columns) for side in sides)] or both

    def sides(self, inp: pd.DataFrame) -> Sides:
        """Run each side once and align, normalise and complete their scores, ready for any alpha."""
        with validated(inp, self) as v:
            v.columns(includes=["qid", "docno", "score"] if self.b is None else ["qid"])
        left, right = self.a.transform(inp), inp if self.b is None else self.b.transform(inp)
        rows, a, b = align(_scored(left, self.a), _scored(right, self if self.b is None else self.b))
        queries = pd.factorize(rows["qid"])[0]
        return Sides(
            rows,
            _complete(normalised(a, queries, self.normalise), queries, self.missing),
            _complete(normalised(b, queries, self.normalise), queries, self.missing),
        )

    def __repr__(self) -> str:
        sides = repr(self.a) if self.b is None else f"{self.a!r}, {self.b!r}"
        return f"Mixture({sides}, alpha={self.alpha:g})"


def _scores_frames(ranker: pt.Transformer, columns: list[str]) -> bool:
    """Whether a ranker makes results of a frame with these columns, as far as can be told."""
    found = pt.inspect.transformer_outputs(ranker, columns, strict=False)
    return found is not None and {"qid", "docno", "score"} <= set(found)


def _scored(result: pd.DataFrame, what: object) -> pd.DataFrame:
    """The result of a side, with ``score`` as numbers; ValueError or TypeError if it cannot be mixed."""
    require_columns(result, ("qid", "docno", "score"), f"the result of {what!r}")
    scores = numbers_in(result, "score", what)
    if np.isinf(scores).any():
        row = int(np.argmax(np.isinf(scores)))
        raise ValueError(f"{what!r}: row {row} (from 0) of column 'score' is infinite; such scores cannot be mixed")
    return result.assign(score=scores)


def align(left: pd.DataFrame, right: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Bring two result frames to the same rows.

    Returns the rows, first those of the right side, and both sides' scores, NaN where a side does not have the
    document. If the sides differ in their rows, only the best of several rows with one qid and docno is kept.
    """
    if _same_rows(left, right):
        extra = [column for column in left if column not in right]
        rows = right.assign(**{column: left[column].to_numpy() for column in extra})
        return _unscored(rows), left["score"].to_numpy(), right["score"].to_numpy()
    left, right = _best_of_duplicates(left), _best_of_duplicates(right)
    merged = right.assign(**{_ORDER: np.arange(len(right))}).merge(
        left, on=["qid", "docno"], how="outer", suffixes=(_RIGHT, "")
    )
    rows = merged.sort_values(_ORDER, kind="stable", na_position="last", ignore_index=True).drop(columns=_ORDER)
    scores = rows["score"].to_numpy(), rows["score" + _RIGHT].to_numpy()
    for column in [column for column in rows if column.endswith(_RIGHT)]:
        twin = column.removesuffix(_RIGHT)
        rows[twin] = rows[twin].where(rows[twin].notna(), rows[column])
        rows = rows.drop(columns=column)
    return _unscored(rows), *scores


_RIGHT = " (right)"  # with a space, so that no column of a user ends in it
_ORDER = "order (right)"


def _same_rows(left: pd.DataFrame, right: pd.DataFrame) -> bool:
    return len(left) == len(right) and all(_equal(left[key], right[key]) for key in ("qid", "docno"))


def _equal(left: pd.Series, right: pd.Series) -> bool:
    """Whether two columns hold the same values, or none, in every row."""
    present, also = left.notna().to_numpy(), right.notna().to_numpy()
    a, b = left.to_numpy(dtype=object), right.to_numpy(dtype=object)
    return np.array_equal(present, also) and np.array_equal(a[present], b[present])


def _best_of_duplicates(frame: pd.DataFrame) -> pd.DataFrame:
    if not frame.duplicated(["qid", "docno"]).any():
        return frame
    best = frame.reset_index(drop=True).sort_values("score", ascending=False, kind="stable")
    return best.drop_duplicates(["qid", "docno"]).sort_index()


def _unscored(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.drop(columns=["score", "rank"], errors="ignore")


def normalised(scores: np.ndarray, queries: np.ndarray, how: Normalise) -> np.ndarray:
    """Scale the scores of each query; NaN stays NaN."""
    if how is None or not len(scores):
        return scores
    groups = pd.Series(scores).groupby(queries)
    if how == "minmax":
        centre, spread = groups.transform("min"), groups.transform("max") - groups.transform("min")
    else:
        centre, spread = groups.transform("mean"), groups.transform("std", ddof=0)
    centred = scores - centre.to_numpy()
    return np.divide(centred, spread.to_numpy(), out=centred * 0, where=spread.to_numpy() > 0)


def _complete(scores: np.ndarray, queries: np.ndarray, missing: str) -> np.ndarray:
    """Fill NaN with the query's lowest score, or with zero."""
    absent = np.isnan(scores)
    if missing == "min" and absent.any():
        lowest = pd.Series(scores).groupby(queries).transform("min").to_numpy()
        scores = np.where(absent, lowest, scores)
    return np.nan_to_num(scores, nan=0.0)
