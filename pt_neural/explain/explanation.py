"""What all explanations share."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Literal

import pandas as pd

from pt_neural.explain.marking import Mark, marked

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Side = Literal["query", "document"]
SIDES = ("query", "document")


@dataclass(frozen=True)
class Explanation(ABC):
    """Why a model gave a document its score: a frame, shaded text in a notebook, a figure.

    Attributes:
        title: The model.
        query: The query.
        text: The document's text.
        score: The model's score.
        note: What the notebook shows, in a sentence or two.
    """

    title: str
    query: str
    text: str
    score: float
    note: str

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """The explanation as a frame."""

    @abstractmethod
    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the explanation."""

    @abstractmethod
    def _marks(self, side: Side) -> list[Mark]:
        """The marked words of one text, in its order."""

    def _table_html(self) -> str:
        """What stands below the texts."""
        return ""

    def _repr_html_(self) -> str:
        return (
            f'<div style="max-width: 60em; line-height: 1.7"><p><b>{escape(self.title)}</b> for '
            f'"{marked(self.query, self._marks("query"))}": {self.score:.4f}<br><small>{escape(self.note)}</small></p>'
            f'<p style="white-space: pre-wrap">{marked(self.text, self._marks("document"))}</p>'
            f"{self._table_html()}</div>"
        )

    def _set_title(self, ax: "Axes", **options: object) -> None:
        title = f'{self.title}: {self.score:.4f}\n"{shortened(self.query)}"'
        ax.set_title(title, fontsize="medium", parse_math=False, **options)  # a query may hold dollar signs

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.title}, {shortened(self.query)!r}, score={self.score:.4f})"


def shortened(text: str, length: int = 45) -> str:
    """A text on one line, cut after ``length`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"
