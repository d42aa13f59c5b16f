"""What all explanations share, and those of one document."""

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
TITLE_LENGTH = 60  # characters


@dataclass(frozen=True)
class Explanation(ABC):
    """Why a model scores as it does: a frame, something to see in a notebook, a figure.

    Attributes:
        model: The model, as it prints itself; its name where several are compared.
        query: The query.
        note: What the notebook shows, in a sentence or two.
    """

    model: str
    query: str
    note: str

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """The explanation as a frame."""

    @abstractmethod
    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the explanation.

        Args:
            ax: Axes to draw on; a new figure by default.
        """

    @abstractmethod
    def _repr_html_(self) -> str:
        """What a notebook shows."""

    def _page(self, query: str, number: str, body: str) -> str:
        """A note, and what is below it, as HTML.

        Args:
            query: The query as HTML.
            number: What stands after it, such as the score.
            body: What follows, as HTML.
        """
        return (
            f'<div style="max-width: 60em; line-height: 1.7"><p><b>{escape(self.model)}</b> for "{query}"{number}<br>'
            f"<small>{escape(self.note)}</small></p>{body}</div>"
        )


@dataclass(frozen=True, repr=False)
class TextExplanation(Explanation):
    """Why a model gave one document its score.

    Attributes:
        text: The document's text.
        score: The model's score.
    """

    text: str
    score: float

    @abstractmethod
    def by_word(self) -> pd.DataFrame:
        """What each word adds, whatever else the explanation tells: the same for all models.

        Returns:
            Frame with one row an occurrence that the model reads, those of the query first: ``word``, ``start`` and
            ``end`` (character positions), ``side`` (``"query"`` or ``"document"``, the text in which it stands),
            ``match`` (whether the other text has the word too) and ``contribution``, as the explanation understands
            it. What several occurrences add together is divided among them, so that those of one word can be added
            up; NaN is what was not tried.
        """

    @abstractmethod
    def _marks(self, side: Side) -> list[Mark]:
        """The marked words of one text, in its order."""

    def _text_of(self, side: Side) -> str:
        return self.query if side == "query" else self.text

    def _body_html(self) -> str:
        """The document's text and what stands below it."""
        return paragraph(marked(self.text, self._marks("document")))

    def _query_html(self) -> str:
        return marked(self.query, self._marks("query"))

    def _repr_html_(self) -> str:
        return self._page(self._query_html(), f": {escape(self._total())}", self._body_html())

    def _total(self) -> str:
        return f"{self.score:.4f}"

    def _title(self) -> list[str]:
        """The lines of a picture's title before the query."""
        return [f"{self.model}: {self._total()}"]

    def _set_title(self, ax: "Axes", **options: object) -> None:
        lines = [shortened(line, TITLE_LENGTH) for line in self._title()]
        title = "\n".join([*lines, f'"{shortened(self.query)}"'])
        ax.set_title(title, fontsize="medium", parse_math=False, **options)  # a query may hold dollar signs

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model}, {shortened(self.query)!r}, score={self.score:.4f})"


def checked_side(side: str) -> Side:
    """The side, or a ValueError that names both."""
    if side not in SIDES:
        raise ValueError(f"side must be 'query' or 'document', not {side!r}")
    return side


def paragraph(html: str) -> str:
    """A text as it was written, with its own line breaks."""
    return f'<p style="white-space: pre-wrap">{html}</p>'


def shortened(text: str, length: int = 45) -> str:
    """A text on one line, cut after ``length`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"
