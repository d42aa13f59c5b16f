"""Where the terms of a query stand in documents (Duet paper, Figure 2)."""

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pt_neural.explain.explanation import Explanation, paragraph, shortened
from pt_neural.explain.marking import MATCH_COLOUR, Mark, marked
from pt_neural.explain.match_figure import draw_matches
from pt_neural.rankers.interaction import Interaction
from pt_neural.text import token_spans, tokenise

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def explain_matches(
    model: Interaction, query: str, text: str | Sequence[str], *, labels: Sequence[float] | None = None
) -> "MatchesExplanation":
    """Find the positions of the query's terms in documents (Duet paper, section 2, Figure 2).

    This is what an interaction ranker sees of exact matches: the terms of the query and of the documents that it
    reads, however it is trained, if at all.

    Args:
        model: The ranker; how many terms it reads is that of its ``query_terms`` and ``document_terms``.
        query: The query's text.
        text: The document's text, or those of several documents.
        labels: Relevance of each document, 0 and below for those that are not relevant; None or NaN where it is
            unknown.

    Returns:
        An explanation of all documents.

    Raises:
        ValueError: If there is no document, or not one label for each.
    """
    texts = [text] if isinstance(text, str) else list(text)
    labels = [None] * len(texts) if labels is None else [_grade(label) for label in labels]
    if not texts:
        raise ValueError("there is no text to find matches in: give at least one document")
    if len(labels) != len(texts):
        raise ValueError(f"labels must be one for each of the {len(texts)} texts, not {len(labels)}")
    terms = tokenise(query)[: getattr(model, "query_terms", None)]
    spans = [token_spans(text)[: getattr(model, "document_terms", None)] for text in texts]
    return MatchesExplanation(
        model=repr(model),
        query=query,
        note="Orange: words of the query, as far as the model reads query and document.",
        texts=texts,
        labels=labels,
        terms=terms,
        lengths=list(map(len, spans)),
        matches=pd.concat([_matches(terms, *one) for one in zip(range(len(texts)), labels, spans, strict=True)]),
    )


def _grade(label: object) -> float | None:
    """A label as a number, None if it is unknown."""
    if label is None or pd.isna(label):
        return None
    if not isinstance(label, numbers.Real):
        raise TypeError(f"labels must be numbers, one for each text, not {label!r:.80}")
    return label


def _matches(terms: list[str], number: int, label: float | None, spans: list[tuple[str, int, int]]) -> pd.DataFrame:
    """One document's rows of :meth:`MatchesExplanation.to_frame`."""
    query = pd.DataFrame({"word": pd.Series(terms, dtype=object), "query_position": np.arange(len(terms))})
    words = pd.DataFrame(spans, columns=["word", "start", "end"]).assign(position=np.arange(len(spans)))
    found = query.merge(words, on="word").assign(document=number, label=label)
    columns = {"word": object, "start": "int64", "end": "int64", "document": "int64", "label": "float64"}
    columns |= {"query_position": "int64", "position": "int64"}
    return found.astype(columns)[list(columns)].sort_values(["query_position", "position"])


@dataclass(frozen=True, repr=False)
class MatchesExplanation(Explanation):
    """Where the terms of a query stand in documents.

    Attributes:
        texts: The documents.
        labels: Their relevance, None where it is unknown.
        terms: The terms of the query.
        lengths: How many terms of each document the model reads.
        matches: One row a match; see :meth:`to_frame`.
    """

    texts: list[str]
    labels: list[float | None]
    terms: list[str]
    lengths: list[int]
    matches: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """One row a match of a query term and a document term, by document, query term and position.

        Returns:
            Frame with ``word``, ``start`` and ``end`` (in the document, in characters), ``document`` (its number, from
            0), ``label`` (NaN if unknown), ``query_position`` and ``position`` (in terms, from 0).
        """
        return self.matches.reset_index(drop=True)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw one block a document: query terms on the vertical axis, positions on the horizontal one (Figure 2).

        A short vertical line is a match. What lies beyond the end of a document is grey.

        Args:
            ax: Axes to draw on; a new figure by default.
        """
        panels = [
            (name, self.lengths[number], self.matches[self.matches["document"] == number])
            for number, name in enumerate(self._names())
        ]
        relevant = [label is not None and label > 0 for label in self.labels]
        return draw_matches(ax, shortened(self.query), self.terms, panels, relevant)

    def _names(self) -> list[str]:
        return [
            f"document {number}" + ("" if label is None else f": {'' if label > 0 else 'not '}relevant ({label:g})")
            for number, label in enumerate(self.labels)
        ]

    def _repr_html_(self) -> str:
        panels = []
        for number, (name, text) in enumerate(zip(self._names(), self.texts, strict=True)):
            found = self.matches[self.matches["document"] == number].drop_duplicates("position").sort_values("position")
            marks = [_mark(text, row) for row in found.itertuples()]
            panels.append(f"<p><b>{name}</b>, {len(found):,} matches</p>" + paragraph(marked(text, marks)))
        return self._page(marked(self.query, []), "", "".join(panels))

    def __repr__(self) -> str:
        counts = f"{len(self.texts)} documents, {len(self.matches)} matches"
        return f"{type(self).__name__}({self.model}, {shortened(self.query)!r}, {counts})"


def _mark(text: str, match: tuple) -> Mark:
    style = f"background: {MATCH_COLOUR}; color: black; font-weight: bold"
    return Mark(match.start, match.end, text[match.start : match.end], style, f"position {match.position}")
