"""Beyond pt.Experiment: seeds, intervals, tests against several baselines, breakdowns, mixtures, ensembles.

Frames go in and come out; results that can be drawn have ``plot``. Most functions take the value of each system for
each query, which :func:`per_query` extracts from an experiment::

    from pt_neural.experiment import by_length, per_query, significance

    result = pt.Experiment([bm25, ql], topics, qrels, [nDCG @ 10], names=["BM25", "QL"], perquery=True)
    values = per_query(result)
    significance(values, baseline="BM25")
    by_length(values, topics).plot()

- Systems with several seeds: :func:`over_seeds`, :func:`mean_over_seeds`.
- How certain a mean or a difference is: :func:`bootstrap`, :func:`standard_errors`, :func:`significance`.
- Where systems differ: :func:`by_length`, :func:`by_rarity`, :func:`scatter`, :func:`pca`.
- What a first stage lets a re-ranker achieve: :func:`candidate_recall`, :func:`telescoped_against_full`.
- Settings, mixtures and ensembles, tuned on dev queries or by folds: :class:`Tunable`, :func:`cross_fit`,
  :func:`tune_alpha`, :func:`cross_validate`.
- Measures: :data:`RankLoss`, :func:`auc`, :func:`expected_reciprocal_rank`.
"""

from pt_neural._evaluation import RankLoss
from pt_neural.experiment.alpha import AlphaCurve, tune_alpha
from pt_neural.experiment.breakdown import Breakdown, by_length, by_rarity, count_terms
from pt_neural.experiment.candidates import CandidateRecall, candidate_recall, keyword_queries, with_random_documents
from pt_neural.experiment.cross_fitting import CrossFitted, cross_fit
from pt_neural.experiment.ensembles import CrossValidated, cross_validate
from pt_neural.experiment.measures import auc, auc_per_query, expected_reciprocal_rank, precision_recall
from pt_neural.experiment.pictures import PerQueryScatter, SystemComponents, pca, scatter
from pt_neural.experiment.statistics import BootstrapIntervals, bootstrap, significance, telescoped_against_full
from pt_neural.experiment.tunable import Tunable
from pt_neural.experiment.values import (
    mean_over_seeds,
    over_seeds,
    per_query,
    standard_errors,
    with_standard_errors,
)

__all__ = [
    "AlphaCurve",
    "BootstrapIntervals",
    "Breakdown",
    "CandidateRecall",
    "CrossFitted",
    "CrossValidated",
    "PerQueryScatter",
    "RankLoss",
    "SystemComponents",
    "Tunable",
    "auc",
    "auc_per_query",
    "bootstrap",
    "by_length",
    "by_rarity",
    "candidate_recall",
    "count_terms",
    "cross_fit",
    "cross_validate",
    "expected_reciprocal_rank",
    "keyword_queries",
    "mean_over_seeds",
    "over_seeds",
    "pca",
    "per_query",
    "precision_recall",
    "scatter",
    "significance",
    "standard_errors",
    "telescoped_against_full",
    "tune_alpha",
    "with_random_documents",
    "with_standard_errors",
]
