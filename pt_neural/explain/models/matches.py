"""Where the terms of a query stand in documents (Duet paper, Figure 2)."""

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pt_neural._pictures import fit_labels
from pt_neural.explain.dropping import limits_of
from pt_neural.explain.explanation import Document, Explanation, document_text, query_text, quoted, read_end
from pt_neural.explain.pictures import BOLD, Mark, marked, paragraph, shortened, titled_axes
from pt_neural.rankers.ranker import Ranker
from pt_neural.text import token_spans, tokenise
from pt_neural.text.tokens import FIELD_END

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TERM_LENGTH = 20  # longer query terms are cut
ROW = 0.2  # inches
TITLE_ROWS = 2  # above each document


def explain_matches(
    model: Ranker,
    query: str,
    text: Document | Sequence[Document],
    *,
    labels: Sequence[float] | None = None,
    docnos: Sequence[str] | None = None,
) -> "MatchesExplanation":
    """Find the positions of the query's terms in documents (Duet paper, section 2, Figure 2).

    These are the exact matches that an interaction ranker sees among the terms that it reads. They do not depend on
    training.

    Args:
        model: The ranker; its ``query_terms`` and ``document_terms`` limit what it reads.
        query: The query's text.
        text: The document's text or a dict of its fields, or a list of several documents.
        labels: The relevance of each document, 0 and below for documents that are not relevant; None or NaN if unknown.
        docnos: The name of each document; by default their numbers.

    Returns:
        An explanation of all documents.

    Raises:
        ValueError: If there is no document, or not one label for each.
    """
    several = isinstance(text, list | tuple | np.ndarray | pd.Series)
    query, documents = query_text(query), text if several else [text]
    with_ends = [document_text(model, document, keep_ends=True) for document in documents]
    texts = [document.replace(FIELD_END, "\n") for document in with_ends]
    docnos = [f"document {number}" for number in range(len(texts))] if docnos is None else list(map(str, docnos))
    labels = [None] * len(texts) if labels is None else [_grade(label) for label in labels]
    if not texts:
        raise ValueError("there is no text to find matches in: give at least one document")
    for name, given in (("label", labels), ("docno", docnos)):
        if len(given) != len(texts):
            raise ValueError(f"there must be one {name} for each of the {len(texts)} texts, not {len(given)}")
    limits = [limits_of(model, document) for document in with_ends]
    terms = tokenise(query)[: limits[0]["query"]]
    spans = [token_spans(text)[: limit["document"]] for text, limit in zip(texts, limits, strict=True)]
    matches = [_matches(terms, number, labels[number], words) for number, words in enumerate(spans)]
    return MatchesExplanation(
        model=repr(model),
        query=query,
        note="Bold: words of the query, as far as the model reads query and document.",
        docnos=docnos,
        texts=texts,
        labels=labels,
        terms=terms,
        lengths=list(map(len, spans)),
        matches=pd.concat(matches),
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
        docnos: The names of the documents.
        texts: Their texts.
        labels: Their relevance, None if it is unknown.
        terms: The terms of the query.
        lengths: Number of terms of each document that the model reads.
        matches: One row per match; see :meth:`to_frame`.
    """

    docnos: list[str]
    texts: list[str]
    labels: list[float | None]
    terms: list[str]
    lengths: list[int]
    matches: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """One row per match of a query term and a document term, by document, query term and position.

        Returns:
            Frame with ``word``, ``start`` and ``end`` (in the document, in characters), ``document`` (its number, from
            0), ``label`` (NaN if unknown), ``query_position`` and ``position`` (in terms, from 0).
        """
        return self.matches.reset_index(drop=True)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw one block per document: query terms on the vertical axis, positions on the horizontal one (Figure 2).

        A short vertical line is a match, thick and black in relevant documents. What lies beyond the end of a document
        is grey.

        Args:
            ax: Axes to draw on; None for a new figure.
        """
        rows = max(1, len(self.terms))
        height = len(self.texts) * (rows + TITLE_ROWS)
        ax = titled_axes(ax, [quoted(self.query)], 7, 0.6 + ROW * height)
        longest = max(1, *self.lengths)
        tops = np.arange(len(self.texts)) * (rows + TITLE_ROWS) + TITLE_ROWS  # the row of the first term
        for number, (top, title, length) in enumerate(zip(tops, self._names(), self.lengths, strict=True)):
            relevant = (self.labels[number] or 0) > 0
            style = {"color": "black", "linewidth": 1.8} if relevant else {"color": "0.45", "linewidth": 0.9}
            matches = self.matches[self.matches["document"] == number]
            places = top + matches["query_position"]
            ax.vlines(matches["position"], places - 0.4, places + 0.4, **style)
            ax.fill_between([length - 0.5, longest], top - 0.5, top + rows - 0.5, color="0.9", linewidth=0, zorder=0)
            ax.hlines([top - 0.5, top + rows - 0.5], -0.5 - longest / 200, longest, color="0.6", linewidth=0.6)
            weight = "bold" if relevant else "normal"
            ax.text(0, top - 0.8, shortened(title, 60), fontsize="small", fontweight=weight, parse_math=False)
        labels = [shortened(term, TERM_LENGTH) for term in self.terms] * len(self.texts)
        ticks = (tops[:, None] + np.arange(len(self.terms))).ravel()
        ax.set_yticks(ticks, labels, fontsize="small", parse_math=False)
        ax.set(xlim=(-0.5 - longest / 200, longest), ylim=(height - 0.5, 0))
        ax.set_xlabel("position in the document, in terms")
        fit_labels(ax)
        return ax

    def _names(self) -> list[str]:
        return [
            docno + ("" if label is None else f": {'' if label > 0 else 'not '}relevant ({label:g})")
            for docno, label in zip(self.docnos, self.labels, strict=True)
        ]

    def _repr_html_(self) -> str:
        panels = []
        for number, (name, text) in enumerate(zip(self._names(), self.texts, strict=True)):
            found = self.matches[self.matches["document"] == number].drop_duplicates("position").sort_values("position")
            marks = [
                Mark(row.start, row.end, text[row.start : row.end], BOLD, f"position {row.position}")
                for row in found.itertuples()
            ]
            html = marked(text, marks, read_end(text, self.lengths[number]))
            panels.append(f"<p>{escape(name)}, {len(found):,} matches</p>{paragraph(html)}")
        return self._page(marked(self.query, []), "", "".join(panels))

    def __repr__(self) -> str:
        counts = f"{len(self.texts)} documents, {len(self.matches)} matches"
        return f"{type(self).__name__}({self.model}, {shortened(self.query)!r}, {counts})"
