"""The training loss of SSI with each learning rate; its paper takes the rate of the smallest (section 2.3.1)."""

from collections.abc import Iterator, Sequence

import pandas as pd

from pipelines.common.workspace import markdown
from pipelines.results.folders import ResultFolder
from pt_neural.models.ssi.ssi import LEARNING_RATES

KINDS = {"W unconstrained": "full", "W = U'V + I, N = 200": "low-rank", "W = U'U + I, N = 200": "symmetric"}
NAME = r"^SSI: (?P<W>.+?)(?:, learning rate (?P<rate>[\d.]+))?(?:, trained longer)?, 10,000 words$"
EPOCHS = 10
SECTION = f"""\
### SSI, section 2.3.1: training loss by learning rate

The mean loss over the first {EPOCHS} epochs and all seeds, times 1,000, with 10,000 words. The paper takes the rate of
the smallest training error.
"""


def rates_section(folders: Sequence[ResultFolder]) -> Iterator[str]:
    """The section of the page; nothing if no W was trained with two rates."""
    columns = {folder.collection: losses(folder) for folder in folders if folder.pipeline == "ssi"}
    columns = {name: found for name, found in columns.items() if len(found)}
    if not columns:
        return
    table = pd.concat(columns, axis=1).sort_index()
    table = table[table.index.get_level_values("W").duplicated(keep=False)]
    if len(table):
        yield SECTION
        text = (1000 * table).map("{:.2f}".format, na_action="ignore").fillna("–").reset_index()
        yield markdown(text.assign(**{"learning rate": text["learning rate"].map("{:g}".format)})) + "\n"


def losses(folder: ResultFolder) -> pd.Series:
    """The mean loss with each kind of W, in the order of ``KINDS``, and each learning rate: ``W, learning rate``."""
    path = folder.path / "histories.csv"
    if not path.exists():
        return pd.Series(dtype=float)
    histories = pd.read_csv(path)
    first = histories[histories["epoch"].between(1, EPOCHS)]
    parts = first["system"].str.extract(NAME)
    known = parts["W"].where(parts["W"].isin(list(KINDS)))  # groupby leaves NaN out
    kinds = pd.Categorical(known, list(KINDS))
    rates = parts["rate"].astype(float).fillna(parts["W"].map(KINDS).map(LEARNING_RATES))
    columns = {"W": kinds, "learning rate": rates}
    return first.assign(**columns).groupby(list(columns), observed=True)["loss"].mean()
