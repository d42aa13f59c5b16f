"""What the Duet paper (Mitra et al., 2017) reports, by the names that our pipeline gives the rows."""

from pipelines.common.paper import PaperTable

TABLES = [
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
            "BM25 over the words read": None,
            "BM25 over the words read, without IDF": None,
        },
    ),
    PaperTable(
        "Duet",
        "Table 2, weighted test set",
        "nDCG@1",
        "duet",
        "runs",
        {
            "LSA": 0.224,
            "BM25": 0.242,
            "SDM": 0.247,
            "QL": 0.246,
            "DRMM": 0.243,
            "DSSM": 0.258,
            "CDSSM": 0.273,
            "DESM IN-OUT": 0.254,
            "Local": 0.246,
            "Distributed": 0.286,
            "Duet": 0.322,
            "BM25 over the words read": None,
            "BM25 over the words read, without IDF": None,
        },
    ),
]
