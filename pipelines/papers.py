"""What the papers of DESM, CLSM, Duet and Match-Tensor report, by the names that our pipelines give the rows.

Figures are those printed in the papers; the SSI paper's are in :mod:`pipelines.ssi_paper`.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper, and where its rows are among our results.

    Attributes:
        paper: Name of its model.
        table: Which of its tables, with the test set.
        measure: What its figures are.
        pipeline: Whose results are compared.
        runs: The folder of its runs.
        rows: The paper's figure of each system.
        baselines: The system that each is relative to, where the table has gains in percent.
    """

    paper: str
    table: str
    measure: str
    pipeline: str
    runs: str
    rows: Mapping[str, float]
    baselines: Mapping[str, str] | None = None


ARCHITECTURES = ("SSM", "Match-Tensor", "Match-Tensor+SSM", "Match-Tensor(exact only)+SSM")

TABLES = [
    PaperTable(
        "DESM",
        "Table 3, telescoped, explicitly judged test set",
        "nDCG@10",
        "desm",
        "runs-telescoped",
        {
            "BM25": 0.4477,
            "LSA": 0.4424,
            "DESM (IN-IN, trained on documents)": 0.4551,
            "DESM (IN-IN, trained on queries)": 0.4636,
            "DESM (IN-OUT, trained on documents)": 0.4657,
            "DESM (IN-OUT, trained on queries)": 0.4789,
        },
    ),
    PaperTable(
        "DESM",
        "Table 4, every document a candidate, explicitly judged test set",
        "nDCG@10",
        "desm",
        "runs-all-documents",
        {
            "BM25": 0.3753,
            "LSA": 0.0483,
            "DESM (IN-IN, trained on documents)": 0.0739,
            "DESM (IN-IN, trained on queries)": 0.0603,
            "DESM (IN-OUT, trained on documents)": 0.0158,
            "DESM (IN-OUT, trained on queries)": 0.0081,
            "BM25 + DESM (IN-IN, trained on documents)": 0.3748,
            "BM25 + DESM (IN-IN, trained on queries)": 0.3762,
            "BM25 + DESM (IN-OUT, trained on documents)": 0.3755,
            "BM25 + DESM (IN-OUT, trained on queries)": 0.3786,
        },
    ),
    PaperTable(
        "CLSM",
        "Table 5, candidates re-ranked",
        "nDCG@10",
        "clsm",
        "runs-telescoped",
        {
            "BM25": 0.388,
            "ULM": 0.385,
            "PLSA (T=100)": 0.402,
            "PLSA (T=500)": 0.402,
            "LDA (T=100)": 0.403,
            "LDA (T=500)": 0.405,
            "BLTM": 0.410,
            "MRF": 0.409,
            "LCE": 0.407,
            "WTM": 0.411,
            "PTM (maxlen=3)": 0.413,
            "DSSM (J=4)": 0.431,
            "DSSM (J=50)": 0.438,
            "CLSM (J=4)": 0.447,
            "CLSM (J=50)": 0.449,
        },
    ),
    PaperTable(
        "CLSM",
        "Table 6, candidates re-ranked",
        "nDCG@10",
        "clsm",
        "runs-telescoped",
        {
            "DSSM (J=50)": 0.438,
            "CLSM (J=50), window 1": 0.443,
            "CLSM (J=50)": 0.449,
            "CLSM (J=50), window 5": 0.448,
        },
    ),
    PaperTable(
        "Duet",
        "Table 2, weighted test set",
        "nDCG@10",
        "duet",
        "runs",
        {
            "LSA": 0.442,
            "BM25": 0.455,
            "SDM": 0.462,
            "QL": 0.463,
            "DRMM": 0.452,
            "DSSM": 0.482,
            "CDSSM": 0.482,
            "DESM IN-OUT": 0.483,
            "Local": 0.451,
            "Distributed": 0.505,
            "Duet": 0.530,
        },
    ),
    PaperTable(
        "Match-Tensor",
        "Table 3, gain from bi-LSTMs over convolutions, %",
        "nDCG@10",
        "match-tensor",
        "runs",
        {"SSM": 0.67, "Match-Tensor": 0.66, "Match-Tensor+SSM": 0.33, "Match-Tensor(exact only)+SSM": 0.11},
        {name: f"{name}, CNN" for name in ARCHITECTURES},
    ),
    PaperTable(
        "Match-Tensor",
        "Table 4, gain from BM25 as a second feature, %",
        "nDCG@10",
        "match-tensor",
        "runs-ensembles",
        {
            "SSM & BM25": 1.33,
            "Match-Tensor & BM25": 0.54,
            "Match-Tensor+SSM & BM25": 0.65,
            "Match-Tensor(exact only)+SSM & BM25": 0.77,
        },
        {f"{name} & BM25": name for name in ARCHITECTURES},
    ),
]
