"""The papers' main orderings, each tested on the runs of our pipelines."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import ttest_rel

LEVEL = 0.05
Side = str | tuple[str, str]  # a system, or one and what its gain is over


@dataclass(frozen=True)
class Ordering:
    """That one system is better than another.

    Attributes:
        paper: Name of the model of the paper that reports it.
        where: Its section, table or figure.
        says: The ordering in words.
        pipeline: Whose runs it is tested on.
        runs: The folder of these runs.
        better: The system that the paper finds better, by name; or two names: the gain of one over the other.
        worse: The other one, likewise.
        measure: What is compared; more is better.
    """

    paper: str
    where: str
    says: str
    pipeline: str
    runs: str
    better: Side
    worse: Side
    measure: str = "nDCG@10"


@dataclass(frozen=True)
class Outcome:
    """An ordering on one collection.

    Attributes:
        better: The mean of the system that the paper finds better.
        worse: Of the other one.
        p: Of a paired t-test over queries, whose value is the mean over seeds.
        seeds: The difference with each seed, where both systems have the same seeds, several of them.
    """

    better: float
    worse: float
    p: float
    seeds: Sequence[float]

    @property
    def verdict(self) -> str:
        """``yes`` or ``no`` where the difference is significant, else ``level``."""
        if not self.p < LEVEL:
            return "level"
        return "yes" if self.better > self.worse else "no"

    def __str__(self) -> str:
        spread = f", over seeds {min(self.seeds):+.4f} to {max(self.seeds):+.4f}" if len(self.seeds) > 1 else ""
        return f"{self.verdict}: {self.better:.4f} against {self.worse:.4f}, {p_value(self.p)}{spread}"


def p_value(p: float) -> str:
    """A p-value as text."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def outcome_of(ordering: Ordering, values: pd.DataFrame) -> Outcome | None:
    """Test an ordering; None where a system is lacking.

    Args:
        ordering: What is to be tested.
        values: One row a run, query and measure: ``system, seed, qid, measure, value``.
    """
    values = values[values["measure"] == ordering.measure]
    better, worse = (_side(values, side) for side in (ordering.better, ordering.worse))
    if better is None or worse is None:
        return None
    one, other = better.mean(axis=1), worse.mean(axis=1)
    p = ttest_rel(one, other).pvalue if (one != other).any() else 1.0
    shared = [seed for seed in better if seed in worse and seed != ""]
    seeds = [float((better[seed] - worse[seed]).mean()) for seed in shared]
    return Outcome(float(one.mean()), float(other.mean()), float(p), seeds)


def _side(values: pd.DataFrame, side: Side) -> pd.DataFrame | None:
    """One row a query, one column a seed; of two systems the gain, relative to the mean of the second."""
    if isinstance(side, str):
        rows = values[values["system"] == side]
        return rows.pivot_table("value", "qid", "seed") if len(rows) else None
    one, other = (_side(values, name) for name in side)
    if one is None or other is None:
        return None
    return (one - other) / np.mean(other.to_numpy())


DESM = "DESM ({}, trained on {})"
IN_IN, IN_OUT = DESM.format("IN-IN", "documents"), DESM.format("IN-OUT", "documents")
TELESCOPED, FULL = ("desm", "runs-telescoped"), ("desm", "runs-all-documents")
CLSM = ("clsm", "runs-telescoped")
DUET = ("duet", "runs")
MATCH_TENSOR, ENSEMBLES = ("match-tensor", "runs"), ("match-tensor", "runs-ensembles")
SSI = ("ssi", "runs-collection")

ORDERINGS = [
    Ordering("DESM", "Table 4", "the mixture is better than BM25", *FULL, f"BM25 + {IN_OUT}", "BM25"),
    Ordering(
        "DESM",
        "Table 4",
        "likewise, with the scores of both normalised by query and plain BM25",
        "quickstart",
        "runs",
        "all documents, BM25 + DESM IN-OUT",
        "BM25",
    ),
    Ordering("DESM", "Table 3", "telescoped, IN-OUT is better than IN-IN", *TELESCOPED, IN_OUT, IN_IN),
    Ordering("DESM", "Table 3", "telescoped, IN-OUT is better than BM25", *TELESCOPED, IN_OUT, "BM25"),
    Ordering(
        "DESM",
        "Table 3",
        "embeddings trained on queries are better than on documents",
        *TELESCOPED,
        DESM.format("IN-OUT", "queries"),
        IN_OUT,
    ),
    Ordering("DESM", "Table 4", "DESM alone fails on the full collection: BM25 is better", *FULL, "BM25", IN_OUT),
    Ordering("DESM", "Table 4", "on the full collection IN-OUT fails more than IN-IN", *FULL, IN_IN, IN_OUT),
    Ordering("CLSM", "Table 5", "CLSM is better than DSSM", *CLSM, "CLSM (J=50)", "DSSM (J=50)"),
    Ordering("CLSM", "section 5", "DSSM is better than LSA", *CLSM, "DSSM (J=50)", "LSA"),
    Ordering("CLSM", "Table 5", "CLSM is better than BM25", *CLSM, "CLSM (J=50)", "BM25"),
    Ordering("CLSM", "Table 6", "a window of 3 is better than one of 1", *CLSM, "CLSM (J=50)", "CLSM (J=50), window 1"),
    Ordering("CLSM", "Table 5", "more negatives are better for CLSM", *CLSM, "CLSM (J=50)", "CLSM (J=4)"),
    Ordering("CLSM", "Table 5", "more negatives are better for DSSM", *CLSM, "DSSM (J=50)", "DSSM (J=4)"),
    Ordering("CLSM", "Table 5", "phrases translate better than words", *CLSM, "PTM (maxlen=3)", "WTM"),
    Ordering("CLSM", "Table 5", "BLTM is better than LDA", *CLSM, "BLTM", "LDA (T=100)"),
    Ordering("CLSM", "Table 5", "LDA is better than the unigram model", *CLSM, "LDA (T=100)", "ULM, words as below"),
    Ordering("CLSM", "Table 5", "term dependencies are better than the unigram model", *CLSM, "MRF", "ULM"),
    Ordering("Duet", "Table 2", "the Duet is better than its local part", *DUET, "Duet", "Local"),
    Ordering("Duet", "Table 2", "the Duet is better than its distributed part", *DUET, "Duet", "Distributed"),
    Ordering("Duet", "Table 2", "the Duet is better than BM25", *DUET, "Duet", "BM25"),
    Ordering(
        "Duet",
        "Figure 4",
        "judged (here: retrieved) negatives are better than random ones for the Duet",
        *DUET,
        "Duet",
        "Duet, random negatives",
    ),
    Ordering(
        "Duet",
        "Figure 4",
        "judged (here: retrieved) negatives are better than random ones for the distributed model",
        *DUET,
        "Distributed",
        "Distributed, random negatives",
    ),
    Ordering("Match-Tensor", "Figure 4", "Match-Tensor is better than SSM", *MATCH_TENSOR, "Match-Tensor", "SSM"),
    Ordering("Match-Tensor", "Figure 4", "Match-Tensor is better than BM25", *MATCH_TENSOR, "Match-Tensor", "BM25"),
    Ordering(
        "Match-Tensor",
        "section 6.6",
        "all channels are better than exact matches alone",
        *MATCH_TENSOR,
        "Match-Tensor+SSM",
        "Match-Tensor(exact only)+SSM",
    ),
    Ordering(
        "Match-Tensor",
        "Table 3",
        "bi-LSTMs are better than convolutions for Match-Tensor",
        *MATCH_TENSOR,
        "Match-Tensor",
        "Match-Tensor, CNN",
    ),
    Ordering(
        "Match-Tensor", "Table 3", "bi-LSTMs are better than convolutions for SSM", *MATCH_TENSOR, "SSM", "SSM, CNN"
    ),
    *(
        Ordering(
            "Match-Tensor",
            "Table 4",
            f"{name} gains more from BM25 than Match-Tensor",
            *ENSEMBLES,
            (f"{name} & BM25", name),
            ("Match-Tensor & BM25", "Match-Tensor"),
        )
        for name in ("SSM", "Match-Tensor+SSM", "Match-Tensor(exact only)+SSM")
    ),
    Ordering("SSI", "Table 1", "low-rank W is better than full W", *SSI, "1: low-rank", "1: full", "MAP"),
    Ordering("SSI", "Table 1", "low-rank W is better than TFIDF", *SSI, "1: low-rank", "1: tfidf", "MAP"),
    Ordering("SSI", "Table 1", "low-rank W is better than LSA", *SSI, "1: low-rank", "1: lsa", "MAP"),
    Ordering("SSI", "Table 1", "full W is better than TFIDF", *SSI, "1: full", "1: tfidf", "MAP"),
    Ordering("SSI", "section 6", "U'V + I is better than U'V", *SSI, "1: low-rank", "1: no-identity", "MAP"),
    Ordering("SSI", "Table 2", "hash kernels are better with αI", *SSI, "2: hash-identity-1", "2: hash-1", "MAP"),
    Ordering(
        "SSI",
        "Table 2",
        "correlated hashing is better than hash kernels with αI",
        *SSI,
        "2: correlated-1",
        "2: hash-identity-1",
        "MAP",
    ),
    Ordering(
        "SSI",
        "Table 2",
        "correlated hashing is better than hash kernels",
        *SSI,
        "2: correlated-1",
        "2: hash-1",
        "MAP",
    ),
]
