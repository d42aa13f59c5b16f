"""Which ranker to take: quality alone and mixed with BM25, time to fit and time per query, on all collections."""

from collections.abc import Container, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from pipelines.common.comparison import MAIN
from pipelines.common.costs import costs_figure
from pipelines.common.workspace import markdown
from pipelines.results.folders import MARK, UNFINISHED, ResultFolder

SECTION = """\
## Which ranker should I take?

nDCG@10 of BM25's top 100, re-ranked by each ranker alone and by its mixture with BM25. The costs are means over the
collections for which they are kept: seconds of fitting; milliseconds of re-ranking the candidates of a query by docno,
with one thread; and megabytes of the saved ranker, with its word embeddings and the vectors that it stores of
documents. The commands at the end say which sizes the networks have and how long they may train. Rows are in the order
of the mean gain of the mixture over BM25, each over the collections that it was run on. Milliseconds were measured in
one run for each collection, after one epoch of training, with queries that had not been re-ranked before. Seconds of
fitting were measured at different times, some of them before loops became faster and those of TK on a faster machine,
and are of one seed or means over three; so compare their orders of magnitude. ConvKNRM, TK, MVLSTM, POSIT-DRMM, ARC-I
and ARC-II could keep what they read of documents, but read them anew here. Rocchio expands the queries of TFIDF, and
TopicCosine compares the topics of LDA.

Mix what you take with a BM25 that is tuned on dev queries: by themselves, only TK and the two translation models are
above it on all three collections, but the mixtures of 25 of 31 rankers are. (The translation models gain from mixing
only on debian/synopses; alone, they are the best of all on neural:pydocs.) For the best re-ranking, take TK,
Match-Tensor (SSM adds nothing on average here), MatchPyramid, KNRM or the Duet. With little time, take a translation
model, or DSSM, which also retrieves from the whole collection.
"""
PICTURE = "rankers.png"
ALONE, MIXED, FIT, QUERY, SIZE = "alone", "mixed", "fit, s", "ms a query", "MB"  # of the tables of costs


def costs_by_collection(folders: Sequence[ResultFolder]) -> dict[str, pd.DataFrame]:
    """The table of costs of each collection, by system; those of re-ranking are of one run, where there is one."""
    costs = {}
    for folder in folders:
        if folder.pipeline == "classics" and (folder.path / "costs.csv").exists():
            table = costs[folder.collection] = pd.read_csv(folder.path / "costs.csv").set_index("system")
            if (folder.path / "reranking.csv").exists():
                table.update(pd.read_csv(folder.path / "reranking.csv").set_index("system"))
            # The values themselves, since the table of costs has rounded means, which would be rounded again.
            means = {
                name: values.to_numpy().mean() for name, values in folder.values("runs").get(str(MAIN), {}).items()
            }
            mixed = {name.removeprefix("BM25 + "): mean for name, mean in means.items() if name.startswith("BM25 + ")}
            table.update(pd.DataFrame({ALONE: means, MIXED: mixed}))
    return costs


def choice_table(costs: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """A row for each ranker, those with the largest mean gain of the mixture over BM25 first."""
    order = _gains(costs, MIXED).mean(axis=1).drop("BM25").sort_values(ascending=False).index
    columns = {}
    for name, table in costs.items():
        for column in (ALONE, MIXED):
            columns[f"{name}, {column}"] = table[column].reindex(["BM25", *order])
    for column in (FIT, QUERY, SIZE):
        columns[column] = _by_collection(costs, column).mean(axis=1)
    return pd.DataFrame(columns).reindex(["BM25", *order])


def choice_text(table: pd.DataFrame, unfinished: Container[str] = ()) -> pd.DataFrame:
    """The table as it is printed: three digits of quality, whole seconds and megabytes, milliseconds with a digit.

    Args:
        table: The table.
        unfinished: Rankers to mark, since they may have been trained too shortly.
    """
    digits = {FIT: 0, QUERY: 1, SIZE: 0}
    shown = {
        column: ["–" if np.isnan(value) else f"{value:,.{digits.get(column, 3)}f}" for value in values]
        for column, values in table.items()
    }
    names = [f"{name} {MARK}" if name in unfinished else name for name in table.index]
    return pd.DataFrame({"ranker": names, **shown})


def unfinished_rankers(folders: Sequence[ResultFolder]) -> set[str]:
    """The rankers that may have been trained too shortly on some collection."""
    return set().union(*(folder.unfinished() for folder in folders if folder.pipeline == "classics"))


def choice_section(folders: Sequence[ResultFolder], pictures: Path) -> Iterator[str]:
    """The section of the page; nothing if no collection has costs.

    Args:
        folders: All results.
        pictures: Where the page finds the picture.
    """
    costs = costs_by_collection(folders)
    if costs:
        unfinished = unfinished_rankers(folders)
        yield SECTION
        yield markdown(choice_text(choice_table(costs), unfinished)) + "\n"
        if unfinished:
            yield UNFINISHED
        yield f"![Gain over BM25 against milliseconds a query]({pictures / PICTURE})\n"


def choice_picture(costs: dict[str, pd.DataFrame]) -> Figure:
    """The mean gain over BM25, alone and mixed, against milliseconds a query."""
    means = {column: _by_collection(costs, column).mean(axis=1) for column in (FIT, QUERY)}
    means |= {column: _gains(costs, column).mean(axis=1) for column in (ALONE, MIXED)}
    title = f"Mean of {', '.join(costs)}"
    return costs_figure(pd.DataFrame(means).drop("BM25"), 0.0, ylabel="gain over BM25 in nDCG@10", title=title)


def _by_collection(costs: dict[str, pd.DataFrame], column: str) -> pd.DataFrame:
    return pd.DataFrame({name: table[column] for name, table in costs.items() if column in table})


def _gains(costs: dict[str, pd.DataFrame], column: str) -> pd.DataFrame:
    """How much better than BM25 each ranker is on each collection."""
    return _by_collection(costs, column) - _by_collection(costs, ALONE).loc["BM25"]
