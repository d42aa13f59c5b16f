"""What each pair of a query word and a document word adds to a score q'Wd (SSI paper, equation 1)."""

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from pt_neural._arguments import checked_number
from pt_neural.explain.explanation import Document, Side, TextExplanation, both_texts, quoted, score_of
from pt_neural.explain.pictures import (
    CELL_WORD_LENGTH,
    SHADES_NOTE,
    HeatMap,
    Mark,
    draw_heat_map,
    shortened,
    word_marks,
)
from pt_neural.explain.words import divided, word_occurrences
from pt_neural.models.ssi.features import Features, TextParts, split_text
from pt_neural.models.ssi.ssi import SSI
from pt_neural.models.ssi.tf_idf import TFIDF
from pt_neural.rankers.vectors import Vectors, products
from pt_neural.text import TfIdf

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOTE = "What the pairs of a word with those of the other text add to the score. " + SHADES_NOTE
BARS = 4.0  # inches for pairs and their names
PAIRS_BELOW = 10  # the text

Weigh = Callable[[csr_array, csr_array | None], Vectors]


def explain_word_pairs(
    model: SSI | TFIDF, query: str, text: Document, *, pairs: int | None = None
) -> "WordPairsExplanation":
    """Show what each pair of a query word and a document word adds to the score.

    The score is a sum over all pairs (equation 1),

        f(q, d) = sum over i and j of q_i W_ij d_j,

    with the tf-idf q_i of word i in the query and d_j of word j in the document; each term of the sum is the
    contribution of a pair. A word that occurs several times counts as one word. With :class:`~pt_neural.TFIDF` W is the
    identity, and only words that query and document share contribute.

    With ``kind="correlated-hash"`` the contributions of hashed features are attributed to the words or 2-grams that
    were hashed: a pair of words has the sum of both models, and 2-grams, such as "pearl harbor", are listed beside the
    words and form pairs with one another. W_ij then includes the factors by which hashed features are scaled in both
    texts.

    Args:
        model: The model, fitted.
        query: The query's text.
        text: The document's text, or a dict of its fields.
        pairs: Number of pairs in frame and figure, the strongest first; None for all.

    Returns:
        An explanation; its frame is empty if query or document has no known word.

    Raises:
        ValueError: If ``pairs`` is below 1.

    Example::

        explanation = pn.explain(ssi, "pairwise distance", text)
        explanation.to_frame().head()
        explanation.plot()
    """
    checked_number("pairs", pairs, int, least=1, optional=True)
    query, text = both_texts(model, query, text)
    score = score_of(model, query, text)
    features, weigh = _features(model)
    queries, documents = split_text(features, "query", query), split_text(features, "document", text)
    contributions = _products(queries, documents, weigh, model.queries_per_block)
    words = pd.concat(
        [
            _words("query", query, text, queries, contributions.sum(axis=1)),
            _words("document", text, query, documents, contributions.sum(axis=0)),
        ],
        ignore_index=True,
    )
    same = np.array(queries.names, dtype=object)[:, None] == np.array(documents.names, dtype=object)
    return WordPairsExplanation(
        model=repr(model),
        query=query,
        text=text,
        score=score,
        note=NOTE,
        words=words.assign(match=words["match"] & features.shared),
        query_words=pd.DataFrame({"word": queries.names, "weight": queries.weights}),
        document_words=pd.DataFrame({"word": documents.names, "weight": documents.weights}),
        contributions=contributions,
        match=same & features.shared,
        pairs=pairs,
    )


def _features(model: SSI | TFIDF) -> tuple[Features, tuple[Weigh, Weigh]]:
    """The features that turn texts into vectors, and the functions that weigh query and document vectors."""
    if isinstance(model, SSI):
        return model.features, (model.network.weigh_queries, model.network.weigh_documents)
    weights = TfIdf(model.vocabulary, sublinear_tf=model.sublinear_tf)
    return Features(weights, weights), (_as_it_is, _as_it_is)


def _as_it_is(terms: csr_array, _: None) -> Vectors:
    """W = I."""
    return Vectors(None, terms)


def _products(queries: TextParts, documents: TextParts, weigh: tuple[Weigh, Weigh], size: int) -> np.ndarray:
    """What each pair of parts adds to the score: float32 of shape (parts of the query, parts of the document)."""
    weigh_queries, weigh_documents = weigh
    weighed = weigh_documents(*documents.vectors)
    contributions = np.zeros((len(queries.names), len(documents.names)), dtype=np.float32)
    for start in range(0, len(contributions), size):
        block = slice(start, start + size)
        rows, columns = np.indices(contributions[block].shape).reshape(2, -1)
        found = products(weigh_queries(*queries.vectors.take(block)), rows, weighed, columns)
        contributions[block] = found.reshape(contributions[block].shape)
    return contributions


def _words(side: Side, text: str, other: str, parts: TextParts, totals: np.ndarray) -> pd.DataFrame:
    """The words of a text, with what each adds to the score: its pairs, and half of its 2-grams' pairs."""
    names = [name.split(" ") for name in parts.names]
    counts = np.array([len(name) for name in names], dtype=np.int64)
    by_word = pd.Series(np.repeat(totals / counts, counts), index=[*chain.from_iterable(names)]).groupby(level=0).sum()
    words = word_occurrences(text, side, other)
    return words.assign(contribution=words["word"].map(by_word).fillna(0.0).astype(float))


@dataclass(frozen=True, repr=False)
class WordPairsExplanation(TextExplanation):
    """What each pair of a query word and a document word adds to the score.

    The score is the sum of all contributions; if there are none, it is the model's score for texts without known words.

    Attributes:
        words: One row per occurrence of a word, first of the query, then of the document, with the columns of
            :meth:`by_word`; ``contribution`` is the sum over all pairs of the word, for all its occurrences together,
            and half of the sum over the pairs of its 2-grams.
        query_words: One row per distinct word, or hashed 2-gram, of the query: ``word``, and ``weight``, its tf-idf.
        document_words: The same for the document.
        contributions: float32 of shape ``(len(query_words), len(document_words))``.
        match: Whether a pair is a word with itself, bool of that shape.
        pairs: Largest number of pairs in frame and figure; None for all.
    """

    words: pd.DataFrame
    query_words: pd.DataFrame
    document_words: pd.DataFrame
    contributions: np.ndarray
    match: np.ndarray
    pairs: int | None

    def to_frame(self) -> pd.DataFrame:
        """One row per pair that adds to the score or is a word with itself, the largest absolute contribution first.

        Returns:
            Frame with ``query_word``, ``document_word``, ``match`` (whether both are the same word) and
            ``contribution``, the product of ``query_weight`` (q_i), ``weight`` (W_ij) and ``document_weight`` (d_j).
        """
        return self._strongest(None)

    def _strongest(self, count: int | None) -> pd.DataFrame:
        """The first rows of the frame; None for all."""
        kept = min((limit for limit in (count, self.pairs) if limit is not None), default=None)
        rows, columns = np.nonzero((self.contributions != 0) | self.match)
        contribution = self.contributions[rows, columns]
        order = np.argsort(-np.abs(contribution), kind="stable")[:kept]
        rows, columns, contribution = rows[order], columns[order], contribution[order]
        query_weight = self.query_words["weight"].to_numpy()[rows]
        document_weight = self.document_words["weight"].to_numpy()[columns]
        return pd.DataFrame(
            {
                "query_word": self.query_words["word"].to_numpy(object)[rows],
                "document_word": self.document_words["word"].to_numpy(object)[columns],
                "match": self.match[rows, columns],
                "contribution": contribution,
                "query_weight": query_weight,
                "weight": contribution / (query_weight * document_weight),
                "document_weight": document_weight,
            }
        )

    def by_word(self) -> pd.DataFrame:
        """What all pairs of each word add to the score."""
        return divided(self.words)

    def plot(self, ax: "Axes | None" = None, *, words: int = 15, pairs: int = 12) -> "Axes":
        """Draw a heat map of query words by document words, and the strongest pairs.

        Words of both texts are bold. Words are ordered by their strongest pair; only the first words of
        long texts in this order are shown.

        Args:
            ax: Axes to draw the heat map on, without the pairs; None for a new figure with both.
            words: Number of distinct words of each text to show.
            pairs: Number of pairs to show beside them.

        Returns:
            The axes of the heat map; those of the pairs are the next ones of its figure.

        Raises:
            ValueError: If ``words`` or ``pairs`` is below 1.
        """
        count = checked_number("words", words, int, least=1)
        strongest = self._strongest(checked_number("pairs", pairs, int, least=1)).query("contribution != 0")
        rows, columns = (_largest(np.abs(self.contributions).max(axis=axis, initial=0), count) for axis in (1, 0))
        heat_map = HeatMap(
            rows=self.query_words["word"].iloc[rows].to_list(),
            columns=self.document_words["word"].iloc[columns].to_list(),
            cells=self.contributions[np.ix_(rows, columns)],
            matches=(self.match.any(axis=1)[rows], self.match.any(axis=0)[columns]),
            labels=("words of the query", "words of the document; both: strongest first"),
        )
        bars = strongest.set_index(pd.Index(_names(strongest)))
        title = [f"{self.model}: {self.score:.4f}", quoted(self.query)]
        return draw_heat_map(ax, heat_map, bars, title=title, width=BARS, nothing="no pair to show")

    def _marks(self, side: Side) -> list[Mark]:
        return word_marks(self._text_of(side), self.words[self.words["side"] == side])

    def _body_html(self) -> str:
        """The document's text, and its strongest pairs with the query."""
        strongest = self._strongest(PAIRS_BELOW).query("contribution != 0")
        pairs = zip(_names(strongest), strongest["contribution"], strict=True)
        listed = ", ".join(f"{escape(name)} {value:.4f}".replace(" -", " −") for name, value in pairs)
        return super()._body_html() + (f"<p>Strongest pairs of query and document: {listed}</p>" if listed else "")


def _largest(strengths: np.ndarray, count: int) -> np.ndarray:
    """Places of the largest numbers above 0."""
    return np.argsort(-strengths, kind="stable")[: min(count, np.count_nonzero(strengths))]


def _names(pairs: pd.DataFrame) -> list[str]:
    queries, documents = (
        [shortened(word, CELL_WORD_LENGTH) for word in pairs[column]] for column in ("query_word", "document_word")
    )
    return [f"{query} – {document}" for query, document in zip(queries, documents, strict=True)]
