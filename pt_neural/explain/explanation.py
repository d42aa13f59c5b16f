"""What every explanation offers, and every explanation of one document."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural.explain.pictures import TITLE_LENGTH, Mark, marked, paragraph, set_title, shortened
from pt_neural.text.tokens import FIELD_END

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pt_neural.rankers.representation import RepresentationRanker

Document = str | Mapping[str, str]  # a text, or its fields
Side = Literal["query", "document"]
SIDES = ("query", "document")


@dataclass(frozen=True)
class Explanation(ABC):
    """Why a model scores as it does: a frame, something to see in a notebook, a figure.

    Attributes:
        model: The model's ``repr``, or its name if several models are compared.
        query: The query.
        note: How to read what the notebook shows.
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
            ax: Axes to draw on; None for a new figure.
        """

    @abstractmethod
    def _repr_html_(self) -> str:
        """What a notebook shows."""

    def _page(self, query: str, number: str, body: str) -> str:
        """The model, the query, a number and the note, then the body; all but the number as HTML."""
        return (
            f'<div style="max-width: 60em; line-height: 1.7"><p><b>{escape(self.model)}</b> for "{query}"'
            f"{escape(number)}<br><small>{escape(self.note)}</small></p>{body}</div>"
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
        """What each word contributes, in the same form for all models.

        Returns:
            Frame with one row per occurrence that the model reads, those of the query first: ``word``, ``start`` and
            ``end`` (character positions), ``side`` (``"query"`` or ``"document"``, the text that it stands in),
            ``match`` (whether the other text has the word too) and ``contribution``, in the sense of the explanation.
            What several occurrences contribute together is divided among them, so that the rows of a word can be
            added up; NaN marks what was not tried.
        """

    @abstractmethod
    def _marks(self, side: Side) -> list[Mark]:
        """The marked words of one text, in order."""

    def _text_of(self, side: Side) -> str:
        return self.query if side == "query" else self.text

    def _body_html(self) -> str:
        """The document's text and what stands below it."""
        return paragraph(marked(self.text, self._marks("document")))

    def _repr_html_(self) -> str:
        return self._page(marked(self.query, self._marks("query")), f": {self._total()}", self._body_html())

    def _total(self) -> str:
        return f"{self.score:.4f}"

    def _title(self) -> list[str]:
        """The lines of a figure's title above the query."""
        return [f"{self.model}: {self._total()}"]

    def _set_title(self, ax: "Axes", **options: object) -> None:
        lines = [shortened(line, TITLE_LENGTH) for line in self._title()]
        set_title(ax, "\n".join([*lines, f'"{shortened(self.query)}"']), **options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model}, {shortened(self.query)!r}, score={self.score:.4f})"


def checked_side(side: str) -> Side:
    """The side, or a ValueError that names both."""
    if side not in SIDES:
        raise ValueError(f"side must be 'query' or 'document', not {side!r}")
    return side


def query_text(query: object) -> str:
    """A query; anything but a string, such as None or NaN, is an empty one."""
    return query if isinstance(query, str) else ""


def document_text(model: pt.Transformer, document: Document, *, keep_ends: bool = False) -> str:
    """The text of a document as a model reads it.

    Args:
        model: The model, which joins fields.
        document: A text or a dict of fields; anything else, such as None or NaN, is an empty text.
        keep_ends: Keep the characters that mark where fields end, for models that tell fields apart; otherwise each
            field starts on a new line.

    Raises:
        TypeError: If there are several documents.
    """
    if isinstance(document, list | tuple | np.ndarray | pd.Series):
        raise TypeError(f"this method explains one text, not {len(document)}: call pn.explain for each of them")
    text = model.document_text(document) if isinstance(document, Mapping) else query_text(document)
    return text if keep_ends else text.replace(FIELD_END, "\n")


def score_of(model: "RepresentationRanker", query: str, text: str) -> float:
    """The score of one query and one document."""
    row = np.zeros(1, dtype=np.int64)
    return float(model.score_pairs(model.represent_queries([query]), row, model.represent_texts([text]), row)[0])


def both_texts(model: pt.Transformer, query: object, document: Document) -> tuple[str, str]:
    """A query and a document as most explanations read them."""
    return query_text(query), document_text(model, document)
