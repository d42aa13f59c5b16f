"""What the CLSM paper (Shen et al., 2014) reports, by the names that our pipeline gives the rows."""

from pipelines.common.paper import PaperTable

TABLES = [
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
            "DSSM (in-batch)": None,
            "CLSM (in-batch)": None,
            "BM25, words as below": None,
            "BM25, stems of words as below": None,
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
            "DSSM (in-batch)": None,
            "CLSM (in-batch), window 1": None,
            "CLSM (in-batch)": None,
            "CLSM (in-batch), window 5": None,
        },
    ),
    PaperTable(
        "CLSM",
        "Table 4, single fields, all documents",
        "nDCG@10",
        "clsm",
        "runs-single-fields",
        {"text": 0.375, "title": 0.388},
    ),
]
