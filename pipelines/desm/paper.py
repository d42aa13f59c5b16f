"""What the DESM paper (Mitra et al., 2016) reports, by the names that our pipeline gives the rows."""

from pipelines.common.first_stage import PRIOR
from pipelines.common.paper import PaperTable

# Rows that the paper does not have: the spaces of its footnote 2, centred vectors, and less text to train on.
OURS = [f"DESM ({spaces}, trained on documents)" for spaces in ("OUT-OUT", "OUT-IN", "IN-IN centred", "IN-OUT centred")]
SAMPLE = "a sample of documents"  # with as many words as the training queries
QUARTER = "a quarter of the queries"
LESS = (SAMPLE, QUARTER)
DEFAULTS = "BM25's defaults"  # those of Lucene
DEFAULTS_PRIOR = PRIOR.replace("BM25", DEFAULTS)
IN_OUT = "DESM (IN-OUT, trained on documents)"

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
            **dict.fromkeys(OURS),
            **dict.fromkeys(f"DESM ({spaces}, trained on {less})" for less in LESS for spaces in ("IN-IN", "IN-OUT")),
            f"LSA (trained on {SAMPLE})": None,
        },
    ),
    PaperTable(
        "DESM",
        "Table 4, all documents ranked, explicitly judged test set",
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
            **dict.fromkeys(OURS),
            **dict.fromkeys(f"BM25 + {name}" for name in OURS),
            **dict.fromkeys((PRIOR, DEFAULTS, DEFAULTS_PRIOR, f"{DEFAULTS} + {IN_OUT}")),
        },
    ),
]
