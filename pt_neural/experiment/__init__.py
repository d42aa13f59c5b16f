"""What pt.Experiment lacks: alpha of mixtures, ensembles, spread over seeds, intervals, significance, breakdowns.

Frames go in and come out; what can be drawn has ``plot``::

    from pt_neural.experiment import by_length, per_query

    result = pt.Experiment([bm25, ql], topics, qrels, [nDCG @ 10], names=["BM25", "QL"], perquery=True)
    by_length(per_query(result), topics).plot()
"""

from pt_neural._measures import RankLoss
from pt_neural.experiment.alpha import AlphaCurve, tune_alpha
from pt_neural.experiment.breakdown import Breakdown, by_length, by_rarity, count_terms
from pt_neural.experiment.candidates import keyword_queries, with_random_documents
from pt_neural.experiment.components import SystemComponents, pca
from pt_neural.experiment.differences import significance
from pt_neural.experiment.ensembles import CrossValidated, cross_validate
from pt_neural.experiment.intervals import BootstrapIntervals, bootstrap
from pt_neural.experiment.recall import CandidateRecall, candidate_recall
from pt_neural.experiment.reciprocal_rank import expected_reciprocal_rank
from pt_neural.experiment.roc import auc, auc_per_query
from pt_neural.experiment.scatter import PerQueryScatter, scatter
from pt_neural.experiment.seeds import mean_over_seeds, over_seeds
from pt_neural.experiment.standard_errors import standard_errors, with_standard_errors
from pt_neural.experiment.telescoped import telescoped_against_full
from pt_neural.experiment.values import per_query

__all__ = [
    "AlphaCurve",
    "BootstrapIntervals",
    "Breakdown",
    "CandidateRecall",
    "CrossValidated",
    "PerQueryScatter",
    "RankLoss",
    "SystemComponents",
    "auc",
    "auc_per_query",
    "bootstrap",
    "by_length",
    "by_rarity",
    "candidate_recall",
    "count_terms",
    "cross_validate",
    "expected_reciprocal_rank",
    "keyword_queries",
    "mean_over_seeds",
    "over_seeds",
    "pca",
    "per_query",
    "scatter",
    "significance",
    "standard_errors",
    "telescoped_against_full",
    "tune_alpha",
    "with_random_documents",
    "with_standard_errors",
]
