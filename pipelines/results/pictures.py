"""Figures of the papers, drawn from kept values of queries and from kept tables."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pandas as pd
from ir_measures import nDCG
from matplotlib.figure import Figure

from pipelines.clsm.figures import text_lengths
from pipelines.common.workspace import slug
from pipelines.duet.rankers import KINDS
from pipelines.match_tensor.evaluation import AUC
from pipelines.match_tensor.figures import learning_curves as auc_curves
from pipelines.match_tensor.figures import precision_recall
from pipelines.results.folders import ResultFolder, mean_by_query
from pipelines.ssi import figures, paper
from pt_neural.experiment import pca

SECTION = """\
## Figures of the papers

Drawn from our runs, as means over seeds. The learning curves are in a section above.
"""
Draw = Callable[[], Figure]
SCATTERED = {f"2: {row}": paper.NAMES[row] for row in ("embedded-0", "tfidf", "mixture")}


def figure_section(folders: Sequence[ResultFolder], pictures: Path) -> Iterator[str]:
    """The section of the page; nothing if there are no pictures.

    Args:
        folders: All results.
        pictures: Where the page finds the pictures.
    """
    parts = [f"![{caption}]({pictures / name})\n\n*{caption}*\n" for name, caption, _ in paper_pictures(folders)]
    if parts:
        yield SECTION
        yield from parts


def paper_pictures(folders: Sequence[ResultFolder]) -> Iterator[tuple[str, str, Draw]]:
    """The file and the caption of each figure and collection, and what draws it."""
    for pipeline, figure, caption, of_folder in FIGURES:
        for folder in folders:
            if folder.pipeline == pipeline and (draw := of_folder(folder)) is not None:
                name = f"{pipeline}-{figure}-{slug(folder.collection)}.png"
                yield name, f"{caption}; {folder.collection}", draw


def average_precision(folder: ResultFolder) -> Draw | None:
    """(U'V)_n + I with the largest n against TFIDF and its mixture with LSA; None if one of them was not run."""
    values = mean_by_query(folder.values("runs-collection").get("MAP", {}))
    if not set(SCATTERED) <= set(values):
        return None
    return partial(figures.scatter, values[list(SCATTERED)].rename(columns=SCATTERED))


def from_table(name: str, draw: Callable[[pd.DataFrame], Figure], folder: ResultFolder) -> Draw | None:
    """A figure that is drawn from the table of this name that its pipeline has kept; None if there is none."""
    path = folder.path / f"{name}.csv"
    return partial(draw, pd.read_csv(path)) if path.exists() else None


def components(folder: ResultFolder) -> Draw | None:
    """The rankers of Table 2 as points; None without the Duet, or with fewer than three rankers."""
    values = mean_by_query(folder.values("runs").get(str(nDCG @ 10), {}))
    kinds = {name: kind for name, kind in KINDS.items() if name in values}
    if "Duet" not in kinds or len(kinds) < 3:
        return None
    return lambda: pca(values[list(kinds)], kinds).plot().figure


FIGURES: tuple[tuple[str, str, str, Callable[[ResultFolder], Draw | None]], ...] = (
    (
        *("ssi", "figure1"),
        "SSI, Figure 1: average precision of each query, all words, documents as queries",
        average_precision,
    ),
    (
        *("ssi", "figure2"),
        "SSI, Figure 2 (the paper's is across languages): training loss and dev rank loss by the tuples seen",
        partial(from_table, "figure2", figures.learning_curves),
    ),
    (
        *("clsm", "figure2"),
        "CLSM, Figure 2: words of queries and of documents (the paper's: of titles)",
        partial(from_table, "figure2", text_lengths),
    ),
    (
        *("duet", "figure6"),
        "Duet, Figure 6: principal components of the rankers' nDCG@10 of the test queries",
        components,
    ),
    (
        *("match-tensor", "figure3"),
        "Match-Tensor, Figure 3: area under the ROC curve by training queries, relative to that with all of them",
        partial(from_table, "figure3", partial(auc_curves, measure=AUC)),
    ),
    (
        *("match-tensor", "precision-recall"),
        "Match-Tensor, section 6.3: precision at each recall, candidates of all queries together",
        partial(from_table, "precision-recall", precision_recall),
    ),
)
