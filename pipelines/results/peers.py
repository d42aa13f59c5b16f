"""The quality of our rankers beside those of matchzoo-py, trained on the same groups (``benchmarks/quality.py``)."""

from collections.abc import Iterator, Sequence

import pandas as pd

from pipelines.common.comparison import MAIN
from pipelines.common.workspace import markdown
from pipelines.results.folders import ResultFolder, Systems, mean_text, query_count
from pipelines.results.orderings import Ordering, outcome_of, p_text

SECTION = f"""\
## Beside matchzoo-py

{MAIN} of our rankers and of matchzoo-py's (1.1.1), trained on the same groups (a query, a relevant document, and four
others), with networks as alike as matchzoo-py allows, each side with its own loss. They re-rank the same few candidates
of BM25 by their scores alone. The epoch of each was chosen on dev queries, and so was the learning rate, except for the
Duet and the CLSM. ± is the standard deviation over seeds, which start from the same word vectors; the p-value is that
of the test of orderings. All trainings had five epochs, few for dev to stop rising; the Duet and the CLSM, which train
slowly in matchzoo-py, had three, and fewer groups and dev queries, and the CLSM read shorter documents (see the
commands below). Five differences are significant, all in our favour; for KNRM, MatchPyramid, MV-LSTM and ConvKNRM, the
two are within .01. The trainings compare implementations, and do not say how good a ranker can be. A network that gives
all documents one score ranks them by docno: so did matchzoo-py's ARC-I, MV-LSTM and Duet with one of three seeds. With
the other two, its ARC-I had .299 and .265, its MV-LSTM .299 and .309, and its Duet .280 and .279.
"""
OURS, THEIRS = "ours", "matchzoo-py"


def peer_section(folders: Sequence[ResultFolder]) -> Iterator[str]:
    """The section of the page; nothing if the benchmark was not run."""
    folders = [folder for folder in folders if folder.pipeline == "peers"]
    if folders:
        yield SECTION
    for folder in folders:
        values = folder.values("runs")
        systems = values[str(MAIN)]
        bm25 = mean_text(systems, "BM25")
        yield f"### {folder.collection} ({query_count(systems):,} queries; BM25 {bm25})\n"
        yield markdown(peer_table(values)) + "\n"


def peer_table(values: dict[str, Systems]) -> pd.DataFrame:
    """A row for each ranker that both sides have."""
    systems, rows = values[str(MAIN)], []
    for name in systems:
        ranker, _, side = name.rpartition(", ")
        if side != OURS:
            continue
        theirs = f"{ranker}, {THEIRS}"
        outcome = outcome_of(Ordering("", "", "", "peers", "runs", name, theirs), values)
        if outcome is not None:
            cells = {OURS: mean_text(systems, name), THEIRS: mean_text(systems, theirs)}
            difference = f"{outcome.better - outcome.worse:+.3f}, {p_text(outcome.p)}"
            rows.append({"ranker": ranker, **cells, "difference": difference})
    return pd.DataFrame(rows)
