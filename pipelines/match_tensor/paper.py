"""What the Match-Tensor paper (Jaech et al., 2017) reports, by the names that our pipeline gives the rows."""

from pipelines.common.paper import PaperTable

ARCHITECTURES = ("SSM", "Match-Tensor", "Match-Tensor+SSM", "Match-Tensor(exact only)+SSM")

TABLES = [
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
