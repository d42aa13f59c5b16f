"""The options of the pipeline of the SSI paper."""

import argparse

from pipelines.common import parsed, parser
from pipelines.ssi_evaluation import SETTINGS
from pipelines.trained import add_training

ABOUT = {
    1: "document-document ranking, limited dictionary",
    2: "document-document ranking, all words",
    3: "links or documents parted into training and test",
    4: "dimensions of U and V",
    5: "queries of k keywords, limited dictionary",
    6: "queries of k keywords, all words",
    9: "queries in another language, limited dictionaries",
    10: "queries in another language, all words",
}
OF_LANGUAGES = (9, 10)
FIGURES = {
    1: "average precision of each query, SSI against TFIDF and its mixture with LSA",
    2: "training and dev error",
}


def options(description: str) -> argparse.Namespace:
    """The pipeline's arguments."""
    arguments = parser(description, "neural:pydocs/links")
    add_training(arguments)
    arguments.set_defaults(epochs=60, queries=1000, batch_size=None)
    add = arguments.add_argument
    monolingual = [number for number in ABOUT if number not in OF_LANGUAGES]
    add("--tables", type=int, nargs="*", choices=ABOUT, default=monolingual, help=listed(ABOUT))
    add("--figures", type=int, nargs="*", choices=FIGURES, default=[], help=listed(FIGURES))
    add("--query", choices=["text", "page"], default="text", help="the query of the dataset, or the whole page")
    add("--mates", help="dataset of the English page of each query in Tables 9 and 10; None: --dataset, to find mates")
    add("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS), help="linked and random documents, or all")
    add("--random-documents", type=int, default=10_000, help="random documents beside the linked ones")
    add("--dev-documents", type=int, default=500, help="random documents beside the links of a dev query")
    add("--dev-queries", type=int, default=500, help="dev queries that a training is judged by after each epoch")
    add("--dev-measure", default="AP", help="measure that tells the best epoch; rank loss (RankLoss) levels off first")
    add("--patience", type=int, default=10, help="epochs without a better dev measure that end a training")
    add("--pair-epochs", type=int, default=15, help="epochs where W weighs pairs of words, or their hashes")
    add("--dim", type=int, default=100, help="N, rows of U and V (paper: 200)")
    add("--dims", type=int, nargs="*", default=[50, 100, 200], help="N in Table 4 (paper: 100 200 500)")
    add("--lsa-dims", type=int, nargs="+", default=[50, 100, 200], help="dimensions of LSA to choose from")
    add("--max-terms", type=int, default=30_000, help="D, words of the limited dictionary")
    add("--full-terms", type=int, default=10_000, help="words where W has a weight for each pair of them (paper: D)")
    add("--nonzeros", type=int, nargs="*", default=[1000, 100, 10], help="weights a row of sparse W in Table 1")
    add("--frequent-terms", type=int, default=10_000, help="words of LSA and CFH in Tables 2 and 6 (paper: 30000)")
    add("--embedded-terms", type=int, nargs="*", default=[30_000, 10_000, 3_000], help="n of (U'V)_n in Table 2")
    add("--hash-sizes", type=int, nargs="*", default=[1_000_000, 3_000_000, 6_000_000], help="hash kernels in Table 2")
    add("--keywords", type=int, nargs="*", default=[5, 10, 20], help="k in Tables 5 and 6")
    add("--shares", type=float, nargs="*", default=[0.01, 0.04, 0.16, 1.0], help="of training links in Figure 2")
    add("--figure-dims", type=int, nargs="*", default=[50, 100], help="N in Figure 2")
    add("--figure-epochs", type=int, default=20, help="epochs of all links in Figure 2; fewer links have more")
    return parsed(arguments)


def listed(items: dict[int, str]) -> str:
    """What each table or figure is."""
    return "; ".join(f"{number}: {about}" for number, about in items.items())
