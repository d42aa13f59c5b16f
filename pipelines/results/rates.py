"""The training loss of SSI with each learning rate; its paper takes the rate of the smallest (section 2.3.1)."""

import re
from collections.abc import Iterator, Sequence

import pandas as pd

from pipelines.common.workspace import markdown
from pipelines.results.folders import ResultFolder
from pt_neural.models.ssi.ssi import LEARNING_RATES

KINDS = {"W unconstrained": "full", "W = U'V + I, N = 200": "low-rank", "W = U'U + I, N = 200": "symmetric"}
NAME = re.compile(r"SSI: (?P<kind>.+?)(?:, learning rate (?P<rate>[\d.]+))?(?:, trained longer)?, 10,000 words")
EPOCHS = 10
SECTION = f"""\
### SSI, section 2.3.1: training loss by learning rate

The mean loss over the first {EPOCHS} epochs and all seeds, times 1,000, with 10,000 words. The paper takes the rate of
the smallest training error.
"""


def rates_section(folders: Sequence[ResultFolder]) -> Iterator[str]:
    """The section of the page; nothing if no W was trained with two rates."""
    columns = {folder.collection: losses(folder) for folder in folders if folder.pipeline == "ssi"}
    table = pd.DataFrame({name: found for name, found in columns.items() if len(found)})
    table = table[table.index.get_level_values("W").duplicated(keep=False)] if len(table) else table
    if len(table):
        yield SECTION
        text = (1000 * table).map("{:.2f}".format, na_action="ignore").fillna("–")
        text = text.rename(index=list(KINDS).__getitem__, level="W").rename(index="{:g}".format, level="learning rate")
        yield markdown(text.reset_index()) + "\n"


def losses(folder: ResultFolder) -> pd.Series:
    """The mean loss with each kind of W, by its place in ``KINDS``, and each learning rate: ``W, learning rate``."""
    path = folder.path / "histories.csv"
    found: dict[tuple[int, float], float] = {}
    if path.exists():
        histories = pd.read_csv(path)
        first = histories[histories["epoch"].between(1, EPOCHS)].groupby("system")["loss"].mean()
        for system, loss in first.items():
            name = NAME.fullmatch(str(system))
            if name and name["kind"] in KINDS:
                rate = float(name["rate"] or LEARNING_RATES[KINDS[name["kind"]]])
                found[list(KINDS).index(name["kind"]), rate] = loss
    index = pd.MultiIndex.from_tuples(found, names=["W", "learning rate"]) if found else None
    return pd.Series(list(found.values()), index=index, dtype=float).sort_index()
