"""What each term, and each window of terms, adds to a score of Lucene: by BM25, query likelihood or SDM."""

from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from pt_neural._arguments import checked_number
from pt_neural.explain.explanation import Document, Side, TextExplanation, query_text
from pt_neural.explain.pictures import DIRECTIONS, IN_BOTH, SHADES_NOTE, Mark, directions, draw_words, word_marks
from pt_neural.explain.words import WORD_COLUMNS, word_occurrences
from pt_neural.lucene.index.reader import Reader, look_up
from pt_neural.lucene.index.text import TextLoader
from pt_neural.lucene.search.queries import QueryBuilder, WeightedQueries, divide
from pt_neural.lucene.search.retrievers import BM25, QL
from pt_neural.lucene.search.scoring import FrequencySimilarity, Similarity, rescore
from pt_neural.lucene.search.sdm import SDM, SDMQueries, WindowedQueries, WindowedQuery
from pt_neural.lucene.search.windows import UNITS, PlainWindows, Window, count_windows
from pt_neural.text.tokens import FIELD_END

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TERM, PHRASE, ORDERED, NEAR = KINDS = ("term", "phrase", "neighbours", "near each other")
LABEL_LENGTH = 45
COLUMNS = ("term", "kind", "weight", "tf", "df", "cf", "idf", "probability", "length", "contribution")


def explain_lucene(
    model: BM25 | QL | SDM,
    query: str,
    text: Document | None = None,
    *,
    docno: str,
    query_toks: dict[str, float] | None = None,
) -> "LuceneExplanation":
    """Show what each term of a query, and each window of SDM, adds to Lucene's score of a document.

    Lucene's score is a sum over terms t, with the number tf of occurrences of t in the document, its weight w in the
    query, and the length l of the document as Lucene keeps it. BM25 adds, with the mean length m,

        w * idf * tf / (tf + k1 * (1 - b + b * l / m)),    idf = log(1 + (N - df + 0.5) / (df + 0.5)),

    and query likelihood, but nothing below 0 and nothing where tf is 0,

        w * (log(1 + tf / (mu * p)) + log(mu / (l + mu))),    p = (cf + 1) / (words of the collection + 1).

    SDM adds up terms and windows by one of these formulas, each times its weight.

    Args:
        model: The retriever.
        query: The query's text.
        text: The document's text, to shade; None for what the index holds of it.
        docno: The document.
        query_toks: Weights of analysed terms in place of the query, as in a column ``query_toks``.

    Returns:
        An explanation; contributions add up to Lucene's score.

    Raises:
        ValueError: If the document is not in the index.

    Example::

        explanation = pn.explain(index.bm25(), "pairwise distance", docno="scipy.spatial.distance.pdist")
        explanation.to_frame()
        explanation.plot()
    """
    query, reader = query_text(query), model.index.reader
    document = look_up(pd.Series([docno]), reader.docnos, reader.path)
    parts = _parts(model, query, query_toks)
    frame = pd.DataFrame({"term": [part.name for part in parts], "kind": [part.kind for part in parts]}, dtype=object)
    frame["weight"] = [part.weight for part in parts]
    frame["tf"] = _scores(reader, [part.frequency for part in parts], FrequencySimilarity(), document)
    frame[["df", "cf"]] = [_statistics(reader, model.field, part) for part in parts] or np.empty((0, 2))
    collection = reader.collection_statistics(model.field)
    frame["idf"] = np.log(1 + (collection[1] - frame["df"] + 0.5) / (frame["df"] + 0.5))
    frame["probability"] = (frame["cf"] + 1) / (collection[2] + 1)
    frame["length"] = length = reader.document_length(document[0], model.field)
    frame["contribution"] = _scores(reader, [part.score for part in parts], model.similarity(), document)
    text = _stored_text(model, docno) if text is None else text
    text = "\n".join(text.values()) if not isinstance(text, str) else text.replace(FIELD_END, "\n")
    return LuceneExplanation(
        model=repr(model),
        query=query,
        text=text,
        score=float(frame["contribution"].sum()),
        note=f"{SHADES_NOTE} Words are counted by their stems, {'and' if length else 'but'} documents "
        f"{f'by their length: {docno} has {length:,} terms' if length else 'of this field have no length'}, "
        f"{collection[2] / max(1, collection[1]):,.0f} on average.",
        docno=docno,
        terms=frame[list(COLUMNS)],
        words=_words(model, query, text, parts, frame["contribution"].to_numpy()),
    )


class _Part(NamedTuple):
    """A term or window of a query: its name, its analysed terms, and queries that score it and count it."""

    name: str
    kind: str
    weight: float
    terms: tuple[str, ...]
    window: Window | None
    score: tuple[QueryBuilder, Any]
    frequency: tuple[QueryBuilder, Any]


def _parts(model: BM25 | QL | SDM, query: str, query_toks: dict[str, float] | None) -> list[_Part]:
    analysis, field = model.index.analysis, model.field
    words, phrases = divide(query) if model.phrases and query_toks is None else (query, [])
    weights, term_weight, windows = Counter(analysis.terms(words)) if query_toks is None else query_toks, 1.0, []
    builder = model.builder(weighted=False)
    if isinstance(builder, SDMQueries):
        weights, term_weight, windows = builder.parts(query, query_toks)
    bags, windowed = WeightedQueries(field), WindowedQueries(model.index, field)
    parts = [
        _Part(term, TERM, term_weight * weight, (term,), None, (bags, {term: term_weight * weight}), (bags, {term: 1}))
        for term, weight in weights.items()
    ]
    for phrase in phrases:
        quoted = (builder, f'"{phrase}"')
        terms = tuple(analysis.terms(phrase))
        parts.append(_Part(" ".join(terms), PHRASE, 1.0, terms, None, quoted, quoted))
    for window, weight in windows:
        name, kind = f"{window.first} {window.second}", ORDERED if window.ordered else NEAR
        clause = WindowedQuery({}, 1.0, [(window, weight)])
        terms = (window.first, window.second)
        parts.append(_Part(name, kind, weight, terms, window, (windowed, clause), (PlainWindows(field), window)))
    return parts


def _scores(
    reader: Reader, queries: list[tuple[QueryBuilder, Any]], similarity: Similarity, document: np.ndarray
) -> np.ndarray:
    """The score of one document for each query, float64."""
    scores = np.zeros(len(queries))
    for builder in dict.fromkeys(builder for builder, _ in queries):
        places = [place for place, (own, _) in enumerate(queries) if own == builder]
        groups, documents = np.arange(len(places)), np.repeat(document, len(places))
        scores[places] = rescore(reader, builder, similarity, [queries[i][1] for i in places], groups, documents)
    return scores


def _statistics(reader: Reader, field: str, part: _Part) -> tuple[float, float]:
    """The number of documents with a term or window, and of its occurrences; NaN for a phrase, which has none."""
    if part.window is not None:
        documents, units = count_windows(reader, field, [part.window])[part.window]
        return documents, max(documents, round(units / UNITS))
    if part.kind == PHRASE:
        return np.nan, np.nan
    terms = list(part.terms)
    return reader.document_frequencies(terms, field)[0], reader.collection_frequencies(terms, field)[0]


def _stored_text(model: BM25 | QL | SDM, docno: str) -> str:
    """What the index holds of a document's text; empty if it holds none."""
    loader = TextLoader(model.index)
    try:
        row = loader.transform(pd.DataFrame({"docno": [docno]})).iloc[0]
    except ValueError:  # no text is kept
        return ""
    return "\n".join(value for value in row.drop("docno") if value)


def _words(
    model: BM25 | QL | SDM, query: str, text: str, parts: list[_Part], contributions: np.ndarray
) -> pd.DataFrame:
    """The words of both texts with the contributions of their stems, divided among a stem's occurrences."""
    totals: Counter[str] = Counter()
    for part, contribution in zip(parts, contributions, strict=True):
        for term in part.terms:
            totals[term] += contribution / len(part.terms)
    words = [word_occurrences(query, "query", text), word_occurrences(text, "document", query)]
    distinct = dict.fromkeys(chain.from_iterable(frame["word"] for frame in words))
    stems = {word: next(iter(model.index.analysis.terms(word)), "") for word in distinct}
    own = [frame["word"].map(stems) for frame in words]
    for frame, terms, others in zip(words, own, own[::-1], strict=True):
        counts = terms.groupby(terms).transform("size").astype(float)
        frame["match"] = (terms.isin(set(others)) & (terms != "")).astype(bool)
        frame["contribution"] = terms.map(totals).fillna(0.0).astype(float) / counts
    return pd.concat(words, ignore_index=True)


@dataclass(frozen=True, repr=False)
class LuceneExplanation(TextExplanation):
    """What each term and window of a query adds to a score of Lucene.

    Attributes:
        docno: The document.
        terms: One row per term or window; see :meth:`to_frame`.
        words: One row per occurrence of a word; see :meth:`by_word`.
    """

    docno: str
    terms: pd.DataFrame
    words: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """One row per term and window of the query, in their order; contributions add up to the score.

        Returns:
            Frame with ``term`` (analysed), ``kind`` (``"term"``, ``"phrase"``, ``"neighbours"`` or ``"near each
            other"``), ``weight`` (in the query), ``tf`` (occurrences in the document; of a window, weighted by
            closeness), ``df`` and ``cf`` (documents with it, and its occurrences, in the collection), ``idf``,
            ``probability`` (in the collection), ``length`` (of the document, as Lucene keeps it) and
            ``contribution``.
        """
        return self.terms.copy()

    def by_word(self) -> pd.DataFrame:
        """What each word adds to the score.

        Words are the same here if they have the same stem; a stem's contribution is divided among its occurrences, and
        a window's among its two terms.
        """
        return self.words[list(WORD_COLUMNS)]

    def plot(self, ax: "Axes | None" = None, *, terms: int = 15) -> "Axes":
        """Draw what each term and window adds, the strongest first, with its tf and idf.

        Args:
            ax: Axes to draw on; None for a new figure.
            terms: Number of terms and windows to show.

        Raises:
            ValueError: If ``terms`` is below 1.
        """
        shown = self.terms.sort_values("contribution", key=np.abs, ascending=False, kind="stable")
        shown = shown.head(checked_number("terms", terms, int, least=1))[::-1]
        names = [_label(row) for row in shown.itertuples()]
        return draw_words(
            ax,
            shown.set_index(pd.Index(names, dtype=object))[["contribution"]],
            {"contribution": directions(shown["contribution"])},
            DIRECTIONS,
            title=self._title(),
            label=f"contribution to the score ({IN_BOTH})",
            nothing="the query has no term",
            matches=shown["tf"] > 0,
            length=LABEL_LENGTH,
        )

    def _title(self) -> list[str]:
        return [*super()._title(), f"document {self.docno}"]

    def _marks(self, side: Side) -> list[Mark]:
        return word_marks(self._text_of(side), self.words[self.words["side"] == side])

    def _body_html(self) -> str:
        """The document's text, if it is known, and a table of the terms."""
        shown = self.terms.drop(columns="kind") if (self.terms["kind"] == TERM).all() else self.terms
        table = shown.to_html(index=False, border=0, float_format=lambda number: f"{number:.4g}", na_rep="")
        scrolled = f'<div style="overflow-x: auto">{table}</div>'
        return (super()._body_html() if self.text else "") + (scrolled if len(shown) else "")


def _label(row: Any) -> str:
    kind = {TERM: "", PHRASE: ' ""', ORDERED: " (neighbours)", NEAR: " (near)"}[row.kind]
    idf = "" if np.isnan(row.idf) else f", idf {row.idf:.1f}"
    return f"{row.term}{kind}: tf {row.tf:.2g}{idf}"
