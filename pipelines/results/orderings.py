"""The papers' main orderings, tested on the runs of our pipelines, with the known reasons why some do not hold."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import ttest_rel

LEVEL = 0.05
Side = str | tuple[str, str]  # a system, or a system and the one over which it gains


@dataclass(frozen=True)
class Ordering:
    """The finding that one system is better than another.

    Attributes:
        paper: The paper that reports it, by the name of its model.
        where: Its section, table or figure.
        says: The finding in words.
        pipeline: The pipeline on whose runs it is tested.
        runs: The folder of these runs.
        better: The system that the paper finds better, by name; or two names: the gain of one over the other.
        worse: The other system, or the other gain.
        measure: The measure to compare; more is better.
        reason: Why the ordering does not hold everywhere, as far as we know.
    """

    paper: str
    where: str
    says: str
    pipeline: str
    runs: str
    better: Side
    worse: Side
    measure: str = "nDCG@10"
    reason: str = ""


@dataclass(frozen=True)
class Outcome:
    """An ordering on one collection.

    Attributes:
        better: The mean of the system that the paper finds better.
        worse: The mean of the other system.
        p: P-value of a paired t-test over queries, each with its mean over seeds as the value.
        seeds: The difference for each seed, if both systems have the same seeds and more than one.
    """

    better: float
    worse: float
    p: float
    seeds: Sequence[float]

    @property
    def verdict(self) -> str:
        """``yes`` or ``no`` if the difference is significant, else ``level``."""
        if not self.p < LEVEL:
            return "level"
        return "yes" if self.better > self.worse else "no"

    def __str__(self) -> str:
        p = "p < 0.001" if self.p < 0.001 else f"p = {self.p:.3f}"
        spread = f", over seeds {min(self.seeds):+.4f} to {max(self.seeds):+.4f}" if len(self.seeds) > 1 else ""
        return f"{self.verdict}: {self.better:.4f} against {self.worse:.4f}, {p}{spread}"


def outcome_of(ordering: Ordering, values: pd.DataFrame) -> Outcome | None:
    """Test an ordering; None if a system is missing.

    Args:
        ordering: The ordering.
        values: One row per run, query and measure: ``system, seed, qid, measure, value``.
    """
    values = values[values["measure"] == ordering.measure]
    better, worse = (_side(values, side) for side in (ordering.better, ordering.worse))
    if better is None or worse is None:
        return None
    better_means, worse_means = better.mean(axis=1), worse.mean(axis=1)
    p = ttest_rel(better_means, worse_means).pvalue if (better_means != worse_means).any() else 1.0
    shared = [seed for seed in better if seed in worse and seed != ""]
    seeds = [float((better[seed] - worse[seed]).mean()) for seed in shared]
    return Outcome(float(better_means.mean()), float(worse_means.mean()), float(p), seeds)


def _side(values: pd.DataFrame, side: Side) -> pd.DataFrame | None:
    """One row per query and one column per seed; for a gain, relative to the mean of the second system."""
    if isinstance(side, str):
        rows = values[values["system"] == side]
        return rows.pivot_table("value", "qid", "seed") if len(rows) else None
    system, baseline = (_side(values, name) for name in side)
    if system is None or baseline is None:
        return None
    return (system - baseline) / np.mean(baseline.to_numpy())


DESM = "DESM ({}, trained on {})"
IN_IN, IN_OUT = DESM.format("IN-IN", "documents"), DESM.format("IN-OUT", "documents")
QUICKSTART, TELESCOPED, FULL = ("quickstart", "runs"), ("desm", "runs-telescoped"), ("desm", "runs-all-documents")
CLSM, DUET, SSI = ("clsm", "runs-telescoped"), ("duet", "runs"), ("ssi", "runs-collection")
MATCH_TENSOR, ENSEMBLES = ("match-tensor", "runs"), ("match-tensor", "runs-ensembles")

ORDERINGS = [
    Ordering(
        "DESM",
        "Table 4",
        "the mixture is better than BM25",
        *FULL,
        f"BM25 + {IN_OUT}",
        "BM25",
        reason=(
            "raw scores are mixed, as in the paper: BM25 has been tuned on training queries if there are any, and "
            "leaves little to gain. With the scores of each query normalised and BM25's defaults, as in the next "
            "line, DESM adds more."
        ),
    ),
    Ordering(
        "DESM",
        "Table 4",
        "the same with BM25's defaults, and the scores of both normalised by query",
        *QUICKSTART,
        "all documents, BM25 + DESM IN-OUT",
        "BM25",
        reason="there are few queries, and they are used both to choose alpha and to test the difference.",
    ),
    Ordering(
        "DESM",
        "Table 3",
        "telescoped, IN-OUT is better than IN-IN",
        *TELESCOPED,
        IN_OUT,
        IN_IN,
        reason=(
            "scores of IN-OUT fall with the length of the document (picture `lengths` of the pipeline, with Spearman's "
            "correlations): the OUT vectors of a small collection share a direction, and the centroid of a long "
            "document lies close to it whatever the document is about. OUT-OUT, which footnote 2 of the paper expects "
            "to be similar to IN-IN, is the best of the uncentred pairs on neural:pydocs and vaswani."
        ),
    ),
    Ordering(
        "DESM",
        "Table 3",
        "the same with centred vectors: telescoped, IN-OUT centred is better than IN-IN",
        *TELESCOPED,
        DESM.format("IN-OUT centred", "documents"),
        IN_IN,
    ),
    Ordering(
        "DESM",
        "Table 3",
        "telescoped, IN-OUT is better than BM25",
        *TELESCOPED,
        IN_OUT,
        "BM25",
        reason="the candidates are BM25's own, whereas the paper re-ranks what a web search engine found.",
    ),
    Ordering(
        "DESM",
        "Table 3",
        "embeddings trained on queries are better than on documents",
        *TELESCOPED,
        DESM.format("IN-OUT", "queries"),
        IN_OUT,
        reason=(
            "there are a few thousand training queries, too few to learn embeddings from; the paper has hundreds "
            "of millions."
        ),
    ),
    Ordering("DESM", "Table 4", "DESM alone fails on the full collection: BM25 is better", *FULL, "BM25", IN_OUT),
    Ordering(
        "DESM",
        "Table 4",
        "on the full collection IN-OUT fails more than IN-IN",
        *FULL,
        IN_IN,
        IN_OUT,
        reason=(
            "among abstracts of a few lines on one subject, few documents are only loosely related to the words "
            "of the query."
        ),
    ),
    Ordering(
        "CLSM",
        "Table 5",
        "CLSM is better than DSSM",
        *CLSM,
        "CLSM (J=50)",
        "DSSM (J=50)",
        reason=(
            "the paper learns from tens of millions of clicked titles. With a few thousand queries, the "
            "convolution, which has three times as many weights to learn from the same words, falls behind the "
            "sum over all words. Different windows, numbers of negatives, negatives from the batch, one network "
            "for both sides and more epochs were tried (`pipelines.clsm` with `--models` and `--windows`); none "
            "reversed the order."
        ),
    ),
    Ordering(
        "CLSM",
        "section 5",
        "DSSM is better than LSA",
        *CLSM,
        "DSSM (J=50)",
        "LSA",
        reason=(
            "training was short: `make demo`, with more steps and with negatives from the batch, trains a far "
            "better DSSM."
        ),
    ),
    Ordering(
        "CLSM",
        "Table 5",
        "CLSM is better than BM25",
        *CLSM,
        "CLSM (J=50)",
        "BM25",
        reason=(
            "there are few training queries, and learning from random negatives does not teach a model to "
            "distinguish BM25's candidates."
        ),
    ),
    Ordering(
        "CLSM",
        "Table 6",
        "a window of 3 is better than one of 1",
        *CLSM,
        "CLSM (J=50)",
        "CLSM (J=50), window 1",
        reason=(
            "with few training queries, letter trigrams of single words are learned more reliably than those of "
            "three words together."
        ),
    ),
    Ordering(
        "CLSM",
        "Table 5",
        "more negatives are better for CLSM",
        *CLSM,
        "CLSM (J=50)",
        "CLSM (J=4)",
        reason="all models were trained for the same small number of epochs.",
    ),
    Ordering(
        "CLSM",
        "Table 5",
        "more negatives are better for DSSM",
        *CLSM,
        "DSSM (J=50)",
        "DSSM (J=4)",
        reason="all models were trained for the same small number of epochs.",
    ),
    Ordering(
        "CLSM",
        "Table 5",
        "phrases translate better than words",
        *CLSM,
        "PTM (maxlen=3)",
        "WTM",
        reason="titles are so short that few phrases are learned besides their words.",
    ),
    Ordering(
        "CLSM", "Table 5", "BLTM is better than LDA", *CLSM, "BLTM", "LDA (T=100)", reason="there are few queries."
    ),
    Ordering(
        "CLSM",
        "Table 5",
        "LDA is better than the unigram model",
        *CLSM,
        "LDA (T=100)",
        "ULM, words as below",
        reason=(
            "the texts are titles of a few words, which reveal little about the topics of a document, or there "
            "are few queries."
        ),
    ),
    Ordering(
        "CLSM",
        "Table 5",
        "term dependencies are better than the unigram model",
        *CLSM,
        "MRF",
        "ULM",
        reason=(
            "queries are lists of keywords rather than phrases, or texts are titles, in which windows carry "
            "little information."
        ),
    ),
    Ordering(
        "Duet",
        "Table 2",
        "the Duet is better than its local part",
        *DUET,
        "Duet",
        "Local",
        reason="the networks and the sample of training queries are small.",
    ),
    Ordering(
        "Duet",
        "Table 2",
        "the Duet is better than its distributed part",
        *DUET,
        "Duet",
        "Distributed",
        reason="the networks and the sample of training queries are small.",
    ),
    Ordering(
        "Duet",
        "Table 2",
        "the Duet is better than BM25",
        *DUET,
        "Duet",
        "BM25",
        reason=(
            "the networks and the sample of training queries are small, and only the first words of a document "
            "are read."
        ),
    ),
    Ordering(
        "Duet",
        "Figure 4",
        "judged (here: retrieved) negatives are better than random ones for the Duet",
        *DUET,
        "Duet",
        "Duet, random negatives",
        reason=(
            "documents that were retrieved but not judged may be relevant all the same: docstrings of several "
            "packages say the same thing."
        ),
    ),
    Ordering(
        "Duet",
        "Figure 4",
        "judged (here: retrieved) negatives are better than random ones for the distributed model",
        *DUET,
        "Distributed",
        "Distributed, random negatives",
        reason=(
            "documents that were retrieved but not judged may be relevant all the same: docstrings of several "
            "packages say the same thing."
        ),
    ),
    Ordering("Match-Tensor", "Figure 4", "Match-Tensor is better than SSM", *MATCH_TENSOR, "Match-Tensor", "SSM"),
    Ordering(
        "Match-Tensor",
        "Figure 4",
        "Match-Tensor is better than BM25",
        *MATCH_TENSOR,
        "Match-Tensor",
        "BM25",
        reason="it was trained for a few epochs on a small sample of the queries.",
    ),
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
        "Match-Tensor",
        "Table 3",
        "bi-LSTMs are better than convolutions for SSM",
        *MATCH_TENSOR,
        "SSM",
        "SSM, CNN",
        reason="the difference has the same sign as in the paper, but there are few test queries.",
    ),
    Ordering(
        "Match-Tensor",
        "Table 4",
        "SSM gains more from BM25 than Match-Tensor",
        *ENSEMBLES,
        ("SSM & BM25", "SSM"),
        ("Match-Tensor & BM25", "Match-Tensor"),
    ),
    Ordering(
        "Match-Tensor",
        "Table 4",
        "Match-Tensor+SSM gains more from BM25 than Match-Tensor",
        *ENSEMBLES,
        ("Match-Tensor+SSM & BM25", "Match-Tensor+SSM"),
        ("Match-Tensor & BM25", "Match-Tensor"),
        reason=(
            "the hybrid knows as much about exact matches as Match-Tensor does; in the paper the two differ by a "
            "tenth of a percent."
        ),
    ),
    Ordering(
        "Match-Tensor",
        "Table 4",
        "Match-Tensor(exact only)+SSM gains more from BM25 than Match-Tensor",
        *ENSEMBLES,
        ("Match-Tensor(exact only)+SSM & BM25", "Match-Tensor(exact only)+SSM"),
        ("Match-Tensor & BM25", "Match-Tensor"),
    ),
    Ordering(
        "SSI",
        "Table 1",
        "low-rank W is better than full W",
        *SSI,
        "1: low-rank",
        "1: full",
        "MAP",
        reason=(
            "the full W covers only the frequent words, and links repeat the same pairs of words often enough to "
            "learn their weights."
        ),
    ),
    Ordering("SSI", "Table 1", "low-rank W is better than TFIDF", *SSI, "1: low-rank", "1: tfidf", "MAP"),
    Ordering("SSI", "Table 1", "low-rank W is better than LSA", *SSI, "1: low-rank", "1: lsa", "MAP"),
    Ordering(
        "SSI",
        "Table 1",
        "full W is better than TFIDF",
        *SSI,
        "1: full",
        "1: tfidf",
        "MAP",
        reason="a weight for every pair of words requires more links than there are.",
    ),
    Ordering("SSI", "section 6", "U'V + I is better than U'V", *SSI, "1: low-rank", "1: no-identity", "MAP"),
    Ordering(
        "SSI",
        "Table 2",
        "hash kernels are better with αI",
        *SSI,
        "2: hash-identity-1",
        "2: hash-1",
        "MAP",
        reason=(
            "training was short; without αI, the weight of a word on itself must be learned together with those "
            "of the pairs."
        ),
    ),
    Ordering(
        "SSI",
        "Table 2",
        "correlated hashing is better than hash kernels with αI",
        *SSI,
        "2: correlated-1",
        "2: hash-identity-1",
        "MAP",
        reason=(
            "hash kernels with αI keep the weight of every word on itself apart from those of the pairs, which "
            "benefits the average precision of pages with the rare words of the query; the paper has many times "
            "our words and links, among which random collisions do more harm."
        ),
    ),
    Ordering(
        "SSI",
        "Table 2",
        "correlated hashing is better than hash kernels",
        *SSI,
        "2: correlated-1",
        "2: hash-1",
        "MAP",
        reason="training was short, and the first embedding leaves few epochs for the second.",
    ),
]
