"""The form in which a paper's results are written down beside its pipeline."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper, and where to find its rows among our results.

    Attributes:
        paper: The paper, by the name of its model.
        table: The number of the table, with the test set.
        measure: The measure that the table reports.
        pipeline: The pipeline whose results are compared.
        runs: The folder of its runs.
        rows: The paper's value for each system; None for a system that the paper does not have.
        baselines: The system that each one is relative to, if the table has gains in percent.
    """

    paper: str
    table: str
    measure: str
    pipeline: str
    runs: str
    rows: Mapping[str, float | None]
    baselines: Mapping[str, str] | None = None
