"""What every explanation offers, and every explanation of one document."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural.explain.pictures import Mark, key, marked, paragraph, shortened
from pt_neural.text import token_spans
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
            '<div style="max-width: 60em; line-height: 1.7; overflow-wrap: anywhere"><p>'
            f'{escape(self.model)} for "{query}"{escape(number)}<br><small>{escape(self.note)}</small></p>{body}</div>'
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
            Frame with one row per occurrence that the model reads, the query's first: ``word``, ``start`` and ``end``
            (character positions), ``side`` (the text it stands in, ``"query"`` or ``"document"``), ``match`` (whether
            the other text has the word too) and ``contribution``, as this explanation defines it. A joint contribution
            of several occurrences is divided among them, so that the rows of a word can be added up; NaN marks words
            that were not tried.
        """

    @abstractmethod
    def _marks(self, side: Side) -> list[Mark]:
        """The marked words of one text, in order."""

    def _text_of(self, side: Side) -> str:
        return self.query if side == "query" else self.text

    def _read(self, side: Side) -> int | None:
        """Where the part of a text ends that the model reads, in characters; None if it reads all."""
        return None

    def _read_part(self, words: pd.DataFrame, side: Side) -> pd.DataFrame:
        """The occurrences of words of one text that the model reads, of a frame of those of both."""
        end = self._read(side)
        return words[(words["side"] == side) & (True if end is None else words["start"] < end)]

    def _marked(self, side: Side, marks: list[Mark] | None = None) -> str:
        """A text as HTML, with its marks and with what the model does not read in grey."""
        return marked(self._text_of(side), self._marks(side) if marks is None else marks, self._read(side))

    def _body_html(self) -> str:
        """The document's text and anything below it."""
        return paragraph(self._marked("document"))

    def _repr_html_(self) -> str:
        query, body = self._marked("query"), self._body_html()
        return self._page(query, f": {self._total()}", key(query + body) + body)

    def _total(self) -> str:
        return f"{self.score:.4f}"

    def _sum_of(self, addends: Mapping[str, float | None]) -> str:
        """The score as a sum of named addends, without those that are None."""
        parts = [f"{value:.3f} ({name})" for name, value in addends.items() if value is not None]
        return f"{self.score:.3f} = {' + '.join(parts)}".replace("+ -", "− ").replace("-", "−")

    def _title(self) -> list[str]:
        """The lines of a figure's title."""
        return [f"{self.model}: {self._total()}", quoted(self.query)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model}, {shortened(self.query)!r}, score={self.score:.4f})"


def quoted(query: str) -> str:
    """A query on one line, in quotes."""
    return f'"{" ".join(query.split())}"'


def read_end(text: str, words: int | None) -> int | None:
    """Where the first so many words of a text end, in characters; None if it has no more."""
    spans = token_spans(text)
    if words is None or len(spans) <= words:
        return None
    return spans[words - 1][2] if words else 0


def checked_side(side: str) -> Side:
    """The side, or a ValueError that names both."""
    if side not in SIDES:
        raise ValueError(f"side must be 'query' or 'document', not {side!r}")
    return side


def query_text(query: object) -> str:
    """The query, or an empty one for anything but a string, such as None or NaN."""
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
    text = (
        model.document_text(document) if isinstance(document, Mapping) else query_text(document).replace(FIELD_END, " ")
    )
    return text if keep_ends else text.replace(FIELD_END, "\n")


def score_of(model: "RepresentationRanker", query: str, text: str) -> float:
    """The score of one query and one document."""
    row = np.zeros(1, dtype=np.int64)
    return float(model.score_pairs(model.represent_queries([query]), row, model.represent_texts([text]), row)[0])


def both_texts(model: pt.Transformer, query: object, document: Document) -> tuple[str, str]:
    """A query and a document as most explanations read them."""
    return query_text(query), document_text(model, document)
